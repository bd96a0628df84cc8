//! Errors of verifications as answers.

use domain::Code;
use domain::code_cap::{NUMBER_DAY, NUMBER_HOUR};
use domain::verify::VerificationState;
use engine::verify::{CheckError, StartError};
use http::StatusCode;

use super::{Problem, duration_words};

impl Problem {
    /// Explains why no code was sent.
    pub fn from_verification(error: StartError, currency: &str) -> Self {
        match error {
            StartError::Invalid(error) => error.into(),
            StartError::TooSoon(id) => Self::conflict(format!(
                "The code of verification {id} was sent to this number less than 30 seconds ago; a new one can be asked for 30 seconds after the last."
            ))
            .with_retry(30),
            StartError::CodeCapReached { retry_after_s } => Self::too_many(
                format!(
                    "Too many codes were sent. A number gets at most {NUMBER_HOUR} in an hour and {NUMBER_DAY} in a day, and an account has a daily limit of its own; another one can be asked for in {}.",
                    duration_words(retry_after_s)
                ),
                retry_after_s,
            ),
            StartError::Slowed { retry_after_s } => Self::too_many(
                format!(
                    "Nearly no code to numbers that begin like this one is entered, so they are sent slowly; another one can be asked for in {}.",
                    duration_words(retry_after_s)
                ),
                retry_after_s,
            ),
            StartError::Refused(Code::OPTED_OUT) => Self::forbidden(
                "The recipient opted out of this account's messages, so no code was sent; the opt-out list is at GET /optOuts.",
            )
            .with_code(Code::OPTED_OUT),
            StartError::Refused(code) => Self::forbidden(
                "The operator of this service blocks this recipient, sender or text, so no code was sent.",
            )
            .with_code(code),
            StartError::Send(error) => Self::from_submit(error, currency),
            StartError::Store(error) => error.into(),
        }
    }

    fn too_many(message: String, retry_after_s: u32) -> Self {
        Self {
            retry_after_s: Some(retry_after_s),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, message)
        }
    }
}

/// The messages never repeat the code that was guessed.
impl From<CheckError> for Problem {
    fn from(error: CheckError) -> Self {
        const AGAIN: &str = "send a new one with POST /verify";
        match error {
            CheckError::Invalid(error) => error.into(),
            CheckError::Wrong { tries_left: 0 } => Self::bad_request(format!(
                "The code is wrong; no tries are left for it: {AGAIN}."
            )),
            CheckError::Wrong { tries_left: 1 } => {
                Self::bad_request("The code is wrong; 1 try is left.")
            }
            CheckError::Wrong { tries_left } => {
                Self::bad_request(format!("The code is wrong; {tries_left} tries are left."))
            }
            CheckError::Over(VerificationState::Approved) => {
                Self::conflict("This verification is approved already; a code works once.")
            }
            CheckError::Over(VerificationState::Failed) => {
                Self::conflict(format!("Too many wrong codes were given; {AGAIN}."))
            }
            CheckError::Over(VerificationState::Expired | VerificationState::Pending) => {
                Self::conflict(format!(
                    "The code has expired, or a newer one replaced it; {AGAIN}."
                ))
            }
            CheckError::Unknown => Self::not_found("There is no such verification."),
            CheckError::Store(error) => error.into(),
        }
    }
}
