//! OAuth errors: `{"error": "…", "error_description": "…"}`.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use domain::oauth::ClientProblem;
use domain::ports::StoreError;
use engine::identity::grants::{RegisterError, TokenError};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use super::no_store;

/// An error of RFC 6749, 7009 or 7591.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    error: &'static str,
    description: Cow<'static, str>,
    retry_after_s: Option<u32>,
    challenge: bool,
}

impl Refusal {
    pub(super) fn new(
        status: StatusCode,
        error: &'static str,
        description: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            error,
            description: description.into(),
            retry_after_s: None,
            challenge: false,
        }
    }

    fn bad_request(error: &'static str, description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, description)
    }

    pub(super) fn invalid_request(description: impl Into<Cow<'static, str>>) -> Self {
        Self::bad_request("invalid_request", description)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "invalid_request",
            "This method is not allowed here; the header Allow says what is.",
        )
    }

    /// Clients are public here, so a client secret must be a mistake.
    pub(super) fn has_secret(by_header: bool) -> Self {
        Self {
            challenge: by_header,
            ..Self::new(
                StatusCode::UNAUTHORIZED,
                "invalid_client",
                "Clients have no secret here; send client_id alone.",
            )
        }
    }

    pub(super) fn slow_down(retry_after_s: u32) -> Self {
        Self {
            retry_after_s: Some(retry_after_s),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "temporarily_unavailable",
                "Too many requests came from this address; try again later.",
            )
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn description(&self) -> &str {
        &self.description
    }

    pub(super) fn retry_after_s(&self) -> Option<u32> {
        self.retry_after_s
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::json!({
            "error": self.error, "error_description": self.description,
        });
        let mut response = (self.status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.challenge {
            let basic = HeaderValue::from_static("Basic realm=\"clients have no secret\"");
            headers.insert(WWW_AUTHENTICATE, basic);
        }
        no_store(response)
    }
}

/// Tells the caller to try again. The database's own message is only in the log.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        tracing::error!(%error, cause, "a request of a client failed");
        match error {
            StoreError::Unexpected { .. } => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "server_error",
                "The service failed; try again.",
            ),
            _ => Self {
                retry_after_s: Some(5),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "temporarily_unavailable",
                    "The service cannot reach or write its database at the moment; try again shortly.",
                )
            },
        }
    }
}

impl From<TokenError> for Refusal {
    fn from(error: TokenError) -> Self {
        let words = error.to_string();
        match error {
            TokenError::Request(words) => Self::invalid_request(words),
            TokenError::Client => Self::new(StatusCode::UNAUTHORIZED, "invalid_client", words),
            TokenError::Grant(_) => Self::bad_request("invalid_grant", words),
            TokenError::GrantType => Self::bad_request("unsupported_grant_type", words),
            TokenError::Scope => Self::bad_request("invalid_scope", words),
            TokenError::Target => Self::bad_request("invalid_target", words),
            TokenError::Throttled { retry_after_s } => Self::slow_down(retry_after_s),
            TokenError::Store(error) => error.into(),
        }
    }
}

impl From<RegisterError> for Refusal {
    fn from(error: RegisterError) -> Self {
        let words = error.to_string();
        match error {
            RegisterError::Client(ClientProblem::Redirect(_) | ClientProblem::Redirects(_)) => {
                Self::bad_request("invalid_redirect_uri", words)
            }
            RegisterError::Client(_) => Self::bad_request("invalid_client_metadata", words),
            RegisterError::Throttled { retry_after_s } => Self::slow_down(retry_after_s),
            RegisterError::Full => Self {
                retry_after_s: Some(600),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "temporarily_unavailable",
                    words,
                )
            },
            RegisterError::Store(error) => error.into(),
        }
    }
}
