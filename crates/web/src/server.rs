//! The server: connections, their limits, TLS, and an orderly end.

mod addresses;
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
use ipnet::IpNet;
use metrics::Counter;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};

pub use requests::with_unknown_addresses;
pub use tls::{Tls, TlsError};

use addresses::Addresses;
use connection::Connections;
use handler::Handler;

/// Connections that the kernel may hold for us while we accept others.
const BACKLOG: u32 = 4096;
/// After an accept failed (out of file handles, say), so long nothing is accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What the kernel may hold of the answers of one connection. Bounds the memory that clients who do not read can take, and
/// makes those who read slowly visible: a write succeeds each time a part of it was taken.
const SEND_BUFFER_BYTES: u32 = 128 * 1024;
/// Refused connections are logged at most this often.
const REFUSALS_LOGGED_EVERY: Duration = Duration::from_mins(1);

/// What one listener may take upon itself.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections open at once; more wait in the kernel.
    pub connections: usize,
    /// Connections that one address may have open; more are closed at once. As many as `connections`: no such limit.
    pub connections_per_address: usize,
    /// Proxies, which are exempt from that.
    pub trusted_proxies: Vec<IpNet>,
    /// Requests worked on at once; one more is answered 503.
    pub in_flight: usize,
    /// The time for a request's headers to arrive; an idle connection is closed after it too.
    pub header_time: Duration,
    /// The time for an answer.
    pub request_time: Duration,
    /// How long the peer may take nothing of its answer before the connection is closed.
    pub write_time: Duration,
    /// The time that connections get to end when the service stops.
    pub grace: Duration,
}

/// How the end of a service comes about, as its listeners hear of it.
#[derive(Debug, Clone)]
pub struct Ending {
    /// It will stop soon: requests are answered as usual, but each answer says that its connection ends with it, so that
    /// callers that keep connections open move elsewhere.
    pub leaving: watch::Receiver<bool>,
    /// It stops.
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

/// Serves the routes until the service stops; then takes no more connections, answers what is under way and returns.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    ending: Ending,
) {
    let handler = Handler::new(router, &limits, tls.is_some(), ending.leaving);
    let places = Arc::new(Semaphore::new(limits.connections));
    let is_limited = limits.connections_per_address < limits.connections;
    let accepting = Accepting {
        listener: Arc::new(listener),
        connections: Connections::new(handler, tls, &limits, ending.stopped.clone()),
        places: places.clone(),
        addresses: is_limited.then(|| {
            Addresses::new(
                limits.connections_per_address,
                limits.connections,
                limits.trusted_proxies.clone(),
            )
        }),
        refused: Arc::default(),
        stop: ending.stopped,
    };
    supervise::run("web-accept", move || accepting.clone().accept()).await;
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    if tokio::time::timeout(limits.grace, places.acquire_many(all))
        .await
        .is_err()
    {
        tracing::warn!("some connections did not end in time and were closed");
    }
}

/// A listener with what its connections need.
#[derive(Clone)]
struct Accepting {
    listener: Arc<TcpListener>,
    connections: Arc<Connections>,
    places: Arc<Semaphore>,
    /// `None`: one address may have all of them.
    addresses: Option<Arc<Addresses>>,
    refused: Arc<Refused>,
    stop: watch::Receiver<bool>,
}

/// Connections that were closed at once because their address had enough.
struct Refused {
    count: Counter,
    logged_at: Mutex<Option<Instant>>,
}

impl Default for Refused {
    fn default() -> Self {
        Self {
            count: metrics::counter!("switchboard_http_connections_refused_total"),
            logged_at: Mutex::default(),
        }
    }
}

impl Refused {
    fn note(&self, peer: IpAddr) {
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
    /// Takes connections until the service stops.
    async fn accept(mut self) {
        loop {
            let place = self.places.clone().acquire_owned().await;
            let place = place.expect("never closed");
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = self.stop.wait_for(|stop| *stop) => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let peer = peer.ip();
                    // The place that this one has is free for it.
                    let free = self.places.available_permits() + 1;
                    let held = self.addresses.as_ref().map(|by| by.take(peer, free));
                    if let Some(None) = held {
                        self.refused.note(peer);
                        continue;
                    }
                    let connection = self.connections.clone().run(stream, peer);
                    tokio::spawn(async move {
                        connection.await;
                        drop((held, place));
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
