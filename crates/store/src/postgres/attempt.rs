//! Runs work on a connection, and repeats it when the database asks for that.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use deadpool_postgres::Object;
use domain::ports::StoreError;
use tokio_postgres::Row;

use super::Values;
use super::fault::{Fault, TookTooLong};
use super::pool::Connections;

/// How long one try may take, all statements together. A server that is stopped, not dead, would keep callers forever.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);
/// How often a transaction is repeated at most. With serializable isolation, each transaction that waits for the same
/// account finds that another was faster.
const TRIES: u32 = 100;
/// The longest pause before a repetition. Pauses are random, so that the same transactions do not collide again. They
/// do not grow, because a transaction that failed often must not wait longest.
const PAUSE: Duration = Duration::from_millis(8);

/// A piece of work that can be done again when the database could not serialize it.
pub(super) trait Attempt: Sync {
    /// What it yields.
    type Output: Send;

    /// Does it once, atomically.
    fn run(&self, client: &mut Object) -> impl Future<Output = Result<Self::Output, Fault>> + Send;
}

/// One statement.
pub(super) struct Query<'a> {
    pub(super) sql: &'static str,
    pub(super) values: Values<'a>,
}

impl Attempt for Query<'_> {
    type Output = Vec<Row>;

    async fn run(&self, client: &mut Object) -> Result<Vec<Row>, Fault> {
        let statement = client.prepare_cached(self.sql).await?;
        Ok(client.query(&statement, self.values).await?)
    }
}

/// One statement that changes rows.
pub(super) struct Execute<'a>(pub(super) Query<'a>);

impl Attempt for Execute<'_> {
    /// The number of changed rows.
    type Output = u64;

    async fn run(&self, client: &mut Object) -> Result<u64, Fault> {
        let statement = client.prepare_cached(self.0.sql).await?;
        Ok(client.execute(&statement, self.0.values).await?)
    }
}

/// Runs work, and repeats it if the database asks for that.
pub(super) async fn run<A: Attempt>(
    pool: &Connections,
    operation: &'static str,
    attempt: &A,
) -> Result<A::Output, StoreError> {
    run_within(DEADLINE, pool, operation, attempt).await
}

/// Like [`run`], with a deadline for each attempt.
pub(super) async fn run_within<A: Attempt>(
    deadline: Duration,
    pool: &Connections,
    operation: &'static str,
    attempt: &A,
) -> Result<A::Output, StoreError> {
    let mut tries = 1;
    loop {
        match run_once(deadline, pool, attempt).await {
            Err(fault) if fault.asks_for_repetition() && tries < TRIES => {
                tokio::time::sleep(pause()).await;
                tries += 1;
            }
            outcome => return outcome.map_err(|fault| fault.into_error(operation)),
        }
    }
}

fn pause() -> Duration {
    // Each of these has another seed.
    let chance = RandomState::new().build_hasher().finish();
    let most = u64::try_from(PAUSE.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(chance % most)
}

async fn run_once<A: Attempt>(
    deadline: Duration,
    pool: &Connections,
    attempt: &A,
) -> Result<A::Output, Fault> {
    let mut client = pool.get().await?;
    if let Ok(outcome) = tokio::time::timeout(deadline, attempt.run(&mut client)).await {
        return outcome;
    }
    // An answer may still arrive on this connection, so it is not reused.
    drop(Object::take(client));
    Err(TookTooLong.into())
}
