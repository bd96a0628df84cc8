//! Routing rules, and the route that a message would take.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::Health;
use domain::{AccountId, Channel, Msisdn};
use engine::catalogue::plans::PlannedRoute;
use engine::identity::accounts::AccountError;
use engine::sending::routing::{Choice, Plan, RouteCarrier, TracedRoute};
use http::StatusCode;

use super::Field;
use super::plan::{failed, with_notice};
use super::reference::network_code;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::money;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Operator;

#[derive(Template)]
#[template(path = "operator/routes.html")]
struct RoutesPage {
    frame: Frame,
    rules: Vec<RuleRow>,
    carriers: Vec<PlanCarrierRow>,
    form: RouteForm,
    route: Option<RouteTrace>,
}

struct RuleRow {
    number: usize,
    /// Routes of the database have a name, and can be changed.
    name: Option<String>,
    source: &'static str,
    /// Conditions with their values; empty matches every message.
    conditions: Vec<(String, String)>,
    choice: &'static str,
    carriers: Vec<String>,
    is_chosen: bool,
}

struct PlanCarrierRow {
    name: String,
    channels: String,
    has_costs: bool,
}

#[derive(Default)]
struct RouteForm {
    to: Field,
    account: Field,
    channels: Vec<ChannelOption>,
}

struct ChannelOption {
    name: &'static str,
    is_chosen: bool,
}

struct RouteTrace {
    to: String,
    location: String,
    price: Option<String>,
    rule: Option<usize>,
    has_rules: bool,
    is_by_share: bool,
    carriers: Vec<CarrierStep>,
}

struct CarrierStep {
    name: String,
    about: String,
    health: Option<&'static str>,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let plan = dashboard.engine.routing.plan();
    let stored = dashboard.plans.list().await;
    let stored = stored.map_err(|error| failed(&operator, error))?;
    let channel = query.get("channel").and_then(|name| name.parse().ok());
    let channel = channel.unwrap_or(Channel::Sms);
    let mut form = RouteForm {
        to: Field::with(query.text("to")),
        account: Field::with(query.text("account")),
        channels: Channel::ALL
            .map(|one| ChannelOption::new(one, channel))
            .into(),
    };
    let traced = match query.get("to") {
        None => None,
        Some(_) => trace(&dashboard, channel, &mut form).await?,
    };
    let chosen = traced.as_ref().and_then(|(_, traced)| traced.rule);
    let status = if form.to.problem.is_some() || form.account.problem.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = RoutesPage {
        frame: with_notice(operator.frame(), operator.said(&query)),
        rules: rules(stored.routes, chosen),
        carriers: plan.carriers.iter().map(PlanCarrierRow::from).collect(),
        route: traced.map(|(to, traced)| RouteTrace::new(&dashboard, &plan, to, &traced)),
        form,
    };
    Ok(show_page(status, &page))
}

/// Traces the route; `None` if a field is invalid.
async fn trace(
    dashboard: &Dashboard,
    channel: Channel,
    form: &mut RouteForm,
) -> Result<Option<(Msisdn, TracedRoute)>, Failure> {
    let to = match Msisdn::parse(&form.to.text) {
        Ok(to) => to,
        Err(problem) => {
            form.to.problem = Some(problem.to_string());
            return Ok(None);
        }
    };
    let account: Option<AccountId> = match form.account.text.as_str() {
        "" => None,
        name => match dashboard.engine.accounts.get(name).await {
            Ok(account) => Some(account.id),
            Err(AccountError::Store(error)) => return Err(error.into()),
            Err(_) => {
                form.account.problem = Some("There is no account with this name.".to_owned());
                return Ok(None);
            }
        },
    };
    let traced = dashboard.engine.routing.trace(channel, account, &to);
    Ok(Some((to, traced)))
}

