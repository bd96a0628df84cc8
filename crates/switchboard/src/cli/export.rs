//! `switchboard export …`

use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use domain::{MessageId, Timestamp};
use jiff::civil::Date;
use jiff::tz::TimeZone;

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Write one row for each message to standard output: times, state, price, cost, carrier, network; never the text
    #[command(after_help = CONTINUE)]
    Messages(ExportMessages),
    /// Write what messages earned by carrier, country and account: price, cost and margin
    Margin(ExportMargin),
}

const CONTINUE: &str = "\
An interrupted export can be continued. It says on standard error after which message it stopped:

  switchboard export messages --from 2026-11-01 --to 2026-11-30 > november.csv
  switchboard export messages --from 2026-11-01 --to 2026-11-30 --after 4294967301 >> november.csv

If it was killed and said nothing, remove an incomplete last line and give the ID of the line before.";

#[derive(Debug, Args)]
pub(crate) struct ExportMessages {
    #[command(flatten)]
    pub(crate) period: Period,
    /// The format of the rows
    #[arg(long, value_enum, default_value_t = RowFormat::Csv)]
    pub(crate) format: RowFormat,
    /// Continue after this message, without a header line
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<MessageId>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportMargin {
    #[command(flatten)]
    pub(crate) period: Period,
    /// The format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Csv)]
    pub(crate) format: ReportFormat,
}

/// The messages to export, by the time of acceptance.
#[derive(Debug, Args)]
pub(crate) struct Period {
    /// The first day (UTC), such as 2026-11-01, or a time, such as 2026-11-01T09:30:00Z
    #[arg(long, value_name = "DATE")]
    pub(crate) from: Moment,
    /// The last day (UTC), which is included, or a time, which is not
    #[arg(long, value_name = "DATE")]
    pub(crate) to: Moment,
    /// Only messages of this account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// CSV with a header line
    Csv,
    /// One JSON object on each line
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// CSV with a header line
    Csv,
    /// One JSON value
    Json,
}

/// A day in UTC, or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Day(Date),
    Time(Timestamp),
}

const NOT_A_MOMENT: &str = "write a day like 2026-11-01 or a time like 2026-11-01T09:30:00Z";

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.len() == "2026-11-01".len() {
            return text.parse().map(Self::Day).map_err(|_| NOT_A_MOMENT);
        }
        text.parse().map(Self::Time).map_err(|_| NOT_A_MOMENT)
    }
}

impl Moment {
    /// The first moment of it.
    pub(crate) fn start(self) -> Timestamp {
        match self {
            Self::Day(day) => midnight(day),
            Self::Time(time) => time,
        }
    }

    /// The first moment after it: a day is included, a time is not.
    pub(crate) fn end(self) -> Timestamp {
        match self {
            Self::Day(day) => day.tomorrow().map_or(Timestamp::MAX, midnight),
            Self::Time(time) => time,
        }
    }
}

fn midnight(day: Date) -> Timestamp {
    let zoned = day.to_zoned(TimeZone::UTC);
    zoned.map_or(Timestamp::MAX, |zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_included_and_times_are_not() {
        for (text, start, end) in [
            ("2026-11-30", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"),
            (
                "2026-11-30T09:30:00Z",
                "2026-11-30T09:30:00Z",
                "2026-11-30T09:30:00Z",
            ),
            (
                "2026-11-30T09:30:00+02:00",
                "2026-11-30T07:30:00Z",
                "2026-11-30T07:30:00Z",
            ),
        ] {
            let moment: Moment = text.parse().expect(text);
            assert_eq!(moment.start().to_string(), start, "{text}");
            assert_eq!(moment.end().to_string(), end, "{text}");
        }
        for text in ["", "today", "2026-11-31", "2026-11", "2026-11-30T09:30:00"] {
            assert_eq!(text.parse::<Moment>(), Err(NOT_A_MOMENT), "{text}");
        }
    }
}
