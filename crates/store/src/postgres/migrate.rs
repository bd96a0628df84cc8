//! Brings a server's schema up to date.

use deadpool_postgres::{GenericClient, Object};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, Row};

use super::fault::asks_for_repetition;
use crate::OpenError;
use crate::migrations::{self, Migration, Standing};
use crate::seal::{self, Seal};

const CREATE_HISTORY: &str = "
    CREATE TABLE IF NOT EXISTS schema_migration (
        number     BIGINT PRIMARY KEY,
        name       TEXT   NOT NULL,
        applied_us BIGINT NOT NULL
    )";
/// Row 0 represents the empty database; the node that locks it may migrate. When several nodes insert it, one succeeds
/// and the others wait for its transaction.
const CREATE_LOCK: &str = "
    INSERT INTO schema_migration (number, name, applied_us)
    VALUES (0, 'empty', CAST(extract(epoch FROM now()) * 1000000 AS BIGINT))
    ON CONFLICT (number) DO NOTHING";
const TAKE_LOCK: &str = "SELECT number FROM schema_migration WHERE number = 0 FOR UPDATE";
const RECORD: &str = "
    INSERT INTO schema_migration (number, name, applied_us)
    VALUES ($1, $2, CAST(extract(epoch FROM now()) * 1000000 AS BIGINT))";
const OLDER_NODES: &str = concat!(
    "SELECT id, version, host FROM node WHERE alive_until_us >= ",
    now_us!(),
    " AND coalesce(schema_level, 0) < $1 ORDER BY id"
);

/// A large migration, or the wait for that of another node, has no time limit. A node that is paused during a migration
/// may continue: no other node takes over its work.
const TAKE_TIME: &str = "
    SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = '5min'";

/// What came of a step.
enum Applied {
    /// It is applied, or the schema is newer already.
    Now(Standing),
    /// Nodes are running that could not work after it.
    OlderNodes(Vec<String>),
}

/// How often another node may get in the way.
const TRIES: usize = 10;

/// Refuses a database that is sealed, else brings it up to date.
pub(super) async fn run(client: &mut Object, steps: &[Migration]) -> Result<(), OpenError> {
    const SEAL: &str = "SELECT name FROM schema_migration WHERE number = $1";
    let sealed = match client.query_opt(SEAL, &[&seal::ROW]).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Ok(row) => row.map(|row| row.try_get::<_, String>(0)).transpose(),
        Err(error) => Err(error),
    };
    match sealed.map_err(|error| steps[0].failed(error))? {
        Some(text) => Err(Seal::parse(&text).refusal()),
        None => advance(client, steps).await,
    }
}

/// Applies missing migrations, each in its own transaction. A current database is only read.
pub(super) async fn advance(client: &mut Object, steps: &[Migration]) -> Result<(), OpenError> {
    let mut at = match standing(client, migrations::level(steps)).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            let empty = Standing {
                applied: 0,
                oldest: None,
            };
            create_history(client).await.map(|()| empty)
        }
        other => other,
    }
    .map_err(|error| steps[0].failed(error))?;
    let mut tries = 0;
    while let Some(step) = migrations::next(steps, at)? {
        tries += 1;
        match apply(client, steps, step).await {
            Ok(Applied::Now(now)) => (at, tries) = (now, 0),
            Ok(Applied::OlderNodes(nodes)) => return Err(step.blocked_by(nodes)),
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

/// Applies a migration unless another node has done so, and returns the resulting version.
async fn apply(
    client: &mut Object,
    steps: &[Migration],
    step: &Migration,
) -> Result<Applied, Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(TAKE_TIME).await?;
    transaction.batch_execute(CREATE_LOCK).await?;
    transaction.query(TAKE_LOCK, &[]).await?;
    let at = standing(&transaction, migrations::level(steps)).await?;
    if at.applied >= step.number {
        return Ok(Applied::Now(at));
    }
    if step.waits_for_nodes() {
        let nodes = older_nodes(&transaction, step).await?;
        if !nodes.is_empty() {
            return Ok(Applied::OlderNodes(nodes));
        }
    }
    transaction.batch_execute(step.sql).await?;
    transaction
        .execute(RECORD, &[&step.number, &step.name])
        .await?;
    let oldest = migrations::oldest(steps, step);
    if step.keeps_oldest() {
        let keep = "INSERT INTO schema_fit (number, oldest) VALUES ($1, $2)";
        transaction.execute(keep, &[&step.number, &oldest]).await?;
    }
    transaction.commit().await?;
    Ok(Applied::Now(Standing {
        applied: step.number,
        oldest: Some(oldest),
    }))
}

async fn older_nodes(client: &impl GenericClient, step: &Migration) -> Result<Vec<String>, Error> {
    let rows = client.query(OLDER_NODES, &[&step.number]).await?;
    let read = |row: &Row| {
        let (version, host) = (row.try_get(1)?, row.try_get(2)?);
        Ok(migrations::describe_node(row.try_get(0)?, version, host))
    };
    rows.iter().map(read).collect()
}

/// Where the schema stands. What a newer program left is asked only where one was at work: before, it may not be there.
async fn standing(client: &impl GenericClient, known: i64) -> Result<Standing, Error> {
    let row = client
        .query_one("SELECT coalesce(max(number), 0) FROM schema_migration", &[])
        .await?;
    let applied: i64 = row.try_get(0)?;
    let oldest = if applied > known {
        let oldest = "SELECT oldest FROM schema_fit WHERE number = $1";
        let row = client.query_opt(oldest, &[&applied]).await?;
        row.map(|row| row.try_get(0)).transpose()?
    } else {
        None
    };
    Ok(Standing { applied, oldest })
}
