//! The operators' block list.

use std::sync::Arc;

use domain::Clock;
use domain::block::{BlockRecord, BlockRule, MAX_BLOCK_RULES};
use domain::ports::{AuditStore, OptOutStore, StoreError};

use super::follow::ListFollower;
use crate::audit::{Action, Actor, Audit};

#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    #[error(
        "the block list has {MAX_BLOCK_RULES} rules, which is the limit; remove some, or use prefixes"
    )]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads and changes the block list.
pub struct Blocks {
    store: Arc<dyn OptOutStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    /// `None` in a command, which sends nothing.
    follower: Option<Arc<ListFollower>>,
}

impl Blocks {
    pub fn new(
        store: Arc<dyn OptOutStore>,
        audit: Arc<dyn AuditStore>,
        clock: Arc<dyn Clock>,
        follower: Option<Arc<ListFollower>>,
    ) -> Self {
        Self {
            store,
            audit: Audit::new(audit, clock.clone()),
            clock,
            follower,
        }
    }

    /// Adds a rule. Returns `false` if it was there.
    pub async fn add(&self, by: &Actor, rule: &BlockRule) -> Result<bool, BlockError> {
        if self.store.list_block_rules().await?.len() >= MAX_BLOCK_RULES {
            return Err(BlockError::Full);
        }
        let recorded = self
            .audit
            .record(by, None, Action::BlockAdd, rule, "")
            .await?;
        let added = self.store.add_block_rule(rule, self.clock.now()).await;
        let added = recorded.done(added).await?;
        self.follow().await;
        Ok(added)
    }

    /// Removes a rule. Returns whether it was there.
    pub async fn remove(&self, by: &Actor, rule: &BlockRule) -> Result<bool, StoreError> {
        let recorded = self
            .audit
            .record(by, None, Action::BlockRemove, rule, "")
            .await?;
        let removed = match self.store.remove_block_rule(rule).await {
            Ok(false) => {
                recorded.refused(&"it is not on the list").await;
                false
            }
            removed => recorded.done(removed).await?,
        };
        self.follow().await;
        Ok(removed)
    }

    /// The whole list, sorted by kind and value.
    pub async fn list(&self) -> Result<Vec<BlockRecord>, StoreError> {
        self.store.list_block_rules().await
    }

    /// Applies a change on this node at once. If that fails, the node follows a little later.
    async fn follow(&self) {
        if let Some(follower) = &self.follower
            && let Err(error) = follower.refresh().await
        {
            tracing::warn!(%error, "a change of the block list is stored, and takes effect later");
        }
    }
}
