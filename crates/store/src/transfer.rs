//! Copies everything from one database into another: for moving a service, for backups and for restoring them.
//!
//! `tables.rs` lists all tables. Rows are read in order from a snapshot of the source and compared with the rows of the
//! target: missing rows are added, extra rows are deleted, changed rows are replaced. So an interrupted copy can
//! continue, and a copy that began while the service was running is completed after it has stopped.

mod backup;
mod check;
pub(crate) mod endpoint;
mod error;
mod merge;
mod migrate;
pub(crate) mod plan;
mod postgres;
mod sqlite;
pub(crate) mod tables;
pub(crate) mod value;

#[cfg(test)]
mod tests;

pub use backup::{backup, restore};
pub use check::Checked;
pub use error::TransferError;
pub use migrate::{Moved, migrate, undo};

use endpoint::{Endpoint, Hold};
use merge::Copier;
use tables::{Engine, NEVER_EMPTY, NOT_COPIED, ONLY_POSTGRES, TABLES};

use crate::migrations::SQLITE;
use crate::seal::{Kind, Seal};

/// The values of a row that is copied.
pub(crate) type Row = Vec<value::Value>;

/// Receives the progress of a copy.
pub trait Watch: Send {
    /// The total amount of work: rows, or bytes if a file is copied as a whole.
    fn begins(&mut self, total: u64);
    /// This table is copied next.
    fn table(&mut self, table: &'static str);
    /// This much more work is done.
    fn advances(&mut self, by: u64);
}

/// The last migration that this program knows.
fn known_level() -> i64 {
    SQLITE.last().map_or(0, |step| step.number)
}

/// Refuses a source with the schema of another version.
async fn check_level(source: &mut Endpoint, name: &str) -> Result<(), TransferError> {
    let (found, known) = (source.level().await?, known_level());
    if found == known {
        return Ok(());
    }
    Err(TransferError::OtherSchema {
        database: name.to_owned(),
        found,
        known,
    })
}

/// Compares source and target after all rows are copied, and sets sequences and the next message ID.
async fn finish(
    source: &mut Endpoint,
    target: &mut Endpoint,
) -> Result<Vec<Checked>, TransferError> {
    let checked = check::check(source, target).await?;
    for (table, last) in source.sequences().await? {
        target.advance_sequence(&table, last).await?;
    }
    for table in TABLES {
        let columns = target.columns(table.name).await?;
        let mut ids = columns.iter().filter(|column| column.name == "id");
        if ids
            .next()
            .is_some_and(|id| id.kind == Some(value::Kind::Int))
        {
            let sql = format!(
                "SELECT CAST(coalesce(max(id), 0) AS BIGINT) FROM {}",
                table.name
            );
            let last = target.number(sql).await?;
            target.advance_sequence(table.name, last).await?;
        }
    }
    // An ID that is used must not be reserved again, whatever the source says.
    let next = "(SELECT coalesce(max(id), 0) + 1 FROM message)";
    let raise = format!("UPDATE id_block SET next = {next} WHERE next < {next}");
    target.execute(raise).await?;
    // Otherwise the server would update its statistics only a minute or so later.
    if target.engine() == Engine::Postgres {
        target.execute("ANALYZE".to_owned()).await?;
    }
    Ok(checked)
}

/// Seals an empty target, or finds an earlier attempt at the same copy. Returns whether the copy is new.
async fn prepare(target: &mut Endpoint, name: &str, seal: &Seal) -> Result<bool, TransferError> {
    match target.seal().await? {
        None => {}
        Some(found) if found.kind == seal.kind && found.created_us == seal.created_us => {
            return Ok(false);
        }
        Some(found) => {
            let what = match found.kind {
                Kind::Copying => format!("an unfinished copy of {}", found.other),
                Kind::Restoring => format!("an unfinished restore of {}", found.other),
                Kind::Moved => format!("a database whose contents were moved to {}", found.other),
            };
            return Err(TransferError::OtherCopy {
                database: name.to_owned(),
                what,
            });
        }
    }
    let mut holds = Vec::new();
    let mut names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    names.push("node");
    for table in names
        .into_iter()
        .filter(|table| !NEVER_EMPTY.contains(table))
    {
        let rows = count(target, table, None).await?;
        if rows > 0 {
            holds.push(format!("{rows} row(s) of {table}"));
        }
    }
    if !holds.is_empty() {
        return Err(TransferError::NotEmpty {
            database: name.to_owned(),
            holds: holds.join(", "),
        });
    }
    target.set_seal(Some(seal)).await?;
    Ok(true)
}

/// Copies all tables into a target that is not in use, and checks them.
async fn copy_everything(
    source: &mut Endpoint,
    target: &mut Endpoint,
    known: Option<&mut Endpoint>,
    watch: &mut dyn Watch,
) -> Result<Vec<Checked>, TransferError> {
    let mut total = 0;
    for table in TABLES {
        total += count(source, &table.rows(source.engine()), None).await?;
    }
    watch.begins(total.unsigned_abs());
    if target.engine() == Engine::Postgres {
        for table in ONLY_POSTGRES {
            target.execute(format!("DELETE FROM {table}")).await?;
        }
    }
    // In reverse order, so that no row refers to a deleted one.
    for table in TABLES.iter().rev() {
        if matches!(table.copy_time, tables::CopyTime::Changing) {
            target
                .execute(format!("DELETE FROM {}", table.name))
                .await?;
        }
    }
    let mut copier = Copier {
        source,
        target,
        known,
        watch,
    };
    for plan in copier.plans().await? {
        copier.copy(&plan, false).await?;
    }
    finish(source, target).await
}

async fn count(
    endpoint: &mut Endpoint,
    table: &str,
    filter: Option<&str>,
) -> Result<i64, TransferError> {
    let filter = filter.unwrap_or("TRUE");
    endpoint
        .number(format!(
            "SELECT CAST(count(*) AS BIGINT) FROM {table} WHERE {filter}"
        ))
        .await
}

/// Refuses a database with an unknown table.
async fn check_tables(endpoint: &mut Endpoint, name: &str) -> Result<(), TransferError> {
    let is_known = |table: &str| {
        NOT_COPIED.contains(&table)
            || ONLY_POSTGRES.contains(&table)
            || TABLES.iter().any(|known| known.name == table)
    };
    match endpoint
        .tables()
        .await?
        .into_iter()
        .find(|table| !is_known(table))
    {
        None => Ok(()),
        Some(table) => Err(TransferError::UnknownTable {
            database: name.to_owned(),
            table,
        }),
    }
}
