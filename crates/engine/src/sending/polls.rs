//! Messages whose reports carriers ask for.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::MessageId;
use domain::ports::{AwaitedReport, DuePoll, PollStore, ReceiptError, ReportPolls, StoreError};

use crate::batcher::{BatchError, Batcher, Limits};

/// How many messages may wait to be stored. Carriers wait for it, so this limits memory, not traffic.
const QUEUE: usize = 8192;
/// Maximum number of messages in one transaction.
const BATCH: usize = 512;

/// Stores the messages that carriers must ask about, many in one transaction.
pub struct PolledMessages {
    store: Arc<dyn PollStore>,
    batcher: Batcher<AwaitedReport, (), StoreError>,
}

impl PolledMessages {
    /// Must be called inside a tokio runtime.
    pub fn start(store: Arc<dyn PollStore>) -> Arc<Self> {
        let limits = Limits {
            queue: QUEUE,
            batch: BATCH,
            writes: 1,
            interval: Duration::ZERO,
        };
        let batcher = Batcher::start(limits, {
            let store = store.clone();
            move |batch: Vec<AwaitedReport>| {
                let store = store.clone();
                async move {
                    store.add_polls(&batch).await?;
                    Ok(vec![(); batch.len()])
                }
            }
        });
        Arc::new(Self { store, batcher })
    }
}

#[async_trait]
impl ReportPolls for PolledMessages {
    async fn add(&self, awaited: AwaitedReport) -> Result<(), ReceiptError> {
        self.batcher
            .write(awaited)
            .await
            .map_err(|error| match error {
                BatchError::Full => ReceiptError::Busy,
                BatchError::Stopped => ReceiptError::Stopping,
                BatchError::Write(_) => ReceiptError::Store,
            })
    }

    async fn claim(
        &self,
        carrier: &str,
        interval: Duration,
        limit: u32,
    ) -> Result<Vec<DuePoll>, StoreError> {
        self.store.claim_polls(carrier, interval, limit).await
    }

    async fn remove(&self, carrier: &str, ids: &[MessageId]) -> Result<(), StoreError> {
        self.store.remove_polls(carrier, ids).await
    }
}
