//! One try at a piece of work, and how often it is repeated.

use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use domain::ports::StoreError;
use tokio_postgres::Row;

use super::Values;
use super::fault::{Fault, TookTooLong};

/// How long one try may take, all statements together. A server that is stopped, not dead, would keep callers forever.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);
/// How often the database may ask for a repetition.
const TRIES: u32 = 10;
/// The pause before the first repetition; each further one is as much longer.
const PAUSE: Duration = Duration::from_millis(2);

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
    pool: &Pool,
    operation: &'static str,
    attempt: &A,
) -> Result<A::Output, StoreError> {
    let mut tries = 1;
    loop {
        match run_once(pool, attempt).await {
            Err(fault) if fault.asks_for_repetition() && tries < TRIES => {
                tokio::time::sleep(PAUSE * tries).await;
                tries += 1;
            }
            outcome => return outcome.map_err(|fault| fault.into_error(operation)),
        }
    }
}

async fn run_once<A: Attempt>(pool: &Pool, attempt: &A) -> Result<A::Output, Fault> {
    let mut client = pool.get().await?;
    if let Ok(outcome) = tokio::time::timeout(DEADLINE, attempt.run(&mut client)).await {
        return outcome;
    }
    // Whatever is still on its way over this connection, nobody else may get it.
    drop(Object::take(client));
    Err(TookTooLong.into())
}
