//! The one thread that writes.
//!
//! It takes whatever has gathered while the disk was busy, runs it in one transaction, commits once and only then
//! answers. Each piece of work has a savepoint, so that one that fails does not take the others with it.

use std::sync::Arc;
use std::thread::JoinHandle;

use domain::ports::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint;
use super::fault::{Fault, Health};

/// How many jobs may wait before callers do.
const QUEUE: usize = 256;
/// How many jobs one transaction takes.
const GROUP_JOBS: usize = 128;
/// How many rows one transaction takes, roughly: a job is never split.
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
        self.outcome = Ok(work(db)?);
        Ok(())
    }

    fn fail(&mut self, fault: Fault) {
        self.outcome = Err(fault);
    }

    fn answer(self: Box<Self>, committed: Result<(), Fault>) {
        let outcome = committed.and(self.outcome);
        // A caller that has gone away needs no answer.
        drop(self.reply.send(outcome));
    }
}

/// The way to the thread. Dropping it finishes what is queued and closes the database.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, health: Arc<Health>) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread = Thread {
            connection,
            queue,
            health,
        };
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || thread.run());
        Self {
            jobs: Some(jobs),
            thread: Some(thread.expect("the system can start a thread")),
        }
    }

    /// Queues a piece of work that writes about so many rows and waits until it is durable.
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
    health: Arc<Health>,
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
            if self.health.take_request_to_start_log_over() && self.health.broken().is_none() {
                checkpoint::finish(&self.connection, &self.health);
            }
        }
        if self.health.broken().is_some() {
            checkpoint::keep_log(&self.connection);
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

    fn commit(&self, group: &mut [Box<dyn Job>]) -> Result<(), Fault> {
        if let Some(fault) = self.health.broken() {
            return Err(fault);
        }
        let committed = run_group(&self.connection, group);
        if let Err(fault) = &committed {
            self.health.note(fault);
            roll_back(&self.connection);
        }
        committed
    }
}

fn run_group(db: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), Fault> {
    execute(db, "BEGIN IMMEDIATE")?;
    match group {
        // Its transaction is savepoint enough.
        [job] => job.run(db)?,
        jobs => {
            for job in jobs {
                run_in_savepoint(db, job.as_mut())?;
            }
        }
    }
    execute(db, "COMMIT")
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
