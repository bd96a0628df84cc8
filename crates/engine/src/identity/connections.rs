//! Connections by address, so that a few callers cannot take all of them.

use std::net::IpAddr;
use std::sync::Arc;

use domain::access::any_contains;
use ipnet::IpNet;
use permits::{Permit, Permits};

use super::throttle::network;

/// One of this many connections is reserved for addresses that have none.
const RESERVE: usize = 10;

/// An address with its limit.
type Address = (IpAddr, usize);

/// Held while a connection is open.
pub type Connected = Permit<Address>;

/// Counts the connections of a listener, in total and by address.
pub struct ConnectionLimits {
    all: usize,
    per_address: usize,
    exempt: Vec<IpNet>,
    permits: Arc<Permits<Address>>,
}

impl ConnectionLimits {
    /// Allows `all` connections at once, and `per_address` from one address; if that is not below `all`, addresses have
    /// no limit. Proxies, which forward the connections of many callers, are exempt from it.
    pub fn new(all: usize, per_address: usize, exempt: Vec<IpNet>) -> Self {
        Self {
            all,
            per_address,
            exempt,
            permits: Permits::with_reserve(all, |(_, most)| *most, all / RESERVE),
        }
    }

    /// Counts a connection, unless there are too many.
    pub fn try_connect(&self, peer: IpAddr) -> Option<Connected> {
        self.permits.try_acquire(self.counted_by(peer).as_slice())
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.permits.taken()
    }

    /// What a connection counts for, besides the total. IPv6 addresses count by their /64, because a caller usually has
    /// all of it.
    fn counted_by(&self, peer: IpAddr) -> Option<Address> {
        let is_limited = self.per_address < self.all && !any_contains(&self.exempt, peer);
        is_limited.then(|| (network(peer), self.per_address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_count_by_address_unless_it_is_exempt() {
        let exempt: Vec<IpNet> = vec!["10.0.0.0/8".parse().expect("a network")];
        let limits = |per_address| ConnectionLimits::new(100, per_address, exempt.clone());
        for (peer, counted_by) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("::ffff:192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::ffff:2", Some("2001:db8::")),
            ("2001:db8:0:1::1", Some("2001:db8:0:1::")),
            ("10.1.2.3", None),
        ] {
            let peer = peer.parse().expect("an address");
            let counted_by = counted_by.map(|key| (key.parse().expect("an address"), 2));
            assert_eq!(limits(2).counted_by(peer), counted_by, "{peer}");
            assert_eq!(limits(100).counted_by(peer), None, "{peer}: no limit");
        }
    }
}
