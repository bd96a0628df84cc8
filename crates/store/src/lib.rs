//! The database: the port traits of `domain`, implemented on `SQLite` and on `PostgreSQL`.
//!
//! What belongs here: SQL, migrations, connections, and the translation of database failures into
//! [`StoreError`](domain::ports::StoreError). The backend is chosen at run time by the database URL, in [`open`] and
//! nowhere else.
//!
//! What does not belong here: rules of the service. Callers see only types of `domain`: no rows, transactions or SQL.

use std::sync::Arc;

use domain::KeyRing;
use domain::encryption::DecryptError;
use domain::ports::{Cause, Store};

mod migrations;
mod postgres;
mod rows;
mod seal;
mod sql;
mod sqlite;
pub mod transfer;
mod url;

pub use migrations::{Compatibility, Schema};
use rows::encrypted::Encrypting;
pub use url::{DatabaseUrl, DatabaseUrlError, PostgresUrl};

/// Options for opening a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// The keys that encrypt and decrypt secrets.
    pub keys: KeyRing,
    /// Where the current encryption key is stored.
    pub keep_key: KeyRetention,
    /// The maximum number of connections to `PostgreSQL`. Not used by `SQLite`.
    pub postgres_connections: usize,
}

impl Options {
    /// These keys, and defaults for everything else.
    pub fn new(keys: KeyRing) -> Self {
        Self {
            keys,
            keep_key: KeyRetention::Elsewhere,
            postgres_connections: 8,
        }
    }
}

/// Where the current encryption key is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRetention {
    /// In the configuration, or in a file.
    Elsewhere,
    /// In the database, for nodes that share it and cannot get the key otherwise.
    InDatabase,
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database does not open, or cannot be reached.
    #[error("cannot open the database {database}")]
    Open {
        /// The database, without its password.
        database: String,
        #[source]
        source: Cause,
    },
    /// A migration failed. The earlier ones stay applied.
    #[error("migration {name} failed")]
    Migrate {
        /// The number and name of the migration.
        name: String,
        /// The error of the database.
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
    /// Nodes are running that cannot work after this migration.
    #[error(
        "{name} changes the database in a way that older nodes cannot work with, and these still run: {}; \
         stop them and start again (one that has died is forgotten after 10 seconds)",
        nodes.join(", ")
    )]
    OlderNodes {
        /// The number and name of the migration.
        name: String,
        /// The nodes, each with its version and host.
        nodes: Vec<String>,
    },
    /// The database names a key that this node does not have.
    #[error(
        "secrets in the database {database} are encrypted with the key {named}, and this node has only {}; \
         set security.key to the key of the other nodes (or copy their file service.key into the data folder). \
         After a rotation: list the former key in security.former_keys (docs/SECURITY.md, Keys)",
        ours.join(", ")
    )]
    WrongKey {
        /// The database, without its password.
        database: String,
        /// The ID of the key that the database names.
        named: String,
        /// The IDs of the keys that this node has.
        ours: Vec<String>,
    },
    /// A value is encrypted with a key that this node does not have, or was tampered with.
    #[error("cannot decrypt {context} in the database")]
    Undecryptable {
        /// The column and row of the value.
        context: String,
        #[source]
        source: DecryptError,
    },
    /// Encrypting unencrypted values failed.
    #[error("cannot encrypt the secrets in the database {database}")]
    Encrypt {
        /// The database, without its password.
        database: String,
        /// The error of the database.
        #[source]
        source: Cause,
    },
    /// It contains an unfinished copy.
    #[error("the database is an unfinished {what}; {remedy}")]
    Unfinished {
        /// What was copied.
        what: String,
        /// How to complete the copy.
        remedy: &'static str,
    },
    /// Its contents were moved to another database.
    #[error(
        "everything in this database was moved to {target}: set database.url to that one. To go back on purpose, and leave there what happened since, run the same `switchboard migrate` with --undo"
    )]
    Moved {
        /// The other database, without its password.
        target: String,
    },
}

/// Opens a database and brings its schema up to date.
///
/// Any number of processes may do so at once. Dropping the last reference finishes the pending work and closes the
/// database; on `SQLite` that waits for the disk.
pub async fn open(url: &DatabaseUrl, options: &Options) -> Result<Arc<dyn Store>, OpenError> {
    open_with(url, options, &Schema::current()).await
}

/// Like [`open`], with the schema of an older or a newer program: for tests of upgrades.
pub async fn open_with(
    url: &DatabaseUrl,
    options: &Options,
    schema: &Schema,
) -> Result<Arc<dyn Store>, OpenError> {
    let (store, _) = open_encrypting(url, options, schema, Encrypting::AsBefore).await?;
    Ok(store)
}

/// Makes the newest key the current one, and encrypts everything again with it. Returns the number of rows.
///
/// Every node must have the newest key before that, or it cannot read what the others write.
pub async fn rotate_key(url: &DatabaseUrl, options: &Options) -> Result<u64, OpenError> {
    let schema = Schema::current();
    let (_, renewed) = open_encrypting(url, options, &schema, Encrypting::Newest).await?;
    Ok(renewed)
}

async fn open_encrypting(
    url: &DatabaseUrl,
    options: &Options,
    schema: &Schema,
    encrypting: Encrypting,
) -> Result<(Arc<dyn Store>, u64), OpenError> {
    match url {
        DatabaseUrl::Sqlite(path) => {
            let steps = schema.sqlite.clone();
            let keys = options.keys.clone();
            let opened = sqlite::SqliteStore::open(path, steps, keys, encrypting).await?;
            Ok((Arc::new(opened.0), opened.1))
        }
        DatabaseUrl::Postgres(url) => {
            let opened = postgres::PostgresStore::open(url, options, &schema.postgres, encrypting);
            let (store, renewed) = opened.await?;
            Ok((Arc::new(store), renewed))
        }
    }
}
