//! Slows down addresses that guess secrets.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};

/// How many failures an address may make in quick succession.
const BURST: u32 = 30;
/// One failure is forgiven after each of these periods.
const FORGIVEN_AFTER_S: i64 = 2;
/// How many lookups an address may still have after its attempts are used up: a burst, then one per period. So a caller
/// with a right secret behind the same address gets through, and the database is not flooded.
const EXTRA_LOOKUPS: u32 = 500;
const EXTRA_LOOKUP_EVERY_MS: i64 = 100;
/// How many addresses are counted; beyond that, those without failures left are dropped.
const MAX_ADDRESSES: usize = 10_000;

/// Counts failures by address. IPv6 addresses count by /64, because a caller usually owns the whole /64.
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
    /// When the lookups after the last attempt will all be forgiven.
    lookups_forgiven_at: Timestamp,
}

impl Throttle {
    /// Allows `burst` failures in quick succession; one is forgiven every `forgiven_after_s` seconds.
    pub fn new(burst: u32, forgiven_after_s: i64) -> Self {
        Self {
            burst,
            forgiven_after_s,
            counted_by: network,
            failures: Mutex::default(),
        }
    }

    /// Counts an IPv6 caller by its /48, because many sites have one.
    #[must_use]
    pub fn by_site(self) -> Self {
        Self {
            counted_by: site,
            ..self
        }
    }

    /// Call this before a lookup for the address. Returns the seconds to wait if its attempts and extra lookups are
    /// used up.
    pub fn ask(&self, address: IpAddr, now: Timestamp) -> Option<u32> {
        let mut failures = self.failures.lock().expect("no holder panics");
        let entry = failures.get_mut(&(self.counted_by)(address))?;
        if entry.remaining(now, self.forgiven_after_s) < self.burst {
            return None;
        }
        let interval = SignedDuration::from_millis(EXTRA_LOOKUP_EVERY_MS);
        let until = entry.lookups_forgiven_at.max(now) + interval;
        if until.duration_since(now) > interval * i32::try_from(EXTRA_LOOKUPS).expect("a few") {
            return Some(self.retry_after_s());
        }
        entry.lookups_forgiven_at = until;
        None
    }

    fn retry_after_s(&self) -> u32 {
        u32::try_from(self.forgiven_after_s).expect("a few seconds")
    }

    /// Counts a failure. Returns the seconds to wait if the attempts of this address are used up.
    pub fn fail(&self, address: IpAddr, now: Timestamp) -> Option<u32> {
        let mut failures = self.failures.lock().expect("no holder panics");
        if failures.len() >= MAX_ADDRESSES {
            failures.retain(|_, f| f.remaining(now, self.forgiven_after_s) > 0);
            if failures.len() >= MAX_ADDRESSES {
                // A flood of addresses: storing all of them would exhaust memory.
                failures.clear();
            }
        }
        let entry = failures
            .entry((self.counted_by)(address))
            .or_insert(Failures {
                count: 0,
                since: now,
                lookups_forgiven_at: now,
            });
        let count = entry.remaining(now, self.forgiven_after_s);
        if count >= self.burst {
            return Some(self.retry_after_s());
        }
        entry.count = count + 1;
        entry.since = now;
        None
    }
}

impl Failures {
    /// How many failures still count.
    fn remaining(self, now: Timestamp, after_s: i64) -> u32 {
        let seconds = now.duration_since(self.since).as_secs().max(0);
        let forgiven = u32::try_from(seconds / after_s).unwrap_or(u32::MAX);
        self.count.saturating_sub(forgiven)
    }
}

/// The network that a caller owns: an IPv4 address or an IPv6 /64.
pub fn network(address: IpAddr) -> IpAddr {
    masked(address, !0 << 64)
}

/// The network of a whole site: an IPv4 address or an IPv6 /48.
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
    fn an_address_is_throttled_after_its_burst_and_forgiven_with_time() {
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
            "another address is counted apart"
        );
        let later = start + SignedDuration::from_secs(2);
        assert_eq!(throttle.fail(ip("192.0.2.1"), later), None);
        assert_eq!(throttle.fail(ip("192.0.2.1"), later), Some(2));
    }

    #[test]
    fn lookups_of_a_throttled_address_are_slowed_down() {
        let throttle = Throttle::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let address = ip("192.0.2.1");
        for _ in 0..BURST {
            assert_eq!(throttle.ask(address, start), None);
            throttle.fail(address, start);
        }
        for _ in 0..EXTRA_LOOKUPS {
            assert_eq!(throttle.ask(address, start), None, "extra lookups are left");
            assert_eq!(throttle.fail(address, start), Some(2));
        }
        assert_eq!(throttle.ask(address, start), Some(2));
        assert_eq!(
            throttle.ask(ip("192.0.2.2"), start),
            None,
            "another address"
        );
        let soon = start + SignedDuration::from_millis(EXTRA_LOOKUP_EVERY_MS);
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
    fn addresses_are_counted_by_network() {
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
