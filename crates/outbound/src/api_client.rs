//! Calls HTTP APIs that the configuration names: the service's own when it runs in another process, or a collector of
//! traces.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::Full;
use tokio::time::timeout;
use url::Url;

use crate::dial::{DialerOptions, public_roots};
use crate::exchange::{AGENT, BodyEnd, ExchangeError, HttpClient, InSeconds, Progress};
use crate::guard::Guard;
use crate::resolve::SystemResolver;

/// The maximum size of a response: more than the longest price list.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Idle connections that are kept.
const MAX_IDLE: usize = 64;
/// The limit of concurrent name lookups. There is only one name.
const MAX_LOOKUPS: usize = 4;

pub struct ApiClient {
    http: HttpClient,
    /// Without a trailing slash.
    base: String,
    timeout: Duration,
}

/// Why there is no response. Whether the API has acted on the request is unknown.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NoAnswer(#[from] Cause);

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("no answer within {}", InSeconds(*.0))]
    Late(Duration),
    #[error("the answer was broken off")]
    Cut,
    #[error("the answer is longer than {MAX_ANSWER_BYTES} bytes")]
    Long,
}

impl ApiClient {
    pub fn new(base: &Url, timeout: Duration) -> Self {
        let dialer = DialerOptions {
            guard: Guard::open(),
            resolver: Arc::new(SystemResolver::new(MAX_LOOKUPS)),
            source: Vec::new(),
            tls: public_roots(),
            proxy: None,
        };
        Self {
            http: HttpClient::new(dialer, MAX_IDLE),
            base: base.as_str().trim_end_matches('/').to_owned(),
            timeout,
        }
    }

    /// Sends a request with a path below the base URL, and reads the whole response. It is sent once: only the caller
    /// knows whether it may be repeated.
    pub async fn ask(&self, request: Request<Bytes>) -> Result<Response<Bytes>, NoAnswer> {
        let answered = timeout(self.timeout, self.exchange(request)).await;
        Ok(answered.unwrap_or(Err(Cause::Late(self.timeout)))?)
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cause> {
        let mut request = request.map(Full::new);
        let address = format!("{}{}", self.base, request.uri());
        *request.uri_mut() = Uri::try_from(address).map_err(|_| ExchangeError::Url)?;
        let agent = HeaderValue::from_static(AGENT);
        request.headers_mut().insert(USER_AGENT, agent);
        let answered = self.http.request(request, &mut Progress::default()).await;
        let response = answered.map_err(ExchangeError::from)?;
        let head = response.head.clone();
        let mut body = Vec::new();
        match response.read_body(MAX_ANSWER_BYTES, &mut body).await {
            BodyEnd::Whole => Ok(Response::from_parts(head, body.into())),
            BodyEnd::Cut => Err(Cause::Long),
            BodyEnd::Broken => Err(Cause::Cut),
        }
    }
}
