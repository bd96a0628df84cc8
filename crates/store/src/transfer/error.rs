//! Errors of a copy.

use domain::ports::Cause;

use super::check::Checked;
use crate::OpenError;

/// Why a database was not copied. Copied rows stay, and the same command continues.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A database cannot be opened, or its schema cannot be created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A statement failed, or the connection was lost.
    #[error("{doing} in {database} failed")]
    Database {
        /// The database, without its password.
        database: String,
        /// What was tried.
        doing: String,
        #[source]
        source: Cause,
    },
    /// A pooler between us and the server ignores the settings of the connection.
    #[error(
        "{database} does not keep to the settings of a copy: {missing}; a copy cannot go through a pooler, name the \
         PostgreSQL server itself"
    )]
    NotDirect {
        /// The database, without its password.
        database: String,
        /// The settings and their actual values.
        missing: String,
    },
    /// The source does not exist.
    #[error("there is no database {0}")]
    NoSource(String),
    /// Source and target are the same database.
    #[error("the source and the target are the same database, {0}")]
    Same(String),
    /// The source has the schema of another version.
    #[error(
        "{database} is at schema {found}, this program's is {known}; start the service of this version on it once, then copy"
    )]
    OtherSchema {
        database: String,
        /// The schema of the database.
        found: i64,
        /// The schema of this program.
        known: i64,
    },
    /// The target is not empty.
    #[error("{database} is not empty, it holds {holds}; give a new database")]
    NotEmpty {
        database: String,
        /// The rows that it has.
        holds: String,
    },
    /// The target is sealed for another copy.
    #[error("{database} is {what}; give a new database, or complete that first")]
    OtherCopy {
        database: String,
        /// Its state.
        what: String,
    },
    /// The source cannot be copied from.
    #[error("{database} is {what}")]
    Sealed {
        database: String,
        /// Its state.
        what: String,
    },
    /// Nodes use a database that must not be in use.
    #[error(
        "{nodes} node(s) work on {database}; stop the service (one that was killed counts for ten seconds more)"
    )]
    Busy { database: String, nodes: i64 },
    /// A database has a table that this program does not know.
    #[error("{database} has the table {table}, and nobody has said how to copy it")]
    UnknownTable { database: String, table: String },
    /// The databases differ in a column that this program does not know.
    #[error("the column {column} of the table {table} cannot be copied: {why}")]
    UnknownColumn {
        table: &'static str,
        column: String,
        why: String,
    },
    /// The copy is not equal to the source.
    #[error("the copy differs from the source; nothing was put into force")]
    Differs(Vec<Checked>),
    /// A file of the backup cannot be read or written.
    #[error("{doing} {path} failed")]
    File {
        /// What was tried.
        doing: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// The file of the backup exists already.
    #[error("{0} exists; choose another name, or --force to replace it")]
    Exists(String),
    /// A backup that was just written cannot be read back.
    #[error("the backup is not sound: {0}")]
    Unsound(String),
}
