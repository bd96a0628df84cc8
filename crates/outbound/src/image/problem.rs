//! Why an image cannot be used, in words for the caller.

use std::time::Duration;

use domain::quoted::Quoted;
use http::StatusCode;

use super::kind::NotAnImage;
use crate::dial::DialProblem;
use crate::exchange::{ExchangeError, InSeconds};
use crate::guard::Forbidden;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("{}; images are not fetched from there", address_text(.0))]
    Forbidden(Forbidden),
    #[error("the image was not fetched: too many others are being fetched; try again shortly")]
    Busy,
    #[error("the image cannot be fetched ({})", exchange_text(.0))]
    Exchange(ExchangeError),
    #[error("the image cannot be fetched (its host did not answer within {})", InSeconds(*.0))]
    NoAnswer(Duration),
    #[error("the image cannot be fetched ({})", status_text(*.0))]
    Status(StatusCode),
    #[error("the image cannot be fetched (the connection broke off)")]
    BrokenOff,
    #[error("the image cannot be fetched (it did not arrive within {})", InSeconds(*.0))]
    Endless(Duration),
    #[error("the image has more than 1048576 bytes; give a smaller one")]
    TooLarge,
    #[error("{0}")]
    Content(NotAnImage),
}

impl Problem {
    /// Whether another attempt with the same image may succeed.
    pub(super) fn is_temporary(&self) -> bool {
        !matches!(self, Self::TooLarge | Self::Content(_))
    }
}

fn address_text(forbidden: &Forbidden) -> String {
    match forbidden {
        Forbidden::Address { address, kind } => format!("{address} is {kind}"),
        Forbidden::Name { host, kind } => format!("{} leads to {kind}", Quoted(host)),
    }
}

/// Hides our own addresses from the caller.
fn exchange_text(error: &ExchangeError) -> String {
    match error {
        ExchangeError::Dial(DialProblem::NoSource(_) | DialProblem::Source(..)) => {
            "its host cannot be reached from here".to_owned()
        }
        other => other.to_string(),
    }
}

fn status_text(status: StatusCode) -> String {
    let number = status.as_u16();
    if status.is_redirection() {
        format!("its host answered {number}; redirects are not followed")
    } else {
        format!("its host answered {number}; only 200 counts")
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn each_has_its_own_words() {
        let five = Duration::from_secs(5);
        let ip = |text: &str| text.parse().expect("an address");
        for (problem, text, is_temporary) in [
            (
                Problem::Forbidden(Forbidden::Address {
                    address: ip("10.0.0.1"),
                    kind: "a private address",
                }),
                "10.0.0.1 is a private address; images are not fetched from there",
                true,
            ),
            (
                Problem::Forbidden(Forbidden::Name {
                    host: "a.example".to_owned(),
                    kind: "a private address",
                }),
                "'a.example' leads to a private address; images are not fetched from there",
                true,
            ),
            (
                Problem::Busy,
                "the image was not fetched: too many others are being fetched; try again shortly",
                true,
            ),
            (
                Problem::Exchange(ExchangeError::Dial(DialProblem::Refused)),
                "the image cannot be fetched (refused the connection)",
                true,
            ),
            (
                Problem::Exchange(ExchangeError::Dial(DialProblem::Source(
                    ip("10.0.0.1"),
                    io::ErrorKind::AddrNotAvailable,
                ))),
                "the image cannot be fetched (its host cannot be reached from here)",
                true,
            ),
            (
                Problem::NoAnswer(five),
                "the image cannot be fetched (its host did not answer within 5 s)",
                true,
            ),
            (
                Problem::Endless(five),
                "the image cannot be fetched (it did not arrive within 5 s)",
                true,
            ),
            (
                Problem::TooLarge,
                "the image has more than 1048576 bytes; give a smaller one",
                false,
            ),
            (
                Problem::Content(NotAnImage::Animated),
                "the GIF is animated; give one with a single frame",
                false,
            ),
        ] {
            assert_eq!(problem.to_string(), text);
            assert_eq!(problem.is_temporary(), is_temporary, "{text}");
        }
    }
}
