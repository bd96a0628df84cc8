//! Shared parts of all HTTP requests: the client with our own dialer, URLs, response bodies and errors.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use domain::CallbackUrl;
use http::Uri;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use url::Url;

use crate::dial::{DialError, DialProblem, Dialer, DialerOptions};

/// How long an idle connection is kept. Many servers close after five seconds, and closing first avoids a race.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The maximum size of a response head.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The `User-Agent`.
pub(crate) const AGENT: &str = concat!("Switchboard/", env!("CARGO_PKG_VERSION"));

/// Sends requests over connections that our dialer opens. No redirects, proxies, cookies or content encodings.
pub(crate) type HttpClient = Client<Dialer, Full<Bytes>>;

/// A client that keeps this many idle connections per host. With 0, each request has its own connection.
pub(crate) fn http_client(dialer: DialerOptions, max_idle_per_host: usize) -> HttpClient {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(max_idle_per_host)
        .http1_max_buf_size(MAX_HEAD_BYTES)
        // Requests are short, so head and body are sent together.
        .http1_writev(false)
        .build(Dialer::new(dialer))
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

/// Reads a body until it ends or exceeds `max_bytes`.
pub(crate) async fn read_body(mut body: Incoming, max_bytes: usize, kept: &mut Vec<u8>) -> BodyEnd {
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return BodyEnd::Broken;
        };
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let room = max_bytes - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return BodyEnd::Cut;
        }
    }
    BodyEnd::Whole
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
    /// Simplifies an error of the HTTP client.
    pub(crate) fn from_http(error: &hyper_util::client::legacy::Error) -> Self {
        let causes = || std::iter::successors(error.source(), |cause| (*cause).source());
        if let Some(dial) = causes().find_map(|cause| cause.downcast_ref::<DialError>()) {
            return Self::Dial(dial.problem.clone());
        }
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
