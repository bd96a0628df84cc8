//! Runs work on a connection, and retries it after a serialization failure or a deadlock.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use deadpool_postgres::Object;
use domain::ports::StoreError;
use tokio_postgres::Row;

use super::Values;
use super::fault::{Fault, Timeout};
use super::pool::Connections;

/// How long one attempt may take, all statements together. A server that hangs would block callers forever.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);
/// Maximum number of attempts. With serializable isolation, each transaction that waits for the same account fails when
/// another one commits.
const MAX_ATTEMPTS: u32 = 100;
/// Maximum pause before a retry. Pauses are random, so that the same transactions do not collide again. They do not
/// grow, because a transaction that failed often must not wait longest.
const MAX_PAUSE: Duration = Duration::from_millis(8);

/// Work that is repeated if the database could not serialize it.
pub(super) trait Retryable: Sync {
    type Output: Send;

    /// Runs it once, atomically.
    fn run(&self, client: &mut Object) -> impl Future<Output = Result<Self::Output, Fault>> + Send;
}

/// One statement.
pub(super) struct Query<'a> {
    pub(super) sql: &'static str,
    pub(super) values: Values<'a>,
}

impl Retryable for Query<'_> {
    type Output = Vec<Row>;

    async fn run(&self, client: &mut Object) -> Result<Vec<Row>, Fault> {
        let statement = client.prepare_cached(self.sql).await?;
        Ok(client.query(&statement, self.values).await?)
    }
}

/// One statement that changes rows.
pub(super) struct Execute<'a>(pub(super) Query<'a>);

impl Retryable for Execute<'_> {
    /// The number of changed rows.
    type Output = u64;

    async fn run(&self, client: &mut Object) -> Result<u64, Fault> {
        let statement = client.prepare_cached(self.0.sql).await?;
        Ok(client.execute(&statement, self.0.values).await?)
    }
}

/// Runs work, and retries it after a serialization failure or a deadlock.
pub(super) async fn run<W: Retryable>(
    pool: &Connections,
    operation: &'static str,
    work: &W,
) -> Result<W::Output, StoreError> {
    run_within(DEADLINE, pool, operation, work).await
}

/// Like [`run`], with this deadline for each attempt.
pub(super) async fn run_within<W: Retryable>(
    deadline: Duration,
    pool: &Connections,
    operation: &'static str,
    work: &W,
) -> Result<W::Output, StoreError> {
    let mut attempts = 1;
    loop {
        match run_once(deadline, pool, work).await {
            Err(fault) if fault.is_retryable() && attempts < MAX_ATTEMPTS => {
                tokio::time::sleep(pause()).await;
                attempts += 1;
            }
            outcome => return outcome.map_err(|fault| fault.into_error(operation)),
        }
    }
}

fn pause() -> Duration {
    // Each `RandomState` has a new seed.
    let random = RandomState::new().build_hasher().finish();
    let max_us = u64::try_from(MAX_PAUSE.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random % max_us)
}

async fn run_once<W: Retryable>(
    deadline: Duration,
    pool: &Connections,
    work: &W,
) -> Result<W::Output, Fault> {
    let mut client = pool.get().await?;
    if let Ok(outcome) = tokio::time::timeout(deadline, work.run(&mut client)).await {
        return outcome;
    }
    // An answer may still arrive on this connection, so it is not reused.
    drop(Object::take(client));
    Err(Timeout.into())
}
