//! The frame of every page, and what is shown when something went wrong.

use askama::Template;
use axum::response::{Html, IntoResponse, Redirect, Response};
use domain::person::SignedIn;
use domain::ports::StoreError;
use engine::identity::hasher::Busy;
use engine::identity::sign_in::SessionError;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, StatusCode};

use super::assets::{ICON_ADDRESS, SCRIPT_ADDRESS, STYLE_ADDRESS};
use super::nav::{self, Section};
use super::return_path::ReturnPath;
use super::visit::form_token;
use crate::rate::TooManyRequests;

/// No outside asset, no script but our own file, no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// The same without any script, for the pages on which people and clients are let in.
const BARE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/// What a sign-out form's token is for.
pub(super) const SIGN_OUT: &str = "sign-out";
/// When to come again while too many sign in.
const BUSY_AGAIN_AFTER_S: u32 = 2;

/// What stands around a page.
pub(super) struct Frame {
    pub(super) style: &'static str,
    pub(super) icon: &'static str,
    pub(super) script: &'static str,
    pub(super) who: Option<Who>,
    /// The account that the page is about.
    pub(super) account: Option<String>,
    /// The ways between the pages; none on a page that stands by itself.
    pub(super) sections: Vec<Section>,
    /// What every form behind the sign-in carries.
    pub(super) form_token: String,
    /// What was just done, or why not.
    pub(super) said: Option<Said>,
}

/// What a page says of the form that led to it.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) is_problem: bool,
}

/// Who is signed in, and how they sign out.
pub(super) struct Who {
    pub(super) name: String,
    pub(super) form_token: String,
    pub(super) back: Option<String>,
}

impl Frame {
    /// For whoever is not signed in.
    pub(super) fn plain() -> Self {
        Self {
            style: &STYLE_ADDRESS,
            icon: &ICON_ADDRESS,
            script: &SCRIPT_ADDRESS,
            who: None,
            account: None,
            sections: Vec::new(),
            form_token: String::new(),
            said: None,
        }
    }

    /// For whoever is. Who signs out here to be somebody else comes back to `back`.
    pub(super) fn of(session: &str, signed_in: &SignedIn, back: &ReturnPath) -> Self {
        let name = signed_in.person().map_or_else(
            || "signed in by link".to_owned(),
            |person| person.email.to_string(),
        );
        Self {
            who: Some(Who {
                name,
                form_token: form_token(session, SIGN_OUT),
                back: back.to_carry().map(str::to_owned),
            }),
            ..Self::plain()
        }
    }

    /// The same for a page about an account.
    pub(super) fn of_account(self, name: &str) -> Self {
        Self {
            account: Some(name.to_owned()),
            ..self
        }
    }

    /// The same with the ways between the pages.
    pub(super) fn with_navigation(
        self,
        signed_in: &SignedIn,
        here: &str,
        form_token: String,
    ) -> Self {
        Self {
            sections: nav::sections(signed_in, here),
            form_token,
            ..self
        }
    }

    /// The same with the news that something was done.
    pub(super) fn saying(self, text: impl Into<String>) -> Self {
        let said = Said {
            text: text.into(),
            is_problem: false,
        };
        Self {
            said: Some(said),
            ..self
        }
    }

    /// The same with the news that something was not done, and why.
    pub(super) fn refusing(self, text: impl Into<String>) -> Self {
        let said = Said {
            text: text.into(),
            is_problem: true,
        };
        Self {
            said: Some(said),
            ..self
        }
    }
}

/// Writes a page behind the sign-in.
pub(super) fn show(status: StatusCode, page: &impl Template) -> Response {
    show_under(POLICY, status, page)
}

/// Writes a page that stands by itself, and so has no script.
pub(super) fn show_bare(status: StatusCode, page: &impl Template) -> Response {
    show_under(BARE_POLICY, status, page)
}

/// The content policy of a page whose form may lead on to addresses of these schemes.
pub(super) fn policy_with_forms_to<'a>(schemes: impl Iterator<Item = &'a str>) -> String {
    schemes.fold(BARE_POLICY.to_owned(), |policy, scheme| {
        format!("{policy} {scheme}:")
    })
}

