//! Times, amounts, counts and states as all pages show them.

use std::fmt;

use domain::message::MessageState;
use domain::ports::Counted;
use domain::{Money, Msisdn, Timestamp};
use engine::audit::{TextPart, split_times};

/// A time: written in UTC; the script converts it to the browser's time zone.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    /// For the script.
    pub(crate) iso: String,
    /// Shown without a script, and on hover.
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

/// A text whose times are shown as all times are.
pub(crate) struct TimedText(pub(crate) Vec<TimedPart>);

/// A time, or a text.
pub(crate) struct TimedPart {
    pub(crate) time: Option<Moment>,
    pub(crate) text: String,
}

impl TimedText {
    pub(crate) fn new(text: &str) -> Self {
        let part = |part: TextPart<'_>| match part {
            TextPart::Text(text) => TimedPart {
                time: None,
                text: text.to_owned(),
            },
            TextPart::Time(time) => TimedPart {
                time: Some(time.into()),
                text: String::new(),
            },
        };
        Self(split_times(text).into_iter().map(part).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A recipient.
pub(crate) fn number(number: Option<Msisdn>) -> String {
    number.map_or_else(|| "(erased)".to_owned(), |number| number.to_string())
}

/// Shown instead of texts that the account hides from the person's role.
pub(crate) const HIDDEN: &str = "(hidden)";

/// A count with separators between thousands.
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

/// A count that may have stopped at its cap.
pub(crate) fn capped_count(counted: Counted) -> String {
    let number = count(counted.0.into());
    if counted.is_capped() {
        format!("{number} or more")
    } else {
        number
    }
}

/// An amount with separators between thousands, and its currency.
pub(crate) fn money(amount: Money, currency: &str) -> String {
    let text = amount.to_string();
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |rest| ("\u{2212}", rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "00"));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    format!("{sign}{whole}.{fraction} {currency}")
}

/// An amount with two decimals; the exact one is shown on hover.
pub(crate) struct Amount {
    pub(crate) short: String,
    pub(crate) exact: String,
}

impl Amount {
    pub(crate) fn new(amount: Money, currency: &str) -> Self {
        const CENT_MICROS: i64 = 10_000;
        let half = CENT_MICROS / 2 * amount.micros().signum();
        let cents = amount.micros().saturating_add(half) / CENT_MICROS;
        Self {
            short: money(Money::from_micros(cents * CENT_MICROS), currency),
            exact: money(amount, currency),
        }
    }
}

pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let per_mille = u128::from(part) * 1000 / u128::from(whole);
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// The name of a state; the style sheet adds shape and colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateLabel(pub(crate) &'static str);

impl From<MessageState> for StateLabel {
    fn from(state: MessageState) -> Self {
        Self(state.name())
    }
}

impl fmt::Display for StateLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Cuts a text to a number of characters and puts it on one line.
pub(crate) fn shorten(text: &str, chars: usize) -> String {
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
    fn counts_have_separators() {
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
    fn short_amounts_have_two_decimals() {
        for (micros, short) in [
            (0, "0.00 EUR"),
            (1_234_567_890_000, "1,234,567.89 EUR"),
            (14_999, "0.01 EUR"),
            (15_000, "0.02 EUR"),
            (-15_000, "\u{2212}0.02 EUR"),
            (-4_999, "0.00 EUR"),
        ] {
            let amount = Amount::new(Money::from_micros(micros), "EUR");
            assert_eq!(amount.short, short, "{micros}");
            assert_eq!(amount.exact, money(Money::from_micros(micros), "EUR"));
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
    fn a_short_text_is_one_line() {
        assert_eq!(shorten("a\nb", 5), "a b");
        assert_eq!(shorten("äöüß", 3), "äöü…");
    }
}
