//! Queued messages that this node holds. Those that it accepted itself are built from the submission, not read back.

use std::ops::Deref;
use std::sync::Arc;

use domain::MessageId;
use domain::delivery::QueuedMessage;
use domain::message::Submission;

use crate::cluster::held::{HeldRow, HeldRows};
use crate::cluster::node::Held;

/// A queued message in this node's memory. Its row is registered as held until this is dropped, also by a panic.
pub(in crate::sending) struct HeldMessage {
    held: Held<QueuedMessage>,
    _row: HeldRow<MessageId>,
}

impl HeldMessage {
    pub(in crate::sending) fn register(
        rows: &Arc<HeldRows<MessageId>>,
        held: Held<QueuedMessage>,
    ) -> Self {
        let row = rows.register(held.item.id, held.item.claim.attempt);
        Self { held, _row: row }
    }
}

impl Deref for HeldMessage {
    type Target = Held<QueuedMessage>;

    fn deref(&self) -> &Held<QueuedMessage> {
        &self.held
    }
}

/// One queued message for each recipient of a submission that a node holds and that is not refused.
pub(in crate::sending) fn held_messages(
    submission: &Submission,
) -> impl Iterator<Item = Held<QueuedMessage>> {
    let holder = submission.holder.node().into_iter();
    holder.flat_map(move |by| {
        let recipients = submission.recipients.iter();
        let sent = recipients.filter(|recipient| recipient.refused.is_none());
        sent.map(move |recipient| Held {
            by,
            item: QueuedMessage::new(submission, recipient, 1),
        })
    })
}
