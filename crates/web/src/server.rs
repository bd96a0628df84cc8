//! The HTTP server: connections and their limits, TLS, and graceful shutdown.

mod connection;
mod handler;
mod progress;
mod security;
mod tls;
mod unread;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use engine::identity::connections::ConnectionLimits;
use ipnet::IpNet;
use metrics::Counter;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};

pub use requests::with_unknown_addresses;
pub use tls::{Tls, TlsError};

use connection::Connections;
use handler::Handler;

/// Connections that wait in the kernel to be accepted.
const BACKLOG: u32 = 4096;
/// Pause after a failed accept, for example when file handles run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Send buffer of one connection in the kernel. It limits the memory for clients that do not read, and it is small
/// enough that a write makes progress each time a slow client reads.
const SEND_BUFFER_BYTES: u32 = 128 * 1024;
const REFUSALS_LOGGED_EVERY: Duration = Duration::from_mins(1);

/// Limits of one listener.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections open at once; more wait in the kernel.
    pub connections: usize,
    /// Connections that one address may have open; more are closed at once. Equal to `connections`: no limit.
    pub connections_per_address: usize,
    /// Proxies, which are exempt from the limit for one address.
    pub trusted_proxies: Vec<IpNet>,
    /// Concurrent requests; more are answered with 503.
    pub in_flight: usize,
    /// Time for the headers of a request to arrive. An idle connection is closed after it, too.
    pub header_time: Duration,
    /// Time for a route to answer.
    pub request_time: Duration,
    /// The connection is closed when the peer reads nothing for this long.
    pub write_time: Duration,
    /// Time for connections to end when the service stops.
    pub grace: Duration,
}

/// Tells listeners about the shutdown of the service.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The service will stop soon: each answer closes its connection, so that callers move to another node.
    pub leaving: watch::Receiver<bool>,
    /// The service stops now.
    pub stopped: watch::Receiver<bool>,
}

/// Opens a listening socket.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    // Connections inherit it from their listener.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves the routes until the service stops. Then it accepts no more connections, finishes requests and returns.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    ending: Ending,
) {
    let handler = Handler::new(router, &limits, tls.is_some(), ending.leaving);
    let permits = Arc::new(Semaphore::new(limits.connections));
    let accepting = Accepting {
        listener: Arc::new(listener),
        connections: Connections::new(handler, tls, &limits, ending.stopped.clone()),
        permits: permits.clone(),
        by_address: Arc::new(ConnectionLimits::new(
            limits.connections,
            limits.connections_per_address,
            limits.trusted_proxies,
        )),
        refused: Arc::default(),
        stop: ending.stopped,
    };
    supervise::run("web-accept", move || accepting.clone().accept()).await;
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    if tokio::time::timeout(limits.grace, permits.acquire_many(all))
        .await
        .is_err()
    {
        tracing::warn!("some connections did not end in time and were closed");
    }
}

#[derive(Clone)]
struct Accepting {
    listener: Arc<TcpListener>,
    connections: Arc<Connections>,
    permits: Arc<Semaphore>,
    by_address: Arc<ConnectionLimits>,
    refused: Arc<RefusedConnections>,
    stop: watch::Receiver<bool>,
}

/// Counts connections that were closed because their address had too many.
struct RefusedConnections {
    count: Counter,
    logged_at: Mutex<Option<Instant>>,
}

impl Default for RefusedConnections {
    fn default() -> Self {
        Self {
            count: metrics::counter!("switchboard_http_connections_refused_total"),
            logged_at: Mutex::default(),
        }
    }
}

impl RefusedConnections {
    fn record(&self, peer: IpAddr) {
        self.count.increment(1);
        let now = Instant::now();
        let mut logged_at = self.logged_at.lock().expect("no holder panics");
        if logged_at.is_some_and(|at| now.duration_since(at) < REFUSALS_LOGGED_EVERY) {
            return;
        }
        *logged_at = Some(now);
        drop(logged_at);
        tracing::warn!(
            address = %peer,
            "too many connections from one address: limits.connections_per_address; proxies belong in auth.trusted_proxies"
        );
    }
}

impl Accepting {
    async fn accept(mut self) {
        loop {
            let permit = self.permits.clone().acquire_owned().await;
            let permit = permit.expect("never closed");
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = self.stop.wait_for(|stop| *stop) => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let peer = peer.ip();
                    let Some(held) = self.by_address.try_connect(peer) else {
                        self.refused.record(peer);
                        continue;
                    };
                    let connection = self.connections.clone().run(stream, peer);
                    tokio::spawn(async move {
                        connection.await;
                        drop((held, permit));
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}
