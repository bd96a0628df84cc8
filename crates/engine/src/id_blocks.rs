//! Message IDs without a database read for each message.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use domain::MessageId;
use domain::ports::{Store, StoreError};

/// How many IDs a node reserves at a time. What a restart leaves unused is lost; there are nine quadrillion.
const BLOCK: u64 = 10_000;

/// Hands out IDs from a block that this node reserved.
pub struct IdBlocks {
    store: Arc<dyn Store>,
    block: Mutex<Range<u64>>,
    refill: tokio::sync::Mutex<()>,
}

impl IdBlocks {
    /// Starts with an empty block.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            block: Mutex::new(0..0),
            refill: tokio::sync::Mutex::new(()),
        }
    }

    /// The first of `count` consecutive IDs.
    pub async fn take(&self, count: u32) -> Result<MessageId, StoreError> {
        let count = u64::from(count);
        if let Some(first) = self.take_from_block(count) {
            return Ok(first);
        }
        let _only_one_refills = self.refill.lock().await;
        if let Some(first) = self.take_from_block(count) {
            return Ok(first);
        }
        let reserved = BLOCK.max(count);
        let first = self.store.reserve_ids(reserved).await?;
        *self.block.lock().expect("no holder panics") = first.get() + count..first.get() + reserved;
        Ok(first)
    }

    fn take_from_block(&self, count: u64) -> Option<MessageId> {
        let mut block = self.block.lock().expect("no holder panics");
        let left = block.end - block.start;
        if left < count {
            return None;
        }
        let first = block.start;
        block.start += count;
        MessageId::new(first)
    }
}
