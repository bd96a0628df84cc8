//! One-time codes as a service: an account has a code sent to a number, and checks what the person entered.

mod code;
mod conversion;
mod text;

use jiff::{SignedDuration, Timestamp};

use crate::ids::{AccountId, VerificationId};
use crate::money::Money;
use crate::number::msisdn::Msisdn;
use crate::sender::PinHash;

pub use code::{CodeLength, NotACode, NotALength, OneTimeCode};
pub use conversion::{Conversion, MAX_COUNTED, NetworkConversion, PrefixConversion, WINDOW};
pub use text::{NoPlaceholder, PLACEHOLDER, Template};

/// How many guesses at one code are checked, from all callers together.
pub const MAX_TRIES: u32 = 5;
/// The shortest time between two codes of an account to the same number.
pub const SEND_PAUSE: SignedDuration = SignedDuration::from_secs(30);

pub const MIN_LIFETIME_S: u32 = 60;
pub const MAX_LIFETIME_S: u32 = 3600;
pub const DEFAULT_LIFETIME_S: u32 = 600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationState {
    /// The code can be entered.
    Pending,
    /// The right code was entered in time.
    Approved,
    /// The time is over, or a newer code replaced this one.
    Expired,
    /// Too many wrong codes were entered.
    Failed,
}

impl VerificationState {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Approved, Self::Expired, Self::Failed];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }

    /// The number in the database.
    pub const fn number(self) -> i16 {
        match self {
            Self::Pending => 0,
            Self::Approved => 1,
            Self::Expired => 2,
            Self::Failed => 3,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }
}

/// A code that was sent, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification {
    pub id: VerificationId,
    pub account: AccountId,
    pub to: Msisdn,
    pub length: CodeLength,
    pub hash: PinHash,
    /// As stored: a pending one may have expired since.
    pub state: VerificationState,
    /// How many wrong guesses were checked.
    pub tries: u32,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// What its approval costs, as it was when the code was sent.
    pub price: Money,
}

/// The result of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    Right,
    Wrong {
        tries_left: u32,
    },
    /// Not checked, and costs no try: the code has another number of digits.
    WrongLength(CodeLength),
    /// Not checked: it is not pending any more.
    Over(VerificationState),
}

impl Verification {
    /// The state at this time.
    pub fn state_at(&self, now: Timestamp) -> VerificationState {
        match self.state {
            VerificationState::Pending if self.expires_at <= now => VerificationState::Expired,
            state => state,
        }
    }

    /// What was charged for it, besides the message.
    pub fn charged(&self) -> Money {
        match self.state {
            VerificationState::Approved => self.price,
            _ => Money::ZERO,
        }
    }

    /// Whether a new code for the same number must wait.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let is_pending = self.state_at(now) == VerificationState::Pending;
        is_pending && now < self.created_at + SEND_PAUSE
    }

    /// Checks a guess. The caller stores [`Judgement::change`] in the same transaction.
    pub fn judge(&self, guess: &OneTimeCode, now: Timestamp) -> Judgement {
        match self.state_at(now) {
            VerificationState::Pending if guess.length() != self.length => {
                Judgement::WrongLength(self.length)
            }
            VerificationState::Pending if guess.hash(self.hash.salt) == self.hash => {
                Judgement::Right
            }
            VerificationState::Pending => Judgement::Wrong {
                tries_left: MAX_TRIES.saturating_sub(self.tries + 1),
            },
            over => Judgement::Over(over),
        }
    }
}

