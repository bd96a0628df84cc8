//! Normalises the IDs that carriers give to parts.
//!
//! Some carriers answer in hexadecimal and send receipts in decimal, or the other way round. By default the store
//! matches both forms ([`domain::delivery::receipt_match`]); if a carrier's form is configured, IDs are normalised
//! here.

use domain::delivery::receipt_match::normal_form;
use serde::{Deserialize, Serialize};

/// How a carrier writes its IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdForm {
    /// Any text. If it is a number, leading zeros and case are ignored, and a decimal number matches the same number in
    /// hexadecimal.
    #[default]
    Auto,
    /// Any text, compared exactly.
    AsIs,
    /// A decimal number, with or without leading zeros.
    Decimal,
    /// A hexadecimal number in either case, with or without leading zeros and `0x`.
    Hex,
}

impl IdForm {
    /// Converts an ID to decimal without leading zeros. An ID that is not a number of this form stays unchanged,
    /// because a carrier may change its form and still mean the same ID both times.
    pub(super) fn canonical(self, written: &str) -> String {
        let written = written.trim_matches(is_padding);
        let number = match self {
            Self::Auto => return normal_form(written),
            Self::AsIs => None,
            Self::Decimal => number(written, 10),
            Self::Hex => {
                let digits = written
                    .strip_prefix("0x")
                    .or_else(|| written.strip_prefix("0X"));
                number(digits.unwrap_or(written), 16)
            }
        };
        number.map_or_else(|| written.to_owned(), |number| number.to_string())
    }
}

/// Characters that carriers put around an ID.
fn is_padding(character: char) -> bool {
    character == '\0' || character.is_whitespace()
}

/// `from_str_radix` alone would accept a sign.
fn number(digits: &str, radix: u32) -> Option<u128> {
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    u128::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_normalised() {
        for (form, written, expected) in [
            (IdForm::Auto, "0012aB", "12AB"),
            (IdForm::Auto, "00012", "12"),
            (IdForm::Auto, "7f3e-11", "7f3e-11"),
            (IdForm::AsIs, "0012aB", "0012aB"),
            (IdForm::AsIs, " 12\0", "12"),
            (IdForm::AsIs, "7f3e-11", "7f3e-11"),
            (IdForm::Decimal, "0000012345", "12345"),
            (IdForm::Decimal, "0", "0"),
            (IdForm::Decimal, "000", "0"),
            (IdForm::Decimal, "12345\0", "12345"),
            (IdForm::Decimal, "+12345", "+12345"),
            (IdForm::Decimal, "1F", "1F"),
            (IdForm::Decimal, "", ""),
            (IdForm::Hex, "3039", "12345"),
            (IdForm::Hex, "0x3039", "12345"),
            (IdForm::Hex, "0X00003039", "12345"),
            (IdForm::Hex, "aBcD", "43981"),
            (IdForm::Hex, "7f3e-11", "7f3e-11"),
            (
                IdForm::Hex,
                "ffffffffffffffffffffffffffffffff",
                "340282366920938463463374607431768211455",
            ),
            (
                IdForm::Hex,
                "100000000000000000000000000000000",
                "100000000000000000000000000000000",
            ),
        ] {
            assert_eq!(form.canonical(written), expected, "{form:?} {written:?}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_the_same_however_it_is_written(number: u128, zeros in 0_usize..20) {
            let zeros = "0".repeat(zeros);
            let expected = number.to_string();
            prop_assert_eq!(IdForm::Decimal.canonical(&format!("{zeros}{number}")), expected.clone());
            prop_assert_eq!(IdForm::Hex.canonical(&format!("{zeros}{number:x}")), expected.clone());
            prop_assert_eq!(IdForm::Hex.canonical(&format!("0x{zeros}{number:X}")), expected);
        }

        #[test]
        fn any_text_has_a_form_and_keeps_it(written: String) {
            for form in [IdForm::Auto, IdForm::AsIs, IdForm::Decimal] {
                let once = form.canonical(&written);
                prop_assert_eq!(form.canonical(&once), once);
            }
        }
    }
}
