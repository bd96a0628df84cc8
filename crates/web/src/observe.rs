//! For those who watch the service: is it alive, does it accept, what has it counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use engine::Engine;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::rest::wrong_method;

/// Writes all metrics in Prometheus' text form.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Health and metrics.
pub struct Observe {
    engine: Arc<Engine>,
    render: RenderMetrics,
    stopping: AtomicBool,
}

impl Observe {
    /// Watches these use cases.
    pub fn new(engine: Arc<Engine>, render: RenderMetrics) -> Arc<Self> {
        Arc::new(Self {
            engine,
            render,
            stopping: AtomicBool::new(false),
        })
    }

    /// From now on the service says that it is not ready, so that a load balancer sends no more. It may still answer.
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

    /// `/metrics`.
    pub fn metrics_router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }
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
