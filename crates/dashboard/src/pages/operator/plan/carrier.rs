//! The settings of a carrier.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use engine::catalogue::plans::{CarrierExample, CarrierInput, PlanSource, PlannedCarrier};
use http::StatusCode;

use super::{CARRIERS, ProblemLine, failed, problems};
use crate::Dashboard;
use crate::kit::confirm::Question;
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::password_field::PasswordField;
use crate::kit::query::Query;
use crate::kit::session::{Operator, Posted};
use crate::pages::operator::in_address;

const NAME: &str = "name";
const DESCRIPTION: &str = "description";
const SECRET_NAME: &str = "secret_name";
const SECRET_VALUE: &str = "secret_value";
const REMOVED_SECRET: &str = "removed_secret";
/// Names of providers' secrets that only the description has.
const START: &str = "start";
/// Fields for secrets that are not named yet.
const MORE_SECRETS: usize = 2;

#[derive(Template)]
#[template(path = "operator/plan/carrier.html")]
struct CarrierPage {
    frame: Frame,
    form: CarrierForm,
}

/// A carrier that cannot be changed here.
#[derive(Template)]
#[template(path = "operator/plan/file_carrier.html")]
struct FileCarrierPage {
    frame: Frame,
    carrier: PlannedCarrier,
    text: String,
    inbound_url: Option<String>,
}

/// The form for a carrier. It never has the values of secrets.
pub(super) struct CarrierForm {
    is_new: bool,
    name: String,
    description: String,
    /// Secrets with names.
    secrets: Vec<SecretField>,
    more_secrets: std::ops::RangeInclusive<usize>,
    /// The example that it started with, and the provider's description.
    start: String,
    preset: Option<&'static str>,
    is_testable: bool,
    inbound_url: Option<String>,
    problems: Vec<ProblemLine>,
    password: PasswordField,
}

struct SecretField {
    name: String,
    is_stored: bool,
}

impl CarrierForm {
    pub(super) fn of_example(example: CarrierExample, password: PasswordField) -> Self {
        let needed = example.secrets.into_iter();
        Self {
            is_new: true,
            name: example
                .preset
                .map(|_| example.name)
                .unwrap_or_default()
                .to_owned(),
            description: example.text,
            secrets: needed.map(SecretField::needed).collect(),
            more_secrets: 1..=MORE_SECRETS,
            start: example.name.to_owned(),
            preset: example.preset,
            is_testable: false,
            inbound_url: None,
            problems: Vec::new(),
            password,
        }
    }

    pub(super) fn page(self, frame: Frame) -> Response {
        let is_refused = !self.problems.is_empty() || self.password.problem.is_some();
        let status = if is_refused {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        show_page(status, &CarrierPage { frame, form: self })
    }
}

impl SecretField {
    fn needed(name: String) -> Self {
        Self {
            name,
            is_stored: false,
        }
    }

    fn stored(name: String) -> Self {
        Self {
            name,
            is_stored: true,
        }
    }
}

/// A carrier: its form, or what the file says about it.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let found = dashboard.plans.find_carrier(query.text(NAME)).await;
    let found = found.map_err(|error| failed(&operator, error))?;
    let Some(found) = found else {
        return Err(Failure::NotFound(Box::new(operator.frame())));
    };
    if found.carrier.source == PlanSource::File {
        let page = FileCarrierPage {
            frame: operator.frame(),
            carrier: found.carrier,
            text: found.text,
            inbound_url: found.inbound_url,
        };
        return Ok(show_page(StatusCode::OK, &page));
    }
    let form = CarrierForm {
        is_new: false,
        name: found.carrier.name,
        description: found.text,
        secrets: found.secrets.into_iter().map(SecretField::stored).collect(),
        more_secrets: 1..=MORE_SECRETS,
        start: String::new(),
        preset: None,
        is_testable: found.carrier.is_testable,
        inbound_url: found.inbound_url,
        problems: Vec::new(),
        password: PasswordField::new(&dashboard, operator.prover()).await?,
    };
    Ok(form.page(operator.frame()))
}

