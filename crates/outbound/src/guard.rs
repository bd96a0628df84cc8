//! Which addresses may be dialled on behalf of a caller.
//!
//! A caller chooses where its reports go, and we stand in a network that it may have no access to. So only addresses of
//! the public internet are called, and those networks that the operator permits. The question is asked twice: when the
//! caller gives the address, so that it learns at once, and again for the very address that is dialled, because a name
//! may lead elsewhere by then.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use domain::CallbackUrl;
use domain::shown::Shown;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::time::timeout;
use url::{Host, Url};

use crate::resolve::Resolve;

#[cfg(test)]
mod tests;

/// How long a caller waits while the name in its address is looked up.
pub(crate) const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(s: [u16; 6], bits: u8) -> Ipv6Net {
    let first = Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], 0, 0);
    Ipv6Net::new_assert(first, bits)
}

/// The networks for documentation are not among them: they lead nowhere, and examples are full of them.
const FORBIDDEN_V4: [(Ipv4Net, &str); 13] = [
    (v4(0, 0, 0, 0, 8), "an unspecified address"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    // Holds a cloud's metadata service, too: 100.100.100.200.
    (v4(100, 64, 0, 0, 10), "a carrier-grade NAT address"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    // Not a reserved network, but within that cloud every machine's own host answers there.
    (v4(168, 63, 129, 16, 32), "a cloud's metadata address"),
    // Holds most clouds' metadata service: 169.254.169.254.
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 0, 0, 0, 24), "a reserved address"),
    (v4(192, 88, 99, 0, 24), "a 6to4 address"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(198, 18, 0, 0, 15), "a benchmarking address"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    // The last of them is broadcast.
    (v4(240, 0, 0, 0, 4), "a reserved address"),
];

/// The first that holds an address names its kind. Those that carry an IPv4 address are forbidden whatever it is:
/// nobody needs them to be reached, and they hide an address from whoever looks at the outer one only.
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
    // Holds a cloud's metadata service: fd00:ec2::254.
    (v6([0xfc00, 0, 0, 0, 0, 0], 7), "a private address"),
    (v6([0xfe80, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0], 10), "a site-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

/// All that has been given out for use between networks so far.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0], 3);

/// An address that may not be dialled. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The address itself.
    #[error("{address} is {kind}; callbacks cannot reach it")]
    Address {
        /// Which.
        address: IpAddr,
        /// What it is, with its article.
        kind: &'static str,
    },
    /// A name that leads to one. Which one is not said: it would let a caller read our names from outside.
    #[error("{} leads to {kind}; callbacks cannot reach it", Shown(.host))]
    Name {
        /// The name.
        host: String,
        /// What its address is, with its article.
        kind: &'static str,
    },
}

/// The rule, with the operator's exceptions.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allow: Vec<IpNet>,
}

/// Where an address leads, as far as it can be told without asking anybody.
enum Destination {
    Address(IpAddr),
    Localhost(String),
    Name(String, u16),
}

impl Guard {
    /// Permits the public internet and, besides, these networks.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allow }
    }

    /// Permits everything: for addresses that the operator gives.
    pub fn open() -> Self {
        Self::new(vec![
            IpNet::V4(Ipv4Net::default()),
            IpNet::V6(Ipv6Net::default()),
        ])
    }

    /// The networks of this machine itself, for [`Self::new`].
    pub fn loopback() -> Vec<IpNet> {
        vec![
            IpNet::V4(v4(127, 0, 0, 0, 8)),
            IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
        ]
    }

    /// Whether an address may be dialled.
    ///
    /// The mapped form of an IPv4 address reaches the same machine, so it is permitted exactly when the operator
    /// permits that IPv4 address by name; a network of IPv6 addresses never opens it.
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

    /// Whether a URL may be called, as far as it can be told without asking a name server.
    ///
    /// A host that is an address in any notation (`0x7f.1`, `2130706433`, `017700000001`) is judged as that address,
    /// and `localhost` as loopback. Any other name passes: see [`Self::check_resolved`].
    pub fn check_url(&self, url: &CallbackUrl) -> Result<(), Forbidden> {
        self.check_destination(&destination(url))
    }

    /// Whether a URL may be called, its name looked up: every address that it leads to must be permitted.
    ///
    /// A name that does not lead anywhere now, or not within 2 s, passes: it may be there by the time it is called, a
    /// name server's bad moment should not turn messages away, and what is dialled is judged again in any case.
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

    /// One of the two is enough: when it is dialled, the one that is not permitted is left out.
    fn check_localhost(&self, host: &str) -> Result<(), Forbidden> {
        let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        if own.iter().any(|ip| self.check_address(*ip).is_ok()) {
            return Ok(());
        }
        Err(Forbidden::Name {
            host: host.to_owned(),
            kind: "a loopback address",
        })
    }

    /// Whether every address that a name leads to is permitted.
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

/// What a forbidden address is.
fn forbidden_kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(ip) => first_kind(&FORBIDDEN_V4, |net| net.contains(&ip)),
        IpAddr::V6(ip) => first_kind(&FORBIDDEN_V6, |net| net.contains(&ip))
            .or((!GLOBAL_V6.contains(&ip)).then_some("a reserved address")),
    }
}

/// What an address of this machine is, whatever it is called outside: what listens there may be meant for those on the same
/// machine alone, and a service that calls itself goes round in circles.
///
/// The system is asked from which address it would send there. Nothing is sent.
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

/// The parser has made the name lower case already.
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}
