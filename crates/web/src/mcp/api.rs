//! Calls of the REST API: in this process, or over HTTP.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use domain::AccountId;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use requests::rate_limit::AlreadyCounted;
use requests::{Peer, with_unknown_addresses};
use serde_json::Value;
use tower::ServiceExt;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The REST API cannot be reached. Whether it has acted on the request is unknown.
#[derive(Debug, thiserror::Error)]
#[error("the REST API does not answer: {0}")]
pub struct ApiUnavailable(pub String);

/// The REST API.
#[async_trait]
pub trait RestApi: Send + Sync {
    /// Sends a request and returns the answer. The URI is a path.
    async fn ask(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiUnavailable>;
}

/// The REST API of this process.
pub struct InProcess(Router);

impl InProcess {
    /// Calls these routes.
    pub fn new(rest: Router) -> Arc<Self> {
        Arc::new(Self(with_unknown_addresses(rest)))
    }
}

#[async_trait]
impl RestApi for InProcess {
    async fn ask(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiUnavailable> {
        let answered = self.0.clone().oneshot(request.map(Body::from)).await;
        let Ok(response) = answered;
        let (parts, body) = response.into_parts();
        let body = body.collect().await;
        let body = body.map_err(|error| ApiUnavailable(error.to_string()))?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}

/// The caller of a tool. It lives as long as the request and is never logged.
#[derive(Clone)]
pub(super) struct Bearer {
    pub(super) token: HeaderValue,
    pub(super) address: IpAddr,
    /// `None` if the token was refused; then REST refuses it, too.
    pub(super) account: Option<AccountId>,
    /// `traceparent`, which REST checks.
    pub(super) trace: Option<HeaderValue>,
}

/// A request of a tool to the REST API.
#[derive(Debug, PartialEq)]
pub(super) struct ApiRequest {
    method: Method,
    path: String,
    body: Option<Value>,
    key: Option<HeaderValue>,
}

impl ApiRequest {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
            key: None,
        }
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::get(path)
        }
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self {
            method: Method::POST,
            path: path.into(),
            body: Some(body),
            key: None,
        }
    }

    /// Adds an idempotency key.
    pub(super) fn with_key(self, key: Option<HeaderValue>) -> Self {
        Self { key, ..self }
    }

    /// The HTTP request with the token and address of the caller, so that REST can check both.
    pub(super) fn into_http(self, bearer: &Bearer, token_header: &HeaderName) -> Request<Bytes> {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().expect("paths are made of escaped parts");
        let headers = request.headers_mut();
        headers.insert(ACCEPT, JSON);
        headers.insert(token_header, bearer.token.clone());
        let address = bearer.address.to_string();
        let address = HeaderValue::try_from(address).expect("an address is visible ASCII");
        headers.insert(FORWARDED_FOR, address);
        if let Some(key) = self.key {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        if let Some(trace) = &bearer.trace {
            headers.insert(TRACEPARENT, trace.clone());
        }
        if let Some(body) = self.body {
            headers.insert(CONTENT_TYPE, JSON);
            *request.body_mut() = body.to_string().into();
        }
        request.extensions_mut().insert(Peer(bearer.address));
        request.extensions_mut().insert(AlreadyCounted);
        request
    }
}

/// Escapes a text as one segment of a path.
pub(super) fn segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            for half in [byte >> 4, byte & 15] {
                let digit = char::from_digit(half.into(), 16).expect("four bits");
                escaped.push(digit.to_ascii_uppercase());
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_one_segment_and_round_trips(text in ".*") {
            let escaped = segment(&text);
            prop_assert!(!escaped.contains(['/', '?', '#', '.', ' ']));
            let path = format!("/x/{escaped}");
            prop_assert!(path.parse::<http::Uri>().is_ok());
            let form = url::form_urlencoded::parse(escaped.as_bytes()).next();
            let back = form.map(|(key, _)| key.into_owned()).unwrap_or_default();
            prop_assert_eq!(back, text);
        }
    }
}
