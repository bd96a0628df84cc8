//! Handles every request before and after its route: load, time limits, request ID, metrics and headers.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::{IntoResponse, Response};
use domain::kill_point::{KillPoint, pass};
use futures_util::FutureExt;
use http::header::{CACHE_CONTROL, CONNECTION};
use http::{HeaderName, HeaderValue, Request, Uri};
use hyper::body::Incoming;
use metrics::{Counter, Histogram};
use requests::{Peer, Problem, RequestNotes, rate_limit};
use tokio::sync::watch;
use tower::ServiceExt;

use super::Limits;
use super::security::{Transport, secure};
use super::unread::{RequestBody, track};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// At most this many headers are added to an answer.
const ADDED_HEADERS: usize = 12;
/// A longer request ID of the caller is replaced.
const MAX_REQUEST_ID_BYTES: usize = 64;

pub(super) struct Handler {
    router: Router,
    in_flight: AtomicUsize,
    max_in_flight: usize,
    request_time: Duration,
    next_id: AtomicU64,
    metrics: RequestMetrics,
    transport: Transport,
    leaving: watch::Receiver<bool>,
}

/// Metrics, looked up once instead of for each request.
struct RequestMetrics {
    by_class: [Counter; 5],
    shed: Counter,
    seconds: Histogram,
}

impl Handler {
    pub(super) fn new(
        router: Router,
        limits: &Limits,
        is_tls: bool,
        leaving: watch::Receiver<bool>,
    ) -> Self {
        let class = |name: &'static str| metrics::counter!("switchboard_http_requests_total", "status" => name);
        let mut start = [0; 8];
        getrandom::fill(&mut start).expect("the operating system gives random bytes");
        Self {
            router,
            in_flight: AtomicUsize::new(0),
            max_in_flight: limits.in_flight,
            request_time: limits.request_time,
            next_id: AtomicU64::new(u64::from_le_bytes(start)),
            metrics: RequestMetrics {
                by_class: ["1xx", "2xx", "3xx", "4xx", "5xx"].map(class),
                shed: metrics::counter!("switchboard_http_requests_shed_total"),
                seconds: metrics::histogram!("switchboard_http_request_seconds"),
            },
            transport: Transport {
                is_tls,
                trusted_proxies: limits.trusted_proxies.clone(),
            },
            leaving,
        }
    }

    pub(super) async fn answer(&self, mut request: Request<Incoming>, peer: IpAddr) -> Response {
        pass(KillPoint::RequestCame);
        let started = Instant::now();
        let id = self.request_id(&request);
        drop_trailing_slash(request.uri_mut());
        request.extensions_mut().insert(Peer(peer));
        let notes = RequestNotes::default();
        request.extensions_mut().insert(notes.clone());
        let is_https = self.transport.is_https(peer, request.headers());
        let method = request.method().clone();
        let (request, unread) = track(request);
        let mut response = self.route(request).await;
        notes.log_refusal(&method, &response);
        let headers = response.headers_mut();
        headers.reserve(ADDED_HEADERS);
        headers.entry(CACHE_CONTROL).or_insert(NO_CACHE);
        headers.insert(REQUEST_ID, id);
        rate_limit::write(&notes, headers);
        secure(headers, is_https);
        self.count(&response, started.elapsed());
        tracing::debug!(
            target: "access",
            %method,
            status = response.status().as_u16(),
            request_id = response.headers()[REQUEST_ID].to_str().unwrap_or(""),
            elapsed_us = started.elapsed().as_micros(),
            "answered"
        );
        let ends = match unread {
            Some(unread) => !unread.discard().await,
            None => false,
        };
        if ends || *self.leaving.borrow() {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        pass(KillPoint::AnswerMade);
        response
    }

    async fn route(&self, request: Request<RequestBody>) -> Response {
        // Health checks must work while the service is overloaded.
        let about_health = request.uri().path().starts_with("/health/");
        let permit = InFlight::acquire(self);
        if permit.is_none() && !about_health {
            self.metrics.shed.increment(1);
            return Problem::unavailable("The service is overloaded; try again shortly.", 1)
                .into_response();
        }
        let answer = AssertUnwindSafe(self.router.clone().oneshot(request)).catch_unwind();
        match tokio::time::timeout(self.request_time, answer).await {
            Ok(Ok(Ok(response))) => response,
            Ok(Err(_panic)) => {
                tracing::error!(
                    "a request made the service panic; the message before this one says where"
                );
                Problem::internal().into_response()
            }
            Err(_) => Problem::unavailable("The request took too long; try again shortly.", 5)
                .into_response(),
        }
    }

    /// The caller's own ID if it is short and printable, otherwise a generated one.
    fn request_id(&self, request: &Request<Incoming>) -> HeaderValue {
        let fit = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            (1..=MAX_REQUEST_ID_BYTES).contains(&bytes.len())
                && bytes.iter().all(u8::is_ascii_graphic)
        };
        if let Some(given) = request.headers().get(REQUEST_ID).filter(fit) {
            return given.clone();
        }
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        HeaderValue::try_from(format!("{number:016x}")).expect("hex digits")
    }

    fn count(&self, response: &Response, elapsed: Duration) {
        let class = usize::from(response.status().as_u16() / 100).clamp(1, 5) - 1;
        self.metrics.by_class[class].increment(1);
        self.metrics.seconds.record(elapsed.as_secs_f64());
    }
}

/// Counts a request as in flight until it is dropped, even if the caller went away.
struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn acquire(handler: &'a Handler) -> Option<Self> {
        let permit = Self(&handler.in_flight);
        (handler.in_flight.fetch_add(1, Ordering::Relaxed) < handler.max_in_flight)
            .then_some(permit)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A trailing slash makes no difference, except under `/docs`, where relative links need it.
fn drop_trailing_slash(uri: &mut Uri) {
    let path = uri.path();
    if path.len() < 2 || !path.ends_with('/') || path.starts_with("/docs") {
        return;
    }
    let path = &path[..path.len() - 1];
    let shorter = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    if let Ok(shorter) = shorter.parse() {
        *uri = shorter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trailing_slash_makes_no_difference() {
        for (given, expected) in [
            ("/sms", "/sms"),
            ("/sms/", "/sms"),
            ("/rates/?format=csv", "/rates?format=csv"),
            ("/sms//", "/sms/"),
            ("/", "/"),
            ("/docs/", "/docs/"),
            ("/sms/?", "/sms?"),
        ] {
            let mut uri: Uri = given.parse().expect(given);
            drop_trailing_slash(&mut uri);
            assert_eq!(uri.to_string(), expected, "{given}");
        }
    }
}
