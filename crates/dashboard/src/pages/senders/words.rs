//! What the states of a sender mean, and what happens next.

use domain::sender::{PIN_LIFETIME, SenderKind, SenderRecord, SenderState};

pub(super) struct Meaning {
    pub(super) state: &'static str,
    pub(super) class: &'static str,
    pub(super) means: &'static str,
    pub(super) next: &'static str,
}

impl Meaning {
    pub(super) fn new(state: SenderState) -> Self {
        let (shown, means, next) = match state {
            SenderState::Pending => (
                "pending",
                "The operator of this service is reviewing the name.",
                "Nothing to do. The answer appears here, and goes to the notification address if you gave one.",
            ),
            SenderState::AwaitingConfirmation => (
                "awaiting PIN",
                "A PIN was sent to the number by SMS.",
                "Enter the PIN, or request a new one.",
            ),
            SenderState::Approved => (
                "approved",
                "You can send from it.",
                "Nothing to do. Use it as the sender of a message.",
            ),
            SenderState::Rejected => (
                "rejected",
                "It was rejected; see the reason.",
                "Register it again with the missing information.",
            ),
            SenderState::Revoked => (
                "revoked",
                "It was approved before and may no longer be used.",
                "Ask the operator of this service, or register it again.",
            ),
        };
        Self {
            state: shown,
            class: state_class(state),
            means,
            next,
        }
    }
}

/// The class of a state in the style sheet.
pub(super) const fn state_class(state: SenderState) -> &'static str {
    match state {
        SenderState::AwaitingConfirmation => "awaiting",
        other => other.name(),
    }
}

pub(super) fn registered(sender: &SenderRecord) -> String {
    match sender.name.kind() {
        SenderKind::AlphaNumeric => {
            "Registered. The operator of this service will review the name.".to_owned()
        }
        SenderKind::Msisdn => pin_sent(sender),
    }
}

pub(super) fn pin_sent(sender: &SenderRecord) -> String {
    let minutes = PIN_LIFETIME.as_mins();
    format!(
        "A PIN of five digits was sent to {}. It is valid for {minutes} minutes.",
        sender.name
    )
}
