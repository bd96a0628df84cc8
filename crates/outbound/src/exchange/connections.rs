//! Open HTTP connections, and those that are kept for the next request to the same host.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use tokio::time::Instant;

use crate::dial::Connection;

/// How long an idle connection is kept. Many servers close after five seconds, and closing first avoids a race.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The maximum size of a response head.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// A connection and the HTTP protocol on it. Nothing happens on it unless one of its methods is awaited.
pub(super) struct OpenConnection {
    address: Option<SocketAddr>,
    requests: SendRequest<Full<Bytes>>,
    /// `None` once it is closed.
    driver: Option<http1::Connection<Connection, Full<Bytes>>>,
}

/// The error, and the request if nothing of it was sent.
pub(super) type SendError = (hyper::Error, Option<Request<Full<Bytes>>>);

impl OpenConnection {
    pub(super) async fn new(connection: Connection) -> Result<Self, hyper::Error> {
        let address = connection.address();
        let (requests, driver) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            // Requests are short, so head and body are sent together.
            .writev(false)
            .handshake(connection)
            .await?;
        Ok(Self {
            address,
            requests,
            driver: Some(driver),
        })
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendError> {
        let sending = self.requests.try_send_request(request);
        let sent = drive(&mut self.driver, sending).await;
        sent.map_err(|mut error| {
            let unsent = error.take_message();
            (error.into_error(), unsent)
        })
    }

    /// Runs a future that waits for something to happen on this connection.
    pub(super) async fn drive<F: Future>(&mut self, future: F) -> F::Output {
        drive(&mut self.driver, future).await
    }

    /// Whether another request can be sent. Does not wait for the other side.
    pub(super) async fn is_ready(&mut self) -> bool {
        poll_fn(|cx| {
            if let Some(driver) = &mut self.driver
                && Pin::new(driver).poll(cx).is_ready()
            {
                self.driver = None;
            }
            Poll::Ready(self.driver.is_some() && self.requests.is_ready())
        })
        .await
    }
}

/// Runs a future and the connection that it waits for. If the connection ends, the future gets to know it.
async fn drive<F: Future>(
    driver: &mut Option<http1::Connection<Connection, Full<Bytes>>>,
    future: F,
) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Some(connection) = driver
            && Pin::new(connection).poll(cx).is_ready()
        {
            *driver = None;
        }
        future.as_mut().poll(cx)
    })
    .await
}

/// Where a connection leads. Connections are shared by requests with the same key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct HostKey(Scheme, Authority);

impl HostKey {
    pub(super) fn from_uri(uri: &Uri) -> Option<Self> {
        Some(Self(uri.scheme()?.clone(), uri.authority()?.clone()))
    }
}

/// Idle connections by host, the most recently used one last.
pub(super) struct KeptConnections {
    max_per_host: usize,
    hosts: Mutex<Hosts>,
    this: Weak<Self>,
}

#[derive(Default)]
struct Hosts {
    idle: HashMap<HostKey, Vec<IdleConnection>>,
    /// A task closes idle connections.
    is_swept: bool,
}

struct IdleConnection {
    connection: OpenConnection,
    since: Instant,
}

impl KeptConnections {
    pub(super) fn new(max_per_host: usize) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            max_per_host,
            hosts: Mutex::default(),
            this: this.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, host: &HostKey) -> Option<OpenConnection> {
        let mut hosts = self.lock();
        let kept = hosts.idle.get_mut(host)?.pop()?;
        drop(hosts);
        // The most recently used one is too old, so the others are, too; the sweep closes them.
        (kept.since.elapsed() < IDLE_TIMEOUT).then_some(kept.connection)
    }

    /// Keeps a connection that is ready for another request.
    pub(super) fn put(&self, host: HostKey, connection: OpenConnection) {
        if self.max_per_host == 0 {
            return;
        }
        let mut hosts = self.lock();
        let idle = hosts.idle.entry(host).or_default();
        if idle.len() >= self.max_per_host {
            return;
        }
        idle.push(IdleConnection {
            connection,
            since: Instant::now(),
        });
        if !hosts.is_swept {
            hosts.is_swept = true;
            tokio::spawn(sweep(self.this.clone()));
        }
    }
}

/// Closes connections that were idle for too long, until none is left.
async fn sweep(kept: Weak<KeptConnections>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT / 4).await;
        let Some(kept) = kept.upgrade() else {
            return;
        };
        let mut closing = Vec::new();
        let mut hosts = kept.lock();
        hosts.idle.retain(|_, idle| {
            let is_old = |one: &IdleConnection| one.since.elapsed() >= IDLE_TIMEOUT;
            let old = idle.partition_point(is_old);
            closing.extend(idle.drain(..old));
            !idle.is_empty()
        });
        hosts.is_swept = !hosts.idle.is_empty();
        let is_done = !hosts.is_swept;
        drop(hosts);
        drop(closing);
        if is_done {
            return;
        }
    }
}
