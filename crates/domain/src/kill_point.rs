//! Named points at which a debug build can be killed, as by a crash. The fault tests kill the service at each of them.
//!
//! The program sets a hook that does it. A release build has neither the hook nor the names, and [`pass`] is empty.

/// Declares the points: variant, name, and what has happened when a process gets there.
macro_rules! kill_points {
    ($($variant:ident $name:literal $meaning:literal)+) => {
        /// A point of an operation that must survive a crash.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum KillPoint {
            $(#[doc = $meaning] $variant,)+
        }

        #[cfg(debug_assertions)]
        impl KillPoint {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name that a test gives.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

kill_points! {
    RequestCame "request.came" "A request is about to be processed; earlier responses on its connection are written."
    AnswerMade "answer.made" "The response is ready, but not written."
    IdsReserved "ids.reserved" "A block of IDs is reserved. No ID of it is used yet."
    AcceptBegins "accept.begins" "Submissions are about to be stored."
    AcceptInside "accept.inside" "Submissions with idempotency keys are written, but not committed."
    AcceptCommitted "accept.committed" "Submissions are stored, but neither queued in memory nor answered."
    AcceptHandedOver "accept.handed_over" "Stored submissions are queued in memory, but not answered."
    ScheduleStored "schedule.stored" "A scheduled message is stored, but its caller has no answer."
    CancelBegins "cancel.begins" "A message is about to be cancelled."
    CancelCommitted "cancel.committed" "A message is cancelled and refunded, but its caller has no answer."
    ClaimInside "claim.inside" "Due messages are claimed, but not committed."
    ClaimCommitted "claim.committed" "Due messages are claimed, but in no lane yet."
    SubmitBegins "submit.begins" "A message is about to be handed to a carrier."
    PartAnswered "submit.part_answered" "The carrier has answered for one part, and nothing of it is stored."
    SubmitAnswered "submit.answered" "The carrier has answered for all parts, and nothing of it is stored."
    SettleBegins "settle.begins" "Results of sending are about to be stored."
    SettleInside "settle.inside" "Results of sending are written, but not committed."
    SettleCommitted "settle.committed" "Results of sending are stored, but their reservations are not released."
    RefundInside "refund.inside" "A refund is written, but not committed."
    ReceiptCame "receipt.came" "A receipt has arrived, and nothing of it is stored."
    ReceiptInside "receipt.inside" "A receipt and the final state of its message are written, but not committed."
    ReceiptCommitted "receipt.committed" "A receipt is stored, but neither reported nor acknowledged."
    ReceiptStored "receipt.stored" "A receipt is stored and about to be acknowledged to the carrier."
    TextCame "text.came" "A text from a handset has arrived, and nothing of it is stored."
    TextStored "text.stored" "A text from a handset is stored and about to be acknowledged to the carrier."
    CallbackClaimed "callback.claimed" "Due callbacks are claimed, but in no queue yet."
    CallbackBegins "callback.begins" "A callback is about to be sent."
    CallbackReceived "callback.received" "A callback was received, but that is not stored."
    CallbackSettled "callback.settled" "Results of callbacks are stored."
    SmppMessageStored "smpp.message_stored" "A message of an SMPP client is stored, but not answered."
    SmppReceiptAccepted "smpp.receipt_accepted" "An SMPP client has acknowledged a receipt, but that is not stored."
    PinStored "pin.stored" "A sender ID with its PIN is stored, but the PIN is not sent."
    PinSent "pin.sent" "A PIN is accepted for sending, but its caller has no answer."
    NodeJoined "node.joined" "A node has joined, but does not work yet."
    NodeBeaten "node.beaten" "A node has renewed its heartbeat, but not looked for dead nodes."
    DeadGivenUp "node.dead_given_up" "Everything that a dead node held is released."
    NodeLeaves "node.leaves" "A node has stopped its work, but not released what it holds."
    NodeLeft "node.left" "A node has released what it held, and still runs for a moment."
    CreditCommitted "credit.committed" "Money is credited, but its caller has no answer."
    TokenRevoked "token.revoked" "A token is revoked, but its caller has no answer."
    CatalogueBegins "catalogue.begins" "A price list or reference data is about to be stored."
    CatalogueImported "catalogue.imported" "A price list or reference data is stored, but not in force on this node."
    PruneStep "prune.step" "A step of retention is done."
}

#[cfg(debug_assertions)]
static HOOK: std::sync::OnceLock<fn(KillPoint)> = std::sync::OnceLock::new();

/// Sets the function that is called at each point; only the first call counts.
#[cfg(debug_assertions)]
pub fn set_hook(hook: fn(KillPoint)) {
    HOOK.get_or_init(|| hook);
}

#[cfg(debug_assertions)]
pub fn pass(point: KillPoint) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "so that nothing at all is left of it in a release"
)]
pub const fn pass(_point: KillPoint) {}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::KillPoint;
    use std::collections::HashSet;

    #[test]
    fn kill_point_names_are_unique() {
        let names: HashSet<&str> = KillPoint::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), KillPoint::ALL.len());
        assert!(names.len() >= 25);
    }
}
