//! The overview of an account: balance, counts and charts.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::ports::AccountRecord;
use domain::{Code, Country, Money, Timestamp};
use engine::reading::traffic::{
    self, Histogram, MAX_PERIOD_DAYS, OperatorName, Point, Share, Totals,
};
use http::StatusCode;
use jiff::SignedDuration;
use jiff::civil::Date;

use crate::Dashboard;
use crate::kit::chart::latency::{LatencyChart, duration};
use crate::kit::chart::{Chart, Item, Tally};
use crate::kit::failure::Failure;
use crate::kit::format::{Amount, count};
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Member;

/// Further rows are summed up as "others".
const MAX_ROWS: usize = 8;
const UNKNOWN: &str = "unknown";
const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    /// Why nothing can be sent, and what to do.
    obstacle: Option<(&'static str, &'static str)>,
    offers_first_steps: bool,
    is_simulated: bool,
    offers_password: bool,
    period: PeriodForm,
    status: Status,
}

/// The days that are shown, as they were typed. Without them, the overview shows the last days and updates itself.
#[derive(Default)]
struct PeriodForm {
    from: String,
    to: String,
    problem: Option<String>,
    days: Option<(Date, Date)>,
}

impl PeriodForm {
    fn read(query: &Query) -> Self {
        let mut form = Self {
            from: query.text("from").to_owned(),
            to: query.text("to").to_owned(),
            ..Self::default()
        };
        if form.from.is_empty() && form.to.is_empty() {
            return form;
        }
        match (form.from.parse::<Date>(), form.to.parse::<Date>()) {
            (Ok(first), Ok(last)) => match usize::try_from((last - first).get_days()) {
                Err(_) => form.problem = Some("The last day is before the first.".to_owned()),
                Ok(later) if later >= MAX_PERIOD_DAYS => {
                    form.problem = Some(format!("Choose at most {MAX_PERIOD_DAYS} days."));
                }
                Ok(_) => form.days = Some((first, last)),
            },
            _ => form.problem = Some("Choose the first and the last day.".to_owned()),
        }
        form
    }
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "overview_status.html")]
struct StatusPart {
    status: Status,
}

struct Status {
    account: String,
    balance: Amount,
    currency: String,
    figures: Vec<Figures>,
    charts: Vec<Chart>,
    latency: Option<LatencyChart>,
}

struct Figures {
    label: String,
    ended: String,
    delivered: String,
    failed: String,
    cost: Amount,
    /// How the delivery rate differs from that of the days before.
    change: Option<String>,
    /// The percentiles.
    latency: Option<String>,
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard", get(show))
        .route("/dashboard/live", get(follow))
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let period = PeriodForm::read(&query);
    let account = &member.account;
    let status = match period.days {
        None => dashboard.status(account).await?,
        Some((first, last)) => dashboard.period_status(account, first, last).await?,
    };
    let code = match period.problem {
        None => StatusCode::OK,
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let frame = match (member.said(&query), member.signed_in.person()) {
        (Some("password"), Some(person)) => member.frame().with_success(format!(
            "Your password was saved. From now on, sign in as {}.",
            person.email
        )),
        _ => member.frame(),
    };
    let available = account.balance.plus(account.rules.credit_limit);
    let page = OverviewPage {
        frame,
        obstacle: obstacle(account.suspended, available),
        offers_first_steps: !account.suspended
            && available >= Money::ZERO
            && period.days.is_none()
            && !status.has_traffic(),
        is_simulated: dashboard.engine.is_simulated(),
        offers_password: member.signed_in.person().is_none(),
        period,
        status,
    };
    Ok(show_page(code, &page))
}

fn obstacle(is_suspended: bool, available: Money) -> Option<(&'static str, &'static str)> {
    if is_suspended {
        return Some((
            "This account is suspended.",
            "Nothing can be sent. Ask the operator of this service.",
        ));
    }
    (available <= Money::ZERO).then_some((
        "Not enough balance.",
        "Messages that cost money are refused until the account is topped up. Ask the operator of this service.",
    ))
}

async fn follow(State(dashboard): State<Arc<Dashboard>>, member: Member) -> Response {
    let account = member.account.id;
    let own = dashboard.clone();
    live::stream(&dashboard, &member, move || {
        let dashboard = own.clone();
        async move {
            let found = dashboard.engine.accounts.find_by_id(account).await?;
            // Accounts are never deleted.
            let account = found.ok_or(Failure::Form)?;
            let status = dashboard.status(&account).await?;
            Ok(Fragment::render(&StatusPart { status }))
        }
    })
    .await
}

impl Dashboard {
    async fn status(&self, account: &AccountRecord) -> Result<Status, Failure> {
        let now = self.engine.now();
        let traffic = &self.engine.traffic;
        let overview = traffic.overview(Some(account.id), now).await?;
        let latencies = traffic.recent_latencies(account.id, now).await?;
        let currency = &self.settings.currency;
        Ok(Status {
            account: account.name.clone(),
            balance: Amount::new(account.balance, currency),
            currency: currency.clone(),
            figures: vec![
                Figures::new("Today", overview.today, latencies.sum(1), currency),
                Figures::new("7 days", overview.last_7_days, latencies.sum(7), currency),
            ],
            charts: charts(&overview),
            latency: LatencyChart::new(&latencies),
        })
    }

