//! What the states of a sender mean, and what happens next.

use domain::sender::{PIN_LIFETIME, SenderKind, SenderRecord, SenderState};

/// A state in plain words.
pub(super) struct Meaning {
    pub(super) state: &'static str,
    pub(super) class: &'static str,
    pub(super) means: &'static str,
    pub(super) next: &'static str,
}

impl Meaning {
    pub(super) fn of(state: SenderState) -> Self {
        let (shown, means, next) = match state {
            SenderState::Pending => (
                "pending",
                "The name is under review by whoever runs this service.",
                "Nothing to do. The answer appears here, and goes to the notification address if you gave one.",
            ),
            SenderState::AwaitingConfirmation => (
                "awaiting PIN",
                "A PIN was sent to the number by SMS.",
                "Enter the PIN, or have a new one sent.",
            ),
            SenderState::Approved => (
                "approved",
                "You may send under it.",
                "Nothing to do. Give it as the sender of a message.",
            ),
            SenderState::Rejected => (
                "rejected",
                "It was turned down; the reason stands beside it.",
                "Register it again with what was missing.",
            ),
            SenderState::Revoked => (
                "revoked",
                "It was approved once and may be used no more.",
                "Ask whoever runs this service, or register it again.",
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

/// What the style sheet calls a state.
pub(super) const fn state_class(state: SenderState) -> &'static str {
    match state {
        SenderState::AwaitingConfirmation => "awaiting",
        other => other.name(),
    }
}

/// What is said right after a registration.
pub(super) fn registered(sender: &SenderRecord) -> String {
    match sender.name.kind() {
        SenderKind::AlphaNumeric => {
            "Registered. The name is now reviewed by whoever runs this service.".to_owned()
        }
        SenderKind::Msisdn => pin_sent(sender),
    }
}

/// What is said right after a PIN was sent.
pub(super) fn pin_sent(sender: &SenderRecord) -> String {
    let minutes = PIN_LIFETIME.as_mins();
    format!(
        "A PIN of five digits was sent to {}. It is valid for {minutes} minutes.",
        sender.name
    )
}
