//! Rows of messages whose reports carriers ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::ports::{AwaitedReport, DuePoll};

use super::{SqlRow, message_id, micros};

/// The longest pause between two questions about a message.
pub(crate) const LONGEST_PAUSE_US: i64 = 3_600_000_000;

/// A message to ask about.
pub(crate) struct PollColumns {
    pub(crate) carrier: String,
    pub(crate) id: i64,
    pub(crate) provider_id: String,
    pub(crate) first_after_us: i64,
    pub(crate) expires_us: i64,
}

/// The columns of messages, sorted. The last entry for a message and a carrier counts.
pub(crate) fn poll_columns(awaited: &[AwaitedReport]) -> Vec<PollColumns> {
    let mut last = BTreeMap::new();
    for report in awaited {
        last.insert((&report.carrier, report.id), report);
    }
    let columns = |report: &AwaitedReport| PollColumns {
        carrier: report.carrier.clone(),
        id: report.id.as_i64(),
        provider_id: report.provider_id.clone(),
        first_after_us: in_micros(report.first_after),
        expires_us: micros(report.expires_at),
    };
    last.into_values().map(columns).collect()
}

pub(crate) fn in_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn read_due<R: SqlRow>(row: &R) -> Result<DuePoll, R::Error> {
    Ok(DuePoll {
        id: message_id(row.column(0)?)?,
        provider_id: row.column(1)?,
    })
}
