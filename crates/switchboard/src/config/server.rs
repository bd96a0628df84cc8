//! `[server]`, `[tls]`, `[auth]` and `[limits]`: the HTTP listener.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use http::HeaderName;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::Config;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    pub(crate) header_prefix: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Auth {
    pub(crate) query_token: bool,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) second_factor: SecondFactor,
}

/// Who must have a second factor to use the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SecondFactor {
    #[default]
    Optional,
    Operators,
    Everyone,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) connections_per_address: Option<usize>,
    pub(crate) in_flight: usize,
    pub(crate) accept_queue: usize,
    pub(crate) held_messages: usize,
    pub(crate) body_bytes: usize,
    pub(crate) header_seconds: u64,
    pub(crate) body_seconds: u64,
    pub(crate) request_seconds: u64,
    pub(crate) write_seconds: u64,
    pub(crate) shutdown_seconds: u64,
    pub(crate) drain_seconds: u64,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            header_prefix: "X-Service".to_owned(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: None,
            in_flight: 4096,
            accept_queue: 8192,
            held_messages: 30_000,
            body_bytes: 2 * 1024 * 1024,
            header_seconds: 30,
            body_seconds: 10,
            request_seconds: 30,
            write_seconds: 30,
            shutdown_seconds: 30,
            drain_seconds: 0,
        }
    }
}

impl Config {
    /// The header that carries a token.
    pub(crate) fn token_header(&self) -> anyhow::Result<HeaderName> {
        self.header("Token")
    }

    /// The response header with the number of parts.
    pub(crate) fn amount_header(&self) -> anyhow::Result<HeaderName> {
        self.header("Amount-Sent")
    }

    fn header(&self, name: &str) -> anyhow::Result<HeaderName> {
        let prefix = &self.server.header_prefix;
        format!("{prefix}-{name}")
            .parse()
            .with_context(|| format!("server.header_prefix '{prefix}' does not make a header name"))
    }

    /// Whether only this machine can reach the listener.
    pub(crate) fn is_loopback(&self) -> bool {
        self.server.listen.ip().to_canonical().is_loopback()
    }
}

impl Tls {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match (&self.cert, &self.key) {
            (Some(_), None) => bail!("tls.cert is set, but tls.key is not; give both or none"),
            (None, Some(_)) => bail!("tls.key is set, but tls.cert is not; give both or none"),
            _ => Ok(()),
        }
    }
}

impl Limits {
    /// How many connections one address may have; by default a quarter of all.
    pub(crate) fn per_address(&self) -> usize {
        self.connections_per_address
            .unwrap_or_else(|| (self.connections / 4).max(1))
    }

    pub(super) fn checks(&self) -> impl Iterator<Item = anyhow::Result<()>> + use<> {
        self.positive().into_iter().map(|(key, value)| {
            ensure!(value > 0, "limits.{key} is 0; give at least 1");
            Ok(())
        })
    }

    fn positive(&self) -> [(&'static str, u64); 11] {
        let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        [
            ("connections", wide(self.connections)),
            ("connections_per_address", wide(self.per_address())),
            ("in_flight", wide(self.in_flight)),
            ("accept_queue", wide(self.accept_queue)),
            ("held_messages", wide(self.held_messages)),
            ("body_bytes", wide(self.body_bytes)),
            ("header_seconds", self.header_seconds),
            ("body_seconds", self.body_seconds),
            ("request_seconds", self.request_seconds),
            ("write_seconds", self.write_seconds),
            ("shutdown_seconds", self.shutdown_seconds),
        ]
    }
}
