//! `[callbacks]`: where callbacks may go, and how they get there.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use ipnet::IpNet;
use outbound::dial::{TlsConfig, public_roots, public_roots_and};
use outbound::{Guard, HttpProxy};
use serde::{Deserialize, Serialize};
use store::DatabaseUrl;

use super::{Config, Secret, Tls, Urls};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Callbacks {
    pub(crate) allow: Option<Vec<IpNet>>,
    pub(crate) source: Vec<IpAddr>,
    pub(crate) name_servers: Vec<SocketAddr>,
    pub(crate) park_after_days: Option<u32>,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) proxy: Option<Secret>,
}

impl Callbacks {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.http_proxy().map(drop)
    }

    /// The certificates that receivers may use.
    pub(crate) fn trusted(&self) -> anyhow::Result<Arc<TlsConfig>> {
        let Some(path) = &self.tls_ca else {
            return Ok(public_roots());
        };
        let context = || format!("callbacks.tls_ca {}", path.display());
        let pem = std::fs::read(path).with_context(context)?;
        public_roots_and(&pem)
            .map_err(anyhow::Error::msg)
            .with_context(context)
    }

    pub(crate) fn http_proxy(&self) -> anyhow::Result<Option<HttpProxy>> {
        let proxy = self.proxy.as_ref().map(|url| HttpProxy::parse(&url.0));
        let proxy = proxy.transpose().map_err(anyhow::Error::msg);
        proxy.context("callbacks.proxy is no address of a proxy")
    }
}

impl Config {
    /// The private networks that callbacks may go to. In development that is this machine, unless configured otherwise.
    pub(crate) fn callback_allow(&self) -> Vec<IpNet> {
        match &self.callbacks.allow {
            Some(networks) => networks.clone(),
            None if self.is_development() => Guard::loopback(),
            None => Vec::new(),
        }
    }

    /// Whether the service is only tried out: everything is on this machine. Behind a proxy a listener on loopback
    /// serves other machines, so settings that suggest a proxy count as production.
    fn is_development(&self) -> bool {
        let is_sqlite = matches!(self.database_url(), Ok(DatabaseUrl::Sqlite(_)));
        let has_proxy = self.urls != Urls::default() || !self.auth.trusted_proxies.is_empty();
        self.is_loopback() && is_sqlite && !has_proxy && self.tls == Tls::default()
    }
}