fn rules(routes: Vec<PlannedRoute>, chosen: Option<usize>) -> Vec<RuleRow> {
    let routes = routes.into_iter().enumerate();
    routes
        .map(|(at, route)| RuleRow {
            number: at + 1,
            source: route.source.name(),
            choice: match value(&route, "by") {
                "share" => "by share",
                "cost" => "the cheapest first",
                _ => "in this order",
            },
            carriers: named_carriers(&route),
            is_chosen: chosen == Some(at),
            name: route.name,
            conditions: conditions(route.settings),
        })
        .collect()
}

fn value<'r>(route: &'r PlannedRoute, key: &str) -> &'r str {
    let found = route.settings.iter().find(|(known, _)| known == key);
    found.map_or("", |(_, value)| value)
}

/// The conditions of the route. A condition that is not set matches every message.
fn conditions(settings: Vec<(String, String)>) -> Vec<(String, String)> {
    let is_condition = |key: &str| !["by", "carriers", "weights"].contains(&key);
    settings
        .into_iter()
        .filter(|(key, _)| is_condition(key))
        .map(|(key, value)| (key.replace('_', " "), value.replace(',', ", ")))
        .collect()
}

/// The carriers of a route, with their weights if it has some.
fn named_carriers(route: &PlannedRoute) -> Vec<String> {
    let mut weights = value(route, "weights").split(',');
    let carriers = value(route, "carriers").split(',');
    carriers
        .map(
            |name| match weights.next().filter(|weight| !weight.is_empty()) {
                None => name.to_owned(),
                Some(weight) => format!("{name} ×{weight}"),
            },
        )
        .collect()
}

impl From<&engine::sending::routing::CarrierFacts> for PlanCarrierRow {
    fn from(carrier: &engine::sending::routing::CarrierFacts) -> Self {
        let channels: Vec<&str> = carrier.channels.iter().map(|one| one.name()).collect();
        Self {
            name: carrier.name.clone(),
            channels: channels.join(", "),
            has_costs: carrier.costs.is_some(),
        }
    }
}

impl ChannelOption {
    fn new(channel: Channel, chosen: Channel) -> Self {
        Self {
            name: channel.name(),
            is_chosen: channel == chosen,
        }
    }
}

impl RouteTrace {
    fn new(dashboard: &Dashboard, plan: &Plan, to: Msisdn, traced: &TracedRoute) -> Self {
        let currency = &dashboard.settings.currency;
        let live = dashboard.engine.catalogues.live();
        let operator = traced
            .place
            .operator
            .and_then(|id| live.reference.operator(id));
        let parts = [
            traced
                .place
                .country
                .map(|country| country.short_name().to_owned()),
            operator.map(|operator| operator.name.to_string()),
            traced.place.network.map(network_code),
        ];
        let location: Vec<String> = parts.into_iter().flatten().collect();
        let total: u64 = traced
            .carriers
            .iter()
            .filter_map(|one| one.weight)
            .map(u64::from)
            .sum();
        Self {
            to: to.to_string(),
            location: location.join(", "),
            price: traced.price.map(|price| money(price, currency)),
            rule: traced.rule.map(|at| at + 1),
            has_rules: !plan.rules.is_empty(),
            is_by_share: matches!(traced.choice, Choice::Share(_)),
            carriers: traced
                .carriers
                .iter()
                .map(|carrier| CarrierStep::new(carrier, total, currency))
                .collect(),
        }
    }
}

impl CarrierStep {
    fn new(carrier: &RouteCarrier, total: u64, currency: &str) -> Self {
        let share = carrier.weight.map(|weight| {
            let percent = u64::from(weight) * 100 / total.max(1);
            format!("first for {percent} % of the messages")
        });
        let cost = carrier
            .cost
            .map(|cost| format!("costs {} per part", money(cost, currency)));
        let about: Vec<String> = [share, cost].into_iter().flatten().collect();
        Self {
            name: carrier.name.clone(),
            about: about.join("; "),
            health: carrier.health.map(Health::name),
        }
    }
}
