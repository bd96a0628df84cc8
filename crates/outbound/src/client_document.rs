//! The document in which a client of OAuth says who it is, at the address that is its ID.
//!
//! Anybody may name an address here, so the guard over callbacks holds: it is judged when it is given and again when it
//! is dialled, and a redirect is not followed. It is fetched anew each time: a person is asked about it, which is rare.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::oauth::ClientIdUrl;
use domain::ports::{ClientDocuments, UnusableDocument};
use http::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Full;
use permits::Permits;
use tokio::time::timeout;

use crate::dial::{DialProblem, DialerOptions};
use crate::exchange::{
    AGENT, BodyEnd, ExchangeError, HttpClient, Span, http_client, read_body, uri_of,
};
use crate::guard::Guard;

/// How long a fetch may take, from the wait for its turn to the last byte.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// So many documents are fetched at once: hosts that hang must not hold more.
pub const MAX_FETCHES: usize = 32;

/// So many of them for one address.
const MAX_OF_ADDRESS: usize = 4;

/// The largest document.
pub const MAX_DOCUMENT_BYTES: usize = 16 * 1024;

/// What a [`DocumentFetch`] works with.
pub struct DocumentOptions {
    /// How it dials.
    pub dialer: DialerOptions,
    /// How long a fetch may take; see [`FETCH_TIMEOUT`].
    pub fetch_timeout: Duration,
    /// How many run at once; see [`MAX_FETCHES`]. An address has a share of them; who has used it up waits.
    pub max_fetches: usize,
}

/// Fetches documents about clients.
pub struct DocumentFetch {
    guard: Guard,
    http: HttpClient,
    fetch_timeout: Duration,
    slots: Arc<Permits<IpAddr>>,
}

/// Why there is no document. Nothing of what was found there is repeated.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("its host may not be called")]
    Forbidden,
    #[error("its host does not answer by HTTPS")]
    Unreachable,
    #[error("its host answered {}; only 200 counts, and redirects are not followed", .0.as_u16())]
    Status(StatusCode),
    #[error("it does not say that it is application/json")]
    NotJson,
    #[error("it has more than 16384 bytes")]
    TooLarge,
    #[error("the connection broke off")]
    BrokenOff,
    #[error("it did not arrive within {}", Span(*.0))]
    TooSlow(Duration),
}

impl DocumentFetch {
    /// Fetches so.
    pub fn new(options: DocumentOptions) -> Self {
        Self {
            guard: options.dialer.guard.clone(),
            // A document is fetched once, so its connection is of no use to the next.
            http: http_client(options.dialer, 0),
            fetch_timeout: options.fetch_timeout,
            slots: Permits::new(options.max_fetches, |_| MAX_OF_ADDRESS),
        }
    }

    async fn fetch_in_turn(&self, asker: IpAddr, id: &ClientIdUrl) -> Result<Vec<u8>, Problem> {
        let _slot = self.slots.acquire(&[asker]).await;
        self.guard
            .check_url(id.as_url())
            .map_err(|_| Problem::Forbidden)?;
        let answer = self.http.request(request_for(id)?).await;
        let response = answer.map_err(|error| explain(&ExchangeError::from_http(&error)))?;
        if response.status() != StatusCode::OK {
            return Err(Problem::Status(response.status()));
        }
        if !is_json(response.headers()) {
            return Err(Problem::NotJson);
        }
        let mut document = Vec::new();
        match read_body(response.into_body(), MAX_DOCUMENT_BYTES, &mut document).await {
            BodyEnd::Whole => Ok(document),
            BodyEnd::Cut => Err(Problem::TooLarge),
            BodyEnd::Broken => Err(Problem::BrokenOff),
        }
    }
}

/// Anybody may ask, so nobody is told why: whether a port is open is not for strangers.
fn explain(error: &ExchangeError) -> Problem {
    match error {
        ExchangeError::Dial(
            DialProblem::Forbidden(_) | DialProblem::NoSource(_) | DialProblem::Source(..),
        ) => Problem::Forbidden,
        _ => Problem::Unreachable,
    }
}

fn request_for(id: &ClientIdUrl) -> Result<Request<Full<Bytes>>, Problem> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = uri_of(id.as_url()).map_err(|_| Problem::Unreachable)?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    Ok(request)
}

/// `application/json`, or a kind of it: `application/client+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = text.split(';').next().unwrap_or("").trim();
    let essence = essence.to_ascii_lowercase();
    let kind = essence.strip_prefix("application/");
    kind.is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}

#[async_trait]
impl ClientDocuments for DocumentFetch {
    async fn fetch(&self, asker: IpAddr, id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        let fetched = timeout(self.fetch_timeout, self.fetch_in_turn(asker, id)).await;
        let fetched = fetched.unwrap_or(Err(Problem::TooSlow(self.fetch_timeout)));
        fetched.map_err(|problem| {
            UnusableDocument(format!(
                "the client's document cannot be fetched from its client_id: {problem}"
            ))
        })
    }
}
