//! Downloading the messages of a period.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use domain::ports::ExportFilter;
use engine::reading::export::ExportFormat;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::Dashboard;
use crate::kit::downloads;
use crate::kit::failure::Failure;
use crate::kit::query::Query;
use crate::kit::session::Member;

/// The first and the last day of a download, in UTC.
pub(super) struct Days {
    pub(super) from: String,
    pub(super) to: String,
}

impl Days {
    /// From the beginning of the month until today.
    pub(super) fn of_month(now: Timestamp) -> Self {
        let today = now.to_zoned(TimeZone::UTC).date();
        Self {
            from: today.first_of_month().to_string(),
            to: today.to_string(),
        }
    }
}

/// Streams the account's own messages, without texts and without what they cost us.
pub(super) async fn download(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let (from, to) = (query.text("from"), query.text("to"));
    let days = (from.parse::<Date>(), to.parse::<Date>());
    let (Ok(first), Ok(last)) = days else {
        return Err(Failure::Form);
    };
    let (format, content_type, extension) = match query.get("format") {
        Some("jsonl") => (ExportFormat::JsonLines, "application/jsonl", "jsonl"),
        _ => (ExportFormat::Csv, "text/csv; charset=utf-8", "csv"),
    };
    let midnight = |day: Date| {
        let zoned = day.to_zoned(TimeZone::UTC).ok();
        zoned.map(|zoned| zoned.timestamp()).ok_or(Failure::Form)
    };
    let filter = ExportFilter {
        account: Some(member.account.id),
        since: midnight(first)?,
        until: midnight(last.tomorrow().map_err(|_| Failure::Form)?)?,
    };
    let permit = dashboard.downloads.permit(Some(member.account.id));
    let permit = permit.map_err(Failure::Page)?;
    let currency = &dashboard.settings.currency;
    let export = dashboard
        .engine
        .exports
        .begin(filter, format, currency, None);
    let name = format!("messages-{first}-{last}.{extension}");
    Ok(downloads::stream(
        export.without_costs(),
        &name,
        content_type,
        permit,
    ))
}
