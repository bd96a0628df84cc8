//! Why a callback was not received, in words for those who look into it.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use domain::shown::Shown;
use http::StatusCode;

use super::Success;
use crate::dial::{DialError, DialProblem};
use crate::signature::BadSecret;

/// Why a try failed. Its text becomes the attempt's reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Secret(#[from] BadSecret),
    #[error("the URL cannot be called")]
    Url,
    #[error(transparent)]
    Dial(DialProblem),
    #[error("did not answer within {}", Span(*.0))]
    NoAnswer(Duration),
    #[error("closed the connection without an answer")]
    Closed,
    #[error("the answer is not HTTP")]
    NotHttp,
    #[error("the head of the answer is too long")]
    LongHead,
    #[error("the connection failed: {0}")]
    Broken(String),
    #[error("{}", status_text(*.0, *.1))]
    Status(StatusCode, Success),
    #[error("200, but the body was empty")]
    EmptyBody,
    #[error("200, but the body was {}", Shown(.0))]
    Body(String),
    #[error("200, but the body was longer than 1 KiB")]
    LongBody,
    #[error("200, but the body broke off")]
    BrokenBody,
    #[error("200, but the body did not end within {}", Span(*.0))]
    EndlessBody(Duration),
}

impl Failure {
    /// A body that is not the one that counts.
    pub(super) fn body(body: &[u8]) -> Self {
        match body.trim_ascii() {
            [] => Self::EmptyBody,
            text => Self::Body(String::from_utf8_lossy(text).into_owned()),
        }
    }

    /// What the HTTP client's error comes down to.
    pub(super) fn from_http(error: &hyper_util::client::legacy::Error) -> Self {
        let causes = || std::iter::successors(error.source(), |cause| (*cause).source());
        if let Some(dial) = causes().find_map(|cause| cause.downcast_ref::<DialError>()) {
            return Self::Dial(dial.problem.clone());
        }
        if causes().any(is_closed) {
            return Self::Closed;
        }
        match causes().find_map(|cause| cause.downcast_ref::<hyper::Error>()) {
            Some(http) if http.is_parse_too_large() => Self::LongHead,
            Some(http) if http.is_parse() => Self::NotHttp,
            _ => Self::Broken(
                causes()
                    .last()
                    .map_or_else(String::new, ToString::to_string),
            ),
        }
    }
}

/// Whether the other side has hung up.
fn is_closed(cause: &(dyn Error + 'static)) -> bool {
    if let Some(http) = cause.downcast_ref::<hyper::Error>() {
        return http.is_incomplete_message() || http.is_closed() || http.is_canceled();
    }
    let kind = cause.downcast_ref().map(io::Error::kind);
    matches!(
        kind,
        Some(
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        )
    )
}

fn status_text(status: StatusCode, success: Success) -> String {
    let number = status.as_u16();
    match number {
        300..=399 => {
            format!("redirected to another address ({number}); redirects are not followed")
        }
        200..=299 if success == Success::OkBody => {
            format!("answered {number}; only 200 with the body 'OK' counts")
        }
        _ => format!("answered {number}"),
    }
}

/// A length of time, in seconds where it is whole ones.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_millis() == 0 {
            write!(f, "{} s", self.0.as_secs())
        } else {
            write!(f, "{} ms", self.0.as_millis())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TRY_TIMEOUT;
    use super::*;

    #[test]
    fn reasons_are_plain_words() {
        for (failure, text) in [
            (Failure::NoAnswer(TRY_TIMEOUT), "did not answer within 10 s"),
            (
                Failure::EndlessBody(Duration::from_millis(1500)),
                "200, but the body did not end within 1500 ms",
            ),
            (Failure::body(b" okay\n"), "200, but the body was 'okay'"),
            (
                Failure::body(b"a\0\xff"),
                "200, but the body was 'a\\u{0}\u{fffd}'",
            ),
            (Failure::body(b"\n"), "200, but the body was empty"),
            (
                Failure::Dial(DialProblem::Refused),
                "refused the connection",
            ),
        ] {
            assert_eq!(failure.to_string(), text);
        }
    }
}
