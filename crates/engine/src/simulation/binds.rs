//! Binds: the simulated network has none, and every node reaches it.

use async_trait::async_trait;
use domain::ports::{BindShare, BindStore, BindWish, Shared, StoreError};
use domain::{NodeId, PoolId};

use super::door::Door;
use super::model::Model;

#[async_trait]
impl BindStore for Door {
    async fn share_binds(
        &self,
        node: NodeId,
        wishes: &[BindWish],
    ) -> Result<Option<Shared>, StoreError> {
        let share = BindShare {
            held: 0,
            surplus: 0,
            share: 0,
            pool: PoolId::new(1).expect("in range"),
            is_up_elsewhere: false,
        };
        let shared = Shared {
            shares: vec![share; wishes.len()],
            left: Vec::new(),
            is_alone: true,
        };
        let look = move |model: &mut Model, _| model.is_known(node).then_some(shared);
        self.call("share", look).await
    }

    async fn give_up_binds(&self, _: NodeId, _: &str, _: u16) -> Result<(), StoreError> {
        Ok(())
    }

    async fn release_pools(&self, _: NodeId, _: u32) -> Result<u64, StoreError> {
        Ok(0)
    }
}
