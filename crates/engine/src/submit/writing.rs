//! Storing submissions, many in one transaction, and handing them over.

use std::sync::Arc;

use domain::kill_point::{KillPoint, pass};
use domain::message::{SendTime, Submission, SubmitReceipt};
use domain::ports::{Accepted, StoreError, WorkStore};
use domain::{Channel, Clock};

use super::health::WriteHealth;
use crate::dispatch::{Dispatch, Places};
use crate::id_blocks::IdBlocks;

/// A submission, and the places that are kept for it in the lanes of this node.
pub(super) struct Entry {
    pub(super) submission: Submission,
    pub(super) places: Option<Places>,
}

/// What became of a submission.
pub(super) struct Written {
    pub(super) outcome: Accepted,
    /// The IDs under which it is stored, if it is.
    pub(super) receipt: SubmitReceipt,
}

/// How often a batch gets other IDs when one of them is taken.
const NUMBERED_ANEW: u32 = 5;

/// What a write of submissions needs.
pub(super) struct Writing {
    pub(super) store: Arc<dyn WorkStore>,
    pub(super) ids: Arc<IdBlocks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) health: Arc<WriteHealth>,
    pub(super) dispatch: Option<Arc<Dispatch>>,
}

impl Writing {
    /// Stores a batch and hands over what is stored. This happens here and not in the callers' own tasks: a caller that
    /// hangs up must not take its message with it.
    pub(super) async fn write(
        self: Arc<Self>,
        batch: Vec<Entry>,
    ) -> Result<Vec<Written>, StoreError> {
        let (batch, places): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|entry| (entry.submission, entry.places))
            .unzip();
        let mut batch = Arc::new(batch);
        let _open = self.dispatch.as_ref().map(|dispatch| dispatch.open_write());
        pass(KillPoint::AcceptBegins);
        let result = self.accept(&mut batch).await;
        match &result {
            Ok(outcomes) => {
                pass(KillPoint::AcceptCommitted);
                self.health.succeeded();
                count(&batch, outcomes);
                for ((submission, outcome), places) in batch.iter().zip(outcomes).zip(places) {
                    if let (Accepted::Stored, Some(places), Some(dispatch)) =
                        (outcome, places, &self.dispatch)
                    {
                        dispatch.hand_over(places, submission);
                    }
                    if *outcome == Accepted::Stored && submission.send != SendTime::Now {
                        pass(KillPoint::ScheduleStored);
                    }
                }
                pass(KillPoint::AcceptHandedOver);
            }
            Err(error) => {
                self.health.failed(error, self.clock.now());
                // It may be stored all the same, or be stored later: the comparison puts it back in the queue.
                if let Some(dispatch) = &self.dispatch {
                    dispatch.write_failed();
                }
            }
        }
        let receipts = batch.iter().map(Submission::receipt);
        let written = |outcomes: Vec<Accepted>| {
            let pairs = outcomes.into_iter().zip(receipts);
            pairs.map(|(outcome, receipt)| Written { outcome, receipt })
        };
        Ok(written(result?).collect())
    }

    /// Stores a batch, with other IDs when some of its own are taken.
    async fn accept(&self, batch: &mut Arc<Vec<Submission>>) -> Result<Vec<Accepted>, StoreError> {
        let mut numbered_anew = 0;
        loop {
            match self.store.accept(batch.clone()).await {
                Err(StoreError::IdTaken { source }) if numbered_anew < NUMBERED_ANEW => {
                    tracing::warn!(
                        %source,
                        "a message ID was handed out twice by the database; going on with other IDs"
                    );
                    numbered_anew += 1;
                    self.number_anew(Arc::make_mut(batch).as_mut_slice()).await?;
                }
                result => return result,
            }
        }
    }

    /// Gives every submission other IDs, of another block: which of them is taken is not known.
    async fn number_anew(&self, batch: &mut [Submission]) -> Result<(), StoreError> {
        for submission in &mut *batch {
            self.ids.discard(submission.receipt().first);
        }
        for submission in batch {
            let count = submission.receipt().messages;
            submission.number_from(self.ids.take(count).await?);
        }
        Ok(())
    }
}

fn count(batch: &[Submission], outcomes: &[Accepted]) {
    let stored = batch
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| **outcome == Accepted::Stored);
    let mut counted = [(0, 0); Channel::ALL.len()];
    for (submission, _) in stored {
        let receipt = submission.receipt();
        let (messages, parts) = &mut counted[submission.channel.number()];
        *messages += u64::from(receipt.messages);
        *parts += u64::from(receipt.parts);
    }
    for (channel, (messages, parts)) in Channel::ALL.into_iter().zip(counted) {
        if messages > 0 {
            metrics::counter!("switchboard_messages_accepted_total", "channel" => channel.name())
                .increment(messages);
            metrics::counter!("switchboard_parts_accepted_total", "channel" => channel.name())
                .increment(parts);
        }
    }
    metrics::counter!("switchboard_accept_batches_total").increment(1);
}
