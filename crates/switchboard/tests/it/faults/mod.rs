//! What the service promises when things break: the process, the disk, the database, the callers.
//!
//! Each test runs the real binary, lets a crowd of callers send, breaks something and then compares what the callers
//! were answered with what is stored. The promise behind all of them: what was answered with 200 is there, whatever
//! happened afterwards, and everyone else was told the truth.

mod cluster;
mod crowd;
mod dice;
mod ledger;
mod proxy;
mod raw;
mod shim;
pub(crate) mod signal;
mod subject;
mod waiting;

mod crash;
mod database_away;
mod disk;
mod locks;
mod overload;
mod panics;
mod plans;
mod slow_callers;
mod slow_start;
mod stopping;
mod way;
