//! Decides which addresses may be connected to on behalf of a caller.
//!
//! Callers choose where their callbacks go, and this service may reach networks that they cannot. So only addresses of
//! the public internet are allowed, and the networks that the operator permits. Every address is checked twice: when
//! the caller gives the URL, so that the caller gets an error at once, and when it is connected to, because a name may
//! resolve differently by then.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use domain::CallbackUrl;
use domain::quoted::Quoted;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::time::timeout;
use url::{Host, Url};

use crate::resolve::Resolve;

#[cfg(test)]
mod tests;

/// How long a caller waits for the name lookup.
pub(crate) const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(s: [u16; 6], bits: u8) -> Ipv6Net {
    let first = Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], 0, 0);
    Ipv6Net::new_assert(first, bits)
}

/// Networks reserved for documentation are not included: they lead nowhere, and examples are full of them.
const FORBIDDEN_V4: [(Ipv4Net, &str); 13] = [
    (v4(0, 0, 0, 0, 8), "an unspecified address"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    // Includes a cloud metadata service: 100.100.100.200.
    (v4(100, 64, 0, 0, 10), "a carrier-grade NAT address"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    // A public address, but within that cloud it reaches the host of each machine.
    (v4(168, 63, 129, 16, 32), "a cloud's metadata address"),
    // Includes the metadata service of most clouds: 169.254.169.254.
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 0, 0, 0, 24), "a reserved address"),
    (v4(192, 88, 99, 0, 24), "a 6to4 address"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(198, 18, 0, 0, 15), "a benchmarking address"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    // Includes the broadcast address.
    (v4(240, 0, 0, 0, 4), "a reserved address"),
];

/// The first match names the kind. Networks that embed an IPv4 address are always forbidden: no receiver needs them,
/// and they hide the IPv4 address from checks of the outer one.
const FORBIDDEN_V6: [(Ipv6Net, &str); 14] = [
    (v6([0; 6], 128), "an unspecified address"),
    (
        Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128),
        "a loopback address",
    ),
    (v6([0; 6], 96), "an IPv4-compatible address"),
    (v6([0, 0, 0, 0, 0, 0xffff], 96), "an IPv4-mapped address"),
    (
        v6([0, 0, 0, 0, 0xffff, 0], 96),
        "an IPv4-translated address",
    ),
    (v6([0x64, 0xff9b, 0, 0, 0, 0], 96), "a NAT64 address"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0], 48), "a NAT64 address"),
    (v6([0x2001, 0, 0, 0, 0, 0], 32), "a Teredo address"),
    (v6([0x2001, 0, 0, 0, 0, 0], 23), "a reserved address"),
    (v6([0x2002, 0, 0, 0, 0, 0], 16), "a 6to4 address"),
    // Includes a cloud metadata service: fd00:ec2::254.
    (v6([0xfc00, 0, 0, 0, 0, 0], 7), "a private address"),
    (v6([0xfe80, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0], 10), "a site-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

/// The only range that is allocated for global unicast so far.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0], 3);

/// An address that may not be connected to. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The URL contains a forbidden address.
    #[error("{address} is {kind}; callbacks cannot reach it")]
    Address {
        address: IpAddr,
        /// The kind of address, with its article.
        kind: &'static str,
    },
    /// The name resolves to a forbidden address. The address is not shown, because callers could otherwise resolve our
    /// internal names.
    #[error("{} leads to {kind}; callbacks cannot reach it", Quoted(.host))]
    Name {
        host: String,
        /// The kind of address, with its article.
        kind: &'static str,
    },
}

/// The rules, with the operator's exceptions.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allow: Vec<IpNet>,
}

/// What a URL's host is, without a name lookup.
enum Destination {
    Address(IpAddr),
    Localhost(String),
    Name(String, u16),
}

