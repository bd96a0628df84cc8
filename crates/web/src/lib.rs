//! The doors of the service: thin, each onto the same use cases.
//!
//! What belongs here: reading requests and writing answers for the REST API ([`rest`]), AI clients ([`mcp`]) and the
//! authorization server for them ([`oauth`]), the dashboard ([`dashboard`]) and the carriers that bring reports
//! ([`carriers`]), the API document and its page, health and metrics, and the
//! server that carries them all ([`server`]).
//!
//! What never enters: SQL, and rules. A rule stands in `domain` or `engine`; here its error becomes an answer.

pub mod carriers;
pub mod mcp;
pub mod oauth;
mod observe;
pub mod rest;
pub mod server;

pub use mcp::{Mcp, McpSettings};
pub use oauth::{OAuth, OAuthSettings};
pub use observe::{Observe, RenderMetrics};
pub use rest::{Rest, RestSettings};
