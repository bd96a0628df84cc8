//! The service's own REST API where it runs in another process: for parts of the service that call it on somebody's
//! behalf.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::Full;
use tokio::time::timeout;
use url::Url;

use crate::dial::{DialerOptions, public_roots};
use crate::exchange::{AGENT, BodyEnd, ExchangeError, HttpClient, Span, http_client, read_body};
use crate::guard::Guard;
use crate::resolve::SystemResolver;

/// So much of an answer is read: more than the longest price list.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Connections that are kept for the next request.
const MAX_IDLE: usize = 64;
/// How many names are looked up at once: there is one.
const MAX_LOOKUPS: usize = 4;

/// The way to the API.
pub struct OwnApi {
    http: HttpClient,
    /// Without a slash at its end.
    base: String,
    timeout: Duration,
}

/// Why there is no answer. Whether the API has acted on the request is unknown then.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NoAnswer(#[from] Silence);

#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("no answer within {}", Span(*.0))]
    Late(Duration),
    #[error("the answer was broken off")]
    Cut,
    #[error("the answer is longer than {MAX_ANSWER_BYTES} bytes")]
    Long,
}

impl OwnApi {
    /// The API at this address, which gets so much time for an answer.
    pub fn new(base: &Url, timeout: Duration) -> Self {
        let dialer = DialerOptions {
            guard: Guard::open(),
            resolver: Arc::new(SystemResolver::new(MAX_LOOKUPS)),
            source: Vec::new(),
            tls: public_roots(),
        };
        Self {
            http: http_client(dialer, MAX_IDLE),
            base: base.as_str().trim_end_matches('/').to_owned(),
            timeout,
        }
    }

    /// Sends a request, whose address is a path under the base, and reads the whole answer. It is sent once: whoever
    /// repeats a request must know that it may be repeated.
    pub async fn ask(&self, request: Request<Bytes>) -> Result<Response<Bytes>, NoAnswer> {
        let answered = timeout(self.timeout, self.exchange(request)).await;
        Ok(answered.unwrap_or(Err(Silence::Late(self.timeout)))?)
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Silence> {
        let mut request = request.map(Full::new);
        let address = format!("{}{}", self.base, request.uri());
        *request.uri_mut() = Uri::try_from(address).map_err(|_| ExchangeError::Url)?;
        let agent = HeaderValue::from_static(AGENT);
        request.headers_mut().insert(USER_AGENT, agent);
        let answered = self.http.request(request).await;
        let response = answered.map_err(|error| ExchangeError::from_http(&error))?;
        let (parts, body) = response.into_parts();
        let mut kept = Vec::new();
        match read_body(body, MAX_ANSWER_BYTES, &mut kept).await {
            BodyEnd::Whole => Ok(Response::from_parts(parts, kept.into())),
            BodyEnd::Cut => Err(Silence::Long),
            BodyEnd::Broken => Err(Silence::Cut),
        }
    }
}
