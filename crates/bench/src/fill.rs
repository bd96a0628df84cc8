//! Fills the databases of servers that are measured with much data.

pub(crate) mod history;
pub(crate) mod messages;

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::path::PathBuf;
use testkit::Server;

/// The `SQLite` database of a server.
pub(crate) fn database_file(server: &Server) -> Result<PathBuf> {
    fs::read_dir(server.data_dir())?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|kind| kind == "db"))
        .context("no database in the data folder")
}

/// The result of a query for one number.
pub(crate) fn number(server: &Server, sql: &str) -> Result<u64> {
    if let Some(database) = server.database() {
        let rows = database.query_blocking(sql)?;
        let value = rows.first().and_then(|row| row.first());
        return Ok(value.context("the query has no rows")?.parse()?);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = Connection::open_with_flags(database_file(server)?, flags)?;
    let value: i64 = db.query_row(sql, [], |row| row.get(0))?;
    Ok(u64::try_from(value)?)
}
