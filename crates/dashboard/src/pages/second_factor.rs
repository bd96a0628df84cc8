//! The second half of a sign-in, for whoever has a second factor.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use engine::identity::sign_in::SignInError;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::browser::{FormKey, Visit};
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, show_bare, with_cookie, with_retry_after};
use crate::kit::return_path::ReturnPath;

/// What the form's token is for.
const SECOND_STEP: &str = "second step";
const PATH: &str = "/dashboard/sign-in/code";

#[derive(Template)]
#[template(path = "second_step.html")]
struct SecondStepPage<'a> {
    frame: Frame,
    form_token: String,
    back: Option<&'a str>,
    problem: Option<&'a str>,
}

/// Where the second factor is asked for, on the way to `back`.
pub(super) fn address(back: &ReturnPath) -> String {
    match back.to_carry() {
        Some(path) => format!("{PATH}?next={path}"),
        None => PATH.to_owned(),
    }
}

fn page(key: &FormKey, back: &ReturnPath, problem: Option<(StatusCode, &str)>) -> Response {
    let page = SecondStepPage {
        frame: Frame::plain(),
        form_token: key.token(SECOND_STEP),
        back: back.to_carry(),
        problem: problem.map(|(_, text)| text),
    };
    show_bare(problem.map_or(StatusCode::OK, |(status, _)| status), &page)
}

/// Asks for a code; whoever has not given a password goes back to that.
pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    RawQuery(query): RawQuery,
    visit: Visit,
) -> Response {
    let back = ReturnPath::of_query(query.as_deref());
    if visit.half.is_none() {
        return Redirect::to(&back.sign_in_address()).into_response();
    }
    let key = visit.form_key();
    with_cookie(page(&key, &back, None), key.cookie(&dashboard))
}

/// Takes the code.
pub(super) async fn enter(
    State(dashboard): State<Arc<Dashboard>>,
    visit: Visit,
    mut form: Form,
) -> Result<Response, Failure> {
    let back = ReturnPath::parse(form.get("next"));
    if !visit.sent(&form, SECOND_STEP, None) {
        return Err(Failure::NotFromHere);
    }
    let Some(half) = &visit.half else {
        return Ok(begin_anew(&dashboard, &back));
    };
    let (typed, key) = (form.take("code"), visit.form_key());
    let entered = dashboard
        .engine
        .sign_in
        .with_code(half, &typed, &visit.sign_in(&visit.device()))
        .await;
    match entered {
        Ok(session) => {
            let response = Redirect::to(back.as_str()).into_response();
            let response = with_cookie(response, Some(dashboard.session_cookie(&session)));
            let response = with_cookie(response, dashboard.known_cookie(&visit, &session).await);
            Ok(with_cookie(response, Some(dashboard.no_half_cookie())))
        }
        Err(SignInError::Over) => Ok(begin_anew(&dashboard, &back)),
        Err(SignInError::Wrong | SignInError::WrongCode) => {
            let text = "This code is wrong, or was used before. Wait for the next one.";
            let problem = Some((StatusCode::UNAUTHORIZED, text));
            Ok(page(&key, &back, problem))
        }
        Err(SignInError::TooMany { retry_after_s }) => {
            let text = format!("Too many tries. Wait {retry_after_s} seconds, then try again.");
            let problem = Some((StatusCode::TOO_MANY_REQUESTS, text.as_str()));
            Ok(with_retry_after(page(&key, &back, problem), retry_after_s))
        }
        Err(SignInError::Busy(busy)) => Err(busy.into()),
        Err(SignInError::Store(error)) => Err(error.into()),
    }
}

/// The time for the code is over, or its tries are.
fn begin_anew(dashboard: &Dashboard, back: &ReturnPath) -> Response {
    let response = Redirect::to(&back.sign_in_address()).into_response();
    with_cookie(response, Some(dashboard.no_half_cookie()))
}
