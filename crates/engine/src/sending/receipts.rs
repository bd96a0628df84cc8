//! Receipts: what carriers tell us about parts that they took.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::Timestamp;
use domain::delivery::{CarrierRef, Receipt};
use domain::kill_point::{KillPoint, pass};
use domain::ports::{Matched, ReceiptError, ReceiptSink, StoreError, WorkStore};

use crate::batcher::{BatchError, Batcher, Limits};
use crate::callbacks::Callbacks;
use crate::cluster::node::Node;
use crate::monitoring::ended::EndedCounters;

/// How many receipts may wait to be stored. Carriers wait for their answer, so this limits memory, not traffic.
const QUEUE: usize = 8192;
/// Maximum number of receipts in one transaction.
const BATCH: usize = 512;

/// Stores receipts, and with the final one the message's final state and its delivery report.
pub struct Receipts {
    store: Arc<dyn WorkStore>,
    batcher: Batcher<Receipt, Matched, StoreError>,
}

impl Receipts {
    /// Must be called inside a tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn WorkStore>,
        node: Arc<Node>,
        callbacks: Arc<Callbacks>,
        ended: Arc<EndedCounters>,
    ) -> Arc<Self> {
        let limits = Limits {
            queue: QUEUE,
            batch: BATCH,
            writes: 1,
            interval: Duration::ZERO,
        };
        let batcher = Batcher::start(limits, {
            let store = store.clone();
            move |batch| {
                let (callbacks, ended) = (callbacks.clone(), ended.clone());
                settle(store.clone(), node.clone(), callbacks, ended, batch)
            }
        });
        Arc::new(Self { store, batcher })
    }

    /// Returns once all accepted receipts are stored.
    pub(crate) async fn stop(&self) {
        self.batcher.stop().await;
    }
}

#[async_trait]
impl ReceiptSink for Receipts {
    async fn receive(&self, receipt: Receipt) -> Result<bool, ReceiptError> {
        match self.batcher.write(receipt).await {
            Ok(matched) => Ok(matched != Matched::Kept),
            Err(BatchError::Full) => Err(ReceiptError::Busy),
            Err(BatchError::Stopped) => Err(ReceiptError::Stopping),
            Err(BatchError::Write(_)) => Err(ReceiptError::Store),
        }
    }

    async fn mark_seen(&self, of: CarrierRef, at: Timestamp) -> Result<(), ReceiptError> {
        let marked = self.store.mark_seen(&of, at).await;
        marked.map(drop).map_err(|_| ReceiptError::Store)
    }
}

async fn settle(
    store: Arc<dyn WorkStore>,
    node: Arc<Node>,
    callbacks: Arc<Callbacks>,
    counters: Arc<EndedCounters>,
    batch: Vec<Receipt>,
) -> Result<Vec<Matched>, StoreError> {
    let reservation = callbacks.reserve(batch.len());
    let holder = node.id();
    let batch = Arc::new(batch);
    let mut result = store
        .settle_receipts(holder, batch.clone(), reservation.is_some())
        .await;
    match &mut result {
        Ok(matched) => {
            pass(KillPoint::ReceiptCommitted);
            for (matched, receipt) in matched.iter().zip(&*batch) {
                if let Matched::Ended(ended) = matched {
                    counters.count(Some(&receipt.of.carrier), ended);
                }
            }
            let ended = matched.iter_mut().filter_map(|matched| match matched {
                Matched::Ended(ended) => Some(ended),
                Matched::Noted | Matched::Repeated | Matched::Kept => None,
            });
            callbacks.take(holder, reservation, ended);
        }
        Err(error) => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::error!(%error, cause, "receipts cannot be stored; the carrier keeps them");
            callbacks.write_failed();
        }
    }
    result
}
