//! A scripted SMSC: it accepts binds and messages, answers as a script says, sends receipts, and misbehaves on demand.
//!
//! It has its own SMPP codec, so it cannot share a mistake with the codec that it tests. It runs on one thread. When
//! its handle is dropped, it stops and closes all connections.

mod connection;
mod octets;
mod receipt;
mod script;

pub use octets::Submit;
pub use receipt::{Receipt, ReceiptShape};
pub use script::{Action, BindAction, BindKind, BindRequest, IdFormat};

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::TEST_TIMEOUT;

use connection::WriterCommand;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot, watch};

/// The pause after a failed `accept`, to avoid a busy loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);
/// At most this many messages are kept in the log. Further messages are only counted.
const MAX_LOGGED_SUBMITS: usize = 200_000;

type OnSubmit = Box<dyn Fn(&Submit) -> Vec<Action> + Send + Sync>;
type OnBind = Box<dyn Fn(&BindRequest) -> BindAction + Send + Sync>;

/// The settings of an SMSC.
#[derive(Default)]
pub struct SmscBuilder {
    bind: Option<SocketAddr>,
    id_format: IdFormat,
    one_octet_at_a_time: bool,
    on_submit: Option<OnSubmit>,
    on_bind: Option<OnBind>,
}

impl SmscBuilder {
    /// Listens on this address instead of a free port of `127.0.0.1`.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Writes the IDs in its answers in this format.
    #[must_use]
    pub fn id_format(mut self, id_format: IdFormat) -> Self {
        self.id_format = id_format;
        self
    }

    /// Writes everything one octet at a time.
    #[must_use]
    pub fn one_octet_at_a_time(mut self) -> Self {
        self.one_octet_at_a_time = true;
        self
    }

    /// Runs this script for each message. Without a script, each message is accepted at once.
    #[must_use]
    pub fn on_submit(
        mut self,
        script: impl Fn(&Submit) -> Vec<Action> + Send + Sync + 'static,
    ) -> Self {
        self.on_submit = Some(Box::new(script));
        self
    }

    /// Runs this script for each bind. Without a script, each bind is accepted.
    #[must_use]
    pub fn on_bind(
        mut self,
        script: impl Fn(&BindRequest) -> BindAction + Send + Sync + 'static,
    ) -> Self {
        self.on_bind = Some(Box::new(script));
        self
    }

    /// Starts it; panics if the address is in use.
    pub fn start(self) -> Smsc {
        self.try_start()
            .unwrap_or_else(|error| panic!("an SMSC cannot start: {error}"))
    }

