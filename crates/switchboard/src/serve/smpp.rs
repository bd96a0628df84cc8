//! The SMPP server as a part of the service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use engine::Engine;
use smpp_server::{Ending, Settings, SmppServer, SmppSessions};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use web::server::{self, Tls};

use crate::cli::Role;
use crate::config::Config;

/// The listeners of the SMPP server, before it serves.
#[derive(Default)]
pub(super) struct SmppListeners {
    plain: Option<TcpListener>,
    tls: Option<TcpListener>,
}

impl SmppListeners {
    /// Opens the configured listeners, if this process has the role.
    pub(super) fn bind(config: &Config, roles: &[Role]) -> anyhow::Result<Self> {
        if !roles.contains(&Role::Smpp) || !config.smpp_server.is_on() {
            return Ok(Self::default());
        }
        ensure!(
            roles.contains(&Role::Worker),
            "the role smpp needs the role worker, which hands receipts to SMPP sessions; give both, or neither"
        );
        Ok(Self {
            plain: bind("smpp_server.listen", config.smpp_server.listen)?,
            tls: bind("smpp_server.tls_listen", config.smpp_server.tls_listen)?,
        })
    }

    /// The addresses, with what clients must use there.
    pub(super) fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let listeners = [("SMPP", &self.plain), ("SMPP over TLS", &self.tls)];
        let address = |listener: &TcpListener| listener.local_addr().ok();
        let listeners = listeners.into_iter();
        listeners
            .filter_map(|(name, listener)| Some((name, address(listener.as_ref()?)?)))
            .collect()
    }

    /// Starts to serve; each task ends when its sessions have ended.
    pub(super) fn start(
        self,
        config: &Config,
        engine: &Arc<Engine>,
        sessions: Option<Arc<SmppSessions>>,
        tls: Option<&Tls>,
        ending: &server::Ending,
    ) -> Vec<JoinHandle<()>> {
        let Some(sessions) = sessions else {
            return Vec::new();
        };
        let ending = Ending {
            leaving: ending.leaving.clone(),
            stopped: ending.stopped.clone(),
        };
        let server = SmppServer::new(engine.clone(), sessions, settings(config), ending);
        let acceptor = tls.map(Tls::acceptor);
        let plain = self.plain.map(|listener| (listener, None));
        let encrypted = self.tls.zip(acceptor);
        let encrypted = encrypted.map(|(listener, acceptor)| (listener, Some(acceptor)));
        let listeners = plain.into_iter().chain(encrypted);
        listeners
            .map(|(listener, tls)| tokio::spawn(server.clone().serve(listener, tls)))
            .collect()
    }
}

fn bind(key: &str, address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let bind = |address| {
        server::bind(address).with_context(|| {
            format!("cannot listen on {address} ({key}); something else may use the port")
        })
    };
    address.map(bind).transpose()
}

fn settings(config: &Config) -> Settings {
    let connections = config.smpp_server.connections;
    let per_address = config.limits.connections_per_address;
    Settings {
        connections,
        connections_per_address: per_address.unwrap_or_else(|| (connections / 4).max(1)),
        trusted_proxies: config.auth.trusted_proxies.clone(),
        window: config.smpp_server.window,
        idempotent_references: config.smpp_server.idempotent_references,
        write_time: Duration::from_secs(config.limits.write_seconds),
        grace: Duration::from_secs(config.limits.shutdown_seconds),
    }
}
