//! The load generator: N keep-alive connections. Each sends its next request as soon as it has its answer.
//!
//! It shares the machine with the server that it measures, so it is cheap: one thread, buffers that are reused, no
//! allocation for a request. It is a closed loop: it sends no faster than it gets answers. Latency is measured from the
//! first byte written to the last byte read.

mod frame;
mod in_flight;

pub use in_flight::InFlightLimit;

use crate::latencies::Latencies;
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

/// A run without any answer for this long is aborted.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a broken connection is opened again.
const MAX_RECONNECTS: usize = 100;
const BUFFER_BYTES: usize = 8 << 10;
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// What to send, with how many connections and for how long.
pub struct Load {
    /// The number of connections. Each has one request in flight.
    pub connections: usize,
    /// How long to send before the measurement starts, to fill caches and grow pools.
    pub warm_up: Duration,
    /// When the measured part ends.
    pub limit: RunLimit,
    /// The requests.
    pub requests: Requests,
    /// Is called with every answer, including those of the warm-up. It runs between requests, so keep it short.
    pub on_answer: Option<OnAnswer>,
}

/// See [`Load::on_answer`].
pub type OnAnswer = Box<dyn FnMut(Answer<'_>) + Send>;

/// When the measured part ends.
#[derive(Clone, Copy, Debug)]
pub enum RunLimit {
    /// After this time. Requests in flight are still awaited and counted.
    Elapsed(Duration),
    /// After this many requests.
    Count(u64),
}

/// The bytes of complete requests; [`crate::http::encode`] builds them.
pub enum Requests {
    /// The same each time.
    Fixed(Vec<u8>),
    /// Written into the empty buffer by a closure that gets the number of the request.
    Generated(MakeRequest),
}

/// See [`Requests::Generated`].
pub type MakeRequest = Box<dyn FnMut(u64, &mut Vec<u8>) + Send>;

/// One answer, borrowed from the connection's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Latencies of the measured requests, with any status.
    pub latency: Latencies,
    /// From the end of the warm-up to the last answer.
    pub elapsed: Duration,
    /// Answers other than 200 and 202, those of the warm-up included.
    pub wrong: u64,
    /// The first of them.
    pub wrong_sample: Option<String>,
    /// Connections that could not be opened, or broke before their answer was complete.
    pub failed_connections: u64,
    /// The first reason for a failed connection.
    pub failure_sample: Option<String>,
    /// Connections that got at least one answer.
    pub served_connections: usize,
    /// Whether the run was aborted because answers stopped.
    pub stalled: bool,
}

impl Report {
    /// The number of measured answers.
    pub fn answers(&self) -> u64 {
        self.latency.count()
    }

    /// Measured answers a second.
    pub fn rate(&self) -> u64 {
        let nanoseconds = self.elapsed.as_nanos().max(1);
        let rate = u128::from(self.answers()) * 1_000_000_000 / nanoseconds;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Whether every connection was served and all answers were 200 or 202.
    pub fn is_clean(&self, connections: usize) -> bool {
        let served = self.served_connections == connections && !self.stalled;
        served && self.wrong == 0 && self.failed_connections == 0
    }
}

/// Runs the load on a separate thread and blocks until it is done.
pub fn run(addr: SocketAddr, load: Load) -> Report {
    start(addr, load, None)
}

/// Like [`run`], but limits the work in flight. Each answer 200 or 202 holds a permit of `in_flight` until
/// [`InFlightLimit::release`] is called for it.
pub fn run_limited(addr: SocketAddr, load: Load, in_flight: Arc<InFlightLimit>) -> Report {
    start(addr, load, Some(in_flight))
}

fn start(addr: SocketAddr, load: Load, in_flight: Option<Arc<InFlightLimit>>) -> Report {
    let generator = thread::Builder::new().name("load".into()).spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be built");
        LocalSet::new().block_on(&runtime, drive(addr, load, in_flight))
    });
    generator
        .expect("a thread can be started")
        .join()
        .expect("the load generator does not panic")
}

async fn drive(addr: SocketAddr, load: Load, in_flight: Option<Arc<InFlightLimit>>) -> Report {
    let run = Rc::new(Run::new(load, in_flight));
    let tasks: Vec<_> = (0..run.connections)
        .map(|_| tokio::task::spawn_local(keep_connected(addr, Rc::clone(&run))))
        .collect();
    for mut task in tasks {
        // A stall of all connections is noticed here, no matter which task is awaited.
        while timeout(STALL_TIMEOUT, &mut task).await.is_err() {
            if run.seconds_since_answer() >= STALL_TIMEOUT.as_secs() {
                run.report.borrow_mut().stalled = true;
                return run.finish();
            }
        }
    }
    run.finish()
}

