//! Checks a request before `rmcp` handles it, and sets the status of the answer afterwards.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::{AccountId, Permission};
use engine::identity::gate::Refusal;
use engine::identity::rate::Requester;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, Full};
use requests::body::{check_content_type, read_body_within};
use requests::{Problem, RefusalNote, RequestNotes, TooManyRequests, client_address, rate_limit};
use serde_json::Value;

use super::Mcp;
use super::api::{Bearer, TRACEPARENT};
use super::envelope::{Envelope, ErrorCode};
use super::message::{self, Malformed, Message};
use super::metadata::Challenge;

/// The scheme of the header `Authorization`.
const SCHEME: &str = "bearer";
/// `rmcp` requires both, but answers with one JSON text.
const BOTH_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The name of an argument that the call has twice.
#[derive(Clone)]
pub(super) struct DoubledArgument(pub(super) String);

/// What a tool call leaves for the answer. A request is one tool call, so each is set once.
#[derive(Clone, Default)]
pub(super) struct Verdict(Arc<CallNotes>);

#[derive(Default)]
struct CallNotes {
    /// A refusal by REST that must become the status of the answer.
    refused: OnceLock<Refused>,
    /// An error that is the result of the call.
    error: OnceLock<RefusalNote>,
}

/// Why REST refused the token.
pub(super) enum Refused {
    Token(Envelope),
    Scope(Permission, Envelope),
}

impl Verdict {
    pub(super) fn pass(&self, refused: Refused) {
        self.0.refused.get_or_init(|| refused);
    }

    pub(super) fn note(&self, error: RefusalNote) {
        self.0.error.get_or_init(|| error);
    }
}

pub(super) async fn answer(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    mcp.answer(request).await.unwrap_or_else(|refusal| *refusal)
}

impl Mcp {
    async fn answer(&self, request: Request) -> Result<Response, Box<Response>> {
        let forbidden = |message: String| {
            Box::new(
                Envelope::new(ErrorCode::Forbidden, message).into_response(StatusCode::FORBIDDEN),
            )
        };
        self.allowed_hosts
            .check(request.headers())
            .map_err(|not_allowed| forbidden(not_allowed.to_string()))?;
        let (parts, body) = request.into_parts();
        let mut bearer = self.find_bearer(&parts)?;
        let refused = match self.admit(&parts, &bearer).await? {
            Ok(account) => {
                bearer.account = Some(account);
                None
            }
            Err(refused) => Some(refused),
        };
        let message = self.read(&parts.headers, body).await?;
        // For a tool call, REST itself refuses the request with the same message.
        if let Some(refused) = refused.filter(|_| message.method != "tools/call") {
            return Err(forbidden(refused));
        }
        Ok(self.pass_on(&parts, bearer, message).await)
    }

    fn find_bearer(&self, parts: &Parts) -> Result<Bearer, Box<Response>> {
        let address = client_address(parts, &self.settings.trusted_proxies);
        let mut given = parts.headers.get_all(AUTHORIZATION).iter();
        match (given.next().and_then(read_token), given.next()) {
            (Some(token), None) => Ok(Bearer {
                token,
                address,
                account: None,
                trace: parts.headers.get(TRACEPARENT).cloned(),
            }),
            _ => Err(self.refuse(self.engine.gate.refuse_missing(address)).into()),
        }
    }

    /// Checks the token and returns its account, or a message for a valid token whose account is suspended or whose
    /// address is not allowed.
    async fn admit(
        &self,
        parts: &Parts,
        bearer: &Bearer,
    ) -> Result<Result<AccountId, String>, Box<Response>> {
        let token = bearer.token.to_str().unwrap_or("");
        let (gate, log) = (&self.engine.gate, &self.engine.request_log);
        let admitted = gate.admit(Some(token), bearer.address, &[]).await;
        let known = match &admitted {
            Ok(access) => Some(access.clone()),
            Err(_) => gate.find_cached(token),
        };
        if let Some(access) = known {
            RequestNotes::set_caller(&parts.extensions, log, &access);
        }
        match admitted {
            Ok(access) => {
                let counted = rate_limit::count(
                    gate,
                    &parts.extensions,
                    access.account,
                    Requester::Programs,
                    access.requests_per_second,
                );
                counted.map(|()| Ok(access.account)).map_err(|error| {
                    let envelope = Envelope::new(ErrorCode::RateLimited, error.message());
                    envelope
                        .into_throttled(TooManyRequests::RETRY_AFTER_S)
                        .into()
                })
            }
            Err(refusal @ (Refusal::Suspended | Refusal::Address(_))) => {
                Ok(Err(Problem::from(refusal).into_message()))
            }
            Err(refusal) => Err(self.refuse(refusal).into()),
        }
    }

