//! A scripted SMSC for tests and benchmarks: it takes binds and messages, answers as a script says, sends receipts, and
//! misbehaves on demand.
//!
//! It speaks SMPP with octets of its own making, so it cannot share a mistake with the codec that it tests. It runs on
//! one thread and ends, with all its connections, when its handle is dropped.

mod connection;
mod octets;
mod receipt;
mod script;

pub use octets::Submit;
pub use receipt::{Receipt, ReceiptShape};
pub use script::{Act, BindAct, BindKind, BindRequest, Ids};

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::PATIENCE;

use connection::Order;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot, watch};

/// A pause when the system has no connection to give: to ask again at once would be a busy loop.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(10);
/// Of each kind so much is remembered; beyond, things are only counted.
const MOST_REMEMBERED: usize = 200_000;

type OnSubmit = Box<dyn Fn(&Submit) -> Vec<Act> + Send + Sync>;
type OnBind = Box<dyn Fn(&BindRequest) -> BindAct + Send + Sync>;

/// What is decided before an SMSC starts.
#[derive(Default)]
pub struct SmscBuilder {
    bind: Option<SocketAddr>,
    ids: Ids,
    drip: bool,
    on_submit: Option<OnSubmit>,
    on_bind: Option<OnBind>,
}

impl SmscBuilder {
    /// Listens here rather than on a free port of `127.0.0.1`.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Writes the IDs in its answers so.
    #[must_use]
    pub fn ids(mut self, ids: Ids) -> Self {
        self.ids = ids;
        self
    }

    /// Writes everything one octet at a time.
    #[must_use]
    pub fn drip(mut self) -> Self {
        self.drip = true;
        self
    }

    /// Does this with each message, rather than take it and answer at once.
    #[must_use]
    pub fn on_submit(
        mut self,
        script: impl Fn(&Submit) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        self.on_submit = Some(Box::new(script));
        self
    }

    /// Does this with each bind, rather than accept it.
    #[must_use]
    pub fn on_bind(
        mut self,
        script: impl Fn(&BindRequest) -> BindAct + Send + Sync + 'static,
    ) -> Self {
        self.on_bind = Some(Box::new(script));
        self
    }

    /// Starts it; panics when the address is taken.
    pub fn start(self) -> Smsc {
        self.try_start()
            .unwrap_or_else(|error| panic!("an SMSC cannot start: {error}"))
    }

