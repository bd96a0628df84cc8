//! The second factor of a sign-in.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use engine::identity::sign_in::SignInError;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::browser::{Browser, FormKey};
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, show_bare, with_cookie, with_retry_after};
use crate::kit::return_path::ReturnPath;

/// The purpose of the token in the form.
const SECOND_FACTOR: &str = "second step";
const PATH: &str = "/dashboard/sign-in/code";

#[derive(Template)]
#[template(path = "second_factor.html")]
struct SecondFactorPage<'a> {
    frame: Frame,
    form_token: String,
    back: Option<&'a str>,
    problem: Option<&'a str>,
}

/// The address of this page. After signing in, it leads to `back`.
pub(super) fn address(back: &ReturnPath) -> String {
    back.carried_by(PATH)
}

fn page(key: &FormKey, back: &ReturnPath, problem: Option<(StatusCode, &str)>) -> Response {
    let page = SecondFactorPage {
        frame: Frame::plain(),
        form_token: key.token(SECOND_FACTOR),
        back: back.to_carry(),
        problem: problem.map(|(_, text)| text),
    };
    show_bare(problem.map_or(StatusCode::OK, |(status, _)| status), &page)
}

/// Asks for a code. Without a pending sign-in, redirects to the sign-in page.
pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    RawQuery(query): RawQuery,
    browser: Browser,
) -> Response {
    let back = ReturnPath::from_query(query.as_deref());
    if browser.pending_sign_in.is_none() {
        return Redirect::to(&back.sign_in_address()).into_response();
    }
    let key = browser.form_key();
    with_cookie(page(&key, &back, None), key.cookie(&dashboard))
}

pub(super) async fn enter(
    State(dashboard): State<Arc<Dashboard>>,
    browser: Browser,
    mut form: Form,
) -> Result<Response, Failure> {
    let back = ReturnPath::parse(form.get("next"));
    if !browser.sent(&form, SECOND_FACTOR, None) {
        return Err(Failure::NotFromHere);
    }
    let Some(pending) = &browser.pending_sign_in else {
        return Ok(begin_anew(&dashboard, &back));
    };
    let (typed, key) = (form.take("code"), browser.form_key());
    let entered = dashboard
        .engine
        .sign_in
        .with_code(pending, &typed, &browser.sign_in(&browser.device()))
        .await;
    match entered {
        Ok(session) => {
            let response = Redirect::to(back.as_str()).into_response();
            let response = with_cookie(response, Some(dashboard.session_cookie(&session)));
            let response = with_cookie(
                response,
                dashboard.known_browser_cookie(&browser, &session).await,
            );
            Ok(with_cookie(
                response,
                Some(dashboard.clear_pending_cookie()),
            ))
        }
        Err(SignInError::Over) => Ok(begin_anew(&dashboard, &back)),
        Err(SignInError::Wrong | SignInError::WrongCode) => {
            let text = "This code is wrong, or was used before. Wait for the next one.";
            let problem = Some((StatusCode::UNAUTHORIZED, text));
            Ok(page(&key, &back, problem))
        }
        Err(SignInError::TooMany { retry_after_s }) => {
            let text = format!("Too many attempts. Wait {retry_after_s} seconds, then try again.");
            let problem = Some((StatusCode::TOO_MANY_REQUESTS, text.as_str()));
            Ok(with_retry_after(page(&key, &back, problem), retry_after_s))
        }
        Err(SignInError::Busy(busy)) => Err(busy.into()),
        Err(SignInError::Store(error)) => Err(error.into()),
    }
}

/// The pending sign-in has expired or used up its attempts.
fn begin_anew(dashboard: &Dashboard, back: &ReturnPath) -> Response {
    let response = Redirect::to(&back.sign_in_address()).into_response();
    with_cookie(response, Some(dashboard.clear_pending_cookie()))
}
