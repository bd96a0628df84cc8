//! Sends requests to the provider.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use http::{Request, Uri};
use http_body_util::Full;
use tokio::time::timeout;

use super::fields::Fields;
use super::response::Answer;
use super::settings::HttpSettings;
use crate::dial::DialerOptions;
use crate::exchange::{BodyEnd, ExchangeError, HttpClient, InSeconds, Progress};
use crate::guard::Guard;
use crate::resolve::SystemResolver;

/// The maximum size of an answer.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// The limit of concurrent name lookups. There is only one name.
const MAX_LOOKUPS: usize = 4;
/// The longest pause to accept from a provider, so that a mistake there does not stop sending for days.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Keeps as many idle connections as messages may be in flight.
pub(super) struct ProviderClient {
    http: HttpClient,
    timeout: Duration,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// The provider did not get the request.
    #[error("the provider cannot be reached: {0}")]
    NotSent(ExchangeError),
    #[error("the provider cannot be reached: no connection within {}", InSeconds(*.0))]
    NotConnected(Duration),
    /// The provider may have acted on the request.
    #[error("the provider does not answer: {0}")]
    Exchange(ExchangeError),
    #[error("the provider did not answer within {}", InSeconds(*.0))]
    Late(Duration),
    #[error("the provider broke its answer off")]
    Cut,
}

impl NoAnswer {
    /// Whether the provider may have acted on the request.
    pub(super) const fn is_unknown(&self) -> bool {
        !matches!(self, Self::NotSent(_) | Self::NotConnected(_))
    }
}

impl ProviderClient {
    pub(super) fn new(settings: &HttpSettings) -> Self {
        let dialer = DialerOptions {
            guard: Guard::open(),
            resolver: Arc::new(SystemResolver::new(MAX_LOOKUPS)),
            source: settings.source.into_iter().collect(),
            tls: settings.tls.clone(),
            proxy: settings.proxy.clone(),
        };
        Self {
            http: HttpClient::new(dialer, settings.window),
            timeout: settings.timeout,
        }
    }

    /// Connects without sending anything. The error says why it failed.
    pub(super) async fn connect(&self, uri: &Uri) -> Result<(), String> {
        let failed = |why: &dyn std::fmt::Display| format!("the provider cannot be reached: {why}");
        match timeout(self.timeout, self.http.try_connection(uri)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(failed(&"no connection in time")),
        }
    }

    /// Sends a request once: whether it may be repeated is not known here. A connection that was closed before anything
    /// was sent is replaced.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Answer, NoAnswer> {
        let mut progress = Progress::default();
        let exchange = async {
            let response = self.http.request(request, &mut progress).await;
            let response = response.map_err(|failed| NoAnswer::Exchange(failed.error))?;
            let head = &response.head;
            let (status, retry_after) = (head.status, retry_after(&head.headers));
            let kind = head.headers.get(CONTENT_TYPE).cloned();
            let mut body = Vec::new();
            let fields = match response.read_body(MAX_ANSWER_BYTES, &mut body).await {
                BodyEnd::Whole => {
                    let kind = kind.as_ref().and_then(|kind| kind.to_str().ok());
                    Fields::read(kind, &body)
                }
                // The status says enough.
                BodyEnd::Cut => {
                    body.clear();
                    None
                }
                BodyEnd::Broken => return Err(NoAnswer::Cut),
            };
            Ok(Answer {
                status,
                retry_after,
                fields,
                body,
            })
        };
        let answered = timeout(self.timeout, exchange).await;
        match answered.unwrap_or(Err(NoAnswer::Late(self.timeout))) {
            Err(NoAnswer::Exchange(error)) if !progress.is_sent => Err(NoAnswer::NotSent(error)),
            Err(NoAnswer::Late(limit)) if !progress.is_sent => Err(NoAnswer::NotConnected(limit)),
            answered => answered,
        }
    }
}

/// In seconds; a date is ignored, because it would need synchronised clocks.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    Some(Duration::from_secs(seconds.ok()?).min(LONGEST_PAUSE))
}
