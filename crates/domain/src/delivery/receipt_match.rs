//! Finds the part that a receipt is about: by the carrier's ID of the part in any of its forms, and by the recipient.
//!
//! Some carriers answer `submit_sm` with a hexadecimal ID and report it in decimal, or the other way round, in either
//! case and with or without leading zeros. Some reuse IDs, so a receipt is matched by the recipient as well.

use crate::number::msisdn::Msisdn;

/// The longest hexadecimal number that fits 128 bits.
const LONGEST_HEX: usize = 32;
/// How many digits of a number are compared: enough to tell recipients apart, and the same in international and in
/// national form.
const TAIL_DIGITS: usize = 8;
const TAIL_MODULUS: i64 = 100_000_000;

/// The last eight digits of a recipient's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberTail(i32);

impl NumberTail {
    pub fn from_number(number: &Msisdn) -> Self {
        let tail = number.as_i64() % TAIL_MODULUS;
        Self(i32::try_from(tail).expect("eight digits"))
    }

    /// The tail of an address in a receipt, in international or national form. `None` for names and for numbers that
    /// are too short to compare.
    pub fn of_address(address: &str) -> Option<Self> {
        let digits = address.strip_prefix('+').unwrap_or(address);
        let digits = digits.trim_start_matches('0');
        if digits.len() < TAIL_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let tail = &digits[digits.len() - TAIL_DIGITS..];
        tail.parse().ok().map(Self)
    }

    /// Reads the result of [`Self::as_i32`]; `None` if the number is out of range.
    pub fn from_i32(tail: i32) -> Option<Self> {
        let is_tail = (0..TAIL_MODULUS).contains(&i64::from(tail));
        is_tail.then_some(Self(tail))
    }

    /// The stored form.
    pub const fn as_i32(self) -> i32 {
        self.0
    }
}

/// An ID without variations in writing: surrounding spaces and zero octets and, if it can be a number, `0x`, leading
/// zeros and the case of its digits.
pub fn normal_form(written: &str) -> String {
    let written = written.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let digits = written
        .strip_prefix("0x")
        .or_else(|| written.strip_prefix("0X"))
        .unwrap_or(written);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return written.to_owned();
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    significant.to_ascii_uppercase()
}

/// The other normal forms of the same ID: a decimal number in hexadecimal, and a hexadecimal one in decimal. `10` has
/// both: `A` and `16`.
pub fn other_forms(normal: &str) -> Vec<String> {
    let mut forms = Vec::new();
    let is_number =
        |is_digit: fn(&u8) -> bool| !normal.is_empty() && normal.bytes().all(|d| is_digit(&d));
    if is_number(u8::is_ascii_digit)
        && let Ok(number) = normal.parse::<u128>()
    {
        forms.push(format!("{number:X}"));
    }
    if normal.len() <= LONGEST_HEX
        && is_number(u8::is_ascii_hexdigit)
        && let Ok(number) = u128::from_str_radix(normal, 16)
    {
        forms.push(number.to_string());
    }
    forms.retain(|form| form != normal);
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_have_a_normal_form_and_others() {
        for (written, normal, others) in [
            ("12345", "12345", vec!["3039", "74565"]),
            ("0000003039", "3039", vec!["BDF", "12345"]),
            ("1a2B", "1A2B", vec!["6699"]),
            ("0x001a2b", "1A2B", vec!["6699"]),
            ("10", "10", vec!["A", "16"]),
            ("7", "7", vec![]),
            ("000", "0", vec![]),
            (" 12\0", "12", vec!["C", "18"]),
            ("7f3e-11", "7f3e-11", vec![]),
            ("unnamed-7-1", "unnamed-7-1", vec![]),
            ("", "", vec![]),
        ] {
            assert_eq!(normal_form(written), normal, "{written:?}");
            assert_eq!(other_forms(normal), others, "{written:?}");
        }
    }

    #[test]
    fn an_id_beyond_128_bits_has_no_other_form() {
        assert_eq!(other_forms(&"F".repeat(33)), [""; 0]);
        assert_eq!(other_forms(&"F".repeat(32)), [u128::MAX.to_string()]);
    }

    #[test]
    fn addresses_are_compared_by_their_tail() {
        let number = |text| Msisdn::parse(text).expect("a number");
        let of = NumberTail::from_number(&number("+37120000001"));
        for address in [
            "37120000001",
            "+37120000001",
            "0037120000001",
            "20000001",
            "020000001",
        ] {
            assert_eq!(NumberTail::of_address(address), Some(of), "{address}");
        }
        for address in ["", "Acme", "1234567", "3712000000x", "37120000002"] {
            assert_ne!(NumberTail::of_address(address), Some(of), "{address}");
        }
    }

    proptest! {
        #[test]
        fn an_id_matches_in_every_form(number: u128, zeros in 0_usize..12, upper: bool) {
            let zeros = "0".repeat(zeros);
            let decimal = format!("{zeros}{number}");
            let hex = if upper { format!("{zeros}{number:X}") } else { format!("{zeros}{number:x}") };
            for (answer, receipt) in [(&decimal, &hex), (&hex, &decimal), (&hex, &hex), (&decimal, &decimal)] {
                let (answer, receipt) = (normal_form(answer), normal_form(receipt));
                let meets = |a: &String, b: &String| a == b || other_forms(a).contains(b);
                prop_assert!(meets(&receipt, &answer), "{} {}", answer, receipt);
                prop_assert!(meets(&answer, &receipt), "{} {}", answer, receipt);
            }
        }

        #[test]
        fn normalising_twice_changes_nothing(written: String) {
            let once = normal_form(&written);
            prop_assert_eq!(normal_form(&once), once);
        }

        #[test]
        fn every_recipient_has_the_tail_of_its_own_address(number in 10_000_000_i64..999_999_999_999_999) {
            let number = Msisdn::from_i64(number).expect("a number");
            prop_assert_eq!(NumberTail::of_address(number.digits()), Some(NumberTail::from_number(&number)));
        }
    }
}
