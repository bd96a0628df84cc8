//! Name resolution.

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

#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, the preferred one first. Some resolvers need the port.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>>;
}
