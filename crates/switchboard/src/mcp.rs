//! The MCP server, built from the configuration.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use engine::Engine;
use http::{Request, Response};
use outbound::ApiClient;
use tokio::sync::watch;
use url::Url;
use web::mcp::{ApiUnavailable, InProcess, Mcp, McpSettings, Pages, RestApi};

use crate::config::Config;

/// The names of the local machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The routes of the MCP server. Its tools call the REST API: of this process, or the one at `urls.base`.
pub(crate) fn router(
    config: &Config,
    engine: &Arc<Engine>,
    rest: Option<Router>,
    listening: SocketAddr,
    stopped: &watch::Receiver<bool>,
) -> anyhow::Result<Router> {
    let api: Arc<dyn RestApi> = match rest {
        Some(rest) => InProcess::new(rest),
        None => remote_api(config)?,
    };
    let settings = settings(config, listening)?;
    Ok(Mcp::new(engine.clone(), api, settings, stopped.clone()).router())
}

fn remote_api(config: &Config) -> anyhow::Result<Arc<dyn RestApi>> {
    let base = config.urls.base.as_ref().context(
        "the role mcp without the role api calls the API at urls.base, which is not set",
    )?;
    let time = Duration::from_secs(config.limits.request_seconds);
    Ok(Arc::new(RemoteApi(ApiClient::new(base, time))))
}

/// The REST API of another process.
struct RemoteApi(ApiClient);

#[async_trait]
impl RestApi for RemoteApi {
    async fn ask(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiUnavailable> {
        let answered = self.0.ask(request).await;
        answered.map_err(|silence| ApiUnavailable(silence.to_string()))
    }
}

fn settings(config: &Config, listening: SocketAddr) -> anyhow::Result<McpSettings> {
    let url = |text: String| {
        text.parse::<Url>()
            .with_context(|| format!("{text} is not an address"))
    };
    let dashboard = config.dashboard_url(listening);
    // Accounts are by invitation, and the sign-in page says how to get one.
    let signin = format!("{dashboard}/dashboard/sign-in");
    let token = format!("{dashboard}/dashboard/settings/api");
    Ok(McpSettings {
        mcp_url: url(config.mcp_url(listening))?,
        auth_url: url(config.auth_url(listening))?,
        own_urls: own_urls(config, listening)?,
        friendly_urls: vec![
            url(config.base_url(listening))?,
            url(config.auth_url(listening))?,
            url(dashboard)?,
        ],
        pages: Pages {
            signup: signin.clone(),
            signin,
            token,
        },
        token_header: config.token_header()?,
        amount_header: config.amount_header()?,
        trusted_proxies: config.auth.trusted_proxies.clone(),
        body_bytes: config.limits.body_bytes,
        body_time: Duration::from_secs(config.limits.body_seconds),
        request_time: Duration::from_secs(config.limits.request_seconds),
        currency: config.billing.currency.clone(),
        confirm_above: config.billing.confirm_above()?,
    })
}

/// The URL of the listener; on the local machine, with all its names.
fn own_urls(config: &Config, listening: SocketAddr) -> anyhow::Result<Vec<Url>> {
    let local: Url = config.local_url(listening).parse()?;
    let names = if listening.ip().is_unspecified() || config.is_loopback() {
        LOOPBACK.as_slice()
    } else {
        &[]
    };
    let with_name = |name: &&str| {
        let mut url = local.clone();
        url.set_host(Some(name)).context("a name of this machine")?;
        Ok(url)
    };
    let mut urls: Vec<Url> = names.iter().map(with_name).collect::<anyhow::Result<_>>()?;
    urls.push(local);
    Ok(urls)
}
