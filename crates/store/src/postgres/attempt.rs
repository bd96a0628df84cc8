//! One try at a piece of work, and how often it is repeated.

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
/// How often the database may ask for a repetition. Where a whole transaction sees what was there when it began, each of
/// those that wait for the same account finds, once it is its turn, that another was faster.
const TRIES: u32 = 100;
/// The longest pause before a repetition. Pauses differ by chance, so that the same ones do not meet again, and do not
/// grow: whoever has failed most often must not be kept waiting longest.
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

/// Does a piece of work, again if the database asks for that.
pub(super) async fn run<A: Attempt>(
    pool: &Connections,
    operation: &'static str,
    attempt: &A,
) -> Result<A::Output, StoreError> {
    run_within(DEADLINE, pool, operation, attempt).await
}

/// As [`run`], with a deadline of its own for each try.
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
    // Whatever is still on its way over this connection, nobody else may get it.
    drop(Object::take(client));
    Err(TookTooLong.into())
}
