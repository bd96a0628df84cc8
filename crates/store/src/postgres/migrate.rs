//! Brings a server's schema up to date.

use deadpool_postgres::Object;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::fault::asks_for_repetition;
use crate::OpenError;
use crate::migrations::{self, Migration, POSTGRES};

const CREATE_HISTORY: &str = "
    CREATE TABLE IF NOT EXISTS schema_migration (
        number     BIGINT PRIMARY KEY,
        name       TEXT   NOT NULL,
        applied_us BIGINT NOT NULL
    )";
/// Row 0 stands for the empty database; whoever holds its lock may migrate. Of several that insert it, one does and
/// the others wait for that one's transaction.
const CREATE_LOCK: &str = "
    INSERT INTO schema_migration (number, name, applied_us)
    VALUES (0, 'empty', CAST(extract(epoch FROM now()) * 1000000 AS BIGINT))
    ON CONFLICT (number) DO NOTHING";
const TAKE_LOCK: &str = "SELECT number FROM schema_migration WHERE number = 0 FOR UPDATE";
const RECORD: &str = "
    INSERT INTO schema_migration (number, name, applied_us)
    VALUES ($1, $2, CAST(extract(epoch FROM now()) * 1000000 AS BIGINT))";

/// How often another node may get in the way.
const TRIES: usize = 10;

/// Applies what is missing, each step in a transaction of its own. A database that is current is only read.
pub(super) async fn run(client: &mut Object) -> Result<(), OpenError> {
    let mut at = match applied(client).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            create_history(client).await.map(|()| 0)
        }
        other => other,
    }
    .map_err(|error| POSTGRES[0].failed(error))?;
    let mut tries = 0;
    while let Some(step) = migrations::next(POSTGRES, at)? {
        tries += 1;
        match apply(client, step).await {
            Ok(now_at) => at = now_at,
            Err(error) if asks_for_repetition(&error) && tries < TRIES => {}
            Err(error) => return Err(step.failed(error)),
        }
    }
    Ok(())
}

/// Nodes that create the same table at once collide in the catalogue in spite of `IF NOT EXISTS`.
async fn create_history(client: &Object) -> Result<(), Error> {
    let collided = |error: &Error| {
        let unique = [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_OBJECT,
        ];
        error.code().is_some_and(|code| unique.contains(code))
    };
    let mut created = client.batch_execute(CREATE_HISTORY).await;
    for _ in 1..TRIES {
        match &created {
            Err(error) if collided(error) => created = client.batch_execute(CREATE_HISTORY).await,
            _ => break,
        }
    }
    created
}

/// Applies a step unless another node has done so since, and says where the schema then stands.
async fn apply(client: &mut Object, step: &Migration) -> Result<i64, Error> {
    let transaction = client.transaction().await?;
    // A big step, or a wait for another node's, takes as long as it takes.
    transaction
        .batch_execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
        .await?;
    transaction.batch_execute(CREATE_LOCK).await?;
    transaction.query(TAKE_LOCK, &[]).await?;
    let row = transaction
        .query_one("SELECT max(number) FROM schema_migration", &[])
        .await?;
    let at: i64 = row.try_get(0)?;
    if at >= step.number {
        return Ok(at);
    }
    transaction.batch_execute(step.sql).await?;
    transaction
        .execute(RECORD, &[&step.number, &step.name])
        .await?;
    transaction.commit().await?;
    Ok(step.number)
}

async fn applied(client: &Object) -> Result<i64, Error> {
    let row = client
        .query_one("SELECT coalesce(max(number), 0) FROM schema_migration", &[])
        .await?;
    row.try_get(0)
}
