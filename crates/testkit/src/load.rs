//! The load generator: N keep-alive connections that each ask again as soon as they are answered.
//!
//! It shares the machine with the server it measures, so it is built to cost little: one thread,
//! buffers that are reused, no allocation for a request. A closed loop asks no faster than it is
//! answered; latency is from the first byte written to the last byte read.

mod frame;
mod gate;

pub use gate::Gate;

use crate::histogram::Histogram;
use frame::{Framed, frame, invalid};
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::task::LocalSet;
use tokio::time::{timeout, timeout_at};

/// A run in which no answer comes for so long is given up, so that a hung server ends it.
const STALL: Duration = Duration::from_secs(30);
/// How often a connection that broke is opened anew before it is given up.
const MAX_RECONNECTS: usize = 100;
const BUFFER_BYTES: usize = 8 << 10;
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// What to ask, how hard and for how long.
pub struct Load {
    /// Opened all at once, each with one request under way.
    pub connections: usize,
    /// Load that is not measured: caches fill, pools grow.
    pub warm_up: Duration,
    /// The measured part.
    pub until: Until,
    /// What is sent.
    pub requests: Requests,
    /// Sees every answer, those of the warm-up too; it runs between requests, so keep it short.
    pub on_answer: Option<OnAnswer>,
}

/// See [`Load::on_answer`].
pub type OnAnswer = Box<dyn FnMut(Answer<'_>) + Send>;

/// When the measured part ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time; what is then under way is still awaited and counted.
    Elapsed(Duration),
    /// After so many requests.
    Count(u64),
}

/// The bytes of whole requests; [`crate::http::encode`] makes them.
pub enum Requests {
    /// The same each time.
    Fixed(Vec<u8>),
    /// Written into the cleared buffer, given the number of the request.
    Made(MakeRequest),
}

/// See [`Requests::Made`].
pub type MakeRequest = Box<dyn FnMut(u64, &mut Vec<u8>) + Send>;

/// One answer, borrowed from the connection's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
}

/// What a run measured.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Latency of the measured requests, whatever their status.
    pub latency: Histogram,
    /// From the end of the warm-up to the last answer.
    pub elapsed: Duration,
    /// Answers other than 200 and 202, those of the warm-up included.
    pub wrong: u64,
    /// The first of them, or the first answer that could not be read.
    pub wrong_sample: Option<String>,
    /// Connections that could not be opened, or broke before their answer was whole.
    pub failed_connections: u64,
    /// The first reason for a failed connection.
    pub failure_sample: Option<String>,
    /// Connections that had an answer at all: all of them, when everyone was served.
    pub served_connections: usize,
    /// Whether the run was given up because no answer came any more.
    pub stalled: bool,
}

impl Report {
    /// Measured answers.
    pub fn answers(&self) -> u64 {
        self.latency.count()
    }

    /// Measured answers a second.
    pub fn rate(&self) -> u64 {
        let nanoseconds = self.elapsed.as_nanos().max(1);
        let rate = u128::from(self.answers()) * 1_000_000_000 / nanoseconds;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Whether every connection was served, with nothing but 200 and 202.
    pub fn is_clean(&self, connections: usize) -> bool {
        let served = self.served_connections == connections && !self.stalled;
        served && self.wrong == 0 && self.failed_connections == 0
    }
}

/// Runs the load on a thread of its own and blocks until it is done.
pub fn run(addr: SocketAddr, load: Load) -> Report {
    start(addr, load, None)
}

/// [`run`], with requests held back at `gate` while too much is under way. Each answer 200 or 202 holds
/// a place there until somebody calls [`Gate::leave`] for it.
pub fn run_gated(addr: SocketAddr, load: Load, gate: Arc<Gate>) -> Report {
    start(addr, load, Some(gate))
}

fn start(addr: SocketAddr, load: Load, gate: Option<Arc<Gate>>) -> Report {
    let generator = thread::Builder::new().name("load".into()).spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be built");
        LocalSet::new().block_on(&runtime, drive(addr, load, gate))
    });
    generator
        .expect("a thread can be started")
        .join()
        .expect("the load generator ran to its end")
}

async fn drive(addr: SocketAddr, load: Load, gate: Option<Arc<Gate>>) -> Report {
    let run = Rc::new(Run::new(load, gate));
    let tasks: Vec<_> = (0..run.connections)
        .map(|_| tokio::task::spawn_local(keep_connected(addr, Rc::clone(&run))))
        .collect();
    for mut task in tasks {
        // Whether the others stall shows just as well while this one is awaited.
        while timeout(STALL, &mut task).await.is_err() {
            if run.seconds_since_answer() >= STALL.as_secs() {
                run.report.borrow_mut().stalled = true;
                return run.finish();
            }
        }
    }
    run.finish()
}

/// What the connections of a run share. They live on one thread and no borrow outlives an await.
struct Run {
    connections: usize,
    until: Until,
    gate: Option<Arc<Gate>>,
    measured_from: Instant,
    last_answer: Cell<Instant>,
    asked: Cell<u64>,
    measured: Cell<u64>,
    fixed: Vec<u8>,
    made: Option<RefCell<MakeRequest>>,
    on_answer: Option<RefCell<OnAnswer>>,
    report: RefCell<Report>,
}

