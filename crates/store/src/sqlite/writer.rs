//! The writer thread.
//!
//! It takes all work that gathered while the disk was busy, runs it in one transaction, commits once and only then
//! answers. Each piece of work has a savepoint, so that a failure does not affect the others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Instant;

use domain::ports::StoreError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint;
use super::fault::Fault;

/// How many jobs may wait in the queue.
const QUEUE: usize = 256;
/// Maximum number of jobs in one transaction.
const GROUP_JOBS: usize = 128;
/// Approximate maximum number of rows in one transaction: a job is never split.
const GROUP_ROWS: usize = 4096;

/// A piece of work for the writer. It runs once and is answered once its transaction has ended.
trait Job: Send {
    fn rows(&self) -> usize;
    fn run(&mut self, db: &Connection) -> Result<(), Fault>;
    fn fail(&mut self, fault: Fault);
    fn answer(self: Box<Self>, committed: Result<(), Fault>);
}

struct Task<T, F> {
    rows: usize,
    work: Option<F>,
    outcome: Result<T, Fault>,
    reply: oneshot::Sender<Result<T, Fault>>,
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
{
    fn rows(&self) -> usize {
        self.rows
    }

    fn run(&mut self, db: &Connection) -> Result<(), Fault> {
        let work = self.work.take().expect("a job runs once");
        // A panic belongs to this job alone: the thread must serve all others.
        let worked = catch_unwind(AssertUnwindSafe(|| work(db)));
        self.outcome = Ok(worked.map_err(|_| Fault::panicked())??);
        Ok(())
    }

    fn fail(&mut self, fault: Fault) {
        self.outcome = Err(fault);
    }

    fn answer(self: Box<Self>, committed: Result<(), Fault>) {
        let outcome = committed.and(self.outcome);
        // The caller may have stopped waiting for the answer.
        drop(self.reply.send(outcome));
    }
}

/// A handle to the thread. Dropping it finishes the queued work and closes the database.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread = Thread {
            connection,
            queue,
            broken: None,
        };
        let builder = std::thread::Builder::new().name("sqlite-writer".to_owned());
        let thread = builder.spawn(move || thread.run());
        Self {
            jobs: Some(jobs),
            thread: Some(thread.expect("the system can start a thread")),
        }
    }

    /// Queues work that writes about `rows` rows, and waits until it is durable.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        rows: usize,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Task {
            rows,
            work: Some(work),
            outcome: Err(Fault::thread_ended()),
            reply,
        };
        let jobs = self.jobs.as_ref().expect("only dropping takes it away");
        let queued = jobs.send(Box::new(job)).await.is_ok();
        let outcome = if queued { answer.await.ok() } else { None };
        outcome
            .unwrap_or_else(|| Err(Fault::thread_ended()))
            .map_err(|fault| fault.into_error(operation))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the database's writer ended by a panic");
        }
    }
}

struct Thread {
    connection: Connection,
    queue: mpsc::Receiver<Box<dyn Job>>,
    /// After a write could not be made durable, the state on disk is unknown, so no further write is tried.
    broken: Option<Fault>,
}

impl Thread {
    fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP_JOBS);
        while let Some(first) = self.queue.blocking_recv() {
            self.gather(first, &mut group);
            let committed = self.commit(&mut group);
            for job in group.drain(..) {
                job.answer(committed.clone());
            }
            self.copy_log(committed);
        }
    }

    fn gather(&mut self, first: Box<dyn Job>, group: &mut Vec<Box<dyn Job>>) {
        let mut rows = first.rows();
        group.push(first);
        while group.len() < GROUP_JOBS && rows < GROUP_ROWS {
            let Ok(job) = self.queue.try_recv() else {
                break;
            };
            rows += job.rows();
            group.push(job);
        }
    }

    fn commit(&mut self, group: &mut [Box<dyn Job>]) -> Result<(), Fault> {
        if let Some(fault) = &self.broken {
            return Err(fault.clone());
        }
        let committed = run_group(&self.connection, group);
        if let Err(fault) = &committed {
            self.record_fault(fault);
            roll_back(&self.connection);
        }
        committed
    }

    /// Keeps the log short. When the disk is full, copying the log frees some space for small writes.
    fn copy_log(&mut self, committed: Result<(), Fault>) {
        let copied = match committed {
            Ok(()) => checkpoint::copy_long_log(&self.connection),
            Err(fault) if fault.is_full() => checkpoint::copy_log(&self.connection),
            Err(_) => return,
        };
        if let Err(error) = copied {
            tracing::debug!(%error, "the write-ahead log is not copied; it is tried again");
            self.record_fault(&error.into());
        }
    }

    fn record_fault(&mut self, fault: &Fault) {
        if fault.is_broken() && self.broken.is_none() {
            tracing::error!(
                ?fault,
                "a write could not be made durable; no other is tried until a restart"
            );
            self.broken = Some(fault.clone());
            self.keep_log();
        }
    }

    /// Only the log can be trusted now: closing must not copy it into the file and delete it. The next start reads it.
    fn keep_log(&self) {
        let kept = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        if let Err(error) = kept {
            tracing::error!(%error, "the write-ahead log may be copied on closing");
        }
    }
}

fn run_group(db: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), Fault> {
    execute(db, "BEGIN IMMEDIATE")?;
    match group {
        // A single job needs no savepoint.
        [job] => job.run(db)?,
        jobs => {
            for job in jobs {
                run_in_savepoint(db, job.as_mut())?;
            }
        }
    }
    let began = Instant::now();
    execute(db, "COMMIT")?;
    metrics::histogram!("switchboard_database_commit_seconds").record(began.elapsed());
    Ok(())
}

fn run_in_savepoint(db: &Connection, job: &mut dyn Job) -> Result<(), Fault> {
    execute(db, "SAVEPOINT job")?;
    match job.run(db) {
        Ok(()) => {}
        Err(fault) if fault.is_contained() => {
            execute(db, "ROLLBACK TO job")?;
            job.fail(fault);
        }
        // SQLite may have rolled back everything by itself.
        Err(fault) => return Err(fault),
    }
    execute(db, "RELEASE job")
}

fn roll_back(db: &Connection) {
    if !db.is_autocommit()
        && let Err(fault) = execute(db, "ROLLBACK")
    {
        tracing::error!(?fault, "could not roll back");
    }
}

fn execute(db: &Connection, sql: &str) -> Result<(), Fault> {
    db.prepare_cached(sql)?.execute([])?;
    Ok(())
}
