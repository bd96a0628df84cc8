//! What a failure of `SQLite` means for the service.

use std::sync::Arc;

use domain::ports::{Cause, StoreError};
use rusqlite::{ErrorCode, ffi};

use crate::rows::Corrupt;

/// A failure that is reported to every caller with work in the same transaction.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    kind: Kind,
    cause: Arc<dyn std::error::Error + Send + Sync>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Full,
    Broken,
    Unavailable,
    IdTaken,
    Unexpected,
}

/// The thread that does the work has ended: only a bug or a broken disk ends it early.
#[derive(Debug, thiserror::Error)]
#[error("the database's thread has ended")]
struct ThreadEnded;

/// A piece of work panicked, which is a bug. What it wrote is rolled back.
#[derive(Debug, thiserror::Error)]
#[error("this work on the database panicked")]
struct Panicked;

impl Fault {
    pub(super) fn panicked() -> Self {
        Self {
            kind: Kind::Unexpected,
            cause: Arc::new(Panicked),
        }
    }

    pub(super) fn thread_ended() -> Self {
        Self {
            kind: Kind::Broken,
            cause: Arc::new(ThreadEnded),
        }
    }

    /// Whether only the statement failed, so that the rest of the transaction can continue.
    pub(super) fn is_contained(&self) -> bool {
        matches!(self.kind, Kind::Unexpected | Kind::IdTaken)
    }

    /// Whether the disk is full.
    pub(super) fn is_full(&self) -> bool {
        self.kind == Kind::Full
    }

    /// Whether the state on disk is unknown from now on.
    pub(super) fn is_broken(&self) -> bool {
        self.kind == Kind::Broken
    }

    /// The error for one caller.
    pub(super) fn into_error(self, operation: &'static str) -> StoreError {
        let source: Cause = Box::new(Shared(self.cause));
        match self.kind {
            Kind::Full => StoreError::Full { source },
            Kind::Broken => StoreError::Broken { source },
            Kind::Unavailable => StoreError::Unavailable { source },
            Kind::IdTaken => StoreError::IdTaken { source },
            Kind::Unexpected => StoreError::Unexpected { operation, source },
        }
    }
}

/// A cause that several errors share.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Shared(Arc<dyn std::error::Error + Send + Sync>);

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self {
            kind: kind_of(&error),
            cause: Arc::new(error),
        }
    }
}

/// Whether a message ID exists already.
fn is_id_taken(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(_, Some(message)) if message.ends_with(" message.id"))
}

fn kind_of(error: &rusqlite::Error) -> Kind {
    let Some(failure) = error.sqlite_error() else {
        return Kind::Unexpected;
    };
    match failure.code {
        ErrorCode::DiskFull => Kind::Full,
        // Growing the index of the write-ahead log needs room too, and touches nothing durable.
        ErrorCode::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            Kind::Full
        }
        ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Kind::Broken
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::CannotOpen => {
            Kind::Unavailable
        }
        ErrorCode::ConstraintViolation if is_id_taken(error) => Kind::IdTaken,
        _ => Kind::Unexpected,
    }
}

/// An unreadable row is passed on as a conversion error of `rusqlite`.
impl From<Corrupt> for rusqlite::Error {
    fn from(corrupt: Corrupt) -> Self {
        Self::FromSqlConversionFailure(0, rusqlite::types::Type::Null, Box::new(corrupt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_code_has_the_right_kind() {
        for (name, code, expected) in [
            ("disk full", ffi::SQLITE_FULL, Kind::Full),
            (
                "no room for the log's index",
                ffi::SQLITE_IOERR_SHMSIZE,
                Kind::Full,
            ),
            ("fsync", ffi::SQLITE_IOERR_FSYNC, Kind::Broken),
            (
                "fsync of the folder",
                ffi::SQLITE_IOERR_DIR_FSYNC,
                Kind::Broken,
            ),
            ("write", ffi::SQLITE_IOERR_WRITE, Kind::Broken),
            ("read", ffi::SQLITE_IOERR_READ, Kind::Broken),
            ("corrupt", ffi::SQLITE_CORRUPT, Kind::Broken),
            ("not a database", ffi::SQLITE_NOTADB, Kind::Broken),
            ("busy", ffi::SQLITE_BUSY, Kind::Unavailable),
            (
                "busy, snapshot",
                ffi::SQLITE_BUSY_SNAPSHOT,
                Kind::Unavailable,
            ),
            ("locked", ffi::SQLITE_LOCKED, Kind::Unavailable),
            (
                "constraint",
                ffi::SQLITE_CONSTRAINT_UNIQUE,
                Kind::Unexpected,
            ),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(Fault::from(error).kind, expected, "{name}");
        }
    }
}
