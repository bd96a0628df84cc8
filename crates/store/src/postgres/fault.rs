//! What a failure of `PostgreSQL` means for the service.

use std::error::Error as _;
use std::io;

use deadpool_postgres::PoolError;
use domain::ports::{Cause, StoreError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::rows::Corrupt;

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// An error of the server, or of the connection to it.
    #[error(transparent)]
    Database(#[from] Error),
    /// The pool had no connection.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// No answer in time.
    #[error(transparent)]
    Timeout(#[from] Timeout),
    /// A row that cannot be read.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    #[error(transparent)]
    SerializationConflict(#[from] SerializationConflict),
}

/// Another transaction changed what this one had read, so this one is retried.
#[derive(Debug, thiserror::Error)]
#[error("other transactions were faster, again and again")]
pub(super) struct SerializationConflict;

/// The server did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer in time")]
pub(super) struct Timeout;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Full,
    Unavailable,
    IdTaken,
    Unexpected,
}

impl Fault {
    /// Whether nothing was changed and a retry may succeed.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Database(error) => is_retryable(error),
            Self::SerializationConflict(_) => true,
            _ => false,
        }
    }

    /// The error for the caller.
    pub(super) fn into_error(self, operation: &'static str) -> StoreError {
        let kind = self.kind();
        let source: Cause = Box::new(self);
        match kind {
            Kind::Full => StoreError::Full { source },
            Kind::Unavailable => StoreError::Unavailable { source },
            Kind::IdTaken => StoreError::IdTaken { source },
            Kind::Unexpected => StoreError::Unexpected { operation, source },
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Database(error) | Self::Pool(PoolError::Backend(error)) => kind_of(error),
            Self::Pool(_) | Self::Timeout(_) | Self::SerializationConflict(_) => Kind::Unavailable,
            Self::Corrupt(_) => Kind::Unexpected,
        }
    }
}

/// Whether the server rolled the transaction back and a retry may succeed.
pub(super) fn is_retryable(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
        || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
        || is_duplicate_ledger_entry(error)
}

/// Two transactions that saw the same newest entry of a ledger both add the next one. Locks prevent this with read
/// committed isolation; with serializable isolation the second fails here.
fn is_duplicate_ledger_entry(error: &Error) -> bool {
    const KEY: &str = "ledger_pkey";
    let db_error = error.as_db_error();
    db_error.is_some_and(|db_error| {
        *db_error.code() == SqlState::UNIQUE_VIOLATION && db_error.constraint() == Some(KEY)
    })
}

/// Whether a message ID exists already, in the partition of a day or in the queue.
fn is_id_taken(error: &Error) -> bool {
    error.as_db_error().is_some_and(|db_error| {
        let constraint = db_error.constraint().unwrap_or_default();
        *db_error.code() == SqlState::UNIQUE_VIOLATION
            && db_error
                .table()
                .is_some_and(|table| table.starts_with("message") || table == "queue")
            && constraint.ends_with("_pkey")
    })
}

fn kind_of(error: &Error) -> Kind {
    let lost = || {
        error.is_closed()
            || error
                .source()
                .is_some_and(<dyn std::error::Error>::is::<io::Error>)
    };
    match error.code() {
        Some(_) if is_id_taken(error) => Kind::IdTaken,
        Some(code) => kind_of_code(code.code()),
        None if lost() => Kind::Unavailable,
        None => Kind::Unexpected,
    }
}

/// By code, then by class. A statement that took too long is of class 57. A server with a failed disk (58, XX) restarts
/// and recovers, so it counts as unavailable.
fn kind_of_code(code: &str) -> Kind {
    const DISK_FULL: &str = "53100";
    const READ_ONLY_AFTER_FAILOVER: &str = "25006";
    const IDLE_IN_TRANSACTION: &str = "25P03";
    const LOCK_NOT_AVAILABLE: &str = "55P03";
    match (code, &code[..2]) {
        (DISK_FULL, _) => Kind::Full,
        (READ_ONLY_AFTER_FAILOVER | IDLE_IN_TRANSACTION | LOCK_NOT_AVAILABLE, _)
        | (_, "08" | "40" | "53" | "57" | "58" | "XX") => Kind::Unavailable,
        _ => Kind::Unexpected,
    }
}

/// The error for a row that cannot be read.
pub(super) fn corrupt(operation: &'static str, corrupt: Corrupt) -> StoreError {
    Fault::from(corrupt).into_error(operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_code_has_the_right_kind() {
        for (name, code, expected) in [
            ("disk full", "53100", Kind::Full),
            ("too many connections", "53300", Kind::Unavailable),
            ("shutting down", "57P01", Kind::Unavailable),
            ("crashed", "57P02", Kind::Unavailable),
            ("starting", "57P03", Kind::Unavailable),
            ("statement timeout", "57014", Kind::Unavailable),
            ("read only", "25006", Kind::Unavailable),
            ("idle in a transaction", "25P03", Kind::Unavailable),
            ("no lock in time", "55P03", Kind::Unavailable),
            (
                "not serialized, again and again",
                "40001",
                Kind::Unavailable,
            ),
            ("connection lost", "08006", Kind::Unavailable),
            ("I/O error", "58030", Kind::Unavailable),
            ("data corrupted", "XX001", Kind::Unavailable),
            ("unique", "23505", Kind::Unexpected),
            ("syntax", "42601", Kind::Unexpected),
        ] {
            assert_eq!(kind_of_code(code), expected, "{name}");
        }
    }
}
