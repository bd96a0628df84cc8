//! Message IDs, reserved in blocks: no database read for each message.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use domain::MessageId;
use domain::kill_point::{KillPoint, pass};
use domain::ports::{ID_BLOCK_LIFETIME, MessageStore, StoreError};
use tokio::time::Instant;

/// How many IDs a node reserves at a time. A restart loses the unused ones, but there are nine quadrillion.
const BLOCK: u64 = 10_000;

pub struct IdBlocks {
    store: Arc<dyn MessageStore>,
    block: Mutex<Block>,
    refill: tokio::sync::Mutex<()>,
}

struct Block {
    first: u64,
    left: Range<u64>,
    reserved: Instant,
}

impl IdBlocks {
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

    /// Takes `count` consecutive IDs and returns the first.
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
        let requested_at = Instant::now();
        let first = self.store.reserve_ids(reserved).await?;
        pass(KillPoint::IdsReserved);
        *self.block.lock().expect("no holder panics") = Block {
            first: first.get(),
            left: first.get() + count..first.get() + reserved,
            reserved: requested_at,
        };
        Ok(first)
    }

    /// Drops the current block if it contains this ID: the database handed the block out twice.
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
