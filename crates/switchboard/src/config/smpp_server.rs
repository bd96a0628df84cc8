//! `[smpp_server]`: SMPP for customers.

use std::net::SocketAddr;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::server::Tls;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SmppServer {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) tls_listen: Option<SocketAddr>,
    pub(crate) connections: usize,
    pub(crate) window: usize,
    pub(crate) idempotent_references: bool,
}

impl Default for SmppServer {
    fn default() -> Self {
        Self {
            listen: None,
            tls_listen: None,
            connections: 1000,
            window: 100,
            idempotent_references: false,
        }
    }
}

impl SmppServer {
    pub(super) fn check(&self, tls: &Tls) -> anyhow::Result<()> {
        ensure!(
            self.connections > 0,
            "smpp_server.connections is 0; give at least 1"
        );
        ensure!(self.window > 0, "smpp_server.window is 0; give at least 1");
        ensure!(
            self.tls_listen.is_none() || tls.cert.is_some(),
            "smpp_server.tls_listen needs a certificate; set tls.cert and tls.key"
        );
        Ok(())
    }

    /// Whether it listens at all.
    pub(crate) fn is_on(&self) -> bool {
        self.listen.is_some() || self.tls_listen.is_some()
    }
}
