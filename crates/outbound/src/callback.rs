//! Delivers callbacks over HTTP: one attempt and its result.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::delivery::{Callback, CallbackAttempt, CallbackKind, Delivery};
use domain::ports::{CallbackSender, SignedPost};
use domain::{CallbackUrl, TraceContext};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Full;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::dial::DialerOptions;
use crate::exchange::{
    AGENT, BodyEnd, ExchangeError, HttpClient, PendingResponse, Progress, RequestError, parse_uri,
};
use crate::signature::sign;

mod failure;

use failure::Failure;

/// How long one attempt may take, from the name lookup to the last byte of the response.
pub const TRY_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a response body is read and stored.
pub const MAX_BODY_BYTES: usize = 1024;

/// Idle connections kept per receiver. As many as attempts may run at once, because busy receivers would otherwise be
/// connected to again and again.
const MAX_IDLE_CONNECTIONS: usize = 256;

static WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
static WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
static WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Which responses acknowledge a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acknowledgement {
    /// Status 200 and the body `OK`, ignoring surrounding white space.
    OkBody,
    /// Any status from 200 to 299.
    Any2xx,
}

impl Acknowledgement {
    const fn for_kind(kind: CallbackKind) -> Self {
        match kind {
            CallbackKind::Report | CallbackKind::Lookup | CallbackKind::Inbound => Self::OkBody,
            CallbackKind::Sender => Self::Any2xx,
        }
    }
}

pub struct CallbackOptions {
    pub dialer: DialerOptions,
    /// How long an attempt may take; see [`TRY_TIMEOUT`].
    pub try_timeout: Duration,
}

/// Delivers callbacks. Clones share their connections.
#[derive(Clone)]
pub struct CallbackClient {
    http: HttpClient,
    try_timeout: Duration,
}

struct CallbackRequest<'a> {
    url: &'a CallbackUrl,
    /// The ID in the header.
    id: String,
    payload: &'a str,
    success: Acknowledgement,
    secrets: &'a [&'a str],
    now: Timestamp,
    trace: Option<TraceContext>,
}

/// What is known about an attempt, even if it is cancelled.
#[derive(Default)]
struct Trace {
    progress: Progress,
    status: Option<StatusCode>,
    body: Vec<u8>,
}

impl CallbackClient {
    pub fn new(options: CallbackOptions) -> Self {
        Self {
            http: HttpClient::new(options.dialer, MAX_IDLE_CONNECTIONS),
            try_timeout: options.try_timeout,
        }
    }

    /// Makes one attempt to deliver a callback, signed with each of the account's secrets. `now` is the time in the
    /// signature and the log.
    pub async fn deliver(&self, callback: &Callback, secrets: &[&str], now: Timestamp) -> Delivery {
        let started = Instant::now();
        let mut trace = Trace::default();
        let delivery = CallbackRequest {
            url: &callback.url,
            id: callback.id.to_string(),
            payload: &callback.payload,
            success: Acknowledgement::for_kind(callback.kind),
            secrets,
            now,
            trace: callback.attempt_trace(),
        };
        let deadline = started + self.try_timeout;
        let result = self.exchange(&delivery, deadline, &mut trace).await;
        let received = result.is_ok();
        let reason = result.map_or_else(|failure| failure.to_string(), |()| "received".to_owned());
        Delivery {
            received,
            attempt: CallbackAttempt {
                at: now,
                status: trace.status.map(|status| status.as_u16()),
                elapsed_ms: u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX),
                address: trace.progress.address.map(|address| address.to_string()),
                body: trace.body,
                reason,
            },
        }
    }

    /// Makes one attempt to send a notification. The error says why it failed, without the URL.
    pub(crate) async fn post(&self, post: &SignedPost<'_>, now: Timestamp) -> Result<(), String> {
        let delivery = CallbackRequest {
            url: post.url,
            id: post.id.to_owned(),
            payload: post.body,
            success: Acknowledgement::Any2xx,
            secrets: post.secrets,
            now,
            trace: None,
        };
        let deadline = Instant::now() + self.try_timeout;
        let mut trace = Trace::default();
        let result = self.exchange(&delivery, deadline, &mut trace);
        result.await.map_err(|failure| failure.to_string())
    }

    async fn exchange(
        &self,
        delivery: &CallbackRequest<'_>,
        deadline: Instant,
        trace: &mut Trace,
    ) -> Result<(), Failure> {
        let asked = timeout_at(deadline, self.ask(delivery, &mut trace.progress)).await;
        let response = asked.unwrap_or(Err(Failure::NoAnswer(self.try_timeout)))?;
        let status = response.head.status;
        trace.status = Some(status);
        let reading = response.read_body(MAX_BODY_BYTES, &mut trace.body);
        let end = timeout_at(deadline, reading).await.ok();
        self.judge(delivery.success, status, end, &trace.body)
    }

    /// Sends the request, and once more if a kept connection turns out to be closed.
    ///
    /// The receiver may then get it twice, which can always happen: the ID in the header tells duplicates apart.
    async fn ask(
        &self,
        delivery: &CallbackRequest<'_>,
        progress: &mut Progress,
    ) -> Result<PendingResponse, Failure> {
        match self.http.request(delivery.request()?, progress).await {
            Err(RequestError {
                error: ExchangeError::Closed,
                was_kept: true,
            }) => {
                let asked = self.http.request(delivery.request()?, progress).await;
                asked.map_err(|failed| failed.error.into())
            }
            asked => asked.map_err(|failed| failed.error.into()),
        }
    }

    /// Whether the response acknowledges the callback; `end` is `None` if the body did not end in time.
    fn judge(
        &self,
        success: Acknowledgement,
        status: StatusCode,
        end: Option<BodyEnd>,
        body: &[u8],
    ) -> Result<(), Failure> {
        if success == Acknowledgement::Any2xx && status.is_success() {
            return Ok(());
        }
        if status != StatusCode::OK {
            return Err(Failure::Status(status, success));
        }
        match end {
            Some(BodyEnd::Whole) if body.trim_ascii() == b"OK" => Ok(()),
            Some(BodyEnd::Whole) => Err(Failure::body(body)),
            Some(BodyEnd::Cut) => Err(Failure::LongBody),
            Some(BodyEnd::Broken) => Err(Failure::BrokenBody),
            None => Err(Failure::EndlessBody(self.try_timeout)),
        }
    }
}

impl CallbackRequest<'_> {
    fn request(&self) -> Result<Request<Full<Bytes>>, Failure> {
        let body = Bytes::copy_from_slice(self.payload.as_bytes());
        let timestamp = self.now.as_second().to_string();
        let signature = sign(self.secrets, &self.id, &timestamp, &body)?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = parse_uri(self.url)?;
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(&WEBHOOK_ID, header_value(self.id.clone()));
        headers.insert(&WEBHOOK_TIMESTAMP, header_value(timestamp));
        headers.insert(&WEBHOOK_SIGNATURE, header_value(signature));
        if let Some(trace) = self.trace {
            headers.insert(&TRACEPARENT, header_value(trace.to_string()));
        }
        *request.headers_mut() = headers;
        Ok(request)
    }
}

fn header_value(text: String) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(text))
        .expect("digits, dashes and Base64 are fit for a header")
}

#[async_trait]
impl CallbackSender for CallbackClient {
    async fn deliver(&self, callback: &Callback, secrets: &[&str], now: Timestamp) -> Delivery {
        self.deliver(callback, secrets, now).await
    }
}
