//! A callback receiver for tests and benchmarks: it answers `200` and `OK`, or what a script says,
//! and remembers what came.
//!
//! It shares the machine with the service that calls it, so it costs little: one thread, a buffer
//! for each connection, heads read in place. Only remembering allocates; under load,
//! [`ReceiverBuilder::on_request`] takes the place of the memory.

mod connection;
mod reply;
mod request;

pub use reply::Reply;
pub use request::{Received, Request};

use connection::Connection;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::sync::oneshot;

/// A pause when the system has no connection to give: to ask again at once would be a busy loop.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Decides the answer to a request. It runs on the receiver's only thread, so it must not block;
/// [`Reply::after`] delays.
type Script = Box<dyn Fn(&Request<'_>) -> Reply + Send + Sync>;
/// Sees path and body of each request.
type OnRequest = Box<dyn Fn(&str, &[u8]) + Send + Sync>;

/// What is decided before a receiver starts.
#[derive(Default)]
pub struct ReceiverBuilder {
    bind: Option<String>,
    script: Option<Script>,
    on_request: Option<OnRequest>,
}

impl ReceiverBuilder {
    /// Listens here rather than on a free port of `127.0.0.1`.
    #[must_use]
    pub fn bind(mut self, address: impl Into<String>) -> Self {
        self.bind = Some(address.into());
        self
    }

    /// Answers by this script rather than always `200` and `OK`.
    #[must_use]
    pub fn script(
        mut self,
        script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static,
    ) -> Self {
        self.script = Some(Box::new(script));
        self
    }

    /// Shows path and body of each request to this closure, as soon as the request is whole, and
    /// remembers none.
    #[must_use]
    pub fn on_request(mut self, see: impl Fn(&str, &[u8]) + Send + Sync + 'static) -> Self {
        self.on_request = Some(Box::new(see));
        self
    }

    /// Starts it; panics when the address is taken.
    pub fn start(self) -> Receiver {
        self.try_start()
            .unwrap_or_else(|error| panic!("a receiver cannot start: {error}"))
    }

    /// Starts it, unless the address is taken.
    pub fn try_start(self) -> io::Result<Receiver> {
        let listener = listen(self.bind.as_deref().unwrap_or("127.0.0.1:0"))?;
        let addr = listener.local_addr()?;
        let desk = Arc::new(Desk {
            script: self.script,
            on_request: self.on_request,
            book: Mutex::default(),
            written: Condvar::new(),
        });
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&desk);
        let thread = thread::Builder::new()
            .name("receiver".into())
            .spawn(move || run(listener, &served, stopped))?;
        Ok(Receiver {
            addr,
            desk,
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

/// A running receiver; it ends, with all its connections, when it is dropped.
pub struct Receiver {
    addr: SocketAddr,
    desk: Arc<Desk>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// One on a free port of `127.0.0.1` that answers `200` and `OK` to everything.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// For one with an address, a script or a closure.
    pub fn builder() -> ReceiverBuilder {
        ReceiverBuilder::default()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of a path that starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// How many requests came, remembered or not.
    pub fn count(&self) -> usize {
        self.desk.book().count
    }

    /// All requests so far, in the order in which they were whole; none where
    /// [`ReceiverBuilder::on_request`] sees them.
    pub fn received(&self) -> Vec<Received> {
        self.desk.book().received.clone()
    }

    /// Blocks until so many requests have come, at most for `deadline`; says whether they have.
    #[must_use]
    pub fn wait_for(&self, count: usize, deadline: Duration) -> bool {
        let mut book = self.desk.book();
        book.waiters += 1;
        let few = |book: &mut Book| book.count < count;
        let waited = self.desk.written.wait_timeout_while(book, deadline, few);
        let (mut book, _) = waited.unwrap_or_else(PoisonError::into_inner);
        book.waiters -= 1;
        book.count >= count
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the receiver at {} had ended with a panic", self.addr);
        }
    }
}

/// What the connections share with the owner.
struct Desk {
    script: Option<Script>,
    on_request: Option<OnRequest>,
    book: Mutex<Book>,
    written: Condvar,
}

#[derive(Default)]
struct Book {
    count: usize,
    /// Threads in [`Receiver::wait_for`]; without any, nobody is woken.
    waiters: usize,
    received: Vec<Received>,
}

impl Desk {
    /// A closure that panicked does not hide what had come before.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a whole request and decides; `None` is the usual answer, which needs no allocation.
    fn take(&self, request: &Request<'_>) -> Option<Reply> {
        let kept = match &self.on_request {
            Some(see) => {
                see(request.path, request.body);
                None
            }
            None => Some(Received::new(request, Instant::now())),
        };
        let mut book = self.book();
        book.count += 1;
        book.received.extend(kept);
        if book.waiters > 0 {
            self.written.notify_all();
        }
        drop(book);
        self.script.as_ref().map(|decide| decide(request))
    }
}

/// Serves until the owner lets go of `stopped`; the connections end with the runtime.
fn run(listener: TcpListener, desk: &Arc<Desk>, stopped: oneshot::Receiver<()>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        tokio::select! {
            () = accept_all(listener, desk) => {}
            _owner_is_gone = stopped => {}
        }
    });
}

async fn accept_all(listener: tokio::net::TcpListener, desk: &Arc<Desk>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(Connection::new(stream, peer, Arc::clone(desk)).serve());
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN_AFTER).await,
        }
    }
}
