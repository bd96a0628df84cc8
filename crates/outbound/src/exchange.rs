//! Shared parts of all HTTP requests: the client with our own dialer, URLs, response bodies and errors.

mod connections;

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::CallbackUrl;
use http::header::{HOST, HeaderValue};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri, response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use url::Url;

use crate::dial::{DialProblem, Dialer, DialerOptions};
use connections::{HostKey, KeptConnections, OpenConnection, SendError};

/// The `User-Agent`.
pub(crate) const AGENT: &str = concat!("Switchboard/", env!("CARGO_PKG_VERSION"));

/// Sends requests over connections that our dialer opens, and keeps them open for the next request. No redirects,
/// cookies or content encodings, and no proxy but the dialer's.
///
/// The task that sends a request also drives its connection: no other task has to be woken for it.
#[derive(Clone)]
pub(crate) struct HttpClient {
    dialer: Dialer,
    kept: Arc<KeptConnections>,
}

/// A response whose body is not read yet. Dropping it closes the connection.
pub(crate) struct PendingResponse {
    pub(crate) head: response::Parts,
    body: Incoming,
    connection: OpenConnection,
    host: HostKey,
    kept: Arc<KeptConnections>,
}

/// How far a request got. It can be read even if the request was cancelled.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The address of the other side, as soon as it is known.
    pub(crate) address: Option<SocketAddr>,
    /// The other side may have got the request, or an earlier one with the same progress.
    pub(crate) is_sent: bool,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub(crate) error: ExchangeError,
    /// The connection had been kept open, so the other side may have closed it before it got the request.
    pub(crate) was_kept: bool,
}

impl From<RequestError> for ExchangeError {
    fn from(failed: RequestError) -> Self {
        failed.error
    }
}

impl HttpClient {
    /// A client that keeps this many idle connections per host. With 0, each request has its own connection.
    pub(crate) fn new(dialer: DialerOptions, max_idle_per_host: usize) -> Self {
        Self {
            dialer: Dialer::new(dialer),
            kept: KeptConnections::new(max_idle_per_host),
        }
    }

    /// Sends a request with a whole URI.
    pub(crate) async fn request(
        &self,
        mut request: Request<Full<Bytes>>,
        progress: &mut Progress,
    ) -> Result<PendingResponse, RequestError> {
        let uri = std::mem::take(request.uri_mut());
        let host = prepare(&mut request, &uri).ok_or(RequestError::new(ExchangeError::Url))?;
        while let Some(mut connection) = self.kept.take(&host) {
            progress.address = connection.address();
            match send(&mut connection, request, progress).await {
                Ok(response) => return Ok(self.pending(response, connection, host)),
                // It was closed before the request was sent.
                Err((_, Some(unsent))) => request = unsent,
                Err((error, None)) => {
                    return Err(RequestError {
                        error: ExchangeError::from_error(&error),
                        was_kept: true,
                    });
                }
            }
        }
        let opened = self.open(&uri, &mut progress.address).await;
        let mut connection = opened.map_err(RequestError::new)?;
        match send(&mut connection, request, progress).await {
            Ok(response) => Ok(self.pending(response, connection, host)),
            Err((error, _)) => Err(RequestError::new(ExchangeError::from_error(&error))),
        }
    }

    /// Opens a connection and closes it again.
    pub(crate) async fn try_connection(&self, uri: &Uri) -> Result<(), ExchangeError> {
        self.open(uri, &mut None).await.map(drop)
    }

    async fn open(
        &self,
        uri: &Uri,
        address: &mut Option<SocketAddr>,
    ) -> Result<OpenConnection, ExchangeError> {
        let dialled = self.dialer.dial(uri).await;
        let connection = dialled.map_err(|error| {
            *address = error.address;
            ExchangeError::Dial(error.problem)
        })?;
        *address = connection.address();
        let opened = OpenConnection::new(connection).await;
        opened.map_err(|error| ExchangeError::from_error(&error))
    }

    fn pending(
        &self,
        response: Response<Incoming>,
        connection: OpenConnection,
        host: HostKey,
    ) -> PendingResponse {
        let (head, body) = response.into_parts();
        PendingResponse {
            head,
            body,
            connection,
            host,
            kept: self.kept.clone(),
        }
    }
}

/// Sends a request on a connection and records whether the other side may have got it.
async fn send(
    connection: &mut OpenConnection,
    request: Request<Full<Bytes>>,
    progress: &mut Progress,
) -> Result<Response<Incoming>, SendError> {
    let was_sent = std::mem::replace(&mut progress.is_sent, true);
    let sent = connection.send(request).await;
    if let Err((_, Some(_))) = &sent {
        progress.is_sent = was_sent;
    }
    sent
}

impl RequestError {
    fn new(error: ExchangeError) -> Self {
        Self {
            error,
            was_kept: false,
        }
    }
}

