//! The states of a sender ID, and the steps between them.

use std::str::FromStr;

use crate::quoted::Quoted;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SenderState {
    /// A name that waits for its review.
    Pending,
    /// A number that a PIN was sent to.
    AwaitingConfirmation,
    Approved,
    Rejected,
    /// It must not be used any more.
    Revoked,
}

/// What changes the state of a sender ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Approve,
    Reject,
    /// The reviewer withdraws an approval.
    Revoke,
    /// The number's holder gave the right PIN.
    Confirm,
}

impl Step {
    const fn done(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::Revoke => "revoked",
            Self::Confirm => "confirmed",
        }
    }
}

/// A step that the current state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sender that is {} cannot be {}", .state.name(), .step.done())]
pub struct WrongState {
    pub state: SenderState,
    pub step: Step,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a state; give pending, awaiting_confirmation, approved, rejected or revoked", Quoted(.0))]
pub struct UnknownState(String);

impl SenderState {
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::AwaitingConfirmation,
        Self::Approved,
        Self::Rejected,
        Self::Revoked,
    ];

    /// The state after a step.
    pub const fn after(self, step: Step) -> Result<Self, WrongState> {
        match (self, step) {
            (Self::Pending | Self::AwaitingConfirmation, Step::Approve)
            | (Self::AwaitingConfirmation, Step::Confirm) => Ok(Self::Approved),
            (Self::Pending | Self::AwaitingConfirmation, Step::Reject) => Ok(Self::Rejected),
            (Self::Approved, Step::Revoke) => Ok(Self::Revoked),
            (state, step) => Err(WrongState { state, step }),
        }
    }

    /// Whether its name is taken within its account.
    pub const fn is_live(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::AwaitingConfirmation | Self::Approved
        )
    }

    /// The stored form.
    pub const fn number(self) -> i16 {
        match self {
            Self::Pending => 1,
            Self::AwaitingConfirmation => 2,
            Self::Approved => 3,
            Self::Rejected => 4,
            Self::Revoked => 5,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    /// The name in responses, notifications and lists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::AwaitingConfirmation => "awaiting_confirmation",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Revoked => "revoked",
        }
    }
}

impl FromStr for SenderState {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        let found = Self::ALL.into_iter().find(|state| state.name() == text);
        found.ok_or_else(|| UnknownState(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEPS: [Step; 4] = [Step::Approve, Step::Reject, Step::Revoke, Step::Confirm];

    #[test]
    fn only_these_steps_are_allowed() {
        use SenderState::{Approved, AwaitingConfirmation, Pending, Rejected, Revoked};
        let ways = [
            (Pending, Step::Approve, Approved),
            (Pending, Step::Reject, Rejected),
            (AwaitingConfirmation, Step::Confirm, Approved),
            (AwaitingConfirmation, Step::Approve, Approved),
            (AwaitingConfirmation, Step::Reject, Rejected),
            (Approved, Step::Revoke, Revoked),
        ];
        for state in SenderState::ALL {
            for step in STEPS {
                let way = ways.iter().find(|way| (way.0, way.1) == (state, step));
                let expected = way.map_or(Err(WrongState { state, step }), |way| Ok(way.2));
                assert_eq!(state.after(step), expected, "{state:?} {step:?}");
            }
        }
        let error = Rejected.after(Step::Revoke).expect_err("not approved");
        assert_eq!(
            error.to_string(),
            "a sender that is rejected cannot be revoked"
        );
    }

    #[test]
    fn words_and_numbers_round_trip() {
        for state in SenderState::ALL {
            assert_eq!(state.name().parse(), Ok(state));
            assert_eq!(SenderState::from_number(state.number()), Some(state));
        }
        assert!("Approved".parse::<SenderState>().is_err());
        assert_eq!(SenderState::from_number(6), None);
    }

    proptest! {
        /// Rejected and revoked are final, and only a live sender ID becomes approved.
        #[test]
        fn no_sequence_of_steps_revives_a_name(
            start in 0_usize..5, steps in prop::collection::vec(0_usize..4, 0..8),
        ) {
            let mut state = SenderState::ALL[start];
            for step in steps {
                let next = state.after(STEPS[step]).unwrap_or(state);
                prop_assert!(state.is_live() || next == state);
                state = next;
            }
        }
    }
}
