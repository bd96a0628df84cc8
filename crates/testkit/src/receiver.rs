//! A callback receiver: it answers `200` and `OK`, or what a script says, and logs the requests.
//!
//! It shares the machine with the service that calls it, so it is cheap: one thread, one buffer for each connection,
//! heads read in place. Only the log allocates; for load tests, [`ReceiverBuilder::on_request`] replaces it.

mod connection;
mod reply;
mod request;

pub use reply::Reply;
pub use request::{ReceivedRequest, Request};

use connection::Connection;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::sync::oneshot;

/// The pause after a failed `accept`, to avoid a busy loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

/// Decides the answer to a request. It runs on the receiver's only thread, so it must not block. Use [`Reply::after`]
/// for a delay.
type Script = Box<dyn Fn(&Request<'_>) -> Reply + Send + Sync>;
/// Gets the path and the body of each request.
type OnRequest = Box<dyn Fn(&str, &[u8]) + Send + Sync>;

/// The settings of a receiver.
#[derive(Default)]
pub struct ReceiverBuilder {
    bind: Option<String>,
    script: Option<Script>,
    on_request: Option<OnRequest>,
}

impl ReceiverBuilder {
    /// Listens on this address instead of a free port of `127.0.0.1`.
    #[must_use]
    pub fn bind(mut self, address: impl Into<String>) -> Self {
        self.bind = Some(address.into());
        self
    }

    /// Answers by this script instead of always `200` and `OK`.
    #[must_use]
    pub fn script(
        mut self,
        script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
    ) -> Self {
        self.script = Some(Box::new(script));
        self
    }

    /// Calls this closure for each complete request instead of logging it.
    #[must_use]
    pub fn on_request(mut self, call: impl Fn(&str, &[u8]) + Send + Sync + 'static) -> Self {
        self.on_request = Some(Box::new(call));
        self
    }

    /// Starts it; panics if the address is in use.
    pub fn start(self) -> Receiver {
        self.try_start()
            .unwrap_or_else(|error| panic!("a receiver cannot start: {error}"))
    }

    /// Starts it; fails if the address is in use.
    pub fn try_start(self) -> io::Result<Receiver> {
        let listener = listen(self.bind.as_deref().unwrap_or("127.0.0.1:0"))?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: self.script,
            on_request: self.on_request,
            log: Mutex::default(),
            changed: Condvar::new(),
        });
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("receiver".into())
            .spawn(move || run(listener, &served, stopped))?;
        Ok(Receiver {
            addr,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    let listener = TcpListener::bind(&addresses[..])?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A running receiver. On drop it stops and closes all connections.
pub struct Receiver {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts one on a free port of `127.0.0.1` that answers `200` and `OK` to everything.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Starts to build one with an address, a script or a closure.
    pub fn builder() -> ReceiverBuilder {
        ReceiverBuilder::default()
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of a path that starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// The number of requests, logged or not.
    pub fn count(&self) -> usize {
        self.shared.log().count
    }

    /// All requests so far, in the order in which they were complete; none if [`ReceiverBuilder::on_request`] is set.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.shared.log().received.clone()
    }

    /// Blocks until this many requests have arrived, at most for `deadline`. Returns whether they have.
    #[must_use]
    pub fn wait_for(&self, count: usize, deadline: Duration) -> bool {
        let mut log = self.shared.log();
        log.waiters += 1;
        let too_few = |log: &mut RequestLog| log.count < count;
        let waited = self
            .shared
            .changed
            .wait_timeout_while(log, deadline, too_few);
        let (mut log, _) = waited.unwrap_or_else(PoisonError::into_inner);
        log.waiters -= 1;
        log.count >= count
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the receiver at {} panicked", self.addr);
        }
    }
}

/// What the connections share with the handle.
struct Shared {
    script: Option<Script>,
    on_request: Option<OnRequest>,
    log: Mutex<RequestLog>,
    changed: Condvar,
}

#[derive(Default)]
struct RequestLog {
    count: usize,
    /// The number of threads in [`Receiver::wait_for`]; without any, nobody is notified.
    waiters: usize,
    received: Vec<ReceivedRequest>,
}

impl Shared {
    /// A closure that panicked does not hide earlier requests.
    fn log(&self) -> MutexGuard<'_, RequestLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a complete request and decides the answer; `None` is the usual answer, which needs no allocation.
    fn receive(&self, request: &Request<'_>) -> Option<Reply> {
        let logged = match &self.on_request {
            Some(call) => {
                call(request.path, request.body);
                None
            }
            None => Some(ReceivedRequest::new(request, Instant::now())),
        };
        let mut log = self.log();
        log.count += 1;
        log.received.extend(logged);
        if log.waiters > 0 {
            self.changed.notify_all();
        }
        drop(log);
        self.script.as_ref().map(|decide| decide(request))
    }
}

/// Serves until the handle is dropped; the connections end with the runtime.
fn run(listener: TcpListener, shared: &Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        tokio::select! {
            () = accept_all(listener, shared) => {}
            _handle_is_dropped = stopped => {}
        }
    });
}

async fn accept_all(listener: tokio::net::TcpListener, shared: &Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(Connection::new(stream, peer, Arc::clone(shared)).serve());
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}