impl Guard {
    /// Permits the public internet and these networks.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allow }
    }

    /// Permits everything, for addresses that the operator configures.
    pub fn open() -> Self {
        Self::new(vec![
            IpNet::V4(Ipv4Net::default()),
            IpNet::V6(Ipv6Net::default()),
        ])
    }

    /// The loopback networks, for [`Self::new`].
    pub fn loopback() -> Vec<IpNet> {
        vec![
            IpNet::V4(v4(127, 0, 0, 0, 8)),
            IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
        ]
    }

    /// Checks an address.
    ///
    /// The IPv4-mapped form reaches the same machine as the IPv4 address, so it is permitted exactly if the operator
    /// permits that IPv4 address. A permitted IPv6 network never includes it.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Forbidden> {
        let judged = address.to_canonical();
        if self.allow.iter().any(|net| net.contains(&judged)) {
            return Ok(());
        }
        match forbidden_kind(address).or_else(|| own_kind(address)) {
            Some(kind) => Err(Forbidden::Address { address, kind }),
            None => Ok(()),
        }
    }

    /// Checks a URL without a name lookup.
    ///
    /// A host that is an address in any notation (`0x7f.1`, `2130706433`, `017700000001`) is checked as that address,
    /// and `localhost` as loopback. Any other name passes: see [`Self::check_resolved`].
    pub fn check_url(&self, url: &CallbackUrl) -> Result<(), Forbidden> {
        self.check_destination(&destination(url))
    }

    /// Checks a URL with a name lookup: every address of the name must be permitted.
    ///
    /// A name that does not resolve, or not within 2 s, passes: it may exist by the time it is called, a slow name
    /// server should not reject messages, and the address is checked again before connecting.
    pub async fn check_resolved(
        &self,
        url: &CallbackUrl,
        resolver: &dyn Resolve,
    ) -> Result<(), Forbidden> {
        let destination = destination(url);
        self.check_destination(&destination)?;
        let Destination::Name(host, port) = destination else {
            return Ok(());
        };
        match timeout(LOOKUP_TIMEOUT, resolver.resolve(&host, port)).await {
            Ok(Ok(addresses)) => self.check_all(host, &addresses),
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    fn check_destination(&self, destination: &Destination) -> Result<(), Forbidden> {
        match destination {
            Destination::Address(address) => self.check_address(*address),
            Destination::Localhost(host) => self.check_localhost(host),
            Destination::Name(..) => Ok(()),
        }
    }

    /// One permitted family is enough, because the other one is skipped when connecting.
    pub(crate) fn check_localhost(&self, host: &str) -> Result<(), Forbidden> {
        let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        if own.iter().any(|ip| self.check_address(*ip).is_ok()) {
            return Ok(());
        }
        Err(Forbidden::Name {
            host: host.to_owned(),
            kind: "a loopback address",
        })
    }

    /// Checks that every address of a name is permitted.
    pub(crate) fn check_all(&self, host: String, addresses: &[IpAddr]) -> Result<(), Forbidden> {
        let refused = addresses
            .iter()
            .find_map(|address| self.check_address(*address).err());
        match refused {
            Some(Forbidden::Address { kind, .. } | Forbidden::Name { kind, .. }) => {
                Err(Forbidden::Name { host, kind })
            }
            None => Ok(()),
        }
    }
}

/// The kind of a forbidden address.
fn forbidden_kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(ip) => first_kind(&FORBIDDEN_V4, |net| net.contains(&ip)),
        IpAddr::V6(ip) => first_kind(&FORBIDDEN_V6, |net| net.contains(&ip))
            .or((!GLOBAL_V6.contains(&ip)).then_some("a reserved address")),
    }
}

/// The kind of an address that belongs to this machine, public or not. Services there may be meant for local programs
/// only, and a service that calls itself would loop.
///
/// Asks the system for its source address to that destination. Nothing is sent.
fn own_kind(address: IpAddr) -> Option<&'static str> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((address, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (own == address).then_some("an address of this machine")
}

fn first_kind<N>(table: &[(N, &'static str)], holds: impl Fn(&N) -> bool) -> Option<&'static str> {
    table
        .iter()
        .find(|(net, _)| holds(net))
        .map(|(_, kind)| *kind)
}

fn destination(url: &CallbackUrl) -> Destination {
    let url = Url::parse(url.as_str()).expect("a callback URL has been parsed before");
    let port = url.port_or_known_default().unwrap_or_default();
    match url.host().expect("http and https have a host") {
        Host::Ipv4(ip) => Destination::Address(ip.into()),
        Host::Ipv6(ip) => Destination::Address(ip.into()),
        Host::Domain(name) if is_localhost(name) => Destination::Localhost(name.to_owned()),
        Host::Domain(name) => Destination::Name(name.to_owned(), port),
    }
}

/// The URL parser has already made the name lower case.
pub(crate) fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}
