//! Signing in and out.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use domain::person::Password;
use engine::identity::sign_in::{SignInError, SignInStep};
use http::StatusCode;

use super::second_factor;
use crate::Dashboard;
use crate::kit::browser::{Browser, FormKey};
use crate::kit::failure::Failure;
use crate::kit::form::Form;
use crate::kit::page::{Frame, SIGN_OUT, notice_with, show_bare, with_cookie, with_retry_after};
use crate::kit::return_path::ReturnPath;

/// The purposes of the tokens in the forms.
const SIGN_IN: &str = "sign-in";
const SIGN_IN_BY_LINK: &str = "sign-in by link";
/// A longer email address is cut when the form is shown again.
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

/// Asks for email address and password, unless the browser is signed in.
pub(super) async fn ask(
    State(dashboard): State<Arc<Dashboard>>,
    RawQuery(query): RawQuery,
    browser: Browser,
) -> Result<Response, Failure> {
    let back = ReturnPath::from_query(query.as_deref());
    if let Some(session) = &browser.session
        && dashboard
            .engine
            .sign_in
            .find(session, browser.address)
            .await?
            .is_some()
    {
        return Ok(Redirect::to(back.as_str()).into_response());
    }
    let key = browser.form_key();
    Ok(with_cookie(
        page(&key, &back, "", None),
        key.cookie(&dashboard),
    ))
}

/// After a failure, the form is shown again with the email address.
pub(super) async fn sign_in(
    State(dashboard): State<Arc<Dashboard>>,
    browser: Browser,
    mut form: Form,
) -> Result<Response, Failure> {
    let back = ReturnPath::parse(form.get("next"));
    let key = browser.form_key();
    if !browser.sent(&form, SIGN_IN, None) {
        let text = "This page was too old, or your browser blocks cookies. Try again.";
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
        .with_password(&email, password, &browser.sign_in(&browser.device()))
        .await;
    match signed_in {
        Ok(entered) => Ok(enter(&dashboard, &browser, &entered, &back).await),
        Err(SignInError::Wrong | SignInError::WrongCode | SignInError::Over) => {
            let text = "The email address or the password is wrong.";
            let problem = Some((StatusCode::UNAUTHORIZED, text));
            Ok(page(&key, &back, &email, problem))
        }
        Err(SignInError::TooMany { retry_after_s }) => {
            let text = format!("Too many attempts. Wait {retry_after_s} seconds, then try again.");
            let problem = Some((StatusCode::TOO_MANY_REQUESTS, text.as_str()));
            let response = page(&key, &back, &email, problem);
            Ok(with_retry_after(response, retry_after_s))
        }
        Err(SignInError::Busy(busy)) => Err(busy.into()),
        Err(SignInError::Store(error)) => Err(error.into()),
    }
}

/// Redirects to `back`, or to the second factor first.
pub(super) async fn enter(
    dashboard: &Dashboard,
    browser: &Browser,
    entered: &SignInStep,
    back: &ReturnPath,
) -> Response {
    match entered {
        SignInStep::Session(session) => {
            let response = Redirect::to(back.as_str()).into_response();
            let response = with_cookie(response, Some(dashboard.session_cookie(session)));
            with_cookie(
                response,
                dashboard.known_browser_cookie(browser, session).await,
            )
        }
        SignInStep::PendingSignIn(pending) => {
            let response = Redirect::to(&second_factor::address(back)).into_response();
            with_cookie(response, Some(dashboard.pending_cookie(pending)))
        }
    }
}

#[derive(Template)]
#[template(path = "link.html")]
struct LinkPage {
    frame: Frame,
    form_token: String,
}

/// Opening the page does not use the link up, because mail programs open links in advance.
pub(super) async fn ask_by_link(
    State(dashboard): State<Arc<Dashboard>>,
    Path(link): Path<String>,
    browser: Browser,
) -> Result<Response, Failure> {
    if !dashboard.engine.sign_in.is_link_open(&link).await? {
        return Ok(link_is_used());
    }
    let key = browser.form_key();
    let page = LinkPage {
        frame: Frame::plain(),
        form_token: key.token(SIGN_IN_BY_LINK),
    };
    let response = show_bare(StatusCode::OK, &page);
    Ok(with_cookie(response, key.cookie(&dashboard)))
}

fn link_is_used() -> Response {
    notice_with(
        Frame::plain(),
        StatusCode::NOT_FOUND,
        "This link does not work",
        "It was used before, has expired, or was not copied completely.",
        Some(("/dashboard/sign-in", "Sign in with your password")),
    )
}

/// Uses up the link of the first start.
pub(super) async fn sign_in_by_link(
    State(dashboard): State<Arc<Dashboard>>,
    Path(link): Path<String>,
    browser: Browser,
    form: Form,
) -> Result<Response, Failure> {
    if !browser.sent(&form, SIGN_IN_BY_LINK, None) {
        return Err(Failure::NotFromHere);
    }
    let Some(session) = dashboard
        .engine
        .sign_in
        .redeem(&browser.device(), &link)
        .await?
    else {
        return Ok(link_is_used());
    };
    dashboard.replace_session(&browser).await;
    Ok(with_cookie(
        Redirect::to(ReturnPath::parse(None).as_str()).into_response(),
        Some(dashboard.session_cookie(&session)),
    ))
}

/// Signs out and redirects to the sign-in page, so that somebody else may sign in.
///
/// Browsers do not send the session cookie with forms of other sites, but would let the answer clear it. So the cookie
/// is cleared only for a request that brings it.
pub(super) async fn sign_out(
    State(dashboard): State<Arc<Dashboard>>,
    browser: Browser,
    form: Form,
) -> Result<Response, Failure> {
    let back = ReturnPath::parse(form.get("next"));
    let response = Redirect::to(&back.sign_in_address()).into_response();
    let Some(session) = &browser.session else {
        return Ok(response);
    };
    if !browser.sent(&form, SIGN_OUT, Some(session)) {
        return Err(Failure::NotFromHere);
    }
    dashboard
        .engine
        .sign_in
        .end(browser.address, session)
        .await?;
    Ok(with_cookie(
        response,
        Some(dashboard.clear_session_cookie()),
    ))
}

impl Dashboard {
    /// Ends the previous session of a browser that gets a new one.
    pub(super) async fn replace_session(&self, browser: &Browser) {
        if let Some(session) = &browser.session
            && let Err(error) = self.engine.sign_in.end(browser.address, session).await
        {
            // The person stays signed in: their link worked once and cannot be used again.
            tracing::warn!(%error, "a session that was replaced stays until its time is over");
        }
    }
}
