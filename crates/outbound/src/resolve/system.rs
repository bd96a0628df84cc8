//! The operating system's resolver.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::Resolve;

/// The operating system's resolver, which respects its files, search rules and address preference. Meant for the few
/// names that the operator configures; for callers' names see [`DnsResolver`](super::DnsResolver).
///
/// Each lookup blocks a thread for as long as the name server takes, so their number is limited. A thread counts until
/// it is free, even if nobody waits for it any more.
#[derive(Debug)]
pub struct SystemResolver {
    threads: Arc<Semaphore>,
}

impl SystemResolver {
    pub fn new(max_lookups: usize) -> Self {
        Self {
            threads: Arc::new(Semaphore::new(max_lookups)),
        }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        let thread = Arc::clone(&self.threads).acquire_owned().await;
        let thread = thread.expect("the semaphore is never closed");
        let host = host.to_owned();
        let lookup = tokio::task::spawn_blocking(move || {
            let _thread = thread;
            let found = (host.as_str(), port).to_socket_addrs()?;
            Ok(found.map(|address: SocketAddr| address.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}
