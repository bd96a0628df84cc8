//! Parcels of what this node accepted itself: nothing is read back.

use domain::delivery::{Claim, Parcel};
use domain::message::{Recipient, Submission};

use crate::node::Held;

/// One parcel for each recipient of a submission that a node holds.
pub(super) fn parcels(submission: &Submission) -> impl Iterator<Item = Held<Parcel>> {
    let holder = submission.holder.node().into_iter();
    holder.flat_map(move |by| {
        submission.recipients.iter().map(move |recipient| Held {
            by,
            it: parcel(submission, recipient),
        })
    })
}

fn parcel(submission: &Submission, recipient: &Recipient) -> Parcel {
    Parcel {
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
        pool: None,
        unknown_tries: 0,
    }
}
