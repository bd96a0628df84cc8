//! Errors for AI clients. The body of an answer and the result of a tool have the same form.

use axum::response::{IntoResponse, Response};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::Pages;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorCode {
    AuthRequired,
    Forbidden,
    RateLimited,
    InvalidInput,
    NotFound,
    Conflict,
    UpstreamUnavailable,
    Internal,
}

impl ErrorCode {
    pub(super) const ALL: [Self; 8] = [
        Self::AuthRequired,
        Self::Forbidden,
        Self::RateLimited,
        Self::InvalidInput,
        Self::NotFound,
        Self::Conflict,
        Self::UpstreamUnavailable,
        Self::Internal,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AuthRequired => "AUTH_REQUIRED",
            Self::Forbidden => "FORBIDDEN",
            Self::RateLimited => "RATE_LIMITED",
            Self::InvalidInput => "INVALID_INPUT",
            Self::NotFound => "NOT_FOUND",
            Self::Conflict => "CONFLICT",
            Self::UpstreamUnavailable => "UPSTREAM_UNAVAILABLE",
            Self::Internal => "INTERNAL",
        }
    }

    pub(super) fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::AuthRequired,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::TOO_MANY_REQUESTS => Self::RateLimited,
            status if status.is_client_error() => Self::InvalidInput,
            StatusCode::NOT_IMPLEMENTED
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Self::UpstreamUnavailable,
            _ => Self::Internal,
        }
    }

    /// Whether the same request may work later.
    pub(super) const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::UpstreamUnavailable | Self::Internal
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl Envelope {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidInput, message)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "error": {
            "code": self.code.name(),
            "message": self.message,
            "retryable": self.code.is_retryable(),
            "service_error_code": null,
        }})
    }

    /// For a request that did not reach a tool.
    pub(super) fn into_response(self, status: StatusCode) -> Response {
        (status, axum::Json(self.to_json())).into_response()
    }

    /// For a missing or invalid token; says where to get one.
    pub(super) fn into_unauthorized(self, challenge: HeaderValue, pages: &Pages) -> Response {
        let mut body = self.to_json();
        body["error"]["signup_url"] = pages.signup.as_str().into();
        body["error"]["signin_url"] = pages.signin.as_str().into();
        body["error"]["token_url"] = pages.token.as_str().into();
        let challenge = [(WWW_AUTHENTICATE, challenge)];
        (StatusCode::UNAUTHORIZED, challenge, axum::Json(body)).into_response()
    }

    /// For a token that lacks a permission.
    pub(super) fn into_insufficient(self, challenge: HeaderValue) -> Response {
        let mut response = self.into_response(StatusCode::FORBIDDEN);
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        response
    }

    /// For a caller that must wait.
    pub(super) fn into_throttled(self, retry_after_s: u32) -> Response {
        let mut response = self.into_response(StatusCode::TOO_MANY_REQUESTS);
        response
            .headers_mut()
            .insert(RETRY_AFTER, retry_after_s.into());
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_rest_has_a_code() {
        for (status, code, retryable) in [
            (400, "INVALID_INPUT", false),
            (401, "AUTH_REQUIRED", false),
            (403, "FORBIDDEN", false),
            (404, "NOT_FOUND", false),
            (405, "INVALID_INPUT", false),
            (409, "CONFLICT", false),
            (429, "RATE_LIMITED", true),
            (500, "INTERNAL", true),
            (501, "UPSTREAM_UNAVAILABLE", true),
            (503, "UPSTREAM_UNAVAILABLE", true),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let json = Envelope::new(ErrorCode::from_status(status), "Why.").to_json();
            let expected = json!({"error": {
                "code": code, "message": "Why.", "retryable": retryable, "service_error_code": null,
            }});
            assert_eq!(json, expected, "{status}");
        }
    }
}
