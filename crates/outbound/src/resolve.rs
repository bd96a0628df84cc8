//! Names to addresses.

mod dns;
mod preference;
mod shared;
mod system;

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

pub use dns::{DnsOptions, DnsResolver};
pub use shared::SharedLookups;
pub use system::SystemResolver;

/// Looks names up.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, the preferred one first. The port is only there because some resolvers ask for it.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>>;
}
