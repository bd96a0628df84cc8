//! Registering a name or a number.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use domain::sender::{Category, MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, MIN_NAME_CHARS, SenderKind};
use engine::senders::{RegisterError, SenderInput, find_mistakes};
use engine::sending::submit::SubmitError;
use http::StatusCode;
use requests::Problem;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::form_input::FormInput;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::{Member, Posted};

/// The fields of both forms, by their names in the REST API.
const FIELDS: [&str; 4] = ["name", "category", "categoryDescription", "notificationUrl"];

#[derive(Template)]
#[template(path = "senders/name.html")]
struct NamePage {
    frame: Frame,
    typed: FormInput,
    categories: [&'static str; 6],
    min_chars: usize,
    max_chars: usize,
    max_description_chars: usize,
}

#[derive(Template)]
#[template(path = "senders/number.html")]
struct NumberPage {
    frame: Frame,
    typed: FormInput,
}

pub(super) async fn ask_name(member: Member) -> Response {
    page(
        member.frame(),
        SenderKind::AlphaNumeric,
        FormInput::default(),
    )
}

pub(super) async fn ask_number(member: Member) -> Response {
    page(member.frame(), SenderKind::Msisdn, FormInput::default())
}

fn page(frame: Frame, kind: SenderKind, typed: FormInput) -> Response {
    let is_refused = typed.is_refused() || frame.flash.is_some();
    let status = if is_refused {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    match kind {
        SenderKind::AlphaNumeric => {
            let page = NamePage {
                frame,
                typed,
                categories: Category::ALL.map(Category::name),
                min_chars: MIN_NAME_CHARS,
                max_chars: MAX_NAME_CHARS,
                max_description_chars: MAX_DESCRIPTION_CHARS,
            };
            show_page(status, &page)
        }
        SenderKind::Msisdn => show_page(status, &NumberPage { frame, typed }),
    }
}

pub(super) async fn register_name(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let typed = FormInput::from_form(&form, &FIELDS);
    register(&dashboard, &member, SenderKind::AlphaNumeric, typed).await
}

pub(super) async fn register_number(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted,
) -> Result<Response, Failure> {
    let typed = FormInput::from_form(&form, &FIELDS);
    register(&dashboard, &member, SenderKind::Msisdn, typed).await
}

async fn register(
    dashboard: &Dashboard,
    member: &Member,
    kind: SenderKind,
    mut typed: FormInput,
) -> Result<Response, Failure> {
    let is_name = kind == SenderKind::AlphaNumeric;
    let order = SenderInput {
        name: typed.text("name").into(),
        kind: kind.name().into(),
        category: typed.given("category").filter(|_| is_name).map(Into::into),
        description: typed
            .given("categoryDescription")
            .filter(|_| is_name)
            .map(Into::into),
        notification_url: typed.given("notificationUrl").map(Into::into),
    };
    let mistakes = find_mistakes(&order);
    if !mistakes.is_empty() {
        for mistake in &mistakes {
            typed.refuse_invalid(mistake);
        }
        return Ok(page(member.frame(), kind, typed));
    }
    let senders = &dashboard.engine.senders;
    let problem = match senders.register(&member.access(), order).await {
        Ok(id) => {
            let address = format!("/dashboard/senders/{id}");
            return Ok(member.redirect_saying(&address, "registered"));
        }
        // The page of the sender asks for the PIN that was sent.
        Err(RegisterError::TooSoon(id)) => {
            let address = format!("/dashboard/senders/{id}");
            return Ok(Redirect::to(&address).into_response());
        }
        Err(
            RegisterError::Invalid(invalid) | RegisterError::Pin(SubmitError::Invalid(invalid)),
        ) if typed.refuse_invalid(&invalid) => {
            return Ok(page(member.frame(), kind, typed));
        }
        Err(RegisterError::Exists(id, state)) => {
            typed.refuse(
                "name",
                format!("You already have it: sender {id}, {}", state.name()),
            );
            return Ok(page(member.frame(), kind, typed));
        }
        Err(RegisterError::Store(error)) => return Err(error.into()),
        Err(error) => Problem::from_registration(error, &dashboard.settings.currency),
    };
    let frame = member.frame().with_problem(problem.into_message());
    Ok(page(frame, kind, typed))
}
