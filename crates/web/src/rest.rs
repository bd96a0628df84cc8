//! The REST API: one file an operation group.

mod body;
mod caller;
mod correction;
mod cost;
mod document;
mod hlr;
mod json;
mod rates;
mod ready;
mod reference;
mod sender;
mod sms;
mod token;
mod viber;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use engine::Engine;
use http::HeaderName;
use ipnet::IpNet;
use requests::{BlockingWork, wrong_method};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use correction::MAX_CORRECTIONS;
pub use document::document_router;

use ready::ReadyAnswers;

/// How the REST API reads requests.
#[derive(Debug, Clone)]
pub struct RestSettings {
    /// The header that carries the API token.
    pub token_header: HeaderName,
    /// The answer header that says how many parts were accepted.
    pub amount_header: HeaderName,
    /// Whether a token may also stand in the address as `at`.
    pub query_token: bool,
    /// The proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<IpNet>,
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// The time for a body to arrive.
    pub body_time: Duration,
    /// The currency of every amount.
    pub currency: String,
}

/// What the operations share.
pub struct Rest {
    engine: Arc<Engine>,
    settings: RestSettings,
    ready: ReadyAnswers,
    corrections: BlockingWork,
}

impl Rest {
    /// The API on these use cases.
    pub fn new(engine: Arc<Engine>, settings: RestSettings) -> Arc<Self> {
        Arc::new(Self {
            engine,
            settings,
            ready: ReadyAnswers::default(),
            corrections: BlockingWork::default(),
        })
    }

    /// The routes.
    pub fn router(self: &Arc<Self>) -> Router {
        let (router, _) = operations().split_for_parts();
        // Not in the document: a GET with a body is taken from those who read the contract so, and recommended to nobody.
        router
            .route("/numberCorrection", get(correction::correct))
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }
}

/// Every operation with its documentation. The document is read off this same list.
fn operations() -> OpenApiRouter<Arc<Rest>> {
    OpenApiRouter::with_openapi(document::frame())
        .routes(routes!(sms::send, sms::list))
        .routes(routes!(cost::estimate))
        .routes(routes!(sms::status))
        .routes(routes!(sms::cancel))
        .routes(routes!(sender::register, sender::list))
        .routes(routes!(sender::find))
        .routes(routes!(sender::confirm))
        .routes(routes!(reference::operator))
        .routes(routes!(reference::networks))
        .routes(routes!(reference::prefixes))
        .routes(routes!(rates::rates))
        .routes(routes!(correction::correct))
        .routes(routes!(viber::send))
        .routes(routes!(hlr::look_up))
        .routes(routes!(hlr::status))
        .routes(routes!(token::describe))
}