    /// Starts it; fails if the address is in use.
    pub fn try_start(self) -> io::Result<Smsc> {
        let address = self.bind.unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            id_format: self.id_format,
            one_octet_at_a_time: self.one_octet_at_a_time,
            on_submit: self.on_submit,
            on_bind: self.on_bind,
            log: watch::Sender::new(SmscLog::default()),
            bound: Mutex::default(),
            sequence: AtomicU32::new(1),
            connections: AtomicUsize::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let served = shared.clone();
        let thread = thread::Builder::new()
            .name("smsc".into())
            .spawn(move || run(listener, &served, stopped))?;
        Ok(Smsc {
            addr,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// An answer of the client to something that the SMSC sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The connection, counted from 0.
    pub connection: usize,
    /// The sequence number.
    pub sequence: u32,
    /// The status.
    pub status: u32,
}

/// What an SMSC has received so far.
#[derive(Debug, Clone, Default)]
pub struct SmscLog {
    /// Binds, accepted or not.
    pub binds: Vec<BindRequest>,
    /// Messages.
    pub submits: Vec<Submit>,
    /// The number of messages, including those that are not in `submits`.
    pub submit_count: usize,
    /// Answers to receipts.
    pub answers: Vec<Answer>,
    /// The number of unknown commands.
    pub unknown: usize,
    /// The number of `unbind` commands.
    pub unbinds: usize,
    /// The number of closed connections.
    pub closed: usize,
    /// The largest number of connections that were bound at the same time.
    pub most_bound: usize,
}

/// A running SMSC. On drop it stops and closes all connections.
pub struct Smsc {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Smsc {
    /// Starts one on a free port of `127.0.0.1` that accepts every bind and every message.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Starts to build one with a script.
    pub fn builder() -> SmscBuilder {
        SmscBuilder::default()
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it has received so far.
    pub fn log(&self) -> SmscLog {
        self.shared.log.borrow().clone()
    }

    /// Waits until the log fulfils a condition; panics after [`TEST_TIMEOUT`]. `what` describes the condition.
    pub async fn wait_until(&self, what: &str, condition: impl FnMut(&SmscLog) -> bool) {
        let mut log = self.shared.log.subscribe();
        let waited = tokio::time::timeout(TEST_TIMEOUT, log.wait_for(condition)).await;
        let Ok(log) = waited else {
            panic!("timed out waiting until {what}");
        };
        drop(log.expect("the SMSC runs"));
    }

    /// The numbers of the bound connections.
    pub fn bound(&self) -> Vec<usize> {
        self.shared
            .bound()
            .iter()
            .map(|bound| bound.number)
            .collect()
    }

    /// Sends a receipt on the first connection that accepts receipts. Returns its sequence number.
    pub fn send(&self, receipt: &Receipt) -> Option<u32> {
        let sequence = self.shared.next_sequence();
        let command = WriterCommand::Write(receipt.to_pdu(sequence));
        let bound = self.shared.bound();
        let receiver = bound.iter().find(|bound| bound.kind.receives())?;
        receiver.writer.try_send(command).ok().map(|()| sequence)
    }

    /// Sends a receipt on this connection, if it is bound and accepts receipts. Returns its sequence number.
    pub fn send_on(&self, connection: usize, receipt: &Receipt) -> Option<u32> {
        let sequence = self.shared.next_sequence();
        let command = WriterCommand::Write(receipt.to_pdu(sequence));
        let bound = self.shared.bound();
        let receiver = bound
            .iter()
            .find(|bound| bound.number == connection && bound.kind.receives())?;
        receiver.writer.try_send(command).ok().map(|()| sequence)
    }

    /// The answers to receipts, without the first `count`.
    pub fn answers_after(&self, count: usize) -> Vec<Answer> {
        let log = self.shared.log.borrow();
        log.answers.get(count..).unwrap_or_default().to_vec()
    }

    /// Sends raw octets on every bound connection.
    pub fn send_octets(&self, octets: &[u8]) {
        self.command_all(|| WriterCommand::Write(octets.to_vec()));
    }

    /// Closes every bound connection.
    pub fn hang_up(&self) {
        self.command_all(|| WriterCommand::Close);
    }

    fn command_all(&self, command: impl Fn() -> WriterCommand) {
        for bound in self.shared.bound().iter() {
            // The queue is full or closed if the connection is about to end.
            if bound.writer.try_send(command()).is_err() {
                eprintln!("connection {} accepts no commands", bound.number);
            }
        }
    }
}

impl Drop for Smsc {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the SMSC at {} panicked", self.addr);
        }
    }
}

/// A bound connection.
struct BoundConnection {
    number: usize,
    kind: BindKind,
    writer: mpsc::Sender<WriterCommand>,
}

/// What the connections share with the handle.
struct Shared {
    id_format: IdFormat,
    one_octet_at_a_time: bool,
    on_submit: Option<OnSubmit>,
    on_bind: Option<OnBind>,
    log: watch::Sender<SmscLog>,
    bound: Mutex<Vec<BoundConnection>>,
    sequence: AtomicU32,
    connections: AtomicUsize,
}

impl Shared {
    fn bound(&self) -> std::sync::MutexGuard<'_, Vec<BoundConnection>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_sequence(&self) -> u32 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    fn update_log(&self, update: impl FnOnce(&mut SmscLog)) {
        self.log.send_modify(update);
    }

    /// Logs a message, numbers it, and returns what to do with it.
    fn receive(&self, mut submit: Submit) -> (Submit, Vec<Action>) {
        self.update_log(|log| {
            submit.number = log.submit_count;
            log.submit_count += 1;
            if log.submits.len() < MAX_LOGGED_SUBMITS {
                log.submits.push(submit.clone());
            }
        });
        let actions = match &self.on_submit {
            Some(script) => script(&submit),
            None => vec![Action::Answer],
        };
        (submit, actions)
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
            Ok((stream, _)) => {
                let number = shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(connection::serve(stream, number, shared.clone()));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}
