//! Errors as answers.

mod verify;

use axum::response::{IntoResponse, Response};
use domain::billing::NotPaid;
use domain::code_cap::{NUMBER_DAY, NUMBER_HOUR};
use domain::ports::StoreError;
use domain::{Code, Permission};
use engine::Invalid;
use engine::identity::gate::{Refusal, either};
use engine::senders::{ConfirmError, MAX_AWAITING, RegisterError};
use engine::sending::submit::SubmitError;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};

use crate::{InvalidField, RefusalNote, TooManyRequests};

/// Names the permission that a token lacks, so that programs need not parse the message.
pub const REQUIRED_PERMISSION: HeaderName = HeaderName::from_static("x-required-permission");

/// The service error code of a refused request, if the catalogue has one.
pub const ERROR_CODE: HeaderName = HeaderName::from_static("x-error-code");

/// `false` if the same request is refused at any time, although its service error code is temporary.
pub const RETRYABLE: HeaderName = HeaderName::from_static("x-retryable");

/// An error as the caller sees it: `{"message": "…"}` with a status of the contract.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    message: String,
    retry_after_s: Option<u32>,
    required: Option<Permission>,
    code: Option<Code>,
    /// Whether [`RETRYABLE`] is false.
    is_permanent: bool,
}

impl Problem {
    /// 400: the request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 403: the request is understood and refused.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// 404: nothing is at this address, or nothing that this caller may see.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 409: the current state does not allow it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// 405: the address does not take this method.
    pub fn method_not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, message)
    }

    /// 503: the caller may try again later.
    pub fn unavailable(message: impl Into<String>, retry_after_s: u32) -> Self {
        Self {
            retry_after_s: Some(retry_after_s),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
        }
    }

    /// 500: the service failed.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The service failed. Try again; if it goes on, tell its operator the X-Request-Id of this answer.",
        )
        .with_code(Code::INTERNAL)
    }

    fn with_code(self, code: impl Into<Option<Code>>) -> Self {
        let code = code.into();
        Self { code, ..self }
    }

    fn with_retry(self, seconds: u32) -> Self {
        let retry_after_s = Some(seconds);
        Self {
            retry_after_s,
            ..self
        }
    }

    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            retry_after_s: None,
            required: None,
            code: None,
            is_permanent: false,
        }
    }

    /// Whether the same request is refused at any time, although its code is temporary.
    pub fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The service error code, if the catalogue has one.
    pub fn code(&self) -> Option<Code> {
        self.code
    }

    /// The message for the caller.
    pub fn into_message(self) -> String {
        self.message
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "message": self.message }).to_string();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(permission) = self.required {
            let name = HeaderValue::from_static(permission.name());
            headers.insert(REQUIRED_PERMISSION, name);
        }
        if let Some(code) = self.code {
            headers.insert(ERROR_CODE, code.number().into());
        }
        if self.is_permanent {
            headers.insert(RETRYABLE, HeaderValue::from_static("false"));
        }
        response.extensions_mut().insert(RefusalNote {
            tool: None,
            status: self.status,
            error: self.code,
            message: self.message,
        });
        response
    }
}

