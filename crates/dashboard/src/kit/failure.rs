//! Why a page cannot be shown, and what is shown instead.

use std::time::Duration;

use axum::response::{IntoResponse, Redirect, Response};
use domain::ports::StoreError;
use engine::identity::hasher::Busy;
use engine::identity::sign_in::SessionError;
use http::StatusCode;
use requests::TooManyRequests;
use requests::body::BodyError;

use crate::kit::page::{Frame, notice, notice_with, with_retry_after};

const BUSY_AGAIN_AFTER_S: u32 = 2;

/// Why a page cannot be shown.
pub(crate) enum Failure {
    /// Another page comes first.
    Elsewhere(Redirect),
    /// This page is shown instead.
    Page(Box<Response>),
    /// The form is malformed or incomplete.
    Form,
    /// The form is larger than `limit` bytes.
    TooLarge {
        limit: usize,
    },
    /// The form did not arrive within `time`.
    TooSlow {
        time: Duration,
    },
    /// The form does not come from a page that we sent to this browser.
    NotFromHere,
    /// The role does not allow the page.
    NotYours(Box<Frame>),
    /// The page needs an account, and the person belongs to none.
    NoAccount(Box<Frame>),
    /// Does not exist, or belongs to another account.
    NotFound(Box<Frame>),
    /// Too many passwords wait to be checked.
    Busy,
    TooMany(TooManyRequests),
    /// The address sent too many made-up session cookies.
    UnknownSessions {
        retry_after_s: u32,
    },
    Store(StoreError),
}

impl Failure {
    /// For an error that several callers share, so that it cannot be moved.
    pub(crate) fn from_shared(error: &StoreError) -> Self {
        Self::Page(Box::new(store_failed(error)))
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge { limit } => Self::TooLarge { limit },
            BodyError::TooSlow { time } => Self::TooSlow { time },
            BodyError::CutOff => Self::Form,
        }
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
                "The form was incomplete",
                "Go back and send the form again.",
            ),
            Self::TooLarge { limit } => notice(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The form is too large",
                &format!(
                    "This form may have at most {}. Nothing was done. Go back, and send less at a time: fewer rows, or a shorter text.",
                    size(limit)
                ),
            ),
            Self::TooSlow { time } => notice(
                StatusCode::REQUEST_TIMEOUT,
                "The form arrived too slowly",
                &format!(
                    "It did not arrive within {} seconds. Nothing was done. Go back and send it again; over a slow connection, send fewer rows at a time.",
                    time.as_secs()
                ),
            ),
            Self::NotFromHere => notice(
                StatusCode::FORBIDDEN,
                "This form is out of date",
                "Nothing was done. Go back, reload the page and try again.",
            ),
            Self::NotYours(frame) => notice_with(
                *frame,
                StatusCode::FORBIDDEN,
                "You do not have access to this page",
                "Your role does not allow it. Ask the person who invited you.",
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
                "It does not exist, or it was deleted after its retention time.",
                Some(("/dashboard", "Overview")),
            ),
            Self::Busy => with_retry_after(
                notice(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Try again later",
                    "Too many people are signing in right now. Try again shortly.",
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
                    "Too many requests from your address had an invalid session. Try again in a few seconds.",
                ),
                retry_after_s,
            ),
            Self::Store(error) => store_failed(&error),
        }
    }
}

/// A number of bytes in words: `512 KB`, `4 MB`.
fn size(bytes: usize) -> String {
    const KB: usize = 1024;
    const MB: usize = 1024 * KB;
    match bytes {
        MB.. => format!("{} MB", bytes / MB),
        _ => format!("{} KB", bytes / KB),
    }
}

/// The log gets the cause, the person gets whether trying again helps.
fn store_failed(error: &StoreError) -> Response {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(%error, cause, "a page failed");
    match error {
        StoreError::Full { .. } | StoreError::IdTaken { .. } | StoreError::Unavailable { .. } => {
            notice(
                StatusCode::SERVICE_UNAVAILABLE,
                "Try again later",
                "The service cannot reach its database. Try again shortly.",
            )
        }
        StoreError::Broken { .. } | StoreError::Unexpected { .. } => notice(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Something went wrong",
            "Trying again will probably not help. The operator of this service can find the reason in its log.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_forms_have_their_own_answers() {
        for (error, status) in [
            (BodyError::TooLarge { limit: 1024 }, 413),
            (
                BodyError::TooSlow {
                    time: Duration::from_secs(10),
                },
                408,
            ),
            (BodyError::CutOff, 400),
        ] {
            let response = Failure::from(error).into_response();
            assert_eq!(response.status().as_u16(), status, "{error}");
        }
    }

    #[test]
    fn sizes_are_in_words() {
        for (bytes, expected) in [
            (16 * 1024, "16 KB"),
            (512 * 1024, "512 KB"),
            (1024 * 1024, "1 MB"),
            (4 * 1024 * 1024, "4 MB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
