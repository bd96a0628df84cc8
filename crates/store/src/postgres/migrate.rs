//! Brings a server's schema up to date.

use deadpool_postgres::{GenericClient, Object};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, Row};

use super::fault::is_retryable;
use crate::OpenError;
use crate::migrations::{self, Migration, SchemaState};
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
const NO_TIMEOUTS: &str = "
    SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = '5min'";

/// The result of a migration.
enum Applied {
    /// It is applied, or the schema is newer already.
    Done(SchemaState),
    /// Nodes are running that cannot work after it.
    OlderNodes(Vec<String>),
}

/// Maximum number of attempts: other nodes may migrate at the same time.
const MAX_ATTEMPTS: usize = 10;

/// Refuses a sealed database; brings any other up to date.
pub(super) async fn run(client: &mut Object, steps: &[Migration]) -> Result<(), OpenError> {
    const SEAL: &str = "SELECT name FROM schema_migration WHERE number = $1";
    let sealed = match client.query_opt(SEAL, &[&seal::ROW]).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Ok(row) => row.map(|row| row.try_get::<_, String>(0)).transpose(),
        Err(error) => Err(error),
    };
    match sealed.map_err(|error| steps[0].failed(error))? {
        Some(text) => Err(Seal::parse(&text).refusal()),
        None => apply_missing(client, steps).await,
    }
}

/// Applies missing migrations, each in its own transaction. A current database is only read.
pub(crate) async fn apply_missing(
    client: &mut Object,
    steps: &[Migration],
) -> Result<(), OpenError> {
    let mut at = match read_state(client, migrations::level(steps)).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            let empty = SchemaState {
                applied: 0,
                oldest: None,
            };
            create_history(client).await.map(|()| empty)
        }
        other => other,
    }
    .map_err(|error| steps[0].failed(error))?;
    let mut attempts = 0;
    while let Some(step) = migrations::next(steps, at)? {
        attempts += 1;
        match apply(client, steps, step).await {
            Ok(Applied::Done(now)) => (at, attempts) = (now, 0),
            Ok(Applied::OlderNodes(nodes)) => return Err(step.blocked_by(nodes)),
            Err(error) if is_retryable(&error) && attempts < MAX_ATTEMPTS => {}
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
    for _ in 1..MAX_ATTEMPTS {
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
    transaction.batch_execute(NO_TIMEOUTS).await?;
    transaction.batch_execute(CREATE_LOCK).await?;
    transaction.query(TAKE_LOCK, &[]).await?;
    let at = read_state(&transaction, migrations::level(steps)).await?;
    if at.applied >= step.number {
        return Ok(Applied::Done(at));
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
    if step.stores_oldest() {
        let keep = "INSERT INTO schema_fit (number, oldest) VALUES ($1, $2)";
        transaction.execute(keep, &[&step.number, &oldest]).await?;
    }
    transaction.commit().await?;
    Ok(Applied::Done(SchemaState {
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

/// The state of the schema. The table `schema_fit` exists only if a newer program may have used the database.
async fn read_state(client: &impl GenericClient, known: i64) -> Result<SchemaState, Error> {
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
    Ok(SchemaState { applied, oldest })
}
