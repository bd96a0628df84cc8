//! Why a copy was not made.

use domain::ports::Cause;

use super::check::Checked;
use crate::OpenError;

/// Why a database was not copied. What was copied stays, and the same command goes on with it.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A database cannot be opened, or its schema not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A database refused, or went away.
    #[error("{doing} in {database} failed")]
    Database {
        /// Which, without its password.
        database: String,
        /// What was tried.
        doing: String,
        /// What it said.
        #[source]
        source: Cause,
    },
    /// Something stands before the server that does not pass on what a connection asks for.
    #[error(
        "{database} does not keep to the settings of a copy: {missing}; a copy cannot go through a pooler, name the \
         PostgreSQL server itself"
    )]
    NotDirect {
        /// Which, without its password.
        database: String,
        /// Which settings, and what they are instead.
        missing: String,
    },
    /// There is nothing to copy from.
    #[error("there is no database {0}")]
    NoSource(String),
    /// Both are the same.
    #[error("the source and the target are the same database, {0}")]
    Same(String),
    /// The source was made by another version.
    #[error(
        "{database} is at schema {found}, this program's is {known}; start the service of this version on it once, then copy"
    )]
    OtherSchema {
        /// Which.
        database: String,
        /// Where it stands.
        found: i64,
        /// Where it must stand.
        known: i64,
    },
    /// Something is in the target.
    #[error("{database} is not empty, it holds {holds}; give a new database")]
    NotEmpty {
        /// Which.
        database: String,
        /// What.
        holds: String,
    },
    /// The target is the beginning of something else.
    #[error("{database} is {what}; give a new database, or complete that first")]
    OtherCopy {
        /// Which.
        database: String,
        /// Of what.
        what: String,
    },
    /// The source cannot be copied from.
    #[error("{database} is {what}")]
    Sealed {
        /// Which.
        database: String,
        /// In which state.
        what: String,
    },
    /// Somebody works on a database that must rest.
    #[error(
        "{nodes} node(s) work on {database}; stop the service (one that was killed counts for ten seconds more)"
    )]
    Busy {
        /// Which.
        database: String,
        /// How many.
        nodes: i64,
    },
    /// The databases have a table that this program's list does not.
    #[error("{database} has the table {table}, and nobody has said how to copy it")]
    UnknownTable {
        /// Where.
        database: String,
        /// Which.
        table: String,
    },
    /// The databases differ in a column that this program does not know of.
    #[error("the column {column} of the table {table} cannot be copied: {why}")]
    UnknownColumn {
        /// Where.
        table: &'static str,
        /// Which.
        column: String,
        /// What is wrong with it.
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
        /// With which file.
        path: String,
        /// What happened.
        #[source]
        source: std::io::Error,
    },
    /// A backup is in the way.
    #[error("{0} exists; choose another name, or --force to replace it")]
    Exists(String),
    /// A backup that was just written cannot be read back.
    #[error("the backup is not sound: {0}")]
    Unsound(String),
}
