//! The code itself.

use std::fmt;
use std::str::FromStr;

use crate::sender::PinHash;
use crate::sha256;

const MIN_DIGITS: u8 = 4;
const MAX_DIGITS: u8 = 10;

/// The number of digits of a code: 4 to 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLength(u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a code length; give {MIN_DIGITS} to {MAX_DIGITS} digits")]
pub struct NotALength(i64);

impl CodeLength {
    pub fn new(digits: i64) -> Result<Self, NotALength> {
        let length = u8::try_from(digits).ok();
        let length = length.filter(|digits| (MIN_DIGITS..=MAX_DIGITS).contains(digits));
        length.map(Self).ok_or(NotALength(digits))
    }

    pub const fn digits(self) -> u8 {
        self.0
    }
}

/// Six digits.
impl Default for CodeLength {
    fn default() -> Self {
        Self(6)
    }
}

/// A code of 4 to 10 digits. Its debug form hides them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OneTimeCode {
    digits: [u8; MAX_DIGITS as usize],
    length: CodeLength,
}

/// The text is no code. It is not repeated, because it may contain most of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not a code; give the {MIN_DIGITS} to {MAX_DIGITS} digits that were sent to the number"
)]
pub struct NotACode;

impl OneTimeCode {
    /// Draws a code that does not begin with 0, because some programs read it as a number. Random numbers beyond the
    /// last whole multiple are drawn again, so that all codes are equally likely.
    pub fn draw(length: CodeLength, mut random: impl FnMut() -> u64) -> Self {
        let lowest = 10_u64.pow(u32::from(length.digits()) - 1);
        let count = 9 * lowest;
        let rounds_end = u64::MAX - u64::MAX % count;
        loop {
            let number = random();
            if number < rounds_end {
                return Self::from_number(lowest + number % count, length);
            }
        }
    }

    fn from_number(mut number: u64, length: CodeLength) -> Self {
        let mut digits = [b'0'; MAX_DIGITS as usize];
        for digit in digits[..usize::from(length.digits())].iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).expect("one digit");
            number /= 10;
        }
        Self { digits, length }
    }

    pub const fn length(&self) -> CodeLength {
        self.length
    }

    /// The digits, for the holder of the number.
    pub fn reveal(&self) -> &str {
        std::str::from_utf8(self.bytes()).expect("only ASCII digits are stored")
    }

    /// The form that the database stores.
    pub fn hash(&self, salt: [u8; 16]) -> PinHash {
        PinHash {
            salt,
            hash: sha256(&[&salt, self.bytes()]),
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.digits[..usize::from(self.length.digits())]
    }
}

/// Parses a guess: any 4 to 10 digits.
impl FromStr for OneTimeCode {
    type Err = NotACode;

    fn from_str(text: &str) -> Result<Self, NotACode> {
        let count = i64::try_from(text.len()).map_err(|_| NotACode)?;
        let length = CodeLength::new(count).map_err(|_| NotACode)?;
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotACode);
        }
        let mut digits = [b'0'; MAX_DIGITS as usize];
        digits[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { digits, length })
    }
}

impl fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeCode(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn length(digits: i64) -> CodeLength {
        CodeLength::new(digits).expect("4 to 10")
    }

    #[test]
    fn a_code_has_four_to_ten_digits() {
        for (digits, is_fine) in [
            (4, true),
            (10, true),
            (3, false),
            (11, false),
            (0, false),
            (-6, false),
            (262, false),
        ] {
            assert_eq!(CodeLength::new(digits).is_ok(), is_fine, "{digits}");
        }
        assert_eq!(CodeLength::default().digits(), 6);
    }

    #[test]
    fn codes_are_drawn_without_bias() {
        for (digits, draws, expected) in [
            (4, vec![0], "1000"),
            (4, vec![8_999], "9999"),
            (4, vec![9_000], "1000"),
            (6, vec![23_456], "123456"),
            (10, vec![8_999_999_999], "9999999999"),
            (6, vec![u64::MAX, u64::MAX - 1, 5], "100005"),
        ] {
            let mut left = draws.clone().into_iter();
            let code = OneTimeCode::draw(length(digits), || left.next().expect("enough draws"));
            assert_eq!(code.reveal(), expected, "{draws:?}");
            assert_eq!(left.next(), None, "{draws:?}: all were needed");
        }
    }

    #[test]
    fn a_guess_is_four_to_ten_digits() {
        for (text, is_fine) in [
            ("1234", true),
            ("000000", true),
            ("1234567890", true),
            ("123", false),
            ("12345678901", false),
            ("12345a", false),
            ("+12345", false),
            (" 12345", false),
            ("", false),
            ("١٢٣٤", false),
        ] {
            assert_eq!(text.parse::<OneTimeCode>().is_ok(), is_fine, "{text:?}");
        }
    }

    #[test]
    fn debug_output_hides_codes() {
        let code: OneTimeCode = "123456".parse().expect("digits");
        let shown = format!("{code:?}{:?}{NotACode}", code.hash([1; 16]));
        assert!(!shown.contains("123456"), "{shown}");
        assert!(shown.starts_with("OneTimeCode(…)PinHash(…)"), "{shown}");
    }

    proptest! {
        #[test]
        fn a_drawn_code_has_its_length_and_matches_only_itself(
            number in any::<u64>(), digits in 4_i64..=10, other in any::<u64>(), salt in any::<[u8; 16]>(),
        ) {
            let draw = |number| {
                let mut draws = [number, 17].into_iter();
                OneTimeCode::draw(length(digits), || draws.next().expect("two are enough"))
            };
            let (code, guess) = (draw(number), draw(other));
            prop_assert_eq!(code.reveal().len(), usize::from(length(digits).digits()));
            prop_assert!(!code.reveal().starts_with('0'));
            prop_assert_eq!(code.reveal().parse(), Ok(code));
            prop_assert_eq!(guess.hash(salt) == code.hash(salt), guess == code);
        }
    }
}
