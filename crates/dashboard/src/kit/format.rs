//! How values are shown: times, amounts, counts, states. One way for all pages.

use std::fmt;

use domain::message::MessageState;
use domain::{Money, Timestamp};

/// A moment: UTC as it is written, the reader's own zone once the script has run.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    /// For machines.
    pub(crate) iso: String,
    /// For people, when no script runs, and on hover.
    pub(crate) utc: String,
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        Self {
            iso: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            utc: at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        }
    }
}

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An amount with its thousands apart, and its currency.
pub(crate) fn money(amount: Money, currency: &str) -> String {
    let text = amount.to_string();
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |rest| ("\u{2212}", rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "00"));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    format!("{sign}{whole}.{fraction} {currency}")
}

/// A share in percent.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let per_mille = u128::from(part) * 1000 / u128::from(whole);
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// A state by its word; the style sheet adds shape and colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State(pub(crate) &'static str);

impl From<MessageState> for State {
    fn from(state: MessageState) -> Self {
        Self(state.name())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The beginning of a text, on one line.
pub(crate) fn beginning(text: &str, chars: usize) -> String {
    let mut short: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(chars)
        .collect();
    if text.chars().nth(chars).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_thousands_apart() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn amounts_carry_their_currency() {
        for (micros, text) in [
            (0, "0.00 EUR"),
            (1_234_567_890_000, "1,234,567.89 EUR"),
            (-12_500, "\u{2212}0.0125 EUR"),
        ] {
            assert_eq!(money(Money::from_micros(micros), "EUR"), text);
        }
    }

    #[test]
    fn shares_are_rounded_down() {
        for (part, whole, text) in [
            (0, 0, "–"),
            (1, 3, "33.3 %"),
            (999_999, 1_000_000, "99.9 %"),
            (5, 5, "100.0 %"),
        ] {
            assert_eq!(percent(part, whole), text);
        }
    }

    #[test]
    fn a_beginning_is_one_line() {
        assert_eq!(beginning("a\nb", 5), "a b");
        assert_eq!(beginning("äöüß", 3), "äöü…");
    }
}
