//! The PIN that proves ownership of a number.

use std::fmt;
use std::str::FromStr;

use crate::sha256;
use jiff::{SignedDuration, Timestamp};

pub const PIN_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// How many guesses at one PIN are checked, from all callers together.
pub const MAX_TRIES: u32 = 5;
/// The shortest time between two PINs to the same number.
pub const SEND_PAUSE: SignedDuration = SignedDuration::from_mins(1);

const DIGITS: usize = 5;
const LOWEST: u32 = 10_000;
const COUNT: u32 = 90_000;

/// Five digits. Its debug form hides them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; DIGITS]);

/// The text is not five digits. It is not repeated, because it may contain most of a PIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a confirmation code; give the 5 digits that were sent to the number")]
pub struct NotAPin;

impl Pin {
    /// Draws a PIN from 10000 to 99999. Random numbers beyond the last whole multiple are drawn again, so that all PINs
    /// are equally likely.
    pub fn draw(mut random: impl FnMut() -> u32) -> Self {
        const ROUNDS_END: u32 = u32::MAX - u32::MAX % COUNT;
        loop {
            let number = random();
            if number < ROUNDS_END {
                return Self::from_number(LOWEST + number % COUNT);
            }
        }
    }

    fn from_number(mut number: u32) -> Self {
        let mut digits = [b'0'; DIGITS];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).expect("one digit");
            number /= 10;
        }
        Self(digits)
    }

    /// The digits, for the holder of the number.
    pub fn reveal(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only ASCII digits are stored")
    }

    /// The form that the database stores.
    pub fn hash(&self, salt: [u8; 16]) -> PinHash {
        PinHash {
            salt,
            hash: sha256(&[&salt, &self.0]),
        }
    }
}

/// Parses a guess: any five digits.
impl FromStr for Pin {
    type Err = NotAPin;

    fn from_str(text: &str) -> Result<Self, NotAPin> {
        let digits: [u8; DIGITS] = text.as_bytes().try_into().map_err(|_| NotAPin)?;
        let is_plain = digits.iter().all(u8::is_ascii_digit);
        is_plain.then_some(Self(digits)).ok_or(NotAPin)
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin(…)")
    }
}

/// The salted SHA-256 of a PIN.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PinHash {
    /// Random for each PIN.
    pub salt: [u8; 16],
    pub hash: [u8; 32],
}

/// Hides the hash as well: with few digits, all PINs can be tried.
impl fmt::Debug for PinHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PinHash(…)")
    }
}

/// A PIN that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinOut {
    pub hash: PinHash,
    pub expires_at: Timestamp,
    /// How many guesses were checked.
    pub tries: u32,
}

/// The result of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    Right,
    Wrong {
        tries_left: u32,
    },
    /// Not checked: there were too many guesses.
    UsedUp,
    /// Not checked: the PIN has expired.
    Expired,
}

impl PinOut {
    /// Checks a guess. For [`Judgement::Right`] and [`Judgement::Wrong`] the caller counts one more guess in the same
    /// transaction.
    pub fn judge(&self, guess: Pin, now: Timestamp) -> Judgement {
        if self.tries >= MAX_TRIES {
            return Judgement::UsedUp;
        }
        if self.expires_at <= now {
            return Judgement::Expired;
        }
        if guess.hash(self.hash.salt) == self.hash {
            return Judgement::Right;
        }
        let tries_left = MAX_TRIES - self.tries - 1;
        Judgement::Wrong { tries_left }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    #[test]
    fn pins_are_drawn_without_bias() {
        for (draws, digits) in [
            (vec![0], "10000"),
            (vec![89_999], "99999"),
            (vec![90_000], "10000"),
            (vec![2_345], "12345"),
            (vec![u32::MAX, u32::MAX - 1, 5], "10005"),
        ] {
            let mut left = draws.clone().into_iter();
            let pin = Pin::draw(|| left.next().expect("enough draws"));
            assert_eq!(pin.reveal(), digits, "{draws:?}");
            assert_eq!(left.next(), None, "{draws:?}: all were needed");
        }
    }

    #[test]
    fn a_guess_is_five_digits() {
        for (text, is_fine) in [
            ("12345", true),
            ("00000", true),
            ("1234", false),
            ("123456", false),
            ("1234a", false),
            ("+1234", false),
            (" 1234", false),
            ("", false),
            ("١٢٣", false),
        ] {
            assert_eq!(text.parse::<Pin>().is_ok(), is_fine, "{text:?}");
        }
    }

    #[test]
    fn a_guess_is_judged_by_tries_then_time_then_digits() {
        let pin: Pin = "12345".parse().expect("digits");
        let wrong: Pin = "54321".parse().expect("digits");
        for (tries, second, guess, expected) in [
            (0, 0, pin, Judgement::Right),
            (4, 9, pin, Judgement::Right),
            (5, 0, pin, Judgement::UsedUp),
            (5, 10, pin, Judgement::UsedUp),
            (0, 10, pin, Judgement::Expired),
            (0, 0, wrong, Judgement::Wrong { tries_left: 4 }),
            (4, 0, wrong, Judgement::Wrong { tries_left: 0 }),
            (4, 10, wrong, Judgement::Expired),
        ] {
            let out = PinOut {
                hash: pin.hash([7; 16]),
                expires_at: at(10),
                tries,
            };
            assert_eq!(out.judge(guess, at(second)), expected, "{tries} {second}");
        }
    }

    #[test]
    fn debug_output_hides_pins() {
        let pin: Pin = "12345".parse().expect("digits");
        assert_eq!(
            format!("{pin:?}{:?}", pin.hash([1; 16])),
            "Pin(…)PinHash(…)"
        );
        assert!(!NotAPin.to_string().contains("12345"));
    }

    proptest! {
        #[test]
        fn a_drawn_pin_is_in_range_and_matches_only_itself(
            number in any::<u32>(), other in 0_u32..100_000, salt in any::<[u8; 16]>(),
        ) {
            let mut draws = [number, 17].into_iter();
            let pin = Pin::draw(|| draws.next().expect("two are enough"));
            let value: u32 = pin.reveal().parse().expect("a number");
            prop_assert!((10_000..=99_999).contains(&value));
            let out = PinOut { hash: pin.hash(salt), expires_at: at(1), tries: 0 };
            prop_assert_eq!(out.judge(pin, at(0)), Judgement::Right);
            let guess: Pin = format!("{other:05}").parse().expect("five digits");
            prop_assert_eq!(out.judge(guess, at(0)) == Judgement::Right, guess == pin);
        }
    }
}
