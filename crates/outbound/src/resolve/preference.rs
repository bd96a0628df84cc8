//! Sorts the addresses of a host by preference.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Puts reachable addresses first, and of these IPv6 before IPv4 if this machine has a public IPv6 address. This is
/// what RFC 6724 amounts to for a client. The sort is stable.
pub(super) fn sort(addresses: &mut [IpAddr]) {
    addresses.sort_by_cached_key(|address| rank(*address, source_for(*address)));
}

/// The source address that the system would use. Nothing is sent.
fn source_for(address: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((address, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn rank(address: IpAddr, source: Option<IpAddr>) -> u8 {
    match (address, source) {
        (IpAddr::V6(_), Some(IpAddr::V6(source))) if is_public(source) => 0,
        (IpAddr::V4(_), Some(_)) => 1,
        (IpAddr::V6(_), Some(_)) => 2,
        (_, None) => 3,
    }
}

fn is_public(source: Ipv6Addr) -> bool {
    source.segments()[0] & 0xE000 == 0x2000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reachable_addresses_come_first() {
        for (address, source, expected) in [
            ("2001:db8::1", Some("2001:db8::2"), 0),
            ("192.0.2.1", Some("10.0.0.2"), 1),
            ("2001:db8::1", Some("fd00::2"), 2),
            ("2001:db8::1", None, 3),
            ("192.0.2.1", None, 3),
        ] {
            let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
            let got = rank(ip(address), source.map(ip));
            assert_eq!(got, expected, "{address} from {source:?}");
        }
    }

    #[test]
    fn the_order_of_equals_stays() {
        let mut addresses =
            ["127.0.0.3", "127.0.0.1", "127.0.0.2"].map(|text| text.parse().expect("an address"));
        let before = addresses;
        sort(&mut addresses);
        assert_eq!(addresses, before);
    }
}