/// Writes a page under a content policy of its own.
pub(super) fn show_under(policy: &str, status: StatusCode, page: &impl Template) -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // One-time links must not travel on in a Referer header.
        (REFERRER_POLICY, "no-referrer"),
        // Nobody who signed out should be seen by whoever presses the back button.
        (CACHE_CONTROL, "no-store"),
    ];
    match page.render() {
        Ok(html) => (status, headers, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The same answer with a cookie.
pub(super) fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The same answer, with the time to come again.
pub(super) fn with_retry_after(mut response: Response, seconds: u32) -> Response {
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

#[derive(Template)]
#[template(path = "notice.html")]
struct Notice<'a> {
    frame: Frame,
    title: &'a str,
    text: &'a str,
    way_on: Option<(&'a str, &'a str)>,
}

/// A page that only says something.
pub(super) fn notice(status: StatusCode, title: &str, text: &str) -> Response {
    notice_with(Frame::plain(), status, title, text, None)
}

/// [`notice`] in a frame, with an address to go on to and what to call it.
pub(super) fn notice_with(
    frame: Frame,
    status: StatusCode,
    title: &str,
    text: &str,
    way_on: Option<(&str, &str)>,
) -> Response {
    let page = Notice {
        frame,
        title,
        text,
        way_on,
    };
    if page.frame.sections.is_empty() {
        show_bare(status, &page)
    } else {
        show(status, &page)
    }
}

/// Why a page cannot be shown.
pub(super) enum Failure {
    /// The visitor must go elsewhere first.
    Elsewhere(Redirect),
    /// Another page takes its place.
    Page(Box<Response>),
    /// What was sent is no form of ours, or too large.
    Form,
    /// The form was not sent by a page that this browser got from us.
    NotFromHere,
    /// The page is for others.
    NotYours(Box<Frame>),
    /// The page is for people who belong to an account.
    NoAccount(Box<Frame>),
    /// There is nothing of this name, or it is somebody else's.
    NotFound(Box<Frame>),
    /// Too many passwords wait to be looked at.
    Busy,
    /// The account has made too many requests.
    TooMany(TooManyRequests),
    /// The address has sent too many sessions that do not exist.
    UnknownSessions {
        /// When to try again.
        retry_after_s: u32,
    },
    /// The store could not.
    Store(StoreError),
}

impl Failure {
    /// The store could not, and others wait for the same answer.
    pub(super) fn of_shared(error: &StoreError) -> Self {
        Self::Page(Box::new(store_failed(error)))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Throttled { retry_after_s } => Self::UnknownSessions { retry_after_s },
            SessionError::Store(error) => Self::Store(error),
        }
    }
}

impl From<Busy> for Failure {
    fn from(_: Busy) -> Self {
        Self::Busy
    }
}

impl From<TooManyRequests> for Failure {
    fn from(error: TooManyRequests) -> Self {
        Self::TooMany(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Elsewhere(redirect) => redirect.into_response(),
            Self::Page(page) => *page,
            Self::Form => notice(
                StatusCode::BAD_REQUEST,
                "That did not arrive whole",
                "Go back and send the form again.",
            ),
            Self::NotFromHere => notice(
                StatusCode::FORBIDDEN,
                "This form is out of date",
                "Nothing was done. Go back, reload the page and try again.",
            ),
            Self::NotYours(frame) => notice_with(
                *frame,
                StatusCode::FORBIDDEN,
                "This page is not yours",
                "Your role does not include it. Ask whoever invited you.",
                Some(("/dashboard", "Overview")),
            ),
            Self::NoAccount(frame) => notice_with(
                *frame,
                StatusCode::NOT_FOUND,
                "No account",
                "You do not belong to an account, so there is nothing to show here.",
                None,
            ),
            Self::NotFound(frame) => notice_with(
                *frame,
                StatusCode::NOT_FOUND,
                "Not found",
                "There is nothing here, or it was forgotten after its time.",
                Some(("/dashboard", "Overview")),
            ),
            Self::Busy => with_retry_after(
                notice(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Not now",
                    "Too many people sign in at this moment. Try again shortly.",
                ),
                BUSY_AGAIN_AFTER_S,
            ),
            Self::TooMany(error) => with_retry_after(
                notice(
                    StatusCode::TOO_MANY_REQUESTS,
                    "Too many requests",
                    &error.message(),
                ),
                TooManyRequests::RETRY_AFTER_S,
            ),
            Self::UnknownSessions { retry_after_s } => with_retry_after(
                notice(
                    StatusCode::TOO_MANY_REQUESTS,
                    "Too many requests",
                    "Too many requests from your address had a session that does not exist. Try again in a few seconds.",
                ),
                retry_after_s,
            ),
            Self::Store(error) => store_failed(&error),
        }
    }
}

/// What is wrong is for the log; whether trying again helps is for the reader.
fn store_failed(error: &StoreError) -> Response {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(%error, cause, "a page failed");
    match error {
        StoreError::Full { .. } | StoreError::IdTaken { .. } | StoreError::Unavailable { .. } => {
            notice(
                StatusCode::SERVICE_UNAVAILABLE,
                "Not now",
                "The service cannot reach its database. Try again shortly.",
            )
        }
        StoreError::Broken { .. } | StoreError::Unexpected { .. } => notice(
            StatusCode::INTERNAL_SERVER_ERROR,
            "This page failed",
            "Trying again will hardly help. Whoever runs this service finds the reason in its log.",
        ),
    }
}