impl From<InvalidField> for Problem {
    fn from(error: InvalidField) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<Invalid> for Problem {
    fn from(error: Invalid) -> Self {
        let code = error.code;
        Self::from(InvalidField::from(error)).with_code(code)
    }
}

impl Problem {
    /// Explains why a message was not accepted.
    pub fn from_submit(error: SubmitError, currency: &str) -> Self {
        match error {
            SubmitError::Invalid(error) => error.into(),
            SubmitError::NotPaid(not_paid) => {
                let code = match not_paid {
                    NotPaid::Balance { .. } => Code::BALANCE_LIMIT,
                    NotPaid::DailyCap { .. }
                    | NotPaid::GrantCap { .. }
                    | NotPaid::AboveDailyCap { .. }
                    | NotPaid::AboveGrantCap { .. } => Code::SPENDING_CAP,
                    NotPaid::RecipientHour { .. } => Code::RECIPIENT_LIMIT,
                };
                Self {
                    is_permanent: not_paid.is_permanent(),
                    ..Self::forbidden(not_paid_words(not_paid, currency)).with_code(code)
                }
            }
            SubmitError::Country { to, country } => {
                let place = country.map_or("no country", domain::Country::name);
                let message = format!(
                    "This account may not send to {to} ({place}); its list of countries does not hold it."
                );
                Self::forbidden(message).with_code(Code::BLOCKED)
            }
            SubmitError::Sender(from) => Self::new(
                StatusCode::FORBIDDEN,
                format!(
                    "'{from}' is not an approved sender of this account, and only those may be used here; register it with POST /senderId."
                ),
            ),
            SubmitError::Suspended => Refusal::Suspended.into(),
            SubmitError::KeyConflict => Self::conflict(
                "The Idempotency-Key was used before with another body; use a new key for a new request.",
            ),
            SubmitError::Busy => {
                Self::unavailable("The service is overloaded; try again shortly.", 1)
            }
            SubmitError::Stopping => {
                Self::unavailable("The service is restarting; try again shortly.", 1)
            }
            SubmitError::Store(error) => Self::from(&*error),
        }
    }

    /// Explains why a sender was not registered.
    pub fn from_registration(error: RegisterError, currency: &str) -> Self {
        match error {
            RegisterError::Invalid(error) => error.into(),
            RegisterError::Exists(id, state) => Self::conflict(format!(
                "This account has registered the name already, as sender {id}, which is {}.",
                state.name()
            )),
            RegisterError::TooSoon(id) => Self::conflict(format!(
                "A confirmation code for sender {id} was sent less than a minute ago; a new one can be asked for a minute after the last."
            ))
            .with_retry(60),
            RegisterError::CodeCapReached { retry_after_s } => Self {
                retry_after_s: Some(retry_after_s),
                ..Self::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    format!(
                        "Too many confirmation codes were sent. A number gets at most {NUMBER_HOUR} in an hour and {NUMBER_DAY} in a day, and an account has a daily limit of its own; another one can be asked for in {}.",
                        duration_words(retry_after_s)
                    ),
                )
            },
            RegisterError::TooMany => Self::new(
                StatusCode::FORBIDDEN,
                format!(
                    "{MAX_AWAITING} numbers of this account wait for their confirmation code; confirm one of them, or ask the operator of the service to reject one."
                ),
            ),
            RegisterError::Pin(error) => Self::from_submit(error, currency),
            RegisterError::Store(error) => error.into(),
        }
    }
}

/// A duration in words, rounded up.
fn duration_words(seconds: u32) -> String {
    match seconds.div_ceil(60) {
        1 => "a minute".to_owned(),
        minutes @ 2..=119 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes.div_ceil(60)),
    }
}

/// The messages never repeat the code that was guessed.
impl From<ConfirmError> for Problem {
    fn from(error: ConfirmError) -> Self {
        const AGAIN: &str = "register the number again with POST /senderId to get a new one";
        match error {
            ConfirmError::Invalid(error) => error.into(),
            ConfirmError::Wrong { tries_left: 0 } => Self::bad_request(format!(
                "The confirmation code is wrong; no tries are left for it: {AGAIN}."
            )),
            ConfirmError::Wrong { tries_left } => {
                let tries = if tries_left == 1 {
                    "try is"
                } else {
                    "tries are"
                };
                Self::bad_request(format!(
                    "The confirmation code is wrong; {tries_left} {tries} left."
                ))
            }
            ConfirmError::UsedUp => Self::conflict(format!(
                "Too many wrong confirmation codes were given; {AGAIN}."
            )),
            ConfirmError::Expired => {
                Self::conflict(format!("The confirmation code has expired; {AGAIN}."))
            }
            ConfirmError::NotWaiting(state) => Self::conflict(format!(
                "This sender is {} and waits for no confirmation code.",
                state.name()
            )),
            ConfirmError::Unknown => Self::not_found("There is no such sender."),
            ConfirmError::Store(error) => error.into(),
        }
    }
}

