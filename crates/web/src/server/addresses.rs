//! Connections by address, so that no caller takes all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use domain::access::any_contains;
use engine::identity::throttle::network;
use ipnet::IpNet;

/// One of this many connections is reserved for addresses that have none.
const RESERVE: usize = 10;

/// Counts connections by address. IPv6 addresses count by their /64, because a caller usually has all of it.
pub(super) struct Addresses {
    most: usize,
    /// Connections that are reserved for addresses that have none.
    reserve: usize,
    /// Proxies, which forward the connections of many callers.
    exempt: Vec<IpNet>,
    held: Mutex<HashMap<IpAddr, usize>>,
}

impl Addresses {
    /// At most `most` connections for each address that is not exempt, of `all` connections of the listener.
    pub(super) fn new(most: usize, all: usize, exempt: Vec<IpNet>) -> Arc<Self> {
        Arc::new(Self {
            most,
            reserve: all / RESERVE,
            exempt,
            held: Mutex::default(),
        })
    }

    /// Returns `None` if the address has enough connections. `free` is how many the listener can accept now, including
    /// this one. No address may have more than are left for others, and the reserve is only for addresses that have
    /// none, so a few addresses together cannot take all connections.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr, free: usize) -> Option<Held> {
        if any_contains(&self.exempt, peer) {
            return Some(Held(None));
        }
        let network = network(peer);
        let mut held = self.held.lock().expect("no holder panics");
        let count = held.entry(network).or_default();
        let share = free.saturating_sub(self.reserve).max(1);
        if *count >= self.most.min(share) {
            if *count == 0 {
                held.remove(&network);
            }
            return None;
        }
        *count += 1;
        Some(Held(Some((self.clone(), network))))
    }
}

/// A connection that counts for its address until this is dropped.
pub(super) struct Held(Option<(Arc<Addresses>, IpAddr)>);

impl Drop for Held {
    fn drop(&mut self) {
        let Some((addresses, network)) = &self.0 else {
            return;
        };
        let mut held = addresses.held.lock().expect("no holder panics");
        if let Some(count) = held.get_mut(network) {
            *count -= 1;
            if *count == 0 {
                held.remove(network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_has_a_limit_and_frees_its_connections() {
        let exempt = vec!["10.0.0.0/8".parse().expect("a network")];
        let addresses = Addresses::new(2, 100, exempt);
        let take = |text: &str| addresses.take(ip(text), 100);
        for (first, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"),
        ] {
            let held = [take(first), take(same)];
            assert!(held.iter().all(Option::is_some), "{first}");
            assert!(take(same).is_none(), "{same} is the same caller");
            assert!(take(other).is_some(), "{other} is another caller");
            drop(held);
            assert!(take(first).is_some(), "{first} gave them back");
        }
        let proxied: Vec<_> = (0..10).map(|_| take("10.1.2.3")).collect();
        assert!(proxied.iter().all(Option::is_some), "a proxy is exempt");
        assert!(addresses.held.lock().expect("free").is_empty());
    }

    #[test]
    fn a_few_addresses_cannot_take_all_connections() {
        const ALL: usize = 1000;
        let addresses = Addresses::new(ALL / 4, ALL, Vec::new());
        let mut held = Vec::new();
        // Each in turn takes all it is given, then the first ones try again.
        for n in (0_u32..20).cycle().take(40) {
            while let Some(one) = addresses.take(IpAddr::V4(n.into()), ALL - held.len()) {
                held.push(one);
            }
        }
        let free = ALL - held.len();
        assert!(
            free >= ALL / RESERVE - 20,
            "20 greedy addresses left {free}"
        );
        assert!(addresses.take(ip("192.0.2.1"), free).is_some());
    }
}