impl PendingResponse {
    /// The length of the body, if the head says it; otherwise 0.
    pub(crate) fn announced_length(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// Reads the body until it ends or exceeds `max_bytes`. After a whole body, the connection is kept.
    pub(crate) async fn read_body(mut self, max_bytes: usize, read: &mut Vec<u8>) -> BodyEnd {
        let body = &mut self.body;
        let reading = async {
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else {
                    return BodyEnd::Broken;
                };
                let Some(data) = frame.data_ref() else {
                    continue;
                };
                let room = max_bytes - read.len();
                read.extend_from_slice(&data[..data.len().min(room)]);
                if data.len() > room {
                    return BodyEnd::Cut;
                }
            }
            BodyEnd::Whole
        };
        let end = self.connection.drive(reading).await;
        if end == BodyEnd::Whole && self.connection.is_ready().await {
            self.kept.put(self.host, self.connection);
        }
        end
    }
}

/// Gives the request the form that goes over the wire, and returns the host that it goes to.
fn prepare(request: &mut Request<Full<Bytes>>, uri: &Uri) -> Option<HostKey> {
    let key = HostKey::from_uri(uri)?;
    let host = match uri.port() {
        Some(port) => HeaderValue::try_from(format!("{}:{port}", uri.host()?)),
        None => HeaderValue::from_str(uri.host()?),
    };
    request.headers_mut().insert(HOST, host.ok()?);
    let path = uri.path_and_query().cloned();
    *request.uri_mut() = path.unwrap_or(PathAndQuery::from_static("/")).into();
    Some(key)
}

/// The URL as the URL standard parses it, so that the host that was checked is the one connected to. Only that parser
/// decides what `http:\\2130706433` means.
pub(crate) fn parse_uri(url: &CallbackUrl) -> Result<Uri, ExchangeError> {
    let mut url = Url::parse(url.as_str()).map_err(|_| ExchangeError::Url)?;
    url.set_fragment(None);
    Uri::try_from(String::from(url)).map_err(|_| ExchangeError::Url)
}

/// How reading a response body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// The whole body was read.
    Whole,
    /// The body is longer than the limit.
    Cut,
    Broken,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("the URL cannot be called")]
    Url,
    #[error(transparent)]
    Dial(DialProblem),
    #[error("closed the connection without an answer")]
    Closed,
    #[error("the answer is not HTTP")]
    NotHttp,
    #[error("the head of the answer is too long")]
    LongHead,
    #[error("the connection failed: {0}")]
    Broken(String),
}

impl ExchangeError {
    /// Simplifies an error of a connection.
    fn from_error(error: &hyper::Error) -> Self {
        let error: &(dyn Error + 'static) = error;
        let causes = || std::iter::successors(Some(error), |cause| (*cause).source());
        if causes().any(is_closed) {
            return Self::Closed;
        }
        match causes().find_map(|cause| cause.downcast_ref::<hyper::Error>()) {
            Some(http) if http.is_parse_too_large() => Self::LongHead,
            Some(http) if http.is_parse() => Self::NotHttp,
            _ => Self::Broken(
                causes()
                    .last()
                    .map_or_else(String::new, ToString::to_string),
            ),
        }
    }
}

/// Whether the other side closed the connection.
fn is_closed(cause: &(dyn Error + 'static)) -> bool {
    if let Some(http) = cause.downcast_ref::<hyper::Error>() {
        return http.is_incomplete_message() || http.is_closed() || http.is_canceled();
    }
    let kind = cause.downcast_ref().map(io::Error::kind);
    matches!(
        kind,
        Some(
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        )
    )
}

/// A duration as text, in whole seconds where possible.
pub(crate) struct InSeconds(pub(crate) Duration);

impl fmt::Display for InSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_millis() == 0 {
            write!(f, "{} s", self.0.as_secs())
        } else {
            write!(f, "{} ms", self.0.as_millis())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checked_host_is_the_one_that_is_dialled() {
        for (url, uri) in [
            ("http://example.com", "http://example.com/"),
            ("HTTP://EXAMPLE.com:80/a?b=c#d", "http://example.com/a?b=c"),
            ("http:\\\\2130706433\\x", "http://127.0.0.1/x"),
            ("http://0x7f.1:8080/x", "http://127.0.0.1:8080/x"),
            ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
            (
                "https://bücher.example/ü",
                "https://xn--bcher-kva.example/%C3%BC",
            ),
            (
                "http://a.example/?q={\"x\":'<|>'}",
                "http://a.example/?q={%22x%22:%27%3C|%3E%27}",
            ),
        ] {
            let url = CallbackUrl::parse(url).expect("a URL");
            let got = parse_uri(&url).map(|uri| uri.to_string());
            assert_eq!(got.ok().as_deref(), Some(uri), "{url:?}");
        }
    }

    proptest! {
        #[test]
        fn every_callback_url_can_be_requested(value in "https?://[a-z0-9.]{1,9}(:[0-9]{1,4})?/\\PC{0,40}") {
            if let Ok(url) = CallbackUrl::parse(&value) {
                prop_assert!(parse_uri(&url).is_ok(), "{}", value);
            }
        }
    }
}
