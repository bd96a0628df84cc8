//! The PIN that shows that somebody holds a number.

use std::fmt;
use std::str::FromStr;

use crate::sha256;
use jiff::{SignedDuration, Timestamp};

/// How long a PIN is good for.
pub const PIN_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// How many guesses at one PIN are judged, whoever makes them.
pub const MAX_TRIES: u32 = 5;
/// The time between two PINs to the same number.
pub const SEND_PAUSE: SignedDuration = SignedDuration::from_mins(1);

const DIGITS: usize = 5;
const LOWEST: u32 = 10_000;
const COUNT: u32 = 90_000;

/// Five digits. Never shown: its debug form is blank.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; DIGITS]);

/// The text is not five digits. It is not repeated: it may hold most of a PIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a confirmation code; give the 5 digits that were sent to the number")]
pub struct NotAPin;

impl Pin {
    /// Draws a PIN from 10000 to 99999, each as likely as the others: numbers beyond the last whole round are drawn
    /// again.
    pub fn draw(mut random: impl FnMut() -> u32) -> Self {
        const ROUNDS_END: u32 = u32::MAX - u32::MAX % COUNT;
        loop {
            let number = random();
            if number < ROUNDS_END {
                return Self::of(LOWEST + number % COUNT);
            }
        }
    }

    fn of(mut number: u32) -> Self {
        let mut digits = [b'0'; DIGITS];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).expect("one digit");
            number /= 10;
        }
        Self(digits)
    }

    /// The digits, to send them to the number's holder.
    pub fn reveal(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only ASCII digits are kept")
    }

    /// What the store keeps in its place.
    pub fn hash(&self, salt: [u8; 16]) -> PinHash {
        PinHash {
            salt,
            hash: sha256(&[&salt, &self.0]),
        }
    }
}

/// Reads a guess: any five digits.
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

/// A PIN's SHA-256 with the salt that went into it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PinHash {
    /// Random, for each PIN anew.
    pub salt: [u8; 16],
    /// Of salt and digits.
    pub hash: [u8; 32],
}

/// The digits are few: who sees the hash can try them all.
impl fmt::Debug for PinHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PinHash(…)")
    }
}

/// A PIN that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinOut {
    /// Its fingerprint.
    pub hash: PinHash,
    /// Until when it is good.
    pub expires_at: Timestamp,
    /// How many guesses were judged.
    pub tries: u32,
}

/// What a guess is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Right.
    Right,
    /// Wrong; so many more are judged.
    Wrong {
        /// How many.
        tries_left: u32,
    },
    /// Not judged: too many were.
    UsedUp,
    /// Not judged: the PIN's time is over.
    Expired,
}

impl PinOut {
    /// Judges a guess. Whoever does so stores one try more for [`Judgement::Right`] and [`Judgement::Wrong`], in the same
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
    fn a_pin_is_drawn_from_whole_rounds_only() {
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
    fn nothing_shows_a_pin() {
        let pin: Pin = "12345".parse().expect("digits");
        assert_eq!(
            format!("{pin:?}{:?}", pin.hash([1; 16])),
            "Pin(…)PinHash(…)"
        );
        assert!(!NotAPin.to_string().contains("12345"));
    }

    proptest! {
        #[test]
        fn every_draw_is_in_range_and_only_itself_is_right(
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
