//! The OAuth authorization server for AI clients.
//!
//! It has no pages of its own: a valid authorization request is redirected to the consent page of the dashboard.
//! Metadata, registration and tokens allow every origin, because they use no cookies; the authorization endpoint allows
//! none.

mod authorize;
mod form;
mod metadata;
mod refusal;
mod register;
mod token;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use engine::{Engine, Grants};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL,
};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use ipnet::IpNet;
use requests::body::read_within;
use requests::client_address;
use url::Url;

use refusal::Refusal;

const MAX_BODY_BYTES: usize = 16 * 1024;
const BODY_TIME: Duration = Duration::from_secs(10);

const METADATA: &str = "/.well-known/oauth-authorization-server";

/// Writes a page that tells a person why they cannot go on.
pub type RefusalPage = fn(StatusCode, &str) -> Response;

/// What the authorization server needs to know about the dashboard and the network.
#[derive(Debug, Clone)]
pub struct OAuthSettings {
    /// The address of the consent page, without the ID of the request.
    pub consent_url: String,
    /// The name of the dashboard's session cookie.
    pub session_cookie: &'static str,
    /// The dashboard's page for a person whose request is refused.
    pub refusal_page: RefusalPage,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
}

/// The OAuth endpoints.
pub struct OAuth {
    engine: Arc<Engine>,
    settings: OAuthSettings,
}

impl OAuth {
    /// Creates the endpoints.
    pub fn new(engine: Arc<Engine>, settings: OAuthSettings) -> Arc<Self> {
        Arc::new(Self { engine, settings })
    }

    /// Clients look for the metadata at the root, and with the path of the issuer or of the MCP server appended.
    pub fn router(self: &Arc<Self>) -> Router {
        let mut router = Router::new().route("/oauth/authorize", get(authorize::authorize));
        let issuer = Url::parse(&self.grants().settings().issuer);
        let own_path = issuer.map_or_else(|_| String::new(), |url| url.path().to_owned());
        let mut paths = vec![String::new(), "/mcp".to_owned()];
        let own_path = own_path.trim_end_matches('/');
        if !paths.iter().any(|path| path == own_path) {
            paths.push(own_path.to_owned());
        }
        for path in paths {
            router = router.route(
                &format!("{METADATA}{path}"),
                any_origin(get(metadata::metadata)),
            );
        }
        router
            .route("/oauth/token", any_origin(post(token::exchange)))
            .route("/oauth/revoke", any_origin(post(token::revoke)))
            .route("/oauth/register", any_origin(post(register::register)))
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }

    fn grants(&self) -> &Grants {
        &self.engine.grants
    }

    fn address(&self, parts: &Parts) -> IpAddr {
        client_address(parts, &self.settings.trusted_proxies)
    }
}

/// Allows calls from pages of any origin.
fn any_origin(methods: MethodRouter<Arc<OAuth>>) -> MethodRouter<Arc<OAuth>> {
    let methods = methods.options(preflight);
    methods.layer(axum::middleware::map_response(
        async |mut response: Response| {
            let any = HeaderValue::from_static("*");
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, any);
            response
        },
    ))
}

async fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, MCP-Protocol-Version",
        ),
        (ACCESS_CONTROL_MAX_AGE, "3600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

async fn wrong_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Refusal::method_not_allowed().into_response()
}

/// Reads a body of the given content type.
async fn read_body(request: Request, content_type: &str) -> Result<bytes::Bytes, Refusal> {
    let given = request.headers().get(http::header::CONTENT_TYPE);
    let given = given.and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    let is_right = essence.eq_ignore_ascii_case(content_type);
    // Always read, because most callers read the answer only after sending.
    let body = read_within(request, MAX_BODY_BYTES, BODY_TIME).await;
    if !is_right {
        return Err(Refusal::invalid_request(format!(
            "The Content-Type must be {content_type}."
        )));
    }
    body.map_err(|_| {
        Refusal::invalid_request("The body is larger than 16384 bytes, too slow or cut off.")
    })
}

/// Forbids caching of answers with secrets.
fn no_store(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(http::header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}
