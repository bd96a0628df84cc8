//! The HTTP interfaces for programs, and the HTTP server.
//!
//! What belongs here: the REST API ([`rest`]) with its OpenAPI document, the MCP server for AI clients ([`mcp`]), the
//! OAuth authorization server ([`oauth`]), reports of carriers ([`carriers`]), the landing page, health and metrics, and
//! the server with its connections and TLS ([`server`]).
//!
//! What does not: SQL and rules. Rules are in `domain` and `engine`; here their errors become answers. Pages for people
//! are in the crate `dashboard`.

pub mod carriers;
mod landing;
pub mod mcp;
pub mod oauth;
mod observe;
pub mod rest;
pub mod server;

pub use landing::Landing;
pub use mcp::{Mcp, McpSettings};
pub use oauth::{OAuth, OAuthSettings};
pub use observe::{Observe, RenderMetrics};
pub use rest::{Rest, RestSettings};
