//! The form for a route.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use engine::catalogue::plans::{PlanOverview, RouteInput};
use http::StatusCode;

use super::{ProblemLine, ROUTES, failed, problems};
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::form_input::FormInput;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::password_field::PasswordField;
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};
use crate::pages::operator::in_address;

const NAME: &str = "name";
/// Says that the route exists.
const IS_CHANGE: &str = "is_change";
const BEFORE: &str = "before";
const BY: &str = "by";
/// The settings of a route, as fields.
const SETTINGS: [&str; 9] = [
    "account",
    "channel",
    "country",
    "prefix",
    "network",
    "carriers",
    BY,
    "weights",
    "ported_numbers",
];
/// Orders of carriers, and what they mean.
const ORDERS: [(&str, &str); 3] = [
    ("order", "As they are listed"),
    ("share", "By share, with weights"),
    ("cost", "The cheapest first"),
];

#[derive(Template)]
#[template(path = "operator/plan/route.html")]
struct RoutePage {
    frame: Frame,
    is_new: bool,
    input: FormInput,
    /// Routes of the database that this one may come before.
    others: Vec<String>,
    carriers: Vec<String>,
    orders: [(&'static str, &'static str); 3],
    problems: Vec<ProblemLine>,
    password: PasswordField,
}

/// A route of the database, or the form for a new one.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let all = dashboard.plans.list().await;
    let all = all.map_err(|error| failed(&operator, error))?;
    let mut fields = vec![(NAME, query.text(NAME).to_owned()), (BEFORE, String::new())];
    if let Some(name) = query.get(NAME) {
        let route = all
            .routes
            .iter()
            .find(|route| route.name.as_deref() == Some(name));
        let Some(route) = route else {
            return Err(Failure::NotFound(Box::new(operator.frame())));
        };
        let value = |key: &str| {
            let found = route.settings.iter().find(|(known, _)| known == key);
            found.map_or_else(String::new, |(_, value)| value.clone())
        };
        fields.extend(SETTINGS.map(|key| (key, value(key))));
    }
    let password = PasswordField::new(&dashboard, operator.prover()).await?;
    let page = RoutePage {
        is_new: query.get(NAME).is_none(),
        input: FormInput::with_defaults(fields),
        password,
        ..RoutePage::new(operator.frame(), all)
    };
    Ok(show_page(StatusCode::OK, &page))
}

pub(super) async fn store(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let password = PasswordField::check(&dashboard, operator.prover(), &mut form).await?;
    let problems = if password.problem.is_some() {
        Vec::new()
    } else {
        let by = operator.by();
        match dashboard.plans.set_route(&by, read(&form)).await {
            Ok(()) => return Ok(operator.redirect_saying(ROUTES, "stored")),
            Err(error) => problems(error)?,
        }
    };
    let all = dashboard.plans.list().await;
    let all = all.map_err(|error| failed(&operator, error))?;
    let names: Vec<&'static str> = [NAME, BEFORE].into_iter().chain(SETTINGS).collect();
    let page = RoutePage {
        is_new: form.get(IS_CHANGE).is_none(),
        input: FormInput::from_form(&form, &names),
        problems,
        password,
        ..RoutePage::new(operator.frame(), all)
    };
    Ok(show_page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

impl RoutePage {
    fn new(frame: Frame, all: PlanOverview) -> Self {
        Self {
            frame,
            is_new: true,
            input: FormInput::default(),
            others: all.routes.into_iter().filter_map(|one| one.name).collect(),
            carriers: all.carriers.into_iter().map(|one| one.name).collect(),
            orders: ORDERS,
            problems: Vec::new(),
            password: PasswordField::default(),
        }
    }
}

fn read(form: &Form) -> RouteInput {
    let value = |key: &str| form.get(key).unwrap_or_default().trim().to_owned();
    let is_default = |key: &str, value: &str| key == BY && value == ORDERS[0].0;
    let settings = SETTINGS
        .into_iter()
        .map(|key| (key.to_owned(), value(key)))
        .filter(|(key, value)| !value.is_empty() && !is_default(key, value));
    RouteInput {
        name: value(NAME),
        is_new: form.get(IS_CHANGE).is_none(),
        settings: settings.collect(),
        before: Some(value(BEFORE)).filter(|before| !before.is_empty()),
    }
}

pub(super) async fn remove(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let name = form.get(NAME).unwrap_or_default().to_owned();
    let question = Question {
        title: &format!("Remove the route {name}?"),
        text: "Messages that it matched follow the next route that matches. You can restore it from the history.",
        button: "Remove",
        back: &format!("{ROUTES}/edit?name={}", in_address(&name)),
        is_dangerous: true,
    };
    operator
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    let removed = dashboard.plans.remove_route(&operator.by(), &name).await;
    removed.map_err(|error| failed(&operator, error))?;
    Ok(operator.redirect_saying(ROUTES, "removed"))
}
