//! Sends requests to the upstream.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use tokio::time::timeout;

use super::UpstreamSettings;
use super::request::MessageRequest;
use crate::dial::{DialerOptions, public_roots};
use crate::exchange::{
    AGENT, BodyEnd, ExchangeError, HttpClient, InSeconds, PendingResponse, Progress, RequestError,
};
use crate::guard::Guard;
use crate::resolve::SystemResolver;

/// The maximum size of a response body.
const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// The limit of concurrent name lookups. There is only one name.
const MAX_LOOKUPS: usize = 4;
/// How many kept connections may turn out to be closed before a request fails.
const MAX_CLOSED: usize = 3;
/// The longest pause to accept from the upstream, so that a mistake there does not stop sending for days.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

static JSON: HeaderValue = HeaderValue::from_static("application/json");
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Keeps as many idle connections as messages may be in flight.
pub(super) struct UpstreamClient {
    http: HttpClient,
    /// Without a trailing slash.
    base: String,
    header: HeaderName,
    token: HeaderValue,
    timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    /// The pause that the upstream asks for.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoResponse {
    /// The upstream did not get the request.
    #[error("the upstream cannot be reached: {0}")]
    NotSent(ExchangeError),
    #[error("the upstream cannot be reached: no connection within {}", InSeconds(*.0))]
    NotConnected(Duration),
    /// The upstream may have acted on the request.
    #[error("the upstream does not answer: {0}")]
    Exchange(ExchangeError),
    #[error("the upstream did not answer within {}", InSeconds(*.0))]
    Late(Duration),
    #[error("the upstream broke its answer off")]
    Cut,
    #[error("the upstream's answer is longer than {MAX_ANSWER_BYTES} bytes")]
    Long,
}

impl NoResponse {
    /// Whether the upstream may have acted on the request.
    pub(super) const fn is_unknown(&self) -> bool {
        !matches!(self, Self::NotSent(_) | Self::NotConnected(_))
    }
}

impl UpstreamClient {
    pub(super) fn new(settings: &UpstreamSettings) -> Self {
        let mut base = settings.url.clone();
        base.set_query(None);
        base.set_fragment(None);
        // An invalid token is sent as an empty one, and the upstream will report that it is missing.
        let token = HeaderValue::from_str(&settings.token);
        let mut token = token.unwrap_or_else(|_| HeaderValue::from_static(""));
        token.set_sensitive(true);
        let dialer = DialerOptions {
            guard: Guard::open(),
            resolver: std::sync::Arc::new(SystemResolver::new(MAX_LOOKUPS)),
            source: Vec::new(),
            tls: public_roots(),
            proxy: None,
        };
        Self {
            http: HttpClient::new(dialer, settings.window),
            base: base.as_str().trim_end_matches('/').to_owned(),
            header: settings.header.clone(),
            token,
            timeout: settings.timeout,
        }
    }

    /// Sends a message.
    pub(super) async fn post(&self, request: MessageRequest) -> Result<Reply, NoResponse> {
        let body = Bytes::from(request.body);
        let key = HeaderValue::try_from(request.key);
        let key = key.map_err(|_| NoResponse::NotSent(ExchangeError::Url))?;
        let uri = self.uri(request.path)?;
        let request = || {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = uri.clone();
            let headers = request.headers_mut();
            self.introduce(headers);
            headers.insert(CONTENT_TYPE, JSON.clone());
            headers.insert(&IDEMPOTENCY_KEY, key.clone());
            request
        };
        self.exchange(request).await
    }

    pub(super) async fn get(&self, path: &str) -> Result<Reply, NoResponse> {
        let uri = self.uri(path)?;
        let request = || {
            let mut request = Request::new(Full::default());
            *request.uri_mut() = uri.clone();
            self.introduce(request.headers_mut());
            request
        };
        self.exchange(request).await
    }

    fn uri(&self, path: &str) -> Result<Uri, NoResponse> {
        let uri = Uri::try_from(format!("{}/{path}", self.base));
        uri.map_err(|_| NoResponse::NotSent(ExchangeError::Url))
    }

    fn introduce(&self, headers: &mut HeaderMap) {
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, JSON.clone());
        headers.insert(&self.header, self.token.clone());
    }

    async fn exchange(
        &self,
        request: impl Fn() -> Request<Full<Bytes>>,
    ) -> Result<Reply, NoResponse> {
        let mut progress = Progress::default();
        let exchange = async {
            let response = self.ask(request, &mut progress).await;
            let response = response.map_err(NoResponse::Exchange)?;
            let status = response.head.status;
            let retry_after = retry_after(&response.head.headers);
            let mut body = Vec::new();
            match response.read_body(MAX_ANSWER_BYTES, &mut body).await {
                BodyEnd::Whole => Ok(Reply {
                    status,
                    retry_after,
                    body,
                }),
                BodyEnd::Cut => Err(NoResponse::Long),
                BodyEnd::Broken => Err(NoResponse::Cut),
            }
        };
        let answered = timeout(self.timeout, exchange).await;
        match answered.unwrap_or(Err(NoResponse::Late(self.timeout))) {
            Err(NoResponse::Exchange(error)) if !progress.is_sent => {
                Err(NoResponse::NotSent(error))
            }
            Err(NoResponse::Late(limit)) if !progress.is_sent => {
                Err(NoResponse::NotConnected(limit))
            }
            answered => answered,
        }
    }

    /// Sends the request, and again if a kept connection turns out to be closed, which the idempotency key makes safe.
    /// Other kept connections may have been closed as well.
    async fn ask(
        &self,
        request: impl Fn() -> Request<Full<Bytes>>,
        progress: &mut Progress,
    ) -> Result<PendingResponse, ExchangeError> {
        for _ in 0..MAX_CLOSED {
            match self.http.request(request(), progress).await {
                Err(RequestError {
                    error: ExchangeError::Closed,
                    was_kept: true,
                }) => {}
                asked => return asked.map_err(ExchangeError::from),
            }
        }
        let asked = self.http.request(request(), progress).await;
        asked.map_err(ExchangeError::from)
    }
}

/// In seconds; a date is ignored, because it would need synchronised clocks.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    Some(Duration::from_secs(seconds.ok()?).min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_in_seconds_and_bounded() {
        for (value, seconds) in [
            ("7", Some(7)),
            (" 7 ", Some(7)),
            ("0", Some(0)),
            ("86400", Some(300)),
            ("-1", None),
            ("soon", None),
            ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
            let pause = retry_after(&headers);
            assert_eq!(pause, seconds.map(Duration::from_secs), "{value:?}");
        }
    }
}
