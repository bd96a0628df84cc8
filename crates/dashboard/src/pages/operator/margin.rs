//! What messages earned: price against carrier cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::ExportFilter;
use domain::{Country, Timestamp};
use engine::reading::export::ExportFormat;
use engine::reading::margin::{MarginReport, MarginSums};
use http::StatusCode;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Amount, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Operator;

/// A page takes no longer; the command line does the rest.
const READ_TIME: Duration = Duration::from_secs(5);

#[derive(Template)]
#[template(path = "operator/margin.html")]
struct MarginPage {
    frame: Frame,
    from: String,
    to: String,
    problem: Option<&'static str>,
    rows: Vec<MarginRow>,
    total: Option<MarginRow>,
}

struct MarginRow {
    carrier: String,
    country: String,
    account: String,
    messages: String,
    parts: String,
    price: Amount,
    cost: Amount,
    margin: Amount,
    without_cost: String,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let today = dashboard.engine.now().to_zoned(TimeZone::UTC).date();
    let day = |name: &str| query.get(name).map_or(Ok(today), str::parse::<Date>);
    let (from, to) = (day("from"), day("to"));
    let mut page = MarginPage {
        frame: operator.frame(),
        from: query.get("from").map_or(today.to_string(), str::to_owned),
        to: query.get("to").map_or(today.to_string(), str::to_owned),
        problem: None,
        rows: Vec::new(),
        total: None,
    };
    let period = from
        .ok()
        .zip(to.ok())
        .and_then(|(from, to)| period(from, to));
    let Some((since, until)) = period else {
        page.problem = Some("Give two days; the first must not be after the last.");
        return Ok(show_page(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let filter = ExportFilter {
        account: None,
        since,
        until,
    };
    let permit = dashboard.downloads.permit(None);
    let _permit = permit.map_err(Failure::Page)?;
    let currency = &dashboard.settings.currency;
    let exports = &dashboard.engine.exports;
    let export = exports.begin(filter, ExportFormat::Csv, currency, None);
    let deadline = Instant::now() + READ_TIME;
    let report = MarginReport::read(export, Some(deadline), |_| {}).await?;
    if report.is_complete {
        let rows = report.rows.iter().map(|(key, sums)| MarginRow {
            carrier: key.carrier.clone().unwrap_or_else(|| "none".to_owned()),
            country: key
                .country
                .map_or("Unknown", Country::short_name)
                .to_owned(),
            account: key.account.clone(),
            ..MarginRow::new(sums, currency)
        });
        page.rows = rows.collect();
        page.total = Some(MarginRow::new(&report.total, currency));
    } else {
        page.problem = Some(
            "There are too many messages in these days for a page. Choose fewer days, or run `switchboard export margin`.",
        );
    }
    Ok(show_page(StatusCode::OK, &page))
}

/// Both days are included.
fn period(from: Date, to: Date) -> Option<(Timestamp, Timestamp)> {
    let midnight = |day: Date| Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let (since, until) = (midnight(from)?, midnight(to.tomorrow().ok()?)?);
    (since < until).then_some((since, until))
}

impl MarginRow {
    fn new(sums: &MarginSums, currency: &str) -> Self {
        Self {
            carrier: String::new(),
            country: String::new(),
            account: String::new(),
            messages: count(sums.messages),
            parts: count(sums.parts),
            price: Amount::new(sums.price, currency),
            cost: Amount::new(sums.cost, currency),
            margin: Amount::new(sums.margin(), currency),
            without_cost: count(sums.without_cost),
        }
    }
}
