//! Health and metrics.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::TokenHash;
use engine::Engine;
use http::header::{AUTHORIZATION, CONTENT_TYPE, FORWARDED, HOST, VIA};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode};
use requests::{Peer, Problem, wrong_method};

/// Headers that proxies add.
const FORWARDING: [HeaderName; 10] = [
    FORWARDED,
    VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-client-ip"),
    HeaderName::from_static("true-client-ip"),
];

/// Renders all metrics in the text format of Prometheus.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Health and metrics.
pub struct Observe {
    engine: Arc<Engine>,
    render: RenderMetrics,
    token: Option<TokenHash>,
    stopping: AtomicBool,
}

impl Observe {
    /// With `metrics_token`, a caller may read the metrics from anywhere.
    pub fn new(
        engine: Arc<Engine>,
        render: RenderMetrics,
        metrics_token: Option<&str>,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine,
            render,
            token: metrics_token.map(TokenHash::from_secret),
            stopping: AtomicBool::new(false),
        })
    }

    /// Reports that the service is not ready from now on, so that load balancers stop using it. Requests still work.
    pub fn stopping(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// `/health/live` and `/health/ready`.
    pub fn health_router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/health/live", get(live))
            .route("/health/ready", get(ready))
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }

    /// `/metrics` for its own listener: open to everybody, unless a token is set.
    pub fn metrics_router(self: &Arc<Self>) -> Router {
        let observe = self.clone();
        self.bare_metrics_router().layer(middleware::from_fn(
            move |request: Request, next: Next| {
                let may_read = observe.token.is_none() || observe.has_token(request.headers());
                answer_if(may_read, request, next)
            },
        ))
    }

    /// `/metrics` on the public listener: only for programs on this machine, and with the token. A proxy on this
    /// machine does not make it public.
    pub fn shared_metrics_router(self: &Arc<Self>) -> Router {
        let observe = self.clone();
        self.bare_metrics_router().layer(middleware::from_fn(
            move |request: Request, next: Next| {
                let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
                let may_read = is_direct_and_local(peer, request.headers())
                    || observe.has_token(request.headers());
                answer_if(may_read, request, next)
            },
        ))
    }

    fn bare_metrics_router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }

    /// Hashes are compared, so that the time tells nothing about the token.
    fn has_token(&self, headers: &HeaderMap) -> bool {
        let given = bearer(headers).map(TokenHash::from_secret);
        given.is_some() && given == self.token
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}

async fn answer_if(may_read: bool, request: Request, next: Next) -> Response {
    if may_read {
        return next.run(request).await;
    }
    Problem::forbidden(
        "Metrics are for programs on the service's own machine; its operator can give them a listener of their own (metrics.listen) or a token (metrics.token).",
    )
    .into_response()
}

/// A proxy on this machine connects from loopback, too. Most proxies add headers, or pass on the public host name.
fn is_direct_and_local(peer: Option<IpAddr>, headers: &HeaderMap) -> bool {
    let is_local = peer.is_some_and(|peer| peer.to_canonical().is_loopback());
    let is_forwarded = FORWARDING.iter().any(|name| headers.contains_key(name));
    let host = headers.get(HOST).map(|host| host.to_str().unwrap_or(""));
    is_local && !is_forwarded && host.is_none_or(is_loopback_name)
}

fn is_loopback_name(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host().trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.to_canonical().is_loopback())
}

async fn live() -> &'static str {
    "alive\n"
}

async fn ready(State(observe): State<Arc<Observe>>) -> Response {
    let reason = if observe.stopping.load(Ordering::Acquire) {
        "stopping\n"
    } else if !observe.engine.gate.is_current() {
        "the database does not answer\n"
    } else if !observe.engine.submit.is_accepting() {
        "messages cannot be stored\n"
    } else if !observe.engine.is_running() {
        "a background task has failed and is being restarted\n"
    } else {
        return "ready\n".into_response();
    };
    (StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
}

async fn metrics(State(observe): State<Arc<Observe>>) -> Response {
    let headers = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (headers, (observe.render)()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_from_its_header() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("abc", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a value"));
            assert_eq!(bearer(&headers), token, "{value:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn only_direct_connections_from_this_machine_read_metrics() {
        for (peer, header, expected) in [
            ("127.0.0.1", ("Host", "127.0.0.1:8080"), true),
            ("127.0.0.1", ("Host", "localhost:8080"), true),
            ("::1", ("Host", "[::1]:8080"), true),
            ("::ffff:127.0.0.1", ("Accept", "*/*"), true),
            ("192.0.2.1", ("Host", "127.0.0.1:8080"), false),
            ("127.0.0.1", ("Host", "sms.example.com"), false),
            ("127.0.0.1", ("Host", "127.0.0.1.example.com"), false),
            ("127.0.0.1", ("Host", ""), false),
            ("127.0.0.1", ("Forwarded", "for=192.0.2.1"), false),
            ("127.0.0.1", ("X-Forwarded-For", "127.0.0.1"), false),
            ("127.0.0.1", ("X-Forwarded-Proto", "https"), false),
            ("127.0.0.1", ("X-Real-IP", ""), false),
            ("127.0.0.1", ("Via", "1.1 proxy"), false),
        ] {
            let mut headers = HeaderMap::new();
            let name = HeaderName::try_from(header.0).expect("a name");
            headers.insert(name, header.1.parse().expect("a value"));
            let peer = Some(peer.parse().expect("an address"));
            let answered = is_direct_and_local(peer, &headers);
            assert_eq!(answered, expected, "{peer:?} {header:?}");
        }
        assert!(!is_direct_and_local(None, &HeaderMap::new()));
    }
}
