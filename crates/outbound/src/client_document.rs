//! Fetches the metadata document of an OAuth client from the URL that is its ID.
//!
//! Anybody can name a URL here, so the guard applies as for callbacks: the address is checked when it is given and
//! again when it is connected to, and redirects are not followed. The document is fetched each time, because people are
//! rarely asked about a client.

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
use crate::exchange::{AGENT, BodyEnd, ExchangeError, HttpClient, InSeconds, Progress, parse_uri};
use crate::guard::Guard;

/// How long a fetch may take, from the wait for a permit to the last byte.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// How many documents are fetched at once, so that hanging hosts hold no more.
pub const MAX_FETCHES: usize = 32;

/// How many of them for one address.
const MAX_OF_ADDRESS: usize = 4;

pub const MAX_DOCUMENT_BYTES: usize = 16 * 1024;

pub struct DocumentOptions {
    pub dialer: DialerOptions,
    /// How long a fetch may take; see [`FETCH_TIMEOUT`].
    pub fetch_timeout: Duration,
    /// How many fetches run at once; see [`MAX_FETCHES`]. Each address has a share of them and waits when it is used
    /// up.
    pub max_fetches: usize,
}

pub struct DocumentFetch {
    guard: Guard,
    http: HttpClient,
    fetch_timeout: Duration,
    slots: Arc<Permits<IpAddr>>,
}

/// Why there is no document. The texts repeat nothing of the response.
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
    #[error("it did not arrive within {}", InSeconds(*.0))]
    TooSlow(Duration),
}

impl DocumentFetch {
    pub fn new(options: DocumentOptions) -> Self {
        Self {
            guard: options.dialer.guard.clone(),
            // A document is fetched once, so no connection is kept.
            http: HttpClient::new(options.dialer, 0),
            fetch_timeout: options.fetch_timeout,
            slots: Permits::new(options.max_fetches, |_| MAX_OF_ADDRESS),
        }
    }

    async fn fetch_with_permit(&self, asker: IpAddr, id: &ClientIdUrl) -> Result<Vec<u8>, Problem> {
        let _slot = self.slots.acquire(&[asker]).await;
        self.guard
            .check_url(id.as_url())
            .map_err(|_| Problem::Forbidden)?;
        let answer = self
            .http
            .request(request_for(id)?, &mut Progress::default())
            .await;
        let response = answer.map_err(|failed| explain(&failed.error))?;
        if response.head.status != StatusCode::OK {
            return Err(Problem::Status(response.head.status));
        }
        if !is_json(&response.head.headers) {
            return Err(Problem::NotJson);
        }
        let mut document = Vec::new();
        match response.read_body(MAX_DOCUMENT_BYTES, &mut document).await {
            BodyEnd::Whole => Ok(document),
            BodyEnd::Cut => Err(Problem::TooLarge),
            BodyEnd::Broken => Err(Problem::BrokenOff),
        }
    }
}

/// Hides the cause, because anybody may ask, and strangers must not learn which ports are open.
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
    *request.uri_mut() = parse_uri(id.as_url()).map_err(|_| Problem::Unreachable)?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    Ok(request)
}

/// Whether the type is `application/json` or a subtype such as `application/client+json`.
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
        let fetched = timeout(self.fetch_timeout, self.fetch_with_permit(asker, id)).await;
        let fetched = fetched.unwrap_or(Err(Problem::TooSlow(self.fetch_timeout)));
        fetched.map_err(|problem| {
            UnusableDocument(format!(
                "the client's document cannot be fetched from its client_id: {problem}"
            ))
        })
    }
}
