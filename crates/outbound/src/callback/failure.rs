//! Why an attempt failed, as text for the attempt's log.

use std::time::Duration;

use domain::quoted::Quoted;
use http::StatusCode;

use super::Acknowledgement;
use crate::exchange::{ExchangeError, InSeconds};
use crate::signature::BadSecret;

/// Why an attempt failed. Its text is stored with the attempt.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Secret(#[from] BadSecret),
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("did not answer within {}", InSeconds(*.0))]
    NoAnswer(Duration),
    #[error("{}", status_text(*.0, *.1))]
    Status(StatusCode, Acknowledgement),
    #[error("200, but the body was empty")]
    EmptyBody,
    #[error("200, but the body was {}", Quoted(.0))]
    Body(String),
    #[error("200, but the body was longer than 1 KiB")]
    LongBody,
    #[error("200, but the body broke off")]
    BrokenBody,
    #[error("200, but the body did not end within {}", InSeconds(*.0))]
    EndlessBody(Duration),
}

impl Failure {
    /// A body other than the expected one.
    pub(super) fn body(body: &[u8]) -> Self {
        match body.trim_ascii() {
            [] => Self::EmptyBody,
            text => Self::Body(String::from_utf8_lossy(text).into_owned()),
        }
    }
}

fn status_text(status: StatusCode, success: Acknowledgement) -> String {
    let number = status.as_u16();
    match number {
        300..=399 => {
            format!("redirected to another address ({number}); redirects are not followed")
        }
        200..=299 if success == Acknowledgement::OkBody => {
            format!("answered {number}; only 200 with the body 'OK' counts")
        }
        _ => format!("answered {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::TRY_TIMEOUT;
    use super::*;
    use crate::dial::DialProblem;

    #[test]
    fn reasons_are_plain_english() {
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
                ExchangeError::Dial(DialProblem::Refused).into(),
                "refused the connection",
            ),
        ] {
            assert_eq!(failure.to_string(), text);
        }
    }
}
