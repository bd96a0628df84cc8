//! Traffic figures and charts, of an account or of all accounts.

use domain::ports::AccountRecord;
use domain::{AccountId, Code, Country, Timestamp};
use engine::reading::traffic::{
    self, Histogram, MAX_PERIOD_DAYS, OperatorName, Point, Share, Totals,
};
use jiff::SignedDuration;
use jiff::civil::Date;

use crate::Dashboard;
use crate::kit::chart::latency::{LatencyChart, duration};
use crate::kit::chart::{Chart, Item, Tally};
use crate::kit::failure::Failure;
use crate::kit::format::{Amount, count};
use crate::kit::query::Query;

/// Further rows are summed up as "others".
const MAX_ROWS: usize = 8;
const UNKNOWN: &str = "unknown";
const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Whose traffic is shown, and to whom.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    Member(&'a AccountRecord),
    /// One account, or all.
    Operator(Option<&'a AccountRecord>),
}

impl<'a> Scope<'a> {
    fn account(self) -> Option<&'a AccountRecord> {
        match self {
            Self::Member(account) => Some(account),
            Self::Operator(account) => account,
        }
    }

    fn account_id(self) -> Option<AccountId> {
        self.account().map(|account| account.id)
    }

    fn list(self) -> MessageList<'a> {
        match self {
            Self::Member(_) => MessageList::Own,
            Self::Operator(account) => {
                MessageList::All(account.map(|account| account.name.as_str()))
            }
        }
    }
}

/// The list of messages that the bars lead to.
#[derive(Clone, Copy)]
enum MessageList<'a> {
    Own,
    /// That of operators, for the account with this name, or for all.
    All(Option<&'a str>),
}

impl MessageList<'_> {
    /// Its address with these filters, for messages that were accepted in the interval.
    fn address(self, filters: &[(&str, &str)], accepted: Interval) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let path = match self {
            Self::Own => "/dashboard/messages",
            Self::All(account) => {
                query.extend_pairs(account.map(|name| ("account", name)));
                "/dashboard/operator/messages"
            }
        };
        query.extend_pairs(filters);
        let time = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M").to_string();
        query.append_pair("since", &time(accepted.since));
        query.extend_pairs(accepted.until.map(|until| ("until", time(until))));
        format!("{path}?{}", query.finish())
    }
}

#[derive(Clone, Copy)]
struct Interval {
    since: Timestamp,
    /// `None`: the present time.
    until: Option<Timestamp>,
}

impl Interval {
    /// From the first point to the end of the last.
    fn of(points: &[Point], length: SignedDuration) -> Self {
        let end = points.last().map(|last| last.start.saturating_add(length));
        Self {
            since: points.first().map(|first| first.start).unwrap_or_default(),
            until: end.and_then(Result::ok),
        }
    }
}

/// The days that are shown, as they were typed.
#[derive(Default)]
pub(crate) struct PeriodForm {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) problem: Option<String>,
    pub(crate) days: Option<(Date, Date)>,
}

