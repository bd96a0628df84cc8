//! Slowing down those who guess.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};

/// Failures that an address may make in quick succession.
const BURST: u32 = 30;
/// One failure is forgiven each time this many seconds pass.
const FORGIVEN_AFTER_S: i64 = 2;
/// What an address that has used up its tries may still have looked up: so many in quick succession, one more after so many
/// milliseconds. A caller with a right secret behind the same address gets through; the database is not flooded.
const LOOK_UPS: u32 = 500;
const LOOK_UP_EVERY_MS: i64 = 100;
/// Addresses that are remembered at once; when more come, those that are forgiven anyway are dropped.
const MAX_ADDRESSES: usize = 10_000;

/// Counts failures by address. An IPv6 caller counts by its /64: it owns all of it.
pub struct Throttle {
    burst: u32,
    forgiven_after_s: i64,
    counted_by: fn(IpAddr) -> IpAddr,
    failures: Mutex<HashMap<IpAddr, Failures>>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(BURST, FORGIVEN_AFTER_S)
    }
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    since: Timestamp,
    /// When all that was looked up for this address since it used up its tries is forgotten.
    looked_up_until: Timestamp,
}

impl Throttle {
    /// So many failures in quick succession, one of which is forgiven each time so many seconds pass.
    pub fn new(burst: u32, forgiven_after_s: i64) -> Self {
        Self {
            burst,
            forgiven_after_s,
            counted_by: network,
            failures: Mutex::default(),
        }
    }

    /// The same, but an IPv6 caller counts by its /48: many are given that much.
    #[must_use]
    pub fn by_site(self) -> Self {
        Self {
            counted_by: site,
            ..self
        }
    }

    /// Asked before anything is looked up for this address. The answer is the seconds to wait, when it has used up its tries
    /// and what may be looked up beyond them.
    pub fn ask(&self, address: IpAddr, now: Timestamp) -> Option<u32> {
        let mut failures = self.failures.lock().expect("no holder panics");
        let entry = failures.get_mut(&(self.counted_by)(address))?;
        if entry.forgiven(now, self.forgiven_after_s) < self.burst {
            return None;
        }
        let one = SignedDuration::from_millis(LOOK_UP_EVERY_MS);
        let until = entry.looked_up_until.max(now) + one;
        if until.duration_since(now) > one * i32::try_from(LOOK_UPS).expect("a few") {
            return Some(self.retry_after_s());
        }
        entry.looked_up_until = until;
        None
    }

    fn retry_after_s(&self) -> u32 {
        u32::try_from(self.forgiven_after_s).expect("a few seconds")
    }

    /// Notes a failure. The answer is the seconds to wait, when this address has used up its tries.
    pub fn fail(&self, address: IpAddr, now: Timestamp) -> Option<u32> {
        let mut failures = self.failures.lock().expect("no holder panics");
        if failures.len() >= MAX_ADDRESSES {
            failures.retain(|_, f| f.forgiven(now, self.forgiven_after_s) > 0);
            if failures.len() >= MAX_ADDRESSES {
                // A flood from ever new addresses: remembering all of them would be the attack.
                failures.clear();
            }
        }
        let entry = failures
            .entry((self.counted_by)(address))
            .or_insert(Failures {
                count: 0,
                since: now,
                looked_up_until: now,
            });
        let count = entry.forgiven(now, self.forgiven_after_s);
        if count >= self.burst {
            return Some(self.retry_after_s());
        }
        entry.count = count + 1;
        entry.since = now;
        None
    }
}

impl Failures {
    /// How many still count.
    fn forgiven(self, now: Timestamp, after_s: i64) -> u32 {
        let seconds = now.duration_since(self.since).as_secs().max(0);
        let forgiven = u32::try_from(seconds / after_s).unwrap_or(u32::MAX);
        self.count.saturating_sub(forgiven)
    }
}

/// The network that a caller owns: an IPv4 address, or an IPv6 /64.
pub fn network(address: IpAddr) -> IpAddr {
    masked(address, !0 << 64)
}

/// The network of a whole site: an IPv4 address, or an IPv6 /48.
fn site(address: IpAddr) -> IpAddr {
    masked(address, !0 << 80)
}

fn masked(address: IpAddr, mask: u128) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & mask).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_is_slowed_after_its_burst_and_forgiven_with_time() {
        let throttle = Throttle::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        for n in 0..BURST {
            assert_eq!(throttle.fail(ip("192.0.2.1"), start), None, "failure {n}");
        }
        assert_eq!(throttle.fail(ip("192.0.2.1"), start), Some(2));
        assert_eq!(
            throttle.fail(ip("::ffff:192.0.2.1"), start),
            Some(2),
            "the mapped form is the same address"
        );
        assert_eq!(
            throttle.fail(ip("192.0.2.2"), start),
            None,
            "its neighbour is not"
        );
        let later = start + SignedDuration::from_secs(2);
        assert_eq!(throttle.fail(ip("192.0.2.1"), later), None);
        assert_eq!(throttle.fail(ip("192.0.2.1"), later), Some(2));
    }

    #[test]
    fn an_address_without_tries_is_looked_up_slowly() {
        let throttle = Throttle::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let address = ip("192.0.2.1");
        for _ in 0..BURST {
            assert_eq!(throttle.ask(address, start), None);
            throttle.fail(address, start);
        }
        for _ in 0..LOOK_UPS {
            assert_eq!(throttle.ask(address, start), None, "it has some left");
            assert_eq!(throttle.fail(address, start), Some(2));
        }
        assert_eq!(throttle.ask(address, start), Some(2));
        assert_eq!(throttle.ask(ip("192.0.2.2"), start), None, "its neighbour");
        let soon = start + SignedDuration::from_millis(LOOK_UP_EVERY_MS);
        assert_eq!(throttle.ask(address, soon), None);
        assert_eq!(throttle.ask(address, soon), Some(2));
        let later = start + SignedDuration::from_secs(2);
        assert_eq!(throttle.ask(address, later), None, "one try is forgiven");
    }

    #[test]
    fn a_caller_cannot_escape_within_its_ipv6_network() {
        let throttle = Throttle::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let slowed = (0..=BURST)
            .filter_map(|n| throttle.fail(ip(&format!("2001:db8::{n:x}")), start))
            .count();
        assert_eq!(slowed, 1);
    }

    #[test]
    fn networks_are_counted_whole() {
        for (address, expected, of_site) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", "2001:db8:1::"),
        ] {
            assert_eq!(network(ip(address)), ip(expected), "{address}");
            assert_eq!(site(ip(address)), ip(of_site), "{address}");
        }
    }

    #[test]
    fn a_site_cannot_escape_by_its_many_networks() {
        let throttle = Throttle::new(3, 60).by_site();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let fail = |text: &str| throttle.fail(ip(text), start);
        for network in 0..3 {
            assert_eq!(fail(&format!("2001:db8:1:{network}::1")), None);
        }
        assert_eq!(fail("2001:db8:1:ffff::1"), Some(60));
        assert_eq!(fail("2001:db8:2::1"), None, "another site");
    }

    #[test]
    fn memory_stays_bounded_under_a_flood_of_addresses() {
        let throttle = Throttle::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let flood = u32::try_from(MAX_ADDRESSES).expect("a few thousand") + 100;
        for n in 0..flood {
            throttle.fail(IpAddr::V4(n.into()), start);
        }
        assert!(throttle.failures.lock().expect("free").len() <= MAX_ADDRESSES);
    }
}