pub(super) async fn create(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    store(&dashboard, &operator, form, true).await
}

pub(super) async fn change(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    store(&dashboard, &operator, form, false).await
}

async fn store(
    dashboard: &Dashboard,
    operator: &Operator,
    mut form: Form,
    is_new: bool,
) -> Result<Response, Failure> {
    let password = PasswordField::check(dashboard, operator.prover(), &mut form).await?;
    let input = read(&form, is_new);
    if password.problem.is_some() {
        let form = typed_again(dashboard, &form, is_new).await;
        let form = CarrierForm { password, ..form };
        return Ok(form.page(operator.frame()));
    }
    match dashboard.plans.set_carrier(&operator.by(), input).await {
        Ok(()) => Ok(operator.redirect_saying(CARRIERS, "stored")),
        Err(error) => {
            let problems = problems(error)?;
            let form = typed_again(dashboard, &form, is_new).await;
            let form = CarrierForm { problems, ..form };
            Ok(form.page(operator.frame()))
        }
    }
}

fn read(form: &Form, is_new: bool) -> CarrierInput {
    let secrets = form.all(SECRET_NAME).zip(form.all(SECRET_VALUE));
    let secrets = secrets
        .map(|(name, value)| (name.trim().to_owned(), value.to_owned()))
        .filter(|(name, value)| !name.is_empty() || !value.is_empty());
    CarrierInput {
        name: form.get(NAME).unwrap_or_default().trim().to_owned(),
        is_new,
        description: form.get(DESCRIPTION).unwrap_or_default().to_owned(),
        secrets: secrets.collect(),
        removed_secrets: form.all(REMOVED_SECRET).map(str::to_owned).collect(),
    }
}

/// The form with what was typed, except secrets.
async fn typed_again(dashboard: &Dashboard, form: &Form, is_new: bool) -> CarrierForm {
    let input = read(form, is_new);
    let found = if is_new {
        None
    } else {
        dashboard
            .plans
            .find_carrier(&input.name)
            .await
            .ok()
            .flatten()
    };
    let stored = found.as_ref().map_or(&[][..], |found| &found.secrets);
    let typed = input.secrets.iter().map(|(name, _)| name);
    let typed = typed.filter(|name| !name.is_empty() && !stored.contains(name));
    let start = form.get(START).unwrap_or_default();
    let examples = dashboard.plans.examples();
    let example = examples.iter().find(|example| example.name == start);
    CarrierForm {
        is_new,
        description: dashboard.plans.hide_secrets(&input.description),
        secrets: stored
            .iter()
            .cloned()
            .map(SecretField::stored)
            .chain(typed.cloned().map(SecretField::needed))
            .collect(),
        more_secrets: 1..=MORE_SECRETS,
        start: start.to_owned(),
        preset: example.and_then(|example| example.preset),
        is_testable: false,
        inbound_url: found.as_ref().and_then(|found| found.inbound_url.clone()),
        problems: Vec::new(),
        password: PasswordField::default(),
        name: input.name,
    }
}

pub(super) async fn remove(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    Posted(mut form): Posted,
) -> Result<Response, Failure> {
    let name = form.get(NAME).unwrap_or_default().to_owned();
    let question = Question {
        title: &format!("Remove the carrier {name}?"),
        text: "Messages that wait for it follow the routes without it. You can restore it from the history.",
        button: "Remove",
        back: &format!("{CARRIERS}/edit?name={}", in_address(&name)),
        is_dangerous: true,
    };
    operator
        .ask_for_password(&dashboard, &mut form, &question)
        .await?;
    let removed = dashboard.plans.remove_carrier(&operator.by(), &name).await;
    removed.map_err(|error| failed(&operator, error))?;
    Ok(operator.redirect_saying(CARRIERS, "removed"))
}
