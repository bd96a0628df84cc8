//! The SMPP server: its settings, and what its connections share.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::SmppUserId;
use engine::Engine;
use engine::identity::connections::ConnectionLimits;
use engine::identity::rate::RateLimits;
use ipnet::IpNet;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::report;
use crate::sessions::SmppSessions;

/// Limits of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Connections open at once; more are closed.
    pub connections: usize,
    /// Connections that one address may have open; more are closed. No limit if it is not below `connections`.
    pub connections_per_address: usize,
    /// Proxies, which forward the connections of many clients: they have no limit by address.
    pub trusted_proxies: Vec<IpNet>,
    /// Requests of a session that are not answered yet; the server reads no more until one is.
    pub window: usize,
    /// Whether `user_message_reference` makes a repeated message harmless.
    pub idempotent_references: bool,
    /// The connection is closed when the client reads nothing for this long.
    pub write_time: Duration,
    /// Time for sessions to end when the service stops.
    pub grace: Duration,
}

/// Tells sessions about the shutdown of the service.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The service will stop soon: clients should bind to another node.
    pub leaving: watch::Receiver<bool>,
    /// The service stops now.
    pub stopped: watch::Receiver<bool>,
}

impl Ending {
    /// Returns when sessions must end.
    pub(crate) async fn begun(&mut self) {
        // A sender that is gone says that the service ends, too.
        tokio::select! {
            _ = self.leaving.wait_for(|leaving| *leaving) => {}
            _ = self.stopped.wait_for(|stopped| *stopped) => {}
        }
    }
}

/// The SMPP server.
pub struct SmppServer {
    pub(crate) engine: Arc<Engine>,
    pub(crate) sessions: Arc<SmppSessions>,
    pub(crate) settings: Settings,
    pub(crate) ending: Ending,
    /// Messages of each user, over its sessions with this node.
    pub(crate) rates: RateLimits<SmppUserId>,
    /// Refused binds that are logged, by address and reason.
    pub(crate) refused_binds: RateLimits<(IpAddr, String)>,
    /// Refused connections that are logged.
    pub(crate) refused: RateLimits<()>,
    pub(crate) started: Instant,
    pub(crate) connections: ConnectionLimits,
}

impl SmppServer {
    /// Starts reporting about sessions. Must be called inside a tokio runtime.
    pub fn new(
        engine: Arc<Engine>,
        sessions: Arc<SmppSessions>,
        settings: Settings,
        ending: Ending,
    ) -> Arc<Self> {
        let (weak_engine, weak_sessions) = (Arc::downgrade(&engine), Arc::downgrade(&sessions));
        // It ends with the engine.
        drop(supervise::spawn("smpp-sessions", move || {
            report::run(weak_engine.clone(), weak_sessions.clone())
        }));
        Arc::new(Self {
            connections: ConnectionLimits::new(
                settings.connections,
                settings.connections_per_address,
                settings.trusted_proxies.clone(),
            ),
            engine,
            sessions,
            settings,
            ending,
            rates: RateLimits::default(),
            refused_binds: RateLimits::default(),
            refused: RateLimits::default(),
            started: Instant::now(),
        })
    }
}
