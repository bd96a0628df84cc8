//! Where everything is kept: the port traits of `domain`, once on `SQLite` and once on `PostgreSQL`.
//!
//! What belongs here: SQL, migrations, connections, and the translation of a database's failures into
//! [`StoreError`](domain::ports::StoreError). The backend is chosen at run time by the database URL, in [`open`] and
//! nowhere else.
//!
//! What never enters: a rule of the service. Nothing leaves but `domain`'s own types: no row, no transaction, no SQL.

use std::sync::Arc;

use domain::ports::{Cause, Store};

mod migrations;
mod postgres;
mod rows;
mod seal;
mod sqlite;
pub mod transfer;
mod url;

pub use migrations::{Fit, Schema};
pub use url::{DatabaseUrl, DatabaseUrlError};

/// What can be tuned of a store. The defaults serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How many connections a node keeps to `PostgreSQL`, at most. `SQLite` has no use for it.
    pub postgres_connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            postgres_connections: 8,
        }
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database does not open, or cannot be reached.
    #[error("cannot open the database {database}")]
    Open {
        /// Which, without its password.
        database: String,
        /// What happened.
        #[source]
        source: Cause,
    },
    /// A migration did not go through; the one before it still stands.
    #[error("migration {name} failed")]
    Migrate {
        /// Number and name.
        name: String,
        /// What the database said.
        #[source]
        source: Cause,
    },
    /// A newer version of the program has changed this database.
    #[error(
        "the database is at schema {found}, this program knows only up to {known}; run the newer version"
    )]
    TooNew {
        /// The highest migration that was applied.
        found: i64,
        /// The highest that this program knows.
        known: i64,
    },
    /// Nodes still run that could not go on after a step of the schema.
    #[error(
        "{name} changes the database in a way that older nodes cannot work with, and these still run: {}; \
         stop them and start again (one that has died is forgotten after 10 seconds)",
        nodes.join(", ")
    )]
    OlderNodes {
        /// Number and name of the step.
        name: String,
        /// Which nodes, each with what it said of itself.
        nodes: Vec<String>,
    },
    /// A copy that was begun and not completed is in it.
    #[error("the database is an unfinished {what}; {remedy}")]
    Unfinished {
        /// Of what.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Everything in it was moved to another database.
    #[error(
        "everything in this database was moved to {target}: set database.url to that one. To go back on purpose, and leave there what happened since, run the same `switchboard migrate` with --undo"
    )]
    Moved {
        /// Where to, without a password.
        target: String,
    },
}

/// Opens a database and brings its schema up to date.
///
/// Any number of processes may do so at once. Dropping the last reference finishes what was asked for and closes the
/// database; on `SQLite` that waits for the disk.
pub async fn open(url: &DatabaseUrl, options: &Options) -> Result<Arc<dyn Store>, OpenError> {
    open_with(url, options, &Schema::current()).await
}

/// The same with another schema than this program's own: that of an older or of a newer one, to try how they go together.
pub async fn open_with(
    url: &DatabaseUrl,
    options: &Options,
    schema: &Schema,
) -> Result<Arc<dyn Store>, OpenError> {
    match url {
        DatabaseUrl::Sqlite(path) => {
            let store = sqlite::SqliteStore::open(path, schema.sqlite.clone()).await?;
            Ok(Arc::new(store))
        }
        DatabaseUrl::Postgres(config) => {
            let connections = options.postgres_connections;
            let store = postgres::PostgresStore::open(config, connections, &schema.postgres);
            Ok(Arc::new(store.await?))
        }
    }
}
