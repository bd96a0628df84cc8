//! Resolves callers' host names at name servers, without blocking threads.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;
use permits::Permits;
use tokio::time::{Instant, timeout};

use super::{Resolve, preference};

/// Where the system configures name resolution.
const SYSTEM_FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
/// How often these files are checked for changes: a machine may move to another network.
const FILES_CHECKED_EVERY: Duration = Duration::from_secs(5);

/// The timeout of one query, which is sent up to twice.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(1);
const ASKED_AGAIN: usize = 1;

/// How many answers are cached. Each name has two, one for each address family.
const MAX_CACHED: u64 = 8_192;

/// How many lookups run at once, in total and for names with the same last two labels, because the owner of a domain
/// can create any number of names in it.
const MAX_LOOKUPS: usize = 1_024;
const MAX_OF_DOMAIN: usize = 64;

#[derive(Debug, Clone)]
pub struct DnsOptions {
    /// The name servers; empty: those of `/etc/resolv.conf`, with its search list and options.
    pub name_servers: Vec<SocketAddr>,
    /// How long a lookup may take, including the wait for a permit.
    pub deadline: Duration,
    /// The longest time to cache addresses, whatever the TTL of their record.
    pub max_ttl: Duration,
    /// The longest time to cache that a name does not exist.
    pub max_negative_ttl: Duration,
}

impl Default for DnsOptions {
    fn default() -> Self {
        Self {
            name_servers: Vec::new(),
            deadline: Duration::from_secs(3),
            max_ttl: Duration::from_mins(5),
            max_negative_ttl: Duration::from_secs(30),
        }
    }
}

/// Asks name servers and reads `/etc/hosts`. Answers are cached as long as their TTL says, within bounds.
///
/// A lookup is cancelled when nobody waits for it. `/etc/resolv.conf` and `/etc/hosts` are read again when they change;
/// `/etc/nsswitch.conf` is ignored.
pub struct DnsResolver {
    options: DnsOptions,
    current: Mutex<Current>,
    lookups: Arc<Permits<String>>,
}

struct Current {
    resolver: Arc<TokioResolver>,
    files: Files,
    checked: Instant,
}

/// The modification time and size of each file.
type Files = [Option<(SystemTime, u64)>; 2];

impl DnsResolver {
    pub fn new(options: DnsOptions) -> Self {
        let files = look_at_files();
        let resolver = Arc::new(build(&options));
        Self {
            options,
            current: Mutex::new(Current {
                resolver,
                files,
                checked: Instant::now(),
            }),
            lookups: Permits::new(MAX_LOOKUPS, |_| MAX_OF_DOMAIN),
        }
    }

    fn resolver(&self) -> Arc<TokioResolver> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.checked.elapsed() >= FILES_CHECKED_EVERY {
            current.checked = Instant::now();
            let files = look_at_files();
            if files != current.files {
                current.files = files;
                current.resolver = Arc::new(build(&self.options));
            }
        }
        current.resolver.clone()
    }

    async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let _permit = self.lookups.acquire(&[domain_of(host)]).await;
        let found = self.resolver().lookup_ip(host).await;
        let found = found.map_err(|error| explain(&error))?;
        let mut addresses: Vec<_> = found.iter().collect();
        preference::sort(&mut addresses);
        Ok(addresses)
    }
}

#[async_trait]
impl Resolve for DnsResolver {
    async fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<IpAddr>> {
        let found = timeout(self.options.deadline, self.look_up(host)).await;
        found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn look_at_files() -> Files {
    SYSTEM_FILES.map(|path| {
        let file = fs::metadata(path).ok()?;
        Some((file.modified().ok()?, file.len()))
    })
}

fn build(options: &DnsOptions) -> TokioResolver {
    let (config, system) = configuration(&options.name_servers);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let set = builder.options_mut();
    *set = system;
    set.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    set.timeout = set.timeout.min(QUESTION_TIMEOUT);
    set.attempts = set.attempts.min(ASKED_AGAIN);
    set.cache_size = MAX_CACHED;
    set.positive_max_ttl = Some(options.max_ttl);
    set.negative_max_ttl = Some(options.max_negative_ttl);
    set.max_active_requests = MAX_LOOKUPS;
    builder
        .build()
        .expect("nothing that could fail is asked for")
}

fn configuration(name_servers: &[SocketAddr]) -> (ResolverConfig, ResolverOpts) {
    if !name_servers.is_empty() {
        let servers = name_servers.iter().map(|address| name_server(*address));
        let config = ResolverConfig::from_name_servers(servers.collect());
        return (config, ResolverOpts::default());
    }
    read_system_conf().unwrap_or_else(|error| {
        tracing::warn!(%error, "/etc/resolv.conf cannot be used; using the name server at 127.0.0.1");
        // The C library does the same.
        let server = name_server((Ipv4Addr::LOCALHOST, 53).into());
        let config = ResolverConfig::from_name_servers(vec![server]);
        (config, ResolverOpts::default())
    })
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}

/// The last two labels of a name.
fn domain_of(host: &str) -> String {
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let start = name
        .rmatch_indices('.')
        .nth(1)
        .map_or(0, |(dot, _)| dot + 1);
    name[start..].to_owned()
}

fn explain(error: &NetError) -> io::Error {
    let kind = match error {
        NetError::Timeout => io::ErrorKind::TimedOut,
        error if error.is_no_records_found() => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    kind.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_domain_count_together() {
        for (host, domain) in [
            ("example.com", "example.com"),
            ("a.Example.com.", "example.com"),
            ("a.b.c.example.com", "example.com"),
            ("localhost", "localhost"),
            ("", ""),
            (".", ""),
        ] {
            assert_eq!(domain_of(host), domain, "{host}");
        }
    }

    #[test]
    fn the_systems_configuration_can_be_used() {
        build(&DnsOptions::default());
    }
}