impl Run {
    fn new(load: Load, gate: Option<Arc<Gate>>) -> Self {
        let (fixed, made) = match load.requests {
            Requests::Fixed(bytes) => (bytes, None),
            Requests::Made(make) => (Vec::new(), Some(RefCell::new(make))),
        };
        let now = Instant::now();
        Self {
            connections: load.connections,
            until: load.until,
            gate,
            measured_from: now + load.warm_up,
            last_answer: Cell::new(now),
            asked: Cell::new(0),
            measured: Cell::new(0),
            fixed,
            made,
            on_answer: load.on_answer.map(RefCell::new),
            report: RefCell::default(),
        }
    }

    /// Waits for a place at the gate, at most until no request is wanted any more. Returns when that
    /// was; without a gate, the time given.
    async fn pass_gate(&self, now: Instant) -> Instant {
        let Some(gate) = &self.gate else {
            return now;
        };
        match self.until {
            Until::Count(_) => gate.enter().await,
            Until::Elapsed(limit) => {
                let end = (self.measured_from + limit).into();
                // At the end the request is not sent, so it needs no place.
                let _late = timeout_at(end, gate.enter()).await;
            }
        }
        Instant::now()
    }

    /// Gives back the place of a request that was not sent, or led to no work.
    fn leave_gate(&self) {
        if let Some(gate) = &self.gate {
            gate.leave();
        }
    }

    /// Whether a request that starts now is still wanted, and then whether it counts.
    fn next(&self, now: Instant) -> Option<Phase> {
        if now < self.measured_from {
            return Some(Phase::WarmUp);
        }
        let goes_on = match self.until {
            Until::Elapsed(limit) => now - self.measured_from < limit,
            Until::Count(limit) => self.measured.get() < limit,
        };
        self.measured.set(self.measured.get() + u64::from(goes_on));
        goes_on.then_some(Phase::Measured)
    }

    /// The bytes to send: `own` is filled only where each request differs.
    fn request<'a>(&'a self, own: &'a mut Vec<u8>) -> &'a [u8] {
        let number = self.asked.replace(self.asked.get() + 1);
        let Some(make) = &self.made else {
            return &self.fixed;
        };
        own.clear();
        make.borrow_mut()(number, own);
        own
    }

    fn record(&self, phase: Phase, started: Instant, now: Instant, answer: Answer<'_>) {
        self.last_answer.set(now);
        let mut report = self.report.borrow_mut();
        if phase == Phase::Measured {
            report.latency.record(now - started);
        }
        if !matches!(answer.status, 200 | 202) {
            self.leave_gate();
            report.wrong += 1;
            report.wrong_sample.get_or_insert_with(|| {
                format!("{} {}", answer.status, String::from_utf8_lossy(answer.body))
            });
        }
        if let Some(on_answer) = &self.on_answer {
            on_answer.borrow_mut()(answer);
        }
    }

    fn fail(&self, error: &io::Error) {
        let mut report = self.report.borrow_mut();
        report.failed_connections += 1;
        report
            .failure_sample
            .get_or_insert_with(|| error.to_string());
    }

    fn seconds_since_answer(&self) -> u64 {
        self.last_answer.get().elapsed().as_secs()
    }

    fn finish(&self) -> Report {
        let mut report = self.report.take();
        report.elapsed = self
            .last_answer
            .get()
            .saturating_duration_since(self.measured_from);
        report
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Measured,
}

/// A connection that breaks is opened again; one that cannot be opened is given up.
async fn keep_connected(addr: SocketAddr, run: Rc<Run>) {
    let mut client = Client::default();
    for _ in 0..=MAX_RECONNECTS {
        let ended = match TcpStream::connect(addr).await {
            Ok(stream) => client.keep_asking(stream, &run).await,
            Err(error) => return run.fail(&error),
        };
        match ended {
            Ok(()) => return,
            Err(error) => {
                run.leave_gate();
                run.fail(&error);
            }
        }
    }
}

/// The buffers of one connection.
struct Client {
    request: Vec<u8>,
    received: Vec<u8>,
    served: bool,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            request: Vec::new(),
            received: vec![0; BUFFER_BYTES],
            served: false,
        }
    }
}

impl Client {
    async fn keep_asking(&mut self, mut stream: TcpStream, run: &Run) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut now = run.pass_gate(Instant::now()).await;
        while let Some(phase) = run.next(now) {
            let started = now;
            stream.write_all(run.request(&mut self.request)).await?;
            let (status, body) = self.read_answer(&mut stream).await?;
            now = Instant::now();
            run.record(
                phase,
                started,
                now,
                Answer {
                    status,
                    body: &self.received[body],
                },
            );
            if !self.served {
                self.served = true;
                run.report.borrow_mut().served_connections += 1;
            }
            now = run.pass_gate(now).await;
        }
        run.leave_gate();
        Ok(())
    }

    /// Reads until head and body are there; returns the status and where the body lies.
    async fn read_answer(&mut self, stream: &mut TcpStream) -> io::Result<Framed> {
        let mut filled = 0;
        loop {
            let count = stream.read(&mut self.received[filled..]).await?;
            if count == 0 {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "closed before the answer",
                ));
            }
            filled += count;
            let end = match frame(&self.received[..filled])? {
                Some((status, body)) if body.end == filled => return Ok((status, body)),
                Some((_, body)) if body.end < filled => return Err(invalid("bytes behind it")),
                Some((_, body)) => body.end,
                None => filled + 1,
            };
            if end > MAX_ANSWER_BYTES {
                return Err(invalid("it is too long"));
            }
            if end > self.received.len() {
                self.received.resize(end.next_power_of_two(), 0);
            }
        }
    }
}
