//! What is shown instead of a page that cannot be.

use axum::response::{IntoResponse, Redirect, Response};
use domain::ports::StoreError;
use engine::identity::hasher::Busy;
use engine::identity::sign_in::SessionError;
use http::StatusCode;
use requests::TooManyRequests;

use crate::kit::page::{Frame, notice, notice_with, with_retry_after};

/// When to come again while too many sign in.
const BUSY_AGAIN_AFTER_S: u32 = 2;

/// Why a page cannot be shown.
pub(crate) enum Failure {
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
    pub(crate) fn of_shared(error: &StoreError) -> Self {
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