/// What the connections of a run share. They run on one thread, and no borrow is held across an await.
struct Run {
    connections: usize,
    limit: RunLimit,
    in_flight: Option<Arc<InFlightLimit>>,
    measured_from: Instant,
    last_answer: Cell<Instant>,
    sent: Cell<u64>,
    measured: Cell<u64>,
    fixed: Vec<u8>,
    made: Option<RefCell<MakeRequest>>,
    on_answer: Option<RefCell<OnAnswer>>,
    report: RefCell<Report>,
}

impl Run {
    fn new(load: Load, in_flight: Option<Arc<InFlightLimit>>) -> Self {
        let (fixed, made) = match load.requests {
            Requests::Fixed(bytes) => (bytes, None),
            Requests::Generated(make) => (Vec::new(), Some(RefCell::new(make))),
        };
        let now = Instant::now();
        Self {
            connections: load.connections,
            limit: load.limit,
            in_flight,
            measured_from: now + load.warm_up,
            last_answer: Cell::new(now),
            sent: Cell::new(0),
            measured: Cell::new(0),
            fixed,
            made,
            on_answer: load.on_answer.map(RefCell::new),
            report: RefCell::default(),
        }
    }

    /// Waits for a permit, at most until the end of the run. Returns the time after the wait; without a limit, the time
    /// given.
    async fn acquire_permit(&self, now: Instant) -> Instant {
        let Some(in_flight) = &self.in_flight else {
            return now;
        };
        match self.limit {
            RunLimit::Count(_) => in_flight.acquire().await,
            RunLimit::Elapsed(limit) => {
                let end = (self.measured_from + limit).into();
                // After the end no request is sent, so it needs no permit.
                let _late = timeout_at(end, in_flight.acquire()).await;
            }
        }
        Instant::now()
    }

    /// Returns the permit of a request that was not sent or not accepted.
    fn release_permit(&self) {
        if let Some(in_flight) = &self.in_flight {
            in_flight.release();
        }
    }

    /// The phase of a request that starts now; `None` at the end of the run.
    fn next(&self, now: Instant) -> Option<Phase> {
        if now < self.measured_from {
            return Some(Phase::WarmUp);
        }
        let continues = match self.limit {
            RunLimit::Elapsed(limit) => now - self.measured_from < limit,
            RunLimit::Count(limit) => self.measured.get() < limit,
        };
        self.measured
            .set(self.measured.get() + u64::from(continues));
        continues.then_some(Phase::Measured)
    }

    /// The bytes to send. `buffer` is used only if each request differs.
    fn request<'a>(&'a self, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        let number = self.sent.replace(self.sent.get() + 1);
        let Some(make) = &self.made else {
            return &self.fixed;
        };
        buffer.clear();
        make.borrow_mut()(number, buffer);
        buffer
    }

    fn record(&self, phase: Phase, started: Instant, now: Instant, answer: Answer<'_>) {
        self.last_answer.set(now);
        let mut report = self.report.borrow_mut();
        if phase == Phase::Measured {
            report.latency.record(now - started);
        }
        if !matches!(answer.status, 200 | 202) {
            self.release_permit();
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

/// Opens a broken connection again. Gives up if it cannot be opened.
async fn keep_connected(addr: SocketAddr, run: Rc<Run>) {
    let mut client = Client::default();
    for _ in 0..=MAX_RECONNECTS {
        let ended = match TcpStream::connect(addr).await {
            Ok(stream) => client.send_requests(stream, &run).await,
            Err(error) => return run.fail(&error),
        };
        match ended {
            Ok(()) => return,
            Err(error) => {
                run.release_permit();
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
    async fn send_requests(&mut self, mut stream: TcpStream, run: &Run) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut now = run.acquire_permit(Instant::now()).await;
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
            now = run.acquire_permit(now).await;
        }
        run.release_permit();
        Ok(())
    }

    /// Reads until head and body are complete. Returns the status and the range of the body.
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
                Some((_, body)) if body.end < filled => return Err(invalid("bytes after its end")),
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
