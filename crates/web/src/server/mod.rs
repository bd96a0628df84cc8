//! The server: connections, their limits, TLS, and an orderly end.

mod connection;
mod door;
mod tls;
mod unread;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};

pub use tls::{Tls, TlsError};

use connection::Connections;
use door::Door;

/// Connections that the kernel may hold for us while we accept others.
const BACKLOG: u32 = 4096;
/// After an accept failed (out of file handles, say), so long nothing is accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What one listener may take upon itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections open at once; more wait in the kernel.
    pub connections: usize,
    /// Requests worked on at once; one more is answered 503.
    pub in_flight: usize,
    /// The time for a request's headers to arrive; an idle connection is closed after it too.
    pub header_time: Duration,
    /// The time for an answer.
    pub request_time: Duration,
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
    let door = Door::new(router, limits, ending.leaving);
    let places = Arc::new(Semaphore::new(limits.connections));
    let accepting = Accepting {
        listener: Arc::new(listener),
        connections: Connections::new(door, tls, limits, ending.stopped.clone()),
        places: places.clone(),
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
    stop: watch::Receiver<bool>,
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
                    let connection = self.connections.clone().run(stream, peer.ip());
                    tokio::spawn(async move {
                        connection.await;
                        drop(place);
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
