//! Errors for AI clients. The body of an answer and the result of a tool have the same form.

use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::Code;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use requests::{ERROR_CODE, RETRYABLE, RefusalNote};
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

    /// The status with which REST refuses such a request.
    const fn status(self) -> StatusCode {
        match self {
            Self::AuthRequired => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::InvalidInput => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Conflict => StatusCode::CONFLICT,
            Self::UpstreamUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the same request may work later, unless the answer of REST tells.
    const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::UpstreamUnavailable | Self::Internal
        )
    }
}

/// Whether REST says that the same request is refused at any time.
pub(super) fn is_permanent(headers: &HeaderMap) -> bool {
    headers.get(RETRYABLE).is_some_and(|value| value == "false")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Envelope {
    code: ErrorCode,
    message: String,
    /// The code of the service's catalogue, where there is one.
    service_code: Option<Code>,
    /// Whether the same request may work later.
    retryable: bool,
}

impl Envelope {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            service_code: None,
            retryable: code.is_retryable(),
        }
    }

    /// The error in an answer of REST. An error with a time to try again, or with a temporary code, may go away, unless
    /// the answer says otherwise.
    pub(super) fn from_rest(response: &http::Response<Bytes>) -> Self {
        let body: Option<Value> = serde_json::from_slice(response.body()).ok();
        let message = body.as_ref().and_then(|body| body["message"].as_str());
        let message = message.unwrap_or("The REST API refused the request without saying why.");
        let envelope = Self::new(ErrorCode::from_status(response.status()), message);
        let headers = response.headers();
        let number = headers.get(ERROR_CODE).and_then(|code| code.to_str().ok());
        let service_code = number
            .and_then(|number| number.parse().ok())
            .and_then(Code::new);
        let envelope = Self {
            retryable: envelope.retryable || headers.contains_key(RETRY_AFTER),
            ..envelope
        };
        let envelope = match service_code {
            Some(code) => envelope.with_service_code(code),
            None => envelope,
        };
        Self {
            retryable: envelope.retryable && !is_permanent(headers),
            ..envelope
        }
    }

    pub(super) fn is_retryable(&self) -> bool {
        self.retryable
    }

    pub(super) fn with_service_code(self, code: Code) -> Self {
        Self {
            service_code: Some(code),
            retryable: self.retryable || code.is_temporary(),
            ..self
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidInput, message)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "error": {
            "code": self.code.name(),
            "message": self.message,
            "retryable": self.retryable,
            "service_error_code": self.service_code.map(Code::number),
        }})
    }

    /// For the log of refused requests. A failed tool has the status that REST answers with.
    pub(super) fn note(&self, tool: Option<&'static str>) -> RefusalNote {
        RefusalNote {
            tool,
            status: self.code.status(),
            error: self.service_code,
            message: self.message.clone(),
        }
    }

    /// For a request that did not reach a tool.
    pub(super) fn into_response(self, status: StatusCode) -> Response {
        let note = Extension(self.note(None));
        (status, note, axum::Json(self.to_json())).into_response()
    }

    /// For a missing or invalid token; says where to get one.
    pub(super) fn into_unauthorized(self, challenge: HeaderValue, pages: &Pages) -> Response {
        let mut body = self.to_json();
        body["error"]["signup_url"] = pages.signup.as_str().into();
        body["error"]["signin_url"] = pages.signin.as_str().into();
        body["error"]["token_url"] = pages.token.as_str().into();
        let challenge = [(WWW_AUTHENTICATE, challenge)];
        let note = Extension(self.note(None));
        (StatusCode::UNAUTHORIZED, challenge, note, axum::Json(body)).into_response()
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
            let envelope = Envelope::new(ErrorCode::from_status(status), "Why.");
            let noted = envelope.note(None).status;
            assert_eq!(ErrorCode::from_status(noted).name(), code, "{status}");
            let json = envelope.to_json();
            let expected = json!({"error": {
                "code": code, "message": "Why.", "retryable": retryable, "service_error_code": null,
            }});
            assert_eq!(json, expected, "{status}");
        }
    }
}