impl PeriodForm {
    pub(crate) fn read(query: &Query) -> Self {
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

pub(crate) struct Status {
    /// The name and the balance of an account; `None` for all accounts.
    pub(crate) account: Option<(String, Amount)>,
    pub(crate) currency: String,
    pub(crate) figures: Vec<Figures>,
    pub(crate) charts: Vec<Chart>,
    pub(crate) latency: Option<LatencyChart>,
}

pub(crate) struct Figures {
    pub(crate) label: String,
    pub(crate) ended: String,
    pub(crate) delivered: String,
    pub(crate) failed: String,
    pub(crate) cost: Amount,
    /// How the delivery rate differs from that of the days before.
    pub(crate) change: Option<String>,
    /// The percentiles.
    pub(crate) latency: Option<String>,
}

impl Dashboard {
    /// The figures of the last days.
    pub(crate) async fn status(&self, account: &AccountRecord) -> Result<Status, Failure> {
        let now = self.engine.now();
        let traffic = &self.engine.traffic;
        let overview = traffic.overview(Some(account.id), now).await?;
        let latencies = traffic.recent_latencies(Some(account.id), now).await?;
        let currency = &self.settings.currency;
        Ok(Status {
            account: Some(named_balance(account, currency)),
            currency: currency.clone(),
            figures: vec![
                Figures::new("Today", overview.today, latencies.sum(1), currency),
                Figures::new("7 days", overview.last_7_days, latencies.sum(7), currency),
            ],
            charts: charts(&overview, Scope::Member(account).list()),
            latency: LatencyChart::new(&latencies),
        })
    }

    /// The figures of some days, beside those of as many days before.
    pub(crate) async fn period_status(
        &self,
        scope: Scope<'_>,
        first: Date,
        last: Date,
    ) -> Result<Status, Failure> {
        let traffic = &self.engine.traffic;
        let (account, bars_lead_to) = (scope.account_id(), scope.list());
        let period = traffic.period(account, first, last).await?;
        let latencies = traffic.latencies(account, first, last).await?;
        let latency = latencies.sum(MAX_PERIOD_DAYS);
        let currency = &self.settings.currency;
        let before = match period.days.len() {
            1 => "The day before".to_owned(),
            days => format!("The {days} days before"),
        };
        let days = columns(&period.days, "%b %-d", "%Y-%m-%d", DAY, bars_lead_to);
        let mut charts = vec![
            Chart::columns("days", "By day", "Day", days.clone()),
            Chart::rates("rates", "Delivery rate", "Day", days),
        ];
        charts.extend(share_charts(
            &period.countries,
            &period.operators,
            &period.errors,
            bars_lead_to,
            Interval::of(&period.days, DAY),
        ));
        Ok(Status {
            account: scope
                .account()
                .map(|account| named_balance(account, currency)),
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

fn named_balance(account: &AccountRecord, currency: &str) -> (String, Amount) {
    let balance = Amount::new(account.balance, currency);
    (account.name.clone(), balance)
}

impl Status {
    pub(crate) fn has_traffic(&self) -> bool {
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

fn charts(overview: &traffic::Overview, list: MessageList<'_>) -> Vec<Chart> {
    let hours = columns(&overview.hours, "%H:%M", "%Y-%m-%d %H:%M UTC", HOUR, list);
    let days = columns(&overview.days, "%b %-d", "%Y-%m-%d", DAY, list);
    let mut charts = vec![
        Chart::columns("hours", "The last 48 hours", "Hour", hours),
        Chart::columns("days", "The last 30 days", "Day", days.clone()),
        Chart::rates("rates", "Delivery rate, the last 30 days", "Day", days),
    ];
    let accepted = Interval {
        until: None,
        ..Interval::of(&overview.days, DAY)
    };
    charts.extend(share_charts(
        &overview.countries,
        &overview.operators,
        &overview.errors,
        list,
        accepted,
    ));
    charts
}

fn share_charts(
    countries: &[Share<Option<Country>>],
    operators: &[Share<OperatorName>],
    errors: &[Share<Code>],
    list: MessageList<'_>,
    accepted: Interval,
) -> [Chart; 3] {
    let country = |country: &Option<Country>| {
        let name = country.map_or(UNKNOWN, Country::short_name);
        let address =
            country.map(|country| list.address(&[("country", country.as_str())], accepted));
        (name.to_owned(), address)
    };
    let error = |code: &Code| {
        let entry = code.entry();
        let address = list.address(&[("error", &entry.number.to_string())], accepted);
        (format!("{} {}", entry.number, entry.words), Some(address))
    };
    let (countries, errors) = (rows(countries, country), rows(errors, error));
    let operators = rows(operators, |name| {
        (operator(name), operator_address(name, list, accepted))
    });
    [
        Chart::rows("countries", "By country", "Country", countries),
        Chart::rows("operators", "By operator", "Operator", operators),
        Chart::rows("errors", "By error", "Error", errors),
    ]
}

fn operator_address(
    operator: &OperatorName,
    list: MessageList<'_>,
    accepted: Interval,
) -> Option<String> {
    if let Some(network) = operator.network {
        return Some(list.address(&[("network", &network.to_string())], accepted));
    }
    let (country, name) = (operator.country?, operator.name.as_deref()?);
    let filters = [("country", country.as_str()), ("operator", name)];
    Some(list.address(&filters, accepted))
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
fn columns(
    points: &[Point],
    label: &str,
    name: &str,
    length: SignedDuration,
    list: MessageList<'_>,
) -> Vec<Item> {
    let item = |point: &Point| Item {
        label: point.start.strftime(label).to_string(),
        name: point.start.strftime(name).to_string(),
        tally: point.totals.into(),
        address: Some(list.address(&[], Interval::of(std::slice::from_ref(point), length))),
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
