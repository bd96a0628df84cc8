//! Shared tools of the tests and the benchmarks: a database for each test, the real binary as a child process, an HTTP
//! client that can misbehave, a callback receiver and an SMSC that can misbehave, a real browser, and a load generator.
//!
//! It uses the product from outside, through its command line and its sockets. It does not depend on the product's crates,
//! so it cannot share a mistake with them. It is never part of a release: other crates list it only under their
//! dev-dependencies, and the benchmarks use it.

pub mod axe;
pub mod balancer;
pub mod chrome;
pub mod http;
mod http_head;
pub mod kannel;
pub mod kannel_smsc;
mod latencies;
pub mod load;
mod name_server;
pub mod nodejs_client;
pub mod nodejs_smsc;
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
mod temp_dir;
mod tinyproxy;
mod unique;

use std::time::Duration;

pub use latencies::Latencies;
pub use name_server::{NameServer, Record};
pub use patroni::Patroni;
pub use pooled_database::PooledDatabase;
pub use pooler::{Pooler, PoolerUser};
pub use postgres::{HeldSnapshot, POSTGRES_VARIABLE, TestDatabase};
pub use postgres_server::PostgresServer;
pub use process::Process;
pub use server::{Backend, CALLBACKS_ALLOW, SERVICE_KEY, Server, ServerBuilder, write_key};
pub use stall::StallMonitor;
pub use temp_dir::{TempDir, temp_dir};
pub use tinyproxy::Tinyproxy;

/// How long a test waits for a state before it fails. Long, because a machine that is busy with other work for minutes
/// must not fail a test.
pub const TEST_TIMEOUT: Duration = Duration::from_mins(10);
