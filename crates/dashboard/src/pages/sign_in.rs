//! Signing in and out.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use domain::person::Password;
use engine::identity::sign_in::{Entered, SignInError};
use http::StatusCode;

use super::second_factor;
use crate::Dashboard;
use crate::kit::browser::{FormKey, Visit};
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, SIGN_OUT, notice, show_bare, with_cookie, with_retry_after};
use crate::kit::return_path::ReturnPath;

/// What the form's token is for.
const SIGN_IN: &str = "sign-in";
const SIGN_IN_BY_LINK: &str = "sign-in by link";
/// The most of a wrong address that is shown back.
const MAX_SHOWN_CHARS: usize = 254;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    frame: Frame,
    form_token: String,
    back: Option<&'a str>,
    email: &'a str,
    problem: Option<&'a str>,
}

fn page(
    key: &FormKey,
    back: &ReturnPath,
    email: &str,
    problem: Option<(StatusCode, &str)>,
) -> Response {
    let shown = email.char_indices().nth(MAX_SHOWN_CHARS);
    let page = SignInPage {
        frame: Frame::plain(),
        form_token: key.token(SIGN_IN),
        back: back.to_carry(),
        email: shown.map_or(email, |(end, _)| &email[..end]),
        problem: problem.map(|(_, text)| text),
    };
    show_bare(problem.map_or(StatusCode::OK, |(status, _)| status), &page)
}

/// Asks for email and password, unless somebody is signed in already.
pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    RawQuery(query): RawQuery,
    visit: Visit,
) -> Result<Response, Failure> {
    let back = ReturnPath::of_query(query.as_deref());
    if let Some(session) = &visit.session
        && dashboard
            .engine
            .sign_in
            .find(session, visit.address)
            .await?
            .is_some()
    {
        return Ok(Redirect::to(back.as_str()).into_response());
    }
    let key = visit.form_key();
    Ok(with_cookie(
        page(&key, &back, "", None),
        key.cookie(&dashboard),
    ))
}

/// Signs in. Whatever is wrong, the form comes back with the address as it was typed.
pub(super) async fn sign_in(
    State(dashboard): State<Arc<Dashboard>>,
    visit: Visit,
    mut form: Form,
) -> Result<Response, Failure> {
    let back = ReturnPath::parse(form.get("next"));
    let key = visit.form_key();
    if !visit.sent(&form, SIGN_IN, None) {
        let text = "This page was too old, or your browser keeps no cookies. Try again.";
        let problem = Some((StatusCode::FORBIDDEN, text));
        let email = form.get("email").unwrap_or_default();
        let response = page(&key, &back, email, problem);
        return Ok(with_cookie(response, key.cookie(&dashboard)));
    }
    let password = Password::given(form.take("password"));
    let email = form.take("email");
    let signed_in = dashboard
        .engine
        .sign_in
        .with_password(&email, password, &visit.sign_in(&visit.device()))
        .await;
    match signed_in {
        Ok(entered) => Ok(enter(&dashboard, &visit, &entered, &back).await),
        Err(SignInError::Wrong | SignInError::WrongCode | SignInError::Over) => {
            let text = "The email address or the password is wrong.";
            let problem = Some((StatusCode::UNAUTHORIZED, text));
            Ok(page(&key, &back, &email, problem))
        }
        Err(SignInError::TooMany { retry_after_s }) => {
            let text = format!("Too many tries. Wait {retry_after_s} seconds, then try again.");
            let problem = Some((StatusCode::TOO_MANY_REQUESTS, text.as_str()));
            let response = page(&key, &back, &email, problem);
            Ok(with_retry_after(response, retry_after_s))
        }
        Err(SignInError::Busy(busy)) => Err(busy.into()),
        Err(SignInError::Store(error)) => Err(error.into()),
    }
}

/// Leads on: to where somebody wanted to go, or first to their second factor.
pub(super) async fn enter(
    dashboard: &Dashboard,
    visit: &Visit,
    entered: &Entered,
    back: &ReturnPath,
) -> Response {
    match entered {
        Entered::Session(session) => {
            let response = Redirect::to(back.as_str()).into_response();
            let response = with_cookie(response, Some(dashboard.session_cookie(session)));
            with_cookie(response, dashboard.known_cookie(visit, session).await)
        }
        Entered::HalfOpen(half) => {
            let response = Redirect::to(&second_factor::address(back)).into_response();
            with_cookie(response, Some(dashboard.half_cookie(half)))
        }
    }
}

#[derive(Template)]
#[template(path = "link.html")]
struct LinkPage {
    frame: Frame,
    form_token: String,
}

/// Asks before the link is used up: programs that look at links in advance only ever ask.
pub(super) async fn ask_by_link(State(dashboard): State<Arc<Dashboard>>, visit: Visit) -> Response {
    let key = visit.form_key();
    let page = LinkPage {
        frame: Frame::plain(),
        form_token: key.token(SIGN_IN_BY_LINK),
    };
    with_cookie(show_bare(StatusCode::OK, &page), key.cookie(&dashboard))
}

/// Uses the link of the first start up.
pub(super) async fn sign_in_by_link(
    State(dashboard): State<Arc<Dashboard>>,
    Path(link): Path<String>,
    visit: Visit,
    form: Form,
) -> Result<Response, Failure> {
    if !visit.sent(&form, SIGN_IN_BY_LINK, None) {
        return Err(Failure::NotFromHere);
    }
    let Some(session) = dashboard
        .engine
        .sign_in
        .redeem(&visit.device(), &link)
        .await?
    else {
        return Ok(notice(
            StatusCode::NOT_FOUND,
            "This link does not work",
            "It was used before, has expired, or was not copied whole.",
        ));
    };
    dashboard.replace_session(&visit).await;
    Ok(with_cookie(
        Redirect::to(ReturnPath::parse(None).as_str()).into_response(),
        Some(dashboard.session_cookie(&session)),
    ))
}

/// Signs out, and leads to the sign-in page, so that somebody else may go on.
pub(super) async fn sign_out(
    State(dashboard): State<Arc<Dashboard>>,
    visit: Visit,
    form: Form,
) -> Result<Response, Failure> {
    if let Some(session) = &visit.session {
        if !visit.sent(&form, SIGN_OUT, Some(session)) {
            return Err(Failure::NotFromHere);
        }
        dashboard.engine.sign_in.end(visit.address, session).await?;
    }
    let back = ReturnPath::parse(form.get("next"));
    Ok(with_cookie(
        Redirect::to(&back.sign_in_address()).into_response(),
        Some(dashboard.no_session_cookie()),
    ))
}

impl Dashboard {
    /// Ends the session that a browser brought along, now that another takes its place in it.
    pub(super) async fn replace_session(&self, visit: &Visit) {
        if let Some(session) = &visit.session
            && let Err(error) = self.engine.sign_in.end(visit.address, session).await
        {
            // The person is signed in all the same: what they used for it works only once.
            tracing::warn!(%error, "a session that was replaced stays until its time is over");
        }
    }
}
