//! The MCP server: the REST API as tools for AI clients.
//!
//! It has no rules of its own. `endpoint` checks a request and its token, with the same gate as REST; `rmcp` implements
//! the protocol (`server`); a tool call becomes a request to the REST API with the caller's own token (`api`), and the
//! answer of REST decides. Nothing about a caller is kept after its request.

mod allowed_hosts;
mod api;
mod consent;
mod doubled;
mod endpoint;
mod envelope;
mod message;
mod metadata;
mod server;
mod tools;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use domain::Money;
use engine::Engine;
use http::HeaderName;
use ipnet::IpNet;
use requests::wrong_method;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::watch;
use url::Url;

pub use api::{ApiUnavailable, InProcess, RestApi};

use allowed_hosts::AllowedHosts;
use metadata::Metadata;
use server::ToolServer;
use waiting::Waits;

/// Settings of the MCP server.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// The address of the server, without `/mcp`.
    pub mcp_url: Url,
    /// The authorization server.
    pub auth_url: Url,
    /// Other addresses of this server, such as that of its listener.
    pub own_urls: Vec<Url>,
    /// Other origins whose pages may call it.
    pub friendly_urls: Vec<Url>,
    /// Pages for people without a token.
    pub pages: Pages,
    /// The header that carries the API token to REST.
    pub token_header: HeaderName,
    /// The header of REST with the number of accepted parts.
    pub amount_header: HeaderName,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// The time for a body to arrive.
    pub body_time: Duration,
    /// The time for a request to be answered.
    pub request_time: Duration,
    /// The currency of every amount.
    pub currency: String,
    /// Messages that cost more need the user's consent, where the client can ask for it.
    pub confirm_above: Money,
}

/// The pages that an authentication error names.
#[derive(Debug, Clone)]
pub struct Pages {
    /// Where people get an account.
    pub signup: String,
    /// Where people sign in.
    pub signin: String,
    /// Where people create tokens.
    pub token: String,
}

/// The state that all requests share.
pub struct Mcp {
    engine: Arc<Engine>,
    settings: McpSettings,
    allowed_hosts: AllowedHosts,
    metadata: Metadata,
    protocol: StreamableHttpService<ToolServer, NeverSessionManager>,
}

impl Mcp {
    /// Creates a server whose tools call `api`. Calls that wait end when `stop` turns true.
    pub fn new(
        engine: Arc<Engine>,
        api: Arc<dyn RestApi>,
        settings: McpSettings,
        stop: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let waits = Waits::new(settings.request_time, stop);
        let tools = ToolServer::new(api, &settings, waits);
        // `endpoint` checks hosts and origins. Answers are single JSON texts, because their status follows that of
        // REST.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts()
            .with_max_request_body_bytes(settings.body_bytes);
        let protocol =
            StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config);
        Arc::new(Self {
            engine,
            allowed_hosts: AllowedHosts::new(&settings),
            metadata: Metadata::new(&settings),
            settings,
            protocol,
        })
    }

    /// `/mcp` and the metadata about it.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/mcp", post(endpoint::answer))
            .route(metadata::PATH, get(metadata::show))
            .route(&format!("{}/mcp", metadata::PATH), get(metadata::show))
            .with_state(self.clone())
            .method_not_allowed_fallback(wrong_method)
    }
}
