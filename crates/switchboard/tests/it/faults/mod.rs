//! What the service guarantees when things break: the process, the disk, the database, the callers.
//!
//! Each test runs the real binary, lets many callers send, breaks something and then compares the answers of the
//! callers with what is stored. They all check the same guarantee: every request that got 200 is stored, whatever
//! happened afterwards, and every other caller got a true answer.

mod answer_log;
mod callers;
mod cluster;
mod faulty_disk;
mod lossy_proxy;
mod pending_request;
mod rng;
pub(crate) mod signal;
mod test_service;
mod waiting;

mod crash;
mod database_away;
mod disk;
mod end_to_end;
mod locks;
mod overload;
mod panics;
mod plans;
mod slow_callers;
mod slow_start;
mod stopping;
