//! `[callbacks]`: where callbacks may go, and how they get there.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use outbound::Guard;
use serde::{Deserialize, Serialize};
use store::DatabaseUrl;

use super::{Config, Tls, Urls};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Callbacks {
    pub(crate) allow: Option<Vec<IpNet>>,
    pub(crate) source: Vec<IpAddr>,
    pub(crate) name_servers: Vec<SocketAddr>,
    pub(crate) park_after_days: Option<u32>,
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
