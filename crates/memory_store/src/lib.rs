//! The ports of messages in progress, in memory: what the simulation of the engine runs on.
//!
//! The [`Model`] is as short as possible, so that it can be compared with the ports. The contract tests of the crate
//! `store` run on it as on both databases. Faults do not belong here: the simulation brings its own [`Calls`]. Nor does
//! anything that no message in progress needs: accounts, prices, lists, retention.

mod binds;
mod calls;
mod claims;
mod dispatch;
mod messages;
mod model;
mod reports;
mod settling;

pub use calls::{CallKind, Calls, Direct, MemoryStore};
pub use model::{Model, Owner, QueueEntry, Report, Row};
