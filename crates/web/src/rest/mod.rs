//! The REST API: one file an operation group.

pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod correction;
mod cost;
mod document;
mod hlr;
mod json;
mod problem;
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
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use engine::Engine;
use http::{HeaderName, Method, StatusCode, Uri};
use ipnet::IpNet;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use document::document_router;
pub(crate) use problem::{Problem, REQUIRED_PERMISSION};

use correction::Corrections;
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
    corrections: Corrections,
}

impl Rest {
    /// The API on these use cases.
    pub fn new(engine: Arc<Engine>, settings: RestSettings) -> Arc<Self> {
        Arc::new(Self {
            engine,
            settings,
            ready: ReadyAnswers::default(),
            corrections: Corrections::default(),
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

/// axum adds the `Allow` header itself.
pub(crate) async fn wrong_method(method: Method, uri: Uri) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let path = domain::shown::Shown(uri.path());
    Problem::method_not_allowed(format!(
        "{method} is not allowed on {path}; the header Allow says what is."
    ))
    .into_response()
}

/// Answers every address that none of the routes knows, and every method that a page of others does not take.
pub fn with_unknown_addresses(router: Router) -> Router {
    router
        .fallback(unknown_address)
        .method_not_allowed_fallback(wrong_method)
}

async fn unknown_address(uri: Uri) -> Problem {
    let path = domain::shown::Shown(uri.path());
    Problem::not_found(format!(
        "There is nothing at {path}; /docs lists the addresses there are."
    ))
}
