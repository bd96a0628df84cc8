//! Exact amounts of money.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;

const MICROS_IN_ONE: i64 = 1_000_000;
const DECIMALS: usize = 6;

/// An amount in millionths of the service's currency. Never a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Money(i64);

impl Money {
    pub const ZERO: Self = Self(0);

    /// The amount in millionths is the stored form.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The sum. It saturates, although real amounts never come close to the limit.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; saturates.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product; saturates.
    #[must_use]
    pub const fn times(self, count: u32) -> Self {
        Self(self.0.saturating_mul(count as i64))
    }

    pub const fn micros(self) -> i64 {
        self.0
    }
}

/// A decimal with at least two places: `100.00`, `0.0125`, `-3.50`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        let one = MICROS_IN_ONE.unsigned_abs();
        let fraction = format!("{:06}", micros % one);
        let digits = fraction.trim_end_matches('0').len().max(2);
        write!(f, "{sign}{}.{}", micros / one, &fraction[..digits])
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not an amount of money; write it like 100.00, with at most 6 decimals", Quoted(.0))]
pub struct NotMoney(String);

impl FromStr for Money {
    type Err = NotMoney;

    fn from_str(text: &str) -> Result<Self, NotMoney> {
        parse(text)
            .map(Self)
            .ok_or_else(|| NotMoney(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || fraction.len() > DECIMALS {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let fraction: i64 = format!("{fraction:0<6}").parse().ok()?;
    let micros = whole.checked_mul(MICROS_IN_ONE)?.checked_add(fraction)?;
    Some(if negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_read_and_written_as_people_write_them() {
        for (text, micros, shown) in [
            ("100", 100_000_000, "100.00"),
            ("100.00", 100_000_000, "100.00"),
            ("0.0125", 12_500, "0.0125"),
            ("-3.5", -3_500_000, "-3.50"),
            ("0.000001", 1, "0.000001"),
            ("-0.01", -10_000, "-0.01"),
            ("0", 0, "0.00"),
        ] {
            let money: Money = text.parse().expect(text);
            assert_eq!(
                (money.micros(), money.to_string().as_str()),
                (micros, shown),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_amounts_are_refused() {
        for text in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "1,5",
            "1e3",
            "+1",
            "0.0000001",
            "--1",
            " 1",
            "9223372036855",
            "١",
        ] {
            assert!(text.parse::<Money>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_amount_round_trips(micros in -(1_i64 << 60)..(1_i64 << 60)) {
            let money = Money::from_micros(micros);
            prop_assert_eq!(money.to_string().parse(), Ok(money));
        }
    }
}
