//! The address of a caller, also behind proxies.

use std::net::{IpAddr, Ipv4Addr};

use domain::access::any_contains;
use http::HeaderMap;
use http::request::Parts;
use ipnet::IpNet;

/// The address at the other end of the connection. The server puts it into every request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// The caller's own address: the peer's or, behind trusted proxies, the last one in `X-Forwarded-For` that is not a
/// trusted proxy. The caller itself may have written whatever is further left.
pub fn client_address(parts: &Parts, trusted: &[IpNet]) -> IpAddr {
    let peer = parts
        .extensions
        .get::<Peer>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
    if trusted.is_empty() || !any_contains(trusted, peer) {
        return peer.to_canonical();
    }
    let mut nearest = peer;
    for address in forwarded_for(&parts.headers) {
        let Some(address) = address else { break };
        nearest = address;
        if !any_contains(trusted, address) {
            break;
        }
    }
    nearest.to_canonical()
}

/// The addresses of all `X-Forwarded-For` headers, the nearest first; `None` for what is no address.
fn forwarded_for(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let lines: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .map(|line| line.to_str().unwrap_or(""))
        .collect();
    lines
        .into_iter()
        .rev()
        .flat_map(|line| line.rsplit(',').map(|one| parse_address(one.trim())))
}

/// Some proxies add the port, and brackets with it.
fn parse_address(text: &str) -> Option<IpAddr> {
    let with_port = || {
        text.parse::<std::net::SocketAddr>()
            .ok()
            .map(|address| address.ip())
    };
    text.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_addresses_count_only_from_trusted_proxies() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().expect("a network")];
        for (peer, headers, expected) in [
            ("203.0.113.1", vec!["198.51.100.7"], "203.0.113.1"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec!["198.51.100.7"], "198.51.100.7"),
            ("::ffff:10.0.0.1", vec!["198.51.100.7"], "198.51.100.7"),
            (
                "10.0.0.1",
                vec!["6.6.6.6, 198.51.100.7, 10.0.0.2"],
                "198.51.100.7",
            ),
            ("10.0.0.1", vec!["6.6.6.6", "198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", vec!["198.51.100.7:4711"], "198.51.100.7"),
            ("10.0.0.1", vec!["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", vec!["nonsense"], "10.0.0.1"),
            ("10.0.0.1", vec!["198.51.100.7, nonsense"], "10.0.0.1"),
            ("10.0.0.1", vec!["10.0.0.9"], "10.0.0.9"),
        ] {
            let mut request = http::Request::builder();
            for line in &headers {
                request = request.header("X-Forwarded-For", *line);
            }
            let (mut parts, ()) = request.body(()).expect("a request").into_parts();
            parts
                .extensions
                .insert(Peer(peer.parse().expect("an address")));
            assert_eq!(
                client_address(&parts, &trusted).to_string(),
                expected,
                "{peer} {headers:?}"
            );
        }
    }
}
