//! A carrier that routing rules name but this node does not have. Other nodes may have it.

use std::sync::Arc;

use async_trait::async_trait;
use domain::Code;
use domain::delivery::{CarrierAnswer, QueuedMessage};
use domain::ports::{Carrier, CarrierState, Health};

/// Stands for a carrier that this node does not have. It counts as down.
pub struct AbsentCarrier {
    name: String,
}

impl AbsentCarrier {
    /// The word for its kind.
    pub const KIND: &'static str = "absent";

    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
        })
    }
}

#[async_trait]
impl Carrier for AbsentCarrier {
    fn name(&self) -> &str {
        &self.name
    }

    fn window(&self) -> usize {
        1
    }

    fn health(&self) -> Health {
        Health::Down
    }

    fn state(&self) -> CarrierState {
        CarrierState {
            health: Health::Down,
            links_up: 0,
            links: 0,
            links_total: 0,
            note: Some("this node does not have it".to_owned()),
        }
    }

    async fn stop(&self) {}

    async fn submit(&self, _: &QueuedMessage) -> CarrierAnswer {
        CarrierAnswer::NotNow(Code::LINK_DOWN)
    }
}
