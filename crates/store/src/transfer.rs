//! Copies everything from one database into another: for moving a service, for backups and for restoring them.
//!
//! `tables.rs` lists all tables. Rows are read in order from a snapshot of the source and compared with the rows of the
//! target: missing rows are added, extra rows are deleted, changed rows are replaced. So an interrupted copy can
//! continue, and a copy that began while the service was running is completed after it has stopped.

mod backup;
mod check;
mod error;
mod merge;
mod migrate;
pub(crate) mod plan;
pub(crate) mod side;
pub(crate) mod tables;
pub(crate) mod value;

#[cfg(test)]
mod tests;

pub use backup::{backup, restore};
pub use check::Checked;
pub use error::TransferError;
pub use migrate::{Moved, migrate, undo};

use merge::Copier;
use side::{Hold, Side};
use tables::{Engine, LEFT_OUT, NEVER_EMPTY, ONLY_POSTGRES, TABLES};

use crate::migrations::SQLITE;
use crate::seal::{Kind, Seal};

/// The values of a row that is copied.
pub(crate) type Row = Vec<value::Value>;

/// Sees how a copy goes on.
pub trait Watch: Send {
    /// So much is to be done in all: rows, or bytes where a file is copied as a whole.
    fn begins(&mut self, total: u64);
    /// From now on it is about this table.
    fn table(&mut self, table: &'static str);
    /// So much more is done.
    fn advances(&mut self, by: u64);
}

/// The highest step of the schema that this program knows.
fn known_level() -> i64 {
    SQLITE.last().map_or(0, |step| step.number)
}

/// Refuses a source that another version has made.
async fn check_level(source: &mut Side, name: &str) -> Result<(), TransferError> {
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

/// Puts everything else in order once all rows are there, and holds both sides against each other.
async fn conclude(source: &mut Side, target: &mut Side) -> Result<Vec<Checked>, TransferError> {
    let checked = check::check(source, target).await?;
    for (table, last) in source.sequences().await? {
        target.go_on_behind(&table, last).await?;
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
            target.go_on_behind(table.name, last).await?;
        }
    }
    // Whatever the source says, an ID that is taken is not given out again.
    let next = "(SELECT coalesce(max(id), 0) + 1 FROM message)";
    let raise = format!("UPDATE id_block SET next = {next} WHERE next < {next}");
    target.execute(raise).await?;
    // Plans for what is there now; left to itself a server would look in a minute or so.
    if target.engine() == Engine::Postgres {
        target.execute("ANALYZE".to_owned()).await?;
    }
    Ok(checked)
}

/// Makes the schema of a target and seals it, or finds the beginning of the same copy. Says whether it is new.
async fn prepare(target: &mut Side, name: &str, seal: &Seal) -> Result<bool, TransferError> {
    match target.seal().await? {
        None => {}
        Some(found) if found.kind == seal.kind && found.born_us == seal.born_us => {
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

/// Copies all tables whole into a target that nobody works on, and checks them.
async fn copy_everything(
    source: &mut Side,
    target: &mut Side,
    known: Option<&mut Side>,
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
    // From the end, so that nothing refers to what is gone.
    for table in TABLES.iter().rev() {
        if matches!(table.kept, tables::CopyTime::Changing) {
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
    conclude(source, target).await
}

async fn count(side: &mut Side, table: &str, filter: Option<&str>) -> Result<i64, TransferError> {
    let filter = filter.unwrap_or("TRUE");
    side.number(format!(
        "SELECT CAST(count(*) AS BIGINT) FROM {table} WHERE {filter}"
    ))
    .await
}

/// Refuses a database with a table that nobody has spoken of.
async fn check_tables(side: &mut Side, name: &str) -> Result<(), TransferError> {
    let is_known = |table: &str| {
        LEFT_OUT.contains(&table)
            || ONLY_POSTGRES.contains(&table)
            || TABLES.iter().any(|known| known.name == table)
    };
    match side
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
