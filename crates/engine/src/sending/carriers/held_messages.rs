//! Queued messages that this node holds. Those that it accepted itself are built from the submission, not read back.

use std::ops::Deref;
use std::sync::Arc;

use domain::MessageId;
use domain::delivery::{Claim, QueuedMessage};
use domain::message::{Recipient, Submission};

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

/// One queued message for each recipient of a submission that a node holds.
pub(in crate::sending) fn held_messages(
    submission: &Submission,
) -> impl Iterator<Item = Held<QueuedMessage>> {
    let holder = submission.holder.node().into_iter();
    holder.flat_map(move |by| {
        submission.recipients.iter().map(move |recipient| Held {
            by,
            item: queued_message(submission, recipient),
        })
    })
}

fn queued_message(submission: &Submission, recipient: &Recipient) -> QueuedMessage {
    QueuedMessage {
        id: recipient.id,
        account: submission.account,
        channel: submission.channel,
        to: recipient.to,
        from: submission.from.clone(),
        text: submission.text.clone(),
        interactive: submission.interactive.clone(),
        shape: submission.shape,
        udh: submission.udh.clone(),
        priority: submission.priority,
        test_mode: submission.test_mode,
        expires_at: submission.expires_at,
        claim: Claim {
            due_at: submission.due_at(),
            attempt: 1,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
    }
}
