//! Brings a file's schema up to date.

use rusqlite::{Connection, OptionalExtension, Result, Row, TransactionBehavior, params};

use super::clock;
use crate::OpenError;
use crate::migrations::{self, Migration, SchemaState};
use crate::seal::{self, Seal};

const CREATE_HISTORY: &str = "
    CREATE TABLE IF NOT EXISTS schema_migration (
        number     INTEGER PRIMARY KEY,
        name       TEXT    NOT NULL,
        applied_us INTEGER NOT NULL
    )";

const OLDER_NODES: &str = "
    SELECT id, version, host FROM node WHERE alive_until_us >= ?1 AND coalesce(schema_level, 0) < ?2 ORDER BY id";

/// The result of a migration.
enum Applied {
    /// It is applied, or the schema is newer already.
    Done(SchemaState),
    /// Nodes are running that cannot work after it.
    OlderNodes(Vec<String>),
}

/// Refuses a sealed file; brings any other up to date.
pub(super) fn run(connection: &mut Connection, steps: &[Migration]) -> Result<(), OpenError> {
    let sealed = seal(connection).map_err(|error| steps[0].failed(error))?;
    match sealed {
        Some(seal) => Err(seal.refusal()),
        None => apply_missing(connection, steps),
    }
}

fn seal(connection: &Connection) -> Result<Option<Seal>> {
    if !has_history(connection)? {
        return Ok(None);
    }
    let name = "SELECT name FROM schema_migration WHERE number = ?1";
    let text = connection.query_row(name, [seal::ROW], |row| row.get::<_, String>(0));
    Ok(text.optional()?.as_deref().map(Seal::parse))
}

/// Applies missing migrations, each in its own transaction. A current file is not written to.
pub(crate) fn apply_missing(
    connection: &mut Connection,
    steps: &[Migration],
) -> Result<(), OpenError> {
    let known = migrations::level(steps);
    let mut at = read_state(connection, known).map_err(|error| steps[0].failed(error))?;
    while let Some(step) = migrations::next(steps, at)? {
        let applied = apply(connection, steps, step).map_err(|error| step.failed(error))?;
        at = match applied {
            Applied::Done(at) => at,
            Applied::OlderNodes(nodes) => return Err(step.blocked_by(nodes)),
        };
    }
    Ok(())
}

/// Applies a migration unless another process has done so, and returns the resulting version.
fn apply(connection: &mut Connection, steps: &[Migration], step: &Migration) -> Result<Applied> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let at = read_state(&transaction, migrations::level(steps))?;
    if at.applied >= step.number {
        return Ok(Applied::Done(at));
    }
    if step.waits_for_nodes() {
        let nodes = older_nodes(&transaction, step)?;
        if !nodes.is_empty() {
            return Ok(Applied::OlderNodes(nodes));
        }
    }
    transaction.execute_batch(CREATE_HISTORY)?;
    transaction.execute_batch(step.sql)?;
    transaction.execute(
        "INSERT INTO schema_migration (number, name, applied_us)
         VALUES (?1, ?2, CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER))",
        params![step.number, step.name],
    )?;
    let oldest = migrations::oldest(steps, step);
    if step.stores_oldest() {
        transaction.execute(
            "INSERT INTO schema_fit (number, oldest) VALUES (?1, ?2)",
            params![step.number, oldest],
        )?;
    }
    transaction.commit()?;
    Ok(Applied::Done(SchemaState {
        applied: step.number,
        oldest: Some(oldest),
    }))
}

fn older_nodes(connection: &Connection, step: &Migration) -> Result<Vec<String>> {
    let read = |row: &Row<'_>| {
        let (version, host): (Option<String>, Option<String>) = (row.get(1)?, row.get(2)?);
        let described = migrations::describe_node(row.get(0)?, version.as_deref(), host.as_deref());
        Ok(described)
    };
    let now_us = clock::now_us(connection)?;
    connection
        .prepare(OLDER_NODES)?
        .query_map([now_us, step.number], read)?
        .collect()
}

/// The state of the schema. The table `schema_fit` exists only if a newer program may have used the file.
fn read_state(connection: &Connection, known: i64) -> Result<SchemaState> {
    let applied = applied(connection)?;
    let oldest = if applied > known {
        let oldest = "SELECT oldest FROM schema_fit WHERE number = ?1";
        connection
            .query_row(oldest, [applied], |row| row.get(0))
            .optional()?
    } else {
        None
    };
    Ok(SchemaState { applied, oldest })
}

fn has_history(connection: &Connection) -> Result<bool> {
    let history = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migration'";
    let found = connection.query_row(history, [], |_| Ok(())).optional()?;
    Ok(found.is_some())
}

fn applied(connection: &Connection) -> Result<i64> {
    if !has_history(connection)? {
        return Ok(0);
    }
    connection.query_row(
        "SELECT coalesce(max(number), 0) FROM schema_migration",
        [],
        |row| row.get(0),
    )
}