    fn refuse(&self, refusal: Refusal) -> Response {
        let (challenge, message) = match refusal {
            Refusal::Missing => (
                Challenge::Missing,
                "No access token was given; send the header 'Authorization: Bearer TOKEN' with an API token, or connect by OAuth.".to_owned(),
            ),
            Refusal::Throttled { retry_after_s } => {
                let message = "Too many requests without a valid token came from this address; try again later.";
                let envelope = Envelope::new(ErrorCode::RateLimited, message);
                return envelope.into_throttled(retry_after_s);
            }
            Refusal::Unknown | Refusal::Expired => {
                (Challenge::Invalid, Problem::from(refusal).into_message())
            }
            other => {
                let problem = Problem::from(other);
                let status = problem.status();
                let code = ErrorCode::from_status(status);
                return Envelope::new(code, problem.into_message()).into_response(status);
            }
        };
        self.unauthorized(Envelope::new(ErrorCode::AuthRequired, message), &challenge)
    }

    fn unauthorized(&self, envelope: Envelope, challenge: &Challenge) -> Response {
        let challenge = self.metadata.challenge(challenge);
        envelope.into_unauthorized(challenge, &self.settings.pages)
    }

    async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Message, Box<Response>> {
        let malformed = |problem: Problem| {
            let malformed = Malformed::request(None, problem.into_message());
            Box::new(malformed.into_response())
        };
        check_content_type(headers).map_err(malformed)?;
        let (bytes, time) = (self.settings.body_bytes, self.settings.body_time);
        let body = read_body_within(headers, body, bytes, time)
            .await
            .map_err(|error| malformed(error.into()))?;
        message::read(headers, body).map_err(|malformed| Box::new(malformed.into_response()))
    }

    /// Lets `rmcp` answer. It gets only what it needs, and not the token, which it might log.
    async fn pass_on(&self, parts: &Parts, bearer: Bearer, message: Message) -> Response {
        let verdict = Verdict::default();
        let mut request = http::Request::new(Full::new(message.body));
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = parts.uri.clone();
        let headers = request.headers_mut();
        let own = parts.headers.iter();
        for (name, value) in own.filter(|(name, _)| name.as_str().starts_with("mcp-")) {
            headers.append(name, value.clone());
        }
        headers.insert(ACCEPT, BOTH_TYPES);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        request.extensions_mut().insert(bearer);
        if let Some(name) = message.doubled {
            request.extensions_mut().insert(DoubledArgument(name));
        }
        request.extensions_mut().insert(verdict.clone());
        let response = self.protocol.handle(request).await;
        let mut answer = match verdict.0.refused.get() {
            Some(Refused::Token(envelope)) => {
                self.unauthorized(envelope.clone(), &Challenge::Invalid)
            }
            Some(Refused::Scope(needed, envelope)) => {
                let challenge = self.metadata.challenge(&Challenge::Scope(*needed));
                envelope.clone().into_insufficient(challenge)
            }
            None => in_json(response.map(Body::new), message.id).await,
        };
        if let Some(error) = verdict.0.error.get() {
            answer.extensions_mut().insert(error.clone());
        }
        answer
    }
}

/// Reads `Bearer TOKEN`. The value is marked as sensitive, so that it is not logged.
fn read_token(value: &HeaderValue) -> Option<HeaderValue> {
    let bytes = value.as_bytes();
    let (scheme, token) = bytes.split_at_checked(SCHEME.len())?;
    let token = token.trim_ascii();
    if !scheme.eq_ignore_ascii_case(SCHEME.as_bytes())
        || token.is_empty()
        || !bytes[SCHEME.len()].is_ascii_whitespace()
    {
        return None;
    }
    let mut token = HeaderValue::from_bytes(token).ok()?;
    token.set_sensitive(true);
    Some(token)
}

/// `rmcp` refuses some requests in plain text; this makes a JSON-RPC error of it.
async fn in_json(response: Response, id: Option<Value>) -> Response {
    let status = response.status();
    let is_json =
        response.headers().get(CONTENT_TYPE) == Some(&HeaderValue::from_static("application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let body = response.into_body().collect().await;
    let body = body.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
    let message = String::from_utf8_lossy(&body).into_owned();
    Malformed::from_protocol(id, status, message).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_follows_its_scheme() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("BEARER\tabc", Some("abc")),
            ("Bearer a b", Some("a b")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Bearerabc", None),
            ("Basic abc", None),
            ("abc", None),
            ("", None),
        ] {
            let read = read_token(&HeaderValue::from_static(value));
            let read = read.as_ref().map(|token| token.to_str().expect("text"));
            assert_eq!(read, token, "{value:?}");
        }
        let read = read_token(&HeaderValue::from_static("Bearer abc"));
        assert_eq!(format!("{read:?}"), "Some(Sensitive)");
    }
}
