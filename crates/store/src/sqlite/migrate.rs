//! Brings a file's schema up to date.

use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

use crate::OpenError;
use crate::migrations::{self, Migration, SQLITE};
use crate::seal::{self, Seal};

const CREATE_HISTORY: &str = "
    CREATE TABLE IF NOT EXISTS schema_migration (
        number     INTEGER PRIMARY KEY,
        name       TEXT    NOT NULL,
        applied_us INTEGER NOT NULL
    )";

/// Refuses a file that is sealed, else brings it up to date.
pub(super) fn run(connection: &mut Connection) -> Result<(), OpenError> {
    let sealed = seal(connection).map_err(|error| SQLITE[0].failed(error))?;
    match sealed {
        Some(seal) => Err(seal.refusal()),
        None => advance(connection),
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

/// Applies what is missing, each step in a transaction of its own. A file that is current is not written to.
pub(super) fn advance(connection: &mut Connection) -> Result<(), OpenError> {
    let mut at = applied(connection).map_err(|error| SQLITE[0].failed(error))?;
    while let Some(step) = migrations::next(SQLITE, at)? {
        at = apply(connection, step).map_err(|error| step.failed(error))?;
    }
    Ok(())
}

/// Applies a step unless another process has done so since, and says where the schema then stands.
fn apply(connection: &mut Connection, step: &Migration) -> Result<i64> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let at = applied(&transaction)?;
    if at >= step.number {
        return Ok(at);
    }
    transaction.execute_batch(CREATE_HISTORY)?;
    transaction.execute_batch(step.sql)?;
    transaction.execute(
        "INSERT INTO schema_migration (number, name, applied_us)
         VALUES (?1, ?2, CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER))",
        params![step.number, step.name],
    )?;
    transaction.commit()?;
    Ok(step.number)
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
