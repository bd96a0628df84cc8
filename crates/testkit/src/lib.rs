//! What the tests and the benchmarks stand on: a database for each test, the real binary as a child
//! process, a plain HTTP client that can also misbehave, a callback receiver and an SMSC that can too, a real
//! browser, and the load generator.
//!
//! It drives the product from outside, over its command line and its sockets, so it knows none of
//! the product's crates and cannot share a mistake with them. Nothing here is ever part of a
//! release: other crates may name it only among their dev-dependencies.

mod answer;
pub mod axe;
pub mod balancer;
pub mod chrome;
mod folder;
pub mod histogram;
pub mod http;
pub mod load;
mod name_server;
pub mod node;
mod patroni;
mod pooled_database;
mod pooler;
mod postgres;
mod postgres_server;
mod process;
pub mod receiver;
pub mod relay;
mod server;
pub mod smsc;
pub mod stall;
mod unique;

use std::time::Duration;

pub use folder::TempDir;
pub use name_server::{NameServer, Record};
pub use patroni::Patroni;
pub use pooled_database::PooledDatabase;
pub use pooler::{Pooler, PoolerUser};
pub use postgres::{HeldSnapshot, POSTGRES_VARIABLE, TestDatabase};
pub use postgres_server::PostgresServer;
pub use process::Process;
pub use server::{Backend, CALLBACKS_ALLOW, SERVICE_KEY, Server, ServerBuilder, write_key};
pub use stall::StallControl;

/// A wait for a state ends here, and only when something is broken: a machine that gives most of its processors to others
/// for minutes is slow, and no test may fail for that.
pub const PATIENCE: Duration = Duration::from_mins(10);