impl Judgement {
    /// The state that follows, and how many tries it cost; `None` if nothing changes.
    pub const fn change(self) -> Option<(VerificationState, u32)> {
        match self {
            Self::Right => Some((VerificationState::Approved, 0)),
            Self::Wrong { tries_left: 0 } => Some((VerificationState::Failed, 1)),
            Self::Wrong { .. } => Some((VerificationState::Pending, 1)),
            Self::WrongLength(_) | Self::Over(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    fn code(digits: &str) -> OneTimeCode {
        digits.parse().expect("digits")
    }

    /// A code 123456, created at second 0 and valid for ten minutes.
    fn verification(state: VerificationState, tries: u32) -> Verification {
        Verification {
            id: VerificationId::new(1).expect("in range"),
            account: AccountId::new(1).expect("in range"),
            to: Msisdn::parse("+37120000001").expect("a number"),
            length: CodeLength::default(),
            hash: code("123456").hash([7; 16]),
            state,
            tries,
            created_at: at(0),
            expires_at: at(600),
            price: Money::from_micros(20_000),
        }
    }

    #[test]
    fn a_guess_is_judged_by_state_then_time_then_length_then_digits() {
        use VerificationState::{Approved, Expired, Failed, Pending};
        let wrong = |tries_left| Judgement::Wrong { tries_left };
        for (name, state, tries, second, guess, expected) in [
            ("right", Pending, 0, 0, "123456", Judgement::Right),
            ("last try", Pending, 4, 599, "123456", Judgement::Right),
            ("wrong", Pending, 0, 0, "654321", wrong(4)),
            ("last wrong", Pending, 4, 0, "654321", wrong(0)),
            (
                "short",
                Pending,
                4,
                0,
                "12345",
                Judgement::WrongLength(CodeLength::default()),
            ),
            ("late", Pending, 0, 600, "123456", Judgement::Over(Expired)),
            (
                "late and short",
                Pending,
                0,
                600,
                "12345",
                Judgement::Over(Expired),
            ),
            ("twice", Approved, 0, 1, "123456", Judgement::Over(Approved)),
            (
                "approved, later",
                Approved,
                0,
                601,
                "123456",
                Judgement::Over(Approved),
            ),
            ("used up", Failed, 5, 1, "123456", Judgement::Over(Failed)),
            (
                "replaced",
                Expired,
                0,
                1,
                "123456",
                Judgement::Over(Expired),
            ),
        ] {
            let judged = verification(state, tries).judge(&code(guess), at(second));
            assert_eq!(judged, expected, "{name}");
        }
    }

    #[test]
    fn the_fifth_wrong_guess_ends_it() {
        use VerificationState::{Approved, Failed, Pending};
        for (judgement, expected) in [
            (Judgement::Right, Some((Approved, 0))),
            (Judgement::Wrong { tries_left: 1 }, Some((Pending, 1))),
            (Judgement::Wrong { tries_left: 0 }, Some((Failed, 1))),
            (Judgement::WrongLength(CodeLength::default()), None),
            (Judgement::Over(Failed), None),
        ] {
            assert_eq!(judgement.change(), expected, "{judgement:?}");
        }
    }

    #[test]
    fn a_new_code_waits_only_for_a_fresh_pending_one() {
        use VerificationState::{Approved, Expired, Failed, Pending};
        for (state, second, expected) in [
            (Pending, 0, true),
            (Pending, 29, true),
            (Pending, 30, false),
            (Approved, 1, false),
            (Expired, 1, false),
            (Failed, 1, false),
        ] {
            let is_fresh = verification(state, 0).is_fresh(at(second));
            assert_eq!(is_fresh, expected, "{state:?} {second}");
        }
    }

    #[test]
    fn only_an_approved_verification_is_charged() {
        for state in VerificationState::ALL {
            let charged = verification(state, 0).charged().micros();
            let expected = i64::from(state == VerificationState::Approved) * 20_000;
            assert_eq!(charged, expected, "{state:?}");
        }
    }

    #[test]
    fn states_are_found_by_their_numbers() {
        for (number, state) in (0..).zip(VerificationState::ALL) {
            assert_eq!(state.number(), number, "{}", state.name());
            assert_eq!(VerificationState::from_number(number), Some(state));
        }
        assert_eq!(VerificationState::from_number(4), None);
    }
}
