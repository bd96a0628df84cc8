//! Named places at which a debug build can be made to end, as a crash would end it. The fault tests kill the service at
//! each of them.
//!
//! Nothing happens here by itself: the program sets a hook, or it does not. A release build has neither the hook nor the
//! names, and [`pass`] is empty.

/// Declares the places: variant, name, and what has happened when a process passes there.
macro_rules! kill_points {
    ($($variant:ident $name:literal $meaning:literal)+) => {
        /// A place on the way of something that must survive a crash.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum KillPoint {
            $(#[doc = $meaning] $variant,)+
        }

        #[cfg(debug_assertions)]
        impl KillPoint {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name by which a test asks for it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

kill_points! {
    RequestCame "request.came" "A request is about to be worked on; the answers before it on its connection are written."
    AnswerMade "answer.made" "The answer is ready and not written yet."
    IdsReserved "ids.reserved" "A block of IDs is reserved, and none of it used."
    AcceptBegins "accept.begins" "Submissions are about to be stored."
    AcceptInside "accept.inside" "Everything of submissions with keys is written, and not committed."
    AcceptCommitted "accept.committed" "Submissions are stored, and neither handed over nor answered."
    AcceptHandedOver "accept.handed_over" "What is stored waits in the lanes, and nobody is answered."
    ScheduleStored "schedule.stored" "A message for a later time is stored, and its caller not answered."
    CancelBegins "cancel.begins" "A message is about to be taken back."
    CancelCommitted "cancel.committed" "A message is taken back and paid back, and its caller not answered."
    ClaimInside "claim.inside" "Due messages are this node's, and that is not committed."
    ClaimCommitted "claim.committed" "Due messages are this node's, and in no lane yet."
    SubmitBegins "submit.begins" "A message is about to be handed to a carrier."
    PartAnswered "submit.part_answered" "The carrier has answered for one part, and nothing is stored of it."
    SubmitAnswered "submit.answered" "The carrier has answered for all parts, and nothing is stored of it."
    SettleBegins "settle.begins" "Results of sending are about to be stored."
    SettleInside "settle.inside" "Results of sending are written, and not committed."
    SettleCommitted "settle.committed" "Results of sending are stored, and their places not given back."
    RefundInside "refund.inside" "What was not taken is paid back, and that is not committed."
    ReceiptCame "receipt.came" "A receipt has come, and nothing is stored of it."
    ReceiptInside "receipt.inside" "A receipt and the end of its message are written, and not committed."
    ReceiptCommitted "receipt.committed" "A receipt is stored, and neither reported nor acknowledged."
    ReceiptStored "receipt.stored" "A receipt is stored and about to be acknowledged to the carrier."
    CallbackClaimed "callback.claimed" "Due reports are this node's, and in no queue yet."
    CallbackBegins "callback.begins" "A report is about to be sent."
    CallbackReceived "callback.received" "A report was received, and that is not stored."
    CallbackSettled "callback.settled" "Results of reports are stored."
    PinStored "pin.stored" "A sender with its PIN is stored, and the PIN not sent."
    PinSent "pin.sent" "A PIN is on its way, and its caller not answered."
    NodeJoined "node.joined" "A node has joined, and does not work yet."
    NodeBeaten "node.beaten" "A node has proven that it lives, and not looked for the dead."
    DeadGivenUp "node.dead_given_up" "What a dead node held is everybody's."
    NodeLeaves "node.leaves" "A node has stopped its work, and not given back what it holds."
    NodeLeft "node.left" "A node has given back what it held, and runs on for a moment."
    CreditCommitted "credit.committed" "Money is credited, and whoever did that does not know."
    TokenRevoked "token.revoked" "A token is revoked, and whoever did that does not know."
    CatalogueBegins "catalogue.begins" "A price list or reference data is about to be stored."
    CatalogueImported "catalogue.imported" "A price list or reference data is stored, and not in force here."
    PruneStep "prune.step" "A step of forgetting what is old is done."
}

/// What is done at each place that is passed.
#[cfg(debug_assertions)]
static HOOK: std::sync::OnceLock<fn(KillPoint)> = std::sync::OnceLock::new();

/// Sets what is done at each place that is passed; the first one stays.
#[cfg(debug_assertions)]
pub fn set_hook(hook: fn(KillPoint)) {
    HOOK.get_or_init(|| hook);
}

/// This place is passed.
#[cfg(debug_assertions)]
pub fn pass(point: KillPoint) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}

/// This place is passed: nothing happens.
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
    fn each_place_has_a_name_of_its_own() {
        let names: HashSet<&str> = KillPoint::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), KillPoint::ALL.len());
        assert!(names.len() >= 25);
    }
}
