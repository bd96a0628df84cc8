//! The overview of an account: balance, counts and charts.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::Money;
use domain::ports::AccountRecord;
use engine::reading::traffic::{self, OperatorName, Point, Share, Totals};
use http::StatusCode;

use crate::Dashboard;
use crate::kit::chart::{Chart, Item, Tally};
use crate::kit::failure::Failure;
use crate::kit::format::{count, money};
use crate::kit::live::{self, Fragment};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Member;

/// Further rows are summed up as "others".
const MAX_ROWS: usize = 8;
const UNKNOWN: &str = "unknown";

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    /// Why nothing can be sent, and what to do.
    obstacle: Option<(&'static str, &'static str)>,
    offers_first_steps: bool,
    is_simulated: bool,
    offers_password: bool,
    status: Status,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "overview_status.html")]
struct StatusPart {
    status: Status,
}

struct Status {
    account: String,
    balance: String,
    currency: String,
    today: Figures,
    week: Figures,
    charts: Vec<Chart>,
}

struct Figures {
    ended: String,
    delivered: String,
    failed: String,
    cost: String,
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
    let status = dashboard.status(&member.account).await?;
    let account = &member.account;
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
        offers_first_steps: !account.suspended && available >= Money::ZERO && !status.has_traffic(),
        is_simulated: dashboard.engine.is_simulated(),
        offers_password: member.signed_in.person().is_none(),
        status,
    };
    Ok(show_page(StatusCode::OK, &page))
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
        let overview = self.engine.traffic.overview(Some(account.id), now).await?;
        let currency = &self.settings.currency;
        Ok(Status {
            account: account.name.clone(),
            balance: money(account.balance, currency),
            currency: currency.clone(),
            today: Figures::new(overview.today, currency),
            week: Figures::new(overview.last_7_days, currency),
            charts: charts(&overview),
        })
    }
}

impl Status {
    fn has_traffic(&self) -> bool {
        self.charts.iter().any(|chart| !chart.is_blank())
    }
}

impl Figures {
    fn new(totals: Totals, currency: &str) -> Self {
        let tally = Tally::from(totals);
        Self {
            ended: count(tally.all()),
            delivered: tally.share(),
            failed: count(tally.failed + tally.expired),
            cost: money(tally.cost, currency),
        }
    }
}

fn charts(overview: &traffic::Overview) -> Vec<Chart> {
    let hours = columns(&overview.hours, "%H:%M", "%Y-%m-%d %H:%M UTC");
    let days = columns(&overview.days, "%b %-d", "%Y-%m-%d");
    let countries = rows(&overview.countries, |country| {
        country.map_or(UNKNOWN, domain::Country::name).to_owned()
    });
    let operators = rows(&overview.operators, operator);
    let errors = rows(&overview.errors, |code| {
        let entry = code.entry();
        format!("{} {}", entry.number, entry.words)
    });
    vec![
        Chart::columns("hours", "The last 48 hours", "Hour", hours),
        Chart::columns("days", "The last 30 days", "Day", days),
        Chart::rows("countries", "By country", "Country", countries),
        Chart::rows("operators", "By operator", "Operator", operators),
        Chart::rows("errors", "By error", "Error", errors),
    ]
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

fn columns(points: &[Point], label: &str, name: &str) -> Vec<Item> {
    let item = |point: &Point| Item {
        label: point.start.strftime(label).to_string(),
        name: point.start.strftime(name).to_string(),
        tally: point.totals.into(),
    };
    points.iter().map(item).collect()
}

/// The largest rows, and the sum of all others.
fn rows<T>(shares: &[Share<T>], name: impl Fn(&T) -> String) -> Vec<Item> {
    let item = |name: String, tally| Item {
        label: name.clone(),
        name,
        tally,
    };
    let shown = if shares.len() > MAX_ROWS {
        MAX_ROWS - 1
    } else {
        shares.len()
    };
    let (shown, others) = shares.split_at(shown);
    let mut items: Vec<Item> = shown
        .iter()
        .map(|share| item(name(&share.of), share.totals.into()))
        .collect();
    if !others.is_empty() {
        let tallies = others.iter().map(|share| Tally::from(share.totals));
        let tally = tallies.fold(Tally::default(), Tally::plus);
        items.push(item(format!("{} others", others.len()), tally));
    }
    items
}

#[cfg(test)]
mod tests {
    use domain::{Country, Network};

    use super::*;

    fn share<T>(of: T, delivered: u64) -> Share<T> {
        Share {
            of,
            totals: Totals {
                sent: delivered,
                delivered,
                ..Totals::default()
            },
        }
    }

    #[test]
    fn small_rows_are_summed_up() {
        let shares: Vec<_> = (0..12_u64)
            .map(|number| share(number, 20 - number))
            .collect();
        let items = rows(&shares, u64::to_string);
        assert_eq!(items.len(), MAX_ROWS);
        assert_eq!((items[0].name.as_str(), items[0].tally.all()), ("0", 20));
        let last = items.last().expect("a row");
        assert_eq!((last.name.as_str(), last.tally.all()), ("5 others", 55));
        let few = rows(&shares[..MAX_ROWS], u64::to_string);
        assert_eq!(few.last().map(|item| item.name.as_str()), Some("7"));
    }

    #[test]
    fn operators_are_named_as_far_as_known() {
        let named = |country: Option<&str>, name: Option<&str>, network: Option<&str>| {
            operator(&OperatorName {
                country: country.map(|code| Country::parse(code).expect("a country")),
                name: name.map(Box::from),
                network: network.map(|code| code.parse::<Network>().expect("a network")),
            })
        };
        assert_eq!(named(Some("LV"), Some("Tele2"), None), "Tele2, LV");
        assert_eq!(named(None, None, Some("24799")), "24799");
        assert_eq!(named(None, None, None), "unknown");
    }
}
