//! Stores submissions, many in one transaction, and hands them to dispatch.

use std::sync::Arc;

use domain::kill_point::{KillPoint, pass};
use domain::message::{AcceptedMessages, SendTime, Submission};
use domain::ports::{AcceptResult, Accepted, Ended, StoreError, WorkStore};
use domain::{Channel, Clock, Outcome};

use super::health::WriteHealth;
use crate::cluster::id_blocks::IdBlocks;
use crate::monitoring::ended::EndedCounters;
use crate::sending::dispatch::{Dispatch, Reservations};

/// A submission with the slots that are reserved for its messages.
pub(super) struct QueuedSubmission {
    pub(super) submission: Submission,
    pub(super) reservations: Option<Reservations>,
}

/// The result of storing a submission.
pub(super) struct StoreResult {
    pub(super) result: AcceptResult,
    /// The IDs under which it is stored, if it is.
    pub(super) receipt: AcceptedMessages,
}

/// How often a batch gets other IDs because one of them is taken.
const MAX_RENUMBERED: u32 = 5;

/// Writes batches of submissions.
pub(super) struct SubmissionWriter {
    pub(super) store: Arc<dyn WorkStore>,
    pub(super) ids: Arc<IdBlocks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) health: Arc<WriteHealth>,
    pub(super) dispatch: Option<Arc<Dispatch>>,
    pub(super) ended: Arc<EndedCounters>,
}

impl SubmissionWriter {
    /// Stores a batch and hands stored messages to dispatch. This is not done in the callers' own tasks, so that a
    /// caller that hangs up does not take its message with it.
    pub(super) async fn write(&self, batch: Vec<QueuedSubmission>) -> Vec<StoreResult> {
        let (batch, reservations): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|entry| (entry.submission, entry.reservations))
            .unzip();
        let mut batch = Arc::new(batch);
        let _open = self.dispatch.as_ref().map(|dispatch| dispatch.open_write());
        pass(KillPoint::AcceptBegins);
        let results = self.accept(&mut batch).await;
        if results.iter().any(Result::is_ok) {
            pass(KillPoint::AcceptCommitted);
            self.health.succeeded();
            count(&batch, &results);
            for ((submission, result), reserved) in batch.iter().zip(&results).zip(reservations) {
                if matches!(result, Ok(Accepted::Stored)) {
                    self.hand_over(submission, reserved);
                }
            }
            pass(KillPoint::AcceptHandedOver);
        }
        // The submissions of a failed transaction share its error.
        if let Some(error) = results.iter().find_map(|result| result.as_ref().err()) {
            self.health.failed(error, self.clock.now());
            // The batch may still be stored; then the comparison puts its messages back in the queue.
            if let Some(dispatch) = &self.dispatch {
                dispatch.write_failed();
            }
        }
        let receipts = batch.iter().map(Submission::receipt);
        let written = results.into_iter().zip(receipts);
        written
            .map(|(result, receipt)| StoreResult { result, receipt })
            .collect()
    }

    fn hand_over(&self, submission: &Submission, reserved: Option<Reservations>) {
        if let (Some(reserved), Some(dispatch)) = (reserved, &self.dispatch) {
            dispatch.hand_over(reserved, submission);
        }
        self.count_refused(submission);
        if submission.send != SendTime::Now {
            pass(KillPoint::ScheduleStored);
        }
    }

    /// Refused messages ended in the same transaction.
    fn count_refused(&self, submission: &Submission) {
        for recipient in &submission.recipients {
            let Some(code) = recipient.refused else {
                continue;
            };
            let ended = Ended {
                id: recipient.id,
                channel: submission.channel,
                network: recipient.network,
                named: None,
                outcome: Outcome::Failed(code),
                began_at: submission.accepted_at,
                ended_at: submission.accepted_at,
                callback: None,
                trace: None,
            };
            self.ended.count(None, &ended);
        }
    }

    /// Stores a batch. Submissions with IDs that are taken are stored again under other IDs.
    async fn accept(&self, batch: &mut Arc<Vec<Submission>>) -> Vec<AcceptResult> {
        let mut results = self.store.accept(batch.clone()).await;
        for _ in 0..MAX_RENUMBERED {
            let is_taken = |result: &AcceptResult| matches!(result, Err(error) if matches!(**error, StoreError::IdTaken { .. }));
            let taken: Vec<usize> = (0..results.len())
                .filter(|index| is_taken(&results[*index]))
                .collect();
            if taken.is_empty() {
                break;
            }
            tracing::warn!(
                submissions = taken.len(),
                "the database handed out message IDs twice; going on with other IDs"
            );
            let Ok(again) = self.renumber(Arc::<Vec<_>>::make_mut(batch), &taken).await else {
                break;
            };
            let stored = self.store.accept(Arc::new(again)).await;
            for (index, result) in taken.into_iter().zip(stored) {
                results[index] = result;
            }
        }
        results
    }

    /// Gives these submissions IDs of another block, because the store does not say which ID is taken.
    async fn renumber(
        &self,
        batch: &mut [Submission],
        taken: &[usize],
    ) -> Result<Vec<Submission>, StoreError> {
        for index in taken {
            self.ids.discard(batch[*index].receipt().first);
        }
        for index in taken {
            let count = batch[*index].receipt().messages;
            let first = self.ids.take(count).await?;
            batch[*index] = batch[*index].clone().renumbered(first);
        }
        Ok(taken.iter().map(|index| batch[*index].clone()).collect())
    }
}

fn count(batch: &[Submission], results: &[AcceptResult]) {
    let stored = batch
        .iter()
        .zip(results)
        .filter(|(_, result)| matches!(result, Ok(Accepted::Stored)));
    let mut counted = [(0, 0); Channel::ALL.len()];
    for (submission, _) in stored {
        let receipt = submission.receipt();
        if let Some(trace) = submission.trace {
            let (message_id, messages) = (receipt.first, receipt.messages);
            log_traced!(trace, "accepted", %message_id, messages);
        }
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