    /// The figures of some days, beside those of as many days before.
    async fn period_status(
        &self,
        account: &AccountRecord,
        first: Date,
        last: Date,
    ) -> Result<Status, Failure> {
        let traffic = &self.engine.traffic;
        let period = traffic.period(Some(account.id), first, last).await?;
        let latencies = traffic.latencies(account.id, first, last).await?;
        let latency = latencies.sum(MAX_PERIOD_DAYS);
        let currency = &self.settings.currency;
        let before = match period.days.len() {
            1 => "The day before".to_owned(),
            days => format!("The {days} days before"),
        };
        let days = columns(&period.days, "%b %-d", "%Y-%m-%d", DAY);
        let mut charts = vec![
            Chart::columns("days", "By day", "Day", days.clone()),
            Chart::rates("rates", "Delivery rate", "Day", days),
        ];
        charts.extend(share_charts(
            &period.countries,
            &period.operators,
            &period.errors,
        ));
        Ok(Status {
            account: account.name.clone(),
            balance: Amount::new(account.balance, currency),
            currency: currency.clone(),
            figures: vec![
                Figures {
                    change: change(period.before, period.totals),
                    ..Figures::new(
                        &format!("{first} to {last}"),
                        period.totals,
                        latency,
                        currency,
                    )
                },
                Figures::new(&before, period.before, latencies.before, currency),
            ],
            charts,
            latency: LatencyChart::new(&latencies),
        })
    }
}

impl Status {
    fn has_traffic(&self) -> bool {
        self.charts.iter().any(|chart| !chart.is_blank())
    }
}

impl Figures {
    fn new(label: &str, totals: Totals, latencies: Histogram, currency: &str) -> Self {
        let tally = Tally::from(totals);
        let percentiles = latencies.latency();
        Self {
            label: label.to_owned(),
            ended: count(tally.all()),
            delivered: tally.share(),
            failed: count(tally.failed + tally.expired),
            cost: Amount::new(tally.cost, currency),
            change: None,
            latency: percentiles
                .map(|it| format!("{}, {}", duration(it.p50_ms), duration(it.p95_ms))),
        }
    }
}

/// The change of the delivery rate, in percentage points.
fn change(before: Totals, now: Totals) -> Option<String> {
    let rate = |totals: Totals| {
        let per_mille = u128::from(totals.delivered) * 1000;
        let per_mille = per_mille.checked_div(u128::from(totals.sent))?;
        i64::try_from(per_mille).ok()
    };
    let points = rate(now)? - rate(before)?;
    let sign = match points.signum() {
        1 => "+",
        -1 => "\u{2212}",
        _ => "\u{b1}",
    };
    let points = points.unsigned_abs();
    Some(format!("{sign}{}.{} points", points / 10, points % 10))
}

fn charts(overview: &traffic::Overview) -> Vec<Chart> {
    let hours = columns(&overview.hours, "%H:%M", "%Y-%m-%d %H:%M UTC", HOUR);
    let days = columns(&overview.days, "%b %-d", "%Y-%m-%d", DAY);
    let mut charts = vec![
        Chart::columns("hours", "The last 48 hours", "Hour", hours),
        Chart::columns("days", "The last 30 days", "Day", days.clone()),
        Chart::rates("rates", "Delivery rate, the last 30 days", "Day", days),
    ];
    charts.extend(share_charts(
        &overview.countries,
        &overview.operators,
        &overview.errors,
    ));
    charts
}

fn share_charts(
    countries: &[Share<Option<Country>>],
    operators: &[Share<OperatorName>],
    errors: &[Share<Code>],
) -> [Chart; 3] {
    let country = |country: &Option<Country>| {
        let name = country.map_or(UNKNOWN, Country::short_name);
        let address = country.map(|country| found_by(&[("country", country.as_str())]));
        (name.to_owned(), address)
    };
    let error = |code: &Code| {
        let entry = code.entry();
        let address = format!("/dashboard/messages?error={}", entry.number);
        (format!("{} {}", entry.number, entry.words), Some(address))
    };
    let (countries, errors) = (rows(countries, country), rows(errors, error));
    let operators = rows(operators, |name| (operator(name), operator_address(name)));
    [
        Chart::rows("countries", "By country", "Country", countries),
        Chart::rows("operators", "By operator", "Operator", operators),
        Chart::rows("errors", "By error", "Error", errors),
    ]
}

/// The list of messages with these filters.
fn found_by(filters: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(filters);
    format!("/dashboard/messages?{}", query.finish())
}

fn operator_address(operator: &OperatorName) -> Option<String> {
    if let Some(network) = operator.network {
        return Some(found_by(&[("network", &network.to_string())]));
    }
    let (country, name) = (operator.country?, operator.name.as_deref()?);
    Some(found_by(&[
        ("country", country.as_str()),
        ("operator", name),
    ]))
}

fn operator(operator: &OperatorName) -> String {
    let network = operator.network.map(|network| network.to_string());
    let name = operator.name.as_deref().map(str::to_owned).or(network);
    let name = name.unwrap_or_else(|| UNKNOWN.to_owned());
    match operator.country {
        Some(country) => format!("{name}, {country}"),
        None => name,
    }
}

/// Columns that lead to the messages that were accepted in their time.
fn columns(points: &[Point], label: &str, name: &str, length: SignedDuration) -> Vec<Item> {
    let time = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M").to_string();
    let item = |point: &Point| Item {
        label: point.start.strftime(label).to_string(),
        name: point.start.strftime(name).to_string(),
        tally: point.totals.into(),
        address: Some(format!(
            "/dashboard/messages?since={}&until={}",
            time(point.start),
            time(point.start.saturating_add(length).unwrap_or(point.start))
        )),
    };
    points.iter().map(item).collect()
}

/// The largest rows, and the sum of all others. `describe` gives a name, and the address of the messages behind it.
fn rows<T>(shares: &[Share<T>], describe: impl Fn(&T) -> (String, Option<String>)) -> Vec<Item> {
    let item = |(name, address): (String, Option<String>), tally| Item {
        label: name.clone(),
        name,
        tally,
        address,
    };
    let shown = if shares.len() > MAX_ROWS {
        MAX_ROWS - 1
    } else {
        shares.len()
    };
    let (shown, others) = shares.split_at(shown);
    let mut items: Vec<Item> = shown
        .iter()
        .map(|share| item(describe(&share.of), share.totals.into()))
        .collect();
    if !others.is_empty() {
        let tallies = others.iter().map(|share| Tally::from(share.totals));
        let tally = tallies.fold(Tally::default(), Tally::plus);
        items.push(item((format!("{} others", others.len()), None), tally));
    }
    items
}

#[cfg(test)]
mod tests;
