//! The carrier: an SMSC that delivers texts on all its sessions, many at a time, and reads the answers.

use super::tracker::{self, Tracker};
use ::smpp::{Address, BindResp, Body, Decoder, Frame, Pdu, ShortMessage, encode};
use anyhow::{Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

const READ_BYTES: usize = 64 << 10;
/// Above this size of the write buffer, nothing is delivered.
const MAX_OUTPUT: usize = 1 << 20;
const LAST_SEQUENCE: u32 = 0x7FFF_FFFF;
const BIND_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The first of the handsets, and how many there are.
const FIRST_HANDSET: usize = 37_120_000_000;
const HANDSETS: usize = 1_000_000;

/// What to deliver.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) tracker: Arc<Tracker>,
    /// The number that all texts are sent to.
    pub(super) to: Bytes,
}

/// A running SMSC. It ends when it is dropped.
pub(super) struct Smsc {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

struct Shared {
    /// How many texts of a session may be unanswered.
    window: usize,
    jobs: watch::Sender<Option<Job>>,
    /// The number of sessions that are bound.
    bound: AtomicUsize,
}

impl Smsc {
    pub(super) fn start(window: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            window,
            jobs: watch::Sender::new(None),
            bound: AtomicUsize::new(0),
        });
        runtime.spawn(accept_all(listener, Arc::clone(&shared)));
        Ok(Self {
            addr,
            shared,
            _runtime: runtime,
        })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(super) fn wait_for_sessions(&self, count: usize) -> Result<()> {
        let started = Instant::now();
        while self.shared.bound.load(Ordering::Relaxed) < count {
            ensure!(
                started.elapsed() < BIND_TIMEOUT,
                "the service has not bound {count} sessions after {} s",
                BIND_TIMEOUT.as_secs()
            );
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Lets all sessions deliver texts from now on, or none.
    pub(super) fn deliver(&self, job: Option<Job>) {
        self.shared.jobs.send_replace(job);
    }
}

async fn accept_all(listener: TcpListener, shared: Arc<Shared>) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let mut session = Session {
            shared: Arc::clone(&shared),
            is_bound: false,
            output: BytesMut::new(),
            unanswered: HashMap::new(),
            sequence: 0,
        };
        tokio::spawn(async move {
            if let Err(error) = session.run(stream).await {
                eprintln!("a session with the service ended: {error:#}");
            }
            if session.is_bound {
                session.shared.bound.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }
}

struct Session {
    shared: Arc<Shared>,
    is_bound: bool,
    output: BytesMut,
    /// Texts without an answer, by sequence number.
    unanswered: HashMap<u32, (Arc<Tracker>, usize)>,
    sequence: u32,
}

impl Session {
    async fn run(&mut self, stream: TcpStream) -> Result<()> {
        let (mut reading, mut writing) = stream.into_split();
        let mut jobs = self.shared.jobs.subscribe();
        let mut decoder = Decoder::default();
        let mut input = BytesMut::new();
        loop {
            input.reserve(READ_BYTES);
            let job = jobs.borrow_and_update().clone();
            let job = job.filter(|_| self.may_deliver());
            tokio::select! {
                read = reading.read_buf(&mut input) => {
                    if read? == 0 {
                        return Ok(());
                    }
                    while let Some(frame) = decoder.next(&mut input)? {
                        self.take(frame)?;
                    }
                }
                written = writing.write_buf(&mut self.output), if !self.output.is_empty() => {
                    written?;
                }
                changed = jobs.changed() => changed?,
                job = with_permit(job) => self.deliver(&job)?,
            }
        }
    }

    fn may_deliver(&self) -> bool {
        let has_room = self.unanswered.len() < self.shared.window && self.output.len() < MAX_OUTPUT;
        self.is_bound && has_room
    }

    /// Writes texts until the window is full or no permit is left. There is a permit for the first.
    fn deliver(&mut self, job: &Job) -> Result<()> {
        loop {
            let Some(number) = job.tracker.deliver() else {
                return Ok(());
            };
            self.sequence = self.sequence % LAST_SEQUENCE + 1;
            let body = Body::DeliverSm(Box::new(message(&job.to, number)));
            encode(&Pdu::new(self.sequence, body), &mut self.output)?;
            let unanswered = (Arc::clone(&job.tracker), number);
            self.unanswered.insert(self.sequence, unanswered);
            if !self.may_deliver() || !job.tracker.in_flight().try_acquire() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, frame: Frame) -> Result<()> {
        let Frame::Ok(pdu) = frame else {
            bail!("the service wrote {frame:?}");
        };
        let answer = match pdu.body {
            Body::Bind(kind, _) => {
                self.is_bound = true;
                self.shared.bound.fetch_add(1, Ordering::Relaxed);
                Body::BindResp(kind, BindResp::default())
            }
            Body::DeliverSmResp(_) | Body::GenericNack => {
                if let Some((tracker, number)) = self.unanswered.remove(&pdu.sequence) {
                    tracker.record_answer(number, pdu.status.is_ok());
                }
                return Ok(());
            }
            Body::EnquireLink => Body::EnquireLinkResp,
            Body::Unbind => Body::UnbindResp,
            other => bail!("no answer to {other:?}"),
        };
        encode(&Pdu::new(pdu.sequence, answer), &mut self.output)?;
        Ok(())
    }
}

/// Waits for a permit to deliver a text; forever without a job.
async fn with_permit(job: Option<Job>) -> Job {
    let Some(job) = job else {
        return std::future::pending().await;
    };
    job.tracker.in_flight().acquire().await;
    job
}

/// A text from one of many handsets.
fn message(to: &Bytes, number: usize) -> ShortMessage {
    let handset = FIRST_HANDSET + number % HANDSETS;
    ShortMessage {
        source: Address::new(1, 1, handset.to_string()),
        destination: Address::new(0, 1, to.clone()),
        short_message: tracker::text(number).into(),
        ..ShortMessage::default()
    }
}
