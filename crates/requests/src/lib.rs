//! Answering HTTP requests: what the REST API, MCP, OAuth and the dashboard have in common.
//!
//! What belongs here: errors as answers ([`Problem`]), reading a body within its limits ([`body`]), the caller's
//! address ([`client_address()`]), rate limits and their headers ([`rate_limit`]), the log of refused requests
//! ([`RequestNotes`]), cookies, the names of fields ([`field_name`]), the answers to unknown addresses and wrong methods,
//! and a limit on blocking work.
//!
//! What does not: routes, pages, and anything that only one of them needs.

mod blocking;
pub mod body;
mod client_address;
mod cookie;
mod fallback;
mod field;
mod notes;
mod problem;
pub mod rate_limit;

pub use blocking::BlockingWork;
pub use client_address::{Peer, client_address};
pub use cookie::cookie;
pub use fallback::{with_unknown_addresses, wrong_method};
pub use field::{InvalidField, field_name};
pub use notes::{RefusalNote, RequestNotes};
pub use problem::{ERROR_CODE, Problem, REQUIRED_PERMISSION, RETRYABLE};
pub use rate_limit::TooManyRequests;