fn not_paid_words(not_paid: NotPaid, currency: &str) -> String {
    match not_paid {
        NotPaid::Balance { cost, available } => format!(
            "The balance does not cover this request: it costs {cost} {currency} and the account can spend {available} {currency}. Nothing was sent or charged; top up the account."
        ),
        NotPaid::DailyCap { cost, left } => format!(
            "This request would exceed what the account may spend on one day: it costs {cost} {currency} and {left} {currency} are left until midnight UTC. Nothing was sent or charged."
        ),
        NotPaid::GrantCap { cost, left } => format!(
            "This request would exceed what this client may spend on one day: it costs {cost} {currency} and {left} {currency} are left until midnight UTC. Nothing was sent or charged; a person can connect the client again with a higher limit."
        ),
        NotPaid::AboveDailyCap { cost, cap } => format!(
            "This request would exceed what the account may spend on one day: it costs {cost} {currency}, more than the cap of a whole day, {cap} {currency}. Nothing was sent or charged; make the request smaller, or have the cap raised."
        ),
        NotPaid::AboveGrantCap { cost, cap } => format!(
            "This request would exceed what this client may spend on one day: it costs {cost} {currency}, more than the cap of a whole day, {cap} {currency}. Nothing was sent or charged; make the request smaller, or a person can connect the client again with a higher limit."
        ),
        NotPaid::RecipientHour { to, limit } => format!(
            "The recipient {to} may get at most {limit} messages within an hour from this account. Nothing was sent or charged; try again later."
        ),
    }
}

/// Tells the caller whether to try again. The database's own message is only in the log.
impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Full { .. }
            | StoreError::Broken { .. }
            | StoreError::IdTaken { .. }
            | StoreError::Unavailable { .. } => Self::unavailable(
                "The service cannot reach or write its database at the moment; try again shortly.",
                5,
            ),
            StoreError::Unexpected { .. } => Self::internal(),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        tracing::error!(%error, cause, "a request failed");
        Self::from(&error)
    }
}

impl From<TooManyRequests> for Problem {
    fn from(error: TooManyRequests) -> Self {
        Self {
            retry_after_s: Some(TooManyRequests::RETRY_AFTER_S),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, error.message())
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing => Self::new(
                StatusCode::UNAUTHORIZED,
                "No API token was given; send it in the header that the documentation names, by default X-Service-Token.",
            ),
            Refusal::Unknown => Self::new(
                StatusCode::UNAUTHORIZED,
                "The API token is not valid: it is unknown, mistyped or revoked.",
            ),
            Refusal::Expired => Self::new(
                StatusCode::UNAUTHORIZED,
                "The API token has expired; create a new one.",
            ),
            Refusal::Suspended => {
                Self::forbidden("The account is suspended.").with_code(Code::SUSPENDED)
            }
            Refusal::Address(address) => Self::new(
                StatusCode::FORBIDDEN,
                format!(
                    "This API token may not be used from the address {address}; its list of addresses does not hold it."
                ),
            ),
            Refusal::NotGranted(permissions) => Self {
                required: permissions.first().copied(),
                ..Self::new(
                    StatusCode::FORBIDDEN,
                    format!(
                        "This API token lacks the permission {} that this operation needs.",
                        either(permissions)
                    ),
                )
            },
            Refusal::Throttled { retry_after_s } => Self {
                retry_after_s: Some(retry_after_s),
                ..Self::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "Too many wrong API tokens came from this address; try again later.",
                )
            },
            Refusal::Store(error) => error.into(),
        }
    }
}
