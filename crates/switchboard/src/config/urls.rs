//! `[urls]`: the addresses that people and clients reach the service by.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use url::Url;

use super::Config;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Urls {
    pub(crate) base: Option<Url>,
    pub(crate) mcp: Option<Url>,
    pub(crate) auth: Option<Url>,
    pub(crate) dashboard: Option<Url>,
}

impl Urls {
    pub(super) fn checks(&self) -> impl Iterator<Item = anyhow::Result<()>> {
        let urls = [
            ("urls.base", &self.base),
            ("urls.mcp", &self.mcp),
            ("urls.auth", &self.auth),
            ("urls.dashboard", &self.dashboard),
        ];
        urls.into_iter().map(|(key, url)| {
            let web = url
                .as_ref()
                .is_none_or(|url| matches!(url.scheme(), "http" | "https"));
            ensure!(web, "{key} must be an http or https address");
            Ok(())
        })
    }
}

/// Each URL is the configured one or leads to the listener, which listens at `listening`.
impl Config {
    /// The URL of the API.
    pub(crate) fn base_url(&self, listening: SocketAddr) -> String {
        self.url_or_local(self.urls.base.as_ref(), listening)
    }

    /// The URL of the dashboard.
    pub(crate) fn dashboard_url(&self, listening: SocketAddr) -> String {
        self.url_or_local(self.urls.dashboard.as_ref(), listening)
    }

    /// The URL of the MCP server, without its path `/mcp`.
    pub(crate) fn mcp_url(&self, listening: SocketAddr) -> String {
        self.url_or_base(self.urls.mcp.as_ref(), listening)
    }

    /// The URL of the authorization server, which is also its issuer name.
    pub(crate) fn auth_url(&self, listening: SocketAddr) -> String {
        self.url_or_base(self.urls.auth.as_ref(), listening)
    }

    fn url_or_base(&self, url: Option<&Url>, listening: SocketAddr) -> String {
        self.url_or_local(url.or(self.urls.base.as_ref()), listening)
    }

    fn url_or_local(&self, url: Option<&Url>, listening: SocketAddr) -> String {
        url.map_or_else(
            || self.local_url(listening),
            |url| url.as_str().trim_end_matches('/').to_owned(),
        )
    }

    /// The URL of the listener itself; one on all addresses is reached on the local machine.
    pub(crate) fn local_url(&self, listening: SocketAddr) -> String {
        let scheme = if self.tls.cert.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", reachable(listening))
    }
}

/// The address at which this machine reaches a listener, also one on all addresses.
pub(crate) fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listening.port())
}
