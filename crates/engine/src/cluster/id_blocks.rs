//! Message IDs without a database read for each message.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use domain::MessageId;
use domain::kill_point::{KillPoint, pass};
use domain::ports::{ID_BLOCK_LIFETIME, MessageStore, StoreError};
use tokio::time::Instant;

/// How many IDs a node reserves at a time. What a restart leaves unused is lost; there are nine quadrillion.
const BLOCK: u64 = 10_000;

/// Hands out IDs from a block that this node reserved.
pub struct IdBlocks {
    store: Arc<dyn MessageStore>,
    block: Mutex<Block>,
    refill: tokio::sync::Mutex<()>,
}

/// IDs that are left, and when they were reserved.
struct Block {
    /// The first that was reserved.
    first: u64,
    left: Range<u64>,
    reserved: Instant,
}

impl IdBlocks {
    /// Starts with an empty block.
    pub fn new(store: Arc<dyn MessageStore>) -> Self {
        Self {
            store,
            block: Mutex::new(Block {
                first: 0,
                left: 0..0,
                reserved: Instant::now(),
            }),
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
        let asked = Instant::now();
        let first = self.store.reserve_ids(reserved).await?;
        pass(KillPoint::IdsReserved);
        *self.block.lock().expect("no holder panics") = Block {
            first: first.get(),
            left: first.get() + count..first.get() + reserved,
            reserved: asked,
        };
        Ok(first)
    }

    /// Drops the block that an ID is from, if it is still in use: one of its IDs is taken, so the database handed it out
    /// again.
    pub(crate) fn discard(&self, taken: MessageId) {
        let mut block = self.block.lock().expect("no holder panics");
        if (block.first..block.left.end).contains(&taken.get()) {
            block.left = 0..0;
        }
    }

    fn take_from_block(&self, count: u64) -> Option<MessageId> {
        let mut block = self.block.lock().expect("no holder panics");
        let left = block.left.end - block.left.start;
        if left < count || block.reserved.elapsed() >= ID_BLOCK_LIFETIME.unsigned_abs() {
            return None;
        }
        let first = block.left.start;
        block.left.start += count;
        MessageId::new(first)
    }
}
