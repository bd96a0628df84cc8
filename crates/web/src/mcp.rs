//! The MCP server: the REST API as tools for AI clients.
//!
//! It has no rules of its own. A request is looked at by the door (`door`), which asks the same gate as REST whether
//! its token is one; the protocol is `rmcp`'s (`server`); a tool call becomes a request to the REST API under the
//! caller's own token (`api`), and REST's answer decides. Nothing of a caller outlives its request.

mod allowed_hosts;
mod api;
mod endpoint;
mod envelope;
mod message;
mod metadata;
mod server;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use engine::Engine;
use http::HeaderName;
use ipnet::IpNet;
use requests::wrong_method;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use url::Url;

pub use api::{ApiUnavailable, InProcess, RestApi};

use allowed_hosts::AllowedHosts;
use metadata::Metadata;
use server::ToolServer;

/// Where the server is, and how it reads requests.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// The address that `/mcp` stands under.
    pub mcp_url: Url,
    /// The authorization server.
    pub auth_url: Url,
    /// Other addresses by which the server is reached, such as the listener's own.
    pub own_urls: Vec<Url>,
    /// Other addresses whose pages may call it.
    pub friendly_urls: Vec<Url>,
    /// Where people without a token are sent.
    pub pages: Pages,
    /// The header that carries the API token to REST.
    pub token_header: HeaderName,
    /// The header of REST that says how many parts were accepted.
    pub amount_header: HeaderName,
    /// The proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<IpNet>,
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// The time for a body to arrive.
    pub body_time: Duration,
    /// The currency of every amount.
    pub currency: String,
}

/// The pages that an authentication error names.
#[derive(Debug, Clone)]
pub struct Pages {
    /// Where an account is had.
    pub signup: String,
    /// Where people sign in.
    pub signin: String,
    /// Where tokens are made.
    pub token: String,
}

/// What the requests share: nothing that belongs to one of them.
pub struct Mcp {
    engine: Arc<Engine>,
    settings: McpSettings,
    allowed_hosts: AllowedHosts,
    metadata: Metadata,
    protocol: StreamableHttpService<ToolServer, NeverSessionManager>,
}

impl Mcp {
    /// The server on these use cases, whose tools call this API.
    pub fn new(engine: Arc<Engine>, api: Arc<dyn RestApi>, settings: McpSettings) -> Arc<Self> {
        let tools = ToolServer::new(api, &settings);
        // Hosts and origins are checked by the door. One JSON answer for each request: its status must follow REST's.
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
