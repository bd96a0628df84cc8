//! The REST API: one file for each group of operations.

mod answer_cache;
mod body;
mod callbacks;
mod caller;
mod correction;
mod cost;
mod docs_page;
mod document;
mod errors;
mod hlr;
mod inbox;
mod json;
mod messages;
mod opt_outs;
mod rates;
mod reference;
mod sender;
mod shapes;
mod sms;
mod token;
mod verify;
mod viber;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use engine::Engine;
use http::HeaderName;
use ipnet::IpNet;
use requests::{BlockingWork, wrong_method};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use correction::MAX_CORRECTIONS;
pub use document::document_router;

use answer_cache::AnswerCache;

/// Settings of the REST API.
#[derive(Debug, Clone)]
pub struct RestSettings {
    /// The header that carries the API token.
    pub token_header: HeaderName,
    /// The answer header with the number of accepted parts.
    pub amount_header: HeaderName,
    /// Whether the query parameter `at` may carry the token.
    pub query_token: bool,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// The time for a body to arrive.
    pub body_time: Duration,
    /// The currency of every amount.
    pub currency: String,
}

/// The state that all operations share.
pub struct Rest {
    engine: Arc<Engine>,
    settings: RestSettings,
    answers: AnswerCache,
    corrections: BlockingWork,
}

impl Rest {
    /// Creates the API.
    pub fn new(engine: Arc<Engine>, settings: RestSettings) -> Arc<Self> {
        Arc::new(Self {
            engine,
            settings,
            answers: AnswerCache::default(),
            corrections: BlockingWork::default(),
        })
    }

    /// The routes.
    pub fn router(self: &Arc<Self>) -> Router {
        let (router, _) = operations().split_for_parts();
        router
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }
}

/// Every operation with its documentation; the OpenAPI document is generated from it.
fn operations() -> OpenApiRouter<Arc<Rest>> {
    OpenApiRouter::with_openapi(document::frame())
        .routes(routes!(sms::send, sms::list))
        .routes(routes!(cost::estimate))
        .routes(routes!(cost::check))
        .routes(routes!(inbox::list))
        .routes(routes!(inbox::find))
        .routes(routes!(sms::status))
        .routes(routes!(sms::cancel))
        .routes(routes!(messages::list))
        .routes(routes!(opt_outs::list, opt_outs::add))
        .routes(routes!(opt_outs::remove))
        .routes(routes!(verify::start))
        .routes(routes!(verify::find))
        .routes(routes!(verify::check))
        .routes(routes!(sender::register, sender::list))
        .routes(routes!(sender::find))
        .routes(routes!(sender::confirm))
        .routes(routes!(reference::operator))
        .routes(routes!(reference::networks))
        .routes(routes!(reference::prefixes))
        .routes(routes!(rates::rates))
        .routes(routes!(correction::correct, correction::correct_by_get))
        .routes(routes!(viber::send))
        .routes(routes!(hlr::look_up))
        .routes(routes!(hlr::status))
        .routes(routes!(token::describe))
}