    /// Starts it, unless the address is taken.
    pub fn try_start(self) -> io::Result<Smsc> {
        let address = self.bind.unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let desk = Arc::new(Desk {
            ids: self.ids,
            drip: self.drip,
            on_submit: self.on_submit,
            on_bind: self.on_bind,
            seen: watch::Sender::new(Seen::default()),
            open: Mutex::default(),
            sequence: AtomicU32::new(1),
            connections: AtomicUsize::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let served = desk.clone();
        let thread = thread::Builder::new()
            .name("smsc".into())
            .spawn(move || run(listener, &served, stopped))?;
        Ok(Smsc {
            addr,
            desk,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// An answer that came to something that the SMSC sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// On which connection, from 0.
    pub connection: usize,
    /// To which sequence number.
    pub sequence: u32,
    /// The status.
    pub status: u32,
}

/// What an SMSC has seen so far, each in its order.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Binds, accepted or not.
    pub binds: Vec<BindRequest>,
    /// Messages.
    pub submits: Vec<Submit>,
    /// How many messages came, remembered or not.
    pub taken: usize,
    /// Answers to receipts.
    pub answers: Vec<Answer>,
    /// Commands that it has no name for.
    pub unknown: usize,
    /// `unbind` of the other side.
    pub unbinds: usize,
    /// Connections that have come and gone.
    pub closed: usize,
    /// How many were bound at the same time, at most.
    pub most_bound: usize,
}

/// A running SMSC; it ends, with all its connections, when it is dropped.
pub struct Smsc {
    addr: SocketAddr,
    desk: Arc<Desk>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Smsc {
    /// One on a free port of `127.0.0.1` that accepts every bind and takes every message.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// For one with a script.
    pub fn builder() -> SmscBuilder {
        SmscBuilder::default()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.desk.seen.borrow().clone()
    }

    /// Waits until it has seen enough; panics when that takes too long. `what` says what is waited for.
    pub async fn wait_until(&self, what: &str, enough: impl FnMut(&Seen) -> bool) {
        let mut seen = self.desk.seen.subscribe();
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(enough)).await;
        let Ok(seen) = waited else {
            panic!("waited in vain until {what}");
        };
        drop(seen.expect("the SMSC runs"));
    }

    /// The connections that are bound, by their numbers.
    pub fn bound(&self) -> Vec<usize> {
        self.desk
            .open()
            .iter()
            .map(|open| open.connection)
            .collect()
    }

    /// Sends a receipt on the first connection that takes some; says under which sequence number.
    pub fn send(&self, receipt: &Receipt) -> Option<u32> {
        let sequence = self.desk.next_sequence();
        let order = Order::Write(receipt.to_pdu(sequence));
        let open = self.desk.open();
        let receiver = open.iter().find(|open| open.kind.receives())?;
        receiver.orders.try_send(order).ok().map(|()| sequence)
    }

    /// Sends a receipt on this connection, if it is bound and takes some; says under which sequence number.
    pub fn send_on(&self, connection: usize, receipt: &Receipt) -> Option<u32> {
        let sequence = self.desk.next_sequence();
        let order = Order::Write(receipt.to_pdu(sequence));
        let open = self.desk.open();
        let receiver = open
            .iter()
            .find(|open| open.connection == connection && open.kind.receives())?;
        receiver.orders.try_send(order).ok().map(|()| sequence)
    }

    /// The answers to receipts after the first so many.
    pub fn answers_after(&self, count: usize) -> Vec<Answer> {
        let seen = self.desk.seen.borrow();
        seen.answers.get(count..).unwrap_or_default().to_vec()
    }

    /// Sends octets as they are on every bound connection.
    pub fn send_octets(&self, octets: &[u8]) {
        self.order_all(|| Order::Write(octets.to_vec()));
    }

    /// Hangs up on every bound connection.
    pub fn hang_up(&self) {
        self.order_all(|| Order::Close);
    }

    fn order_all(&self, order: impl Fn() -> Order) {
        for open in self.desk.open().iter() {
            // A connection whose orders are full or gone is on its end.
            if open.orders.try_send(order()).is_err() {
                eprintln!("connection {} takes no orders", open.connection);
            }
        }
    }
}

impl Drop for Smsc {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the SMSC at {} had ended with a panic", self.addr);
        }
    }
}

/// A bound connection.
struct Open {
    connection: usize,
    kind: BindKind,
    orders: mpsc::Sender<Order>,
}

/// What the connections share with the owner.
struct Desk {
    ids: Ids,
    drip: bool,
    on_submit: Option<OnSubmit>,
    on_bind: Option<OnBind>,
    seen: watch::Sender<Seen>,
    open: Mutex<Vec<Open>>,
    sequence: AtomicU32,
    connections: AtomicUsize,
}

impl Desk {
    fn open(&self) -> std::sync::MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_sequence(&self) -> u32 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    fn note(&self, note: impl FnOnce(&mut Seen)) {
        self.seen.send_modify(note);
    }

    /// Notes a message, gives it its number, and says what to do with it.
    fn take(&self, mut submit: Submit) -> (Submit, Vec<Act>) {
        self.note(|seen| {
            submit.number = seen.taken;
            seen.taken += 1;
            if seen.submits.len() < MOST_REMEMBERED {
                seen.submits.push(submit.clone());
            }
        });
        let acts = match &self.on_submit {
            Some(script) => script(&submit),
            None => vec![Act::Answer],
        };
        (submit, acts)
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
            Ok((stream, _)) => {
                let number = desk.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(connection::serve(stream, number, desk.clone()));
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN_AFTER).await,
        }
    }
}
