//! Sending the messages of a file in the background.
//!
//! A job lives in the process that took the file. After a restart nobody continues it; the same page sent again sends
//! only the rest, because every row has its own idempotency key.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::access::token::TokenHash;
use domain::{Access, AccountId};
use engine::refusals::csv::LineProblem;
use engine::sending::bulk::{BulkRow, BulkSettings};
use engine::sending::submit::{IdempotentRequest, SubmitError};
use futures_util::StreamExt as _;
use permits::{Permit, Permits};
use requests::Problem;

use crate::Dashboard;
use crate::kit::browser::hex;

/// Jobs of a process, and of one account.
const MAX_RUNNING: usize = 8;
const MAX_PER_ACCOUNT: usize = 1;
/// Further jobs push the oldest out of memory.
const MAX_REMEMBERED: usize = 200;
/// Messages of a job that wait to be stored at the same time.
const IN_FLIGHT: usize = 64;
const MAX_PROBLEMS: usize = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(200);
const MAX_BUSY: u32 = 100;

/// The jobs of this process.
pub(crate) struct BulkJobs {
    permits: Arc<Permits<AccountId>>,
    jobs: Mutex<VecDeque<Arc<Job>>>,
}

impl BulkJobs {
    pub(crate) fn new() -> Self {
        Self {
            permits: Permits::new(MAX_RUNNING, |_| MAX_PER_ACCOUNT),
            jobs: Mutex::default(),
        }
    }

    /// A job of an account.
    pub(super) fn find(&self, account: AccountId, id: &str) -> Option<Arc<Job>> {
        let jobs = lock(&self.jobs);
        let found = jobs
            .iter()
            .find(|job| job.account == account && job.id == id);
        found.cloned()
    }

    fn remember(&self, job: Arc<Job>) {
        let mut jobs = lock(&self.jobs);
        jobs.retain(|known| known.account != job.account || known.id != job.id);
        jobs.push_back(job);
        if jobs.len() > MAX_REMEMBERED {
            jobs.pop_front();
        }
    }
}

pub(super) struct Job {
    pub(super) id: String,
    account: AccountId,
    pub(super) total: usize,
    progress: Mutex<Progress>,
}

/// How far a job has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) accepted: usize,
    pub(super) refused: usize,
    /// Why rows were refused; only the first ones.
    pub(super) problems: Vec<LineProblem>,
    /// Why the rest is not sent.
    pub(super) stopped: Option<String>,
    pub(super) is_over: bool,
}

/// What is to be sent.
pub(super) struct Order {
    pub(super) access: Access,
    pub(super) from: String,
    pub(super) test_mode: String,
    /// Idempotency key of the page.
    pub(super) once: String,
    pub(super) rows: Vec<BulkRow>,
}

/// Other files of the account are being sent.
pub(super) struct Occupied;

impl Job {
    pub(super) fn progress(&self) -> Progress {
        lock(&self.progress).clone()
    }

    fn count(&self, line: u64, outcome: Result<(), String>) {
        let mut progress = lock(&self.progress);
        match outcome {
            Ok(()) => progress.accepted += 1,
            Err(reason) => {
                progress.refused += 1;
                if progress.problems.len() < MAX_PROBLEMS {
                    progress.problems.push(LineProblem { line, reason });
                }
            }
        }
    }

    fn stop(&self, reason: String) {
        lock(&self.progress).stopped.get_or_insert(reason);
    }

    fn is_stopped(&self) -> bool {
        lock(&self.progress).stopped.is_some()
    }
}

/// Starts to send. The same page sent again continues where it was interrupted.
pub(super) fn start(dashboard: &Arc<Dashboard>, order: Order) -> Result<Arc<Job>, Occupied> {
    let account = order.access.account;
    let id = hex(TokenHash::from_secret(&order.once).as_bytes());
    let running = dashboard.bulk.find(account, &id);
    if let Some(running) = running.filter(|job| !job.progress().is_over) {
        return Ok(running);
    }
    let permit = dashboard.bulk.permits.try_acquire(&[account]);
    let permit = permit.ok_or(Occupied)?;
    let job = Arc::new(Job {
        id,
        account,
        total: order.rows.len(),
        progress: Mutex::default(),
    });
    dashboard.bulk.remember(job.clone());
    tokio::spawn(run(dashboard.clone(), job.clone(), order, permit));
    Ok(job)
}

async fn run(dashboard: Arc<Dashboard>, job: Arc<Job>, order: Order, _permit: Permit<AccountId>) {
    let order = Arc::new(order);
    let sends = (0..order.rows.len())
        .map(|place| send(dashboard.clone(), job.clone(), order.clone(), place));
    let mut sends = futures_util::stream::iter(sends).buffer_unordered(IN_FLIGHT);
    while sends.next().await.is_some() {}
    lock(&job.progress).is_over = true;
}

async fn send(dashboard: Arc<Dashboard>, job: Arc<Job>, order: Arc<Order>, place: usize) {
    let row = &order.rows[place];
    let settings = BulkSettings {
        from: &order.from,
        test_mode: Some(order.test_mode.as_str()).filter(|mode| !mode.is_empty()),
    };
    for _ in 0..MAX_BUSY {
        if job.is_stopped() {
            return;
        }
        let once = once(&order.once, place, row);
        let submit = &dashboard.engine.submit;
        let sent = submit.send(&order.access, row.order(settings), once, None);
        let Err(error) = sent.await else {
            return job.count(row.line, Ok(()));
        };
        match error {
            SubmitError::Busy => tokio::time::sleep(BUSY_PAUSE).await,
            SubmitError::Invalid(_) | SubmitError::Country { .. } | SubmitError::Sender(_) => {
                return job.count(row.line, Err(words(&dashboard, error)));
            }
            error => return job.stop(words(&dashboard, error)),
        }
    }
    job.stop("The service is overloaded. Send the page again later.".to_owned());
}

fn words(dashboard: &Dashboard, error: SubmitError) -> String {
    Problem::from_submit(error, &dashboard.settings.currency).into_message()
}

fn once(page: &str, place: usize, row: &BulkRow) -> Option<IdempotentRequest> {
    let all = format!("{page}\n{place}\n{}\n{}", row.to, row.text);
    let key = hex(TokenHash::from_secret(&all).as_bytes());
    IdempotentRequest::new(key.as_bytes(), all.as_bytes())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
