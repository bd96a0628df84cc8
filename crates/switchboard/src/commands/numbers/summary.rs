//! The summary of many corrected numbers.

use std::fmt::{self, Write as _};
use std::time::Duration;

use numbering::{Corrected, CorrectionError, CorrectionReason, NumberType};
use serde_json::{Value, json};

/// The result of the number in one row.
pub(super) type Outcome = Result<Corrected, Fault>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The row ends before the column with the numbers.
    NoCell,
    Number(CorrectionError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCell => Reason::NoCell.fmt(f),
            Self::Number(error) => error.fmt(f),
        }
    }
}

/// A fault without its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    NoCell,
    Number(CorrectionReason),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCell => f.write_str("the row ends before the column of the numbers"),
            Self::Number(reason) => reason.fmt(f),
        }
    }
}

/// Counts results.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    mobile: u64,
    landline: u64,
    unknown: u64,
    /// There are few reasons, so a linear search is fast.
    faults: Vec<(Reason, u64)>,
}

impl Summary {
    pub(super) fn add(&mut self, outcome: &Outcome) {
        let reason = match outcome {
            Ok(corrected) => {
                *match corrected.kind {
                    NumberType::Mobile => &mut self.mobile,
                    NumberType::Landline => &mut self.landline,
                    NumberType::Unknown => &mut self.unknown,
                } += 1;
                return;
            }
            Err(Fault::NoCell) => Reason::NoCell,
            Err(Fault::Number(error)) => Reason::Number(error.reason),
        };
        match self.faults.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.faults.push((reason, 1)),
        }
    }

    /// Text with the counts, the speed, and each reason on a line.
    pub(super) fn in_words(&self, took: Duration) -> String {
        let Self {
            mobile,
            landline,
            unknown,
            faults: _,
        } = self;
        let mut text = format!(
            "{} rows: {} corrected ({mobile} mobile, {landline} landline, {unknown} unknown), {} errors; {} rows a second\n",
            self.rows(),
            self.corrected(),
            self.errors(),
            self.rows_per_second(took)
        );
        for (reason, count) in self.most_frequent() {
            writeln!(text, "{count:>8}  {reason}").expect("strings take everything");
        }
        text
    }

    pub(super) fn as_json(&self, took: Duration) -> Value {
        let reasons = self.most_frequent().into_iter();
        let reasons =
            reasons.map(|(reason, count)| json!({ "reason": reason.to_string(), "rows": count }));
        json!({
            "rows": self.rows(),
            "corrected": self.corrected(),
            "mobile": self.mobile,
            "landline": self.landline,
            "unknown": self.unknown,
            "errors": self.errors(),
            "reasons": reasons.collect::<Vec<_>>(),
            "rowsPerSecond": self.rows_per_second(took),
        })
    }

    fn corrected(&self) -> u64 {
        self.mobile + self.landline + self.unknown
    }

    fn errors(&self) -> u64 {
        self.faults.iter().map(|(_, count)| count).sum()
    }

    fn rows(&self) -> u64 {
        self.corrected() + self.errors()
    }

    fn rows_per_second(&self, took: Duration) -> u64 {
        let rate = u128::from(self.rows()) * 1_000_000 / took.as_micros().max(1);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn most_frequent(&self) -> Vec<(Reason, u64)> {
        let mut faults = self.faults.clone();
        faults.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_once() {
        let latvia = domain::Country::parse("LV").ok();
        let examine = |raw: &str| numbering::examine(raw, latvia).map_err(Fault::Number);
        let mut summary = Summary::default();
        for outcome in [
            examine("20000001"),
            examine("+37167000000"),
            examine("1"),
            examine("2"),
            examine("none"),
            Err(Fault::NoCell),
        ] {
            summary.add(&outcome);
        }
        let json = summary.as_json(Duration::from_secs(2));
        let counts = [
            "rows",
            "corrected",
            "mobile",
            "landline",
            "unknown",
            "errors",
        ];
        assert_eq!(
            counts.map(|key| json[key].as_u64()),
            [6, 2, 1, 1, 0, 4].map(Some)
        );
        assert_eq!(json["rowsPerSecond"], 3);
        let reasons = json["reasons"].as_array().expect("a list");
        assert_eq!((reasons.len(), &reasons[0]["rows"]), (3, &json!(2)));
        let words = summary.in_words(Duration::from_secs(2));
        assert!(
            words.starts_with(
                "6 rows: 2 corrected (1 mobile, 1 landline, 0 unknown), 4 errors; 3 rows a second\n"
            ),
            "{words}"
        );
        assert_eq!(words.lines().count(), 4, "{words}");
    }
}
