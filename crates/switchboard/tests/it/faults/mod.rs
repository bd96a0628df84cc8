//! What the service promises when things break: the process, the disk, the database, the callers.
//!
//! Each test runs the real binary, lets a crowd of callers send, breaks something and then compares what the callers
//! were answered with what is stored. The promise behind all of them: what was answered with 200 is there, whatever
//! happened afterwards, and everyone else was told the truth.

mod crowd;
mod dice;
mod ledger;
mod proxy;
mod raw;
mod shim;
mod signal;
mod subject;
mod waiting;

/// Makes two tests of each case that takes a backend.
macro_rules! on_both_backends {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $case() {
                super::$case(testkit::Backend::Sqlite);
            })+
        }

        mod postgres {
            $(#[test]
            fn $case() {
                super::$case(testkit::Backend::Postgres);
            })+
        }
    };
}

mod crash;
mod database_away;
mod disk;
mod overload;
mod slow_callers;
mod stopping;
mod way;
