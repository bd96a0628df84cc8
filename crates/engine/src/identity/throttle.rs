//! Slows down addresses that guess secrets.

use std::net::{IpAddr, Ipv6Addr};

use domain::access::attempts::AttemptLimit;
use jiff::{SignedDuration, Timestamp};

use super::attempts::AttemptCounter;

/// How many failures an address may make in quick succession.
const BURST: u32 = 30;
/// One failure is forgiven after each of these periods.
const FORGIVEN_AFTER_S: u32 = 2;
/// The lookups that an address may still have after its attempts are used up. So a caller with a right secret behind the
/// same address gets through, and the database is not flooded.
const EXTRA_LOOKUPS: AttemptLimit = AttemptLimit::Steady {
    burst: 500,
    forgiven_after: SignedDuration::from_millis(100),
};

/// Counts failures by address. IPv6 addresses count by /64, because a caller usually owns the whole /64.
pub struct Throttle {
    forgiven_after_s: u32,
    counted_by: fn(IpAddr) -> IpAddr,
    failures: AttemptCounter<IpAddr>,
    extra_lookups: AttemptCounter<IpAddr>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(BURST, FORGIVEN_AFTER_S)
    }
}

impl Throttle {
    /// Allows `burst` failures in quick succession; one is forgiven every `forgiven_after_s` seconds.
    pub fn new(burst: u32, forgiven_after_s: u32) -> Self {
        let limit = AttemptLimit::Steady {
            burst,
            forgiven_after: SignedDuration::from_secs(forgiven_after_s.into()),
        };
        Self {
            forgiven_after_s,
            counted_by: network,
            failures: AttemptCounter::new(limit),
            extra_lookups: AttemptCounter::new(EXTRA_LOOKUPS),
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
        let key = (self.counted_by)(address);
        if !self.failures.is_used_up(&key, now) {
            return None;
        }
        let refused = self.extra_lookups.begin(key, now).is_err();
        refused.then_some(self.forgiven_after_s)
    }

    /// Counts a failure. Returns the seconds to wait if the attempts of this address are used up.
    pub fn fail(&self, address: IpAddr, now: Timestamp) -> Option<u32> {
        let key = (self.counted_by)(address);
        self.failures.begin(key, now).err()
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
    use super::super::attempts::MAX_KEYS;
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
        for _ in 0..500 {
            assert_eq!(throttle.ask(address, start), None, "extra lookups are left");
            assert_eq!(throttle.fail(address, start), Some(2));
        }
        assert_eq!(throttle.ask(address, start), Some(2));
        assert_eq!(
            throttle.ask(ip("192.0.2.2"), start),
            None,
            "another address"
        );
        let soon = start + SignedDuration::from_millis(100);
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
        let flood = u32::try_from(MAX_KEYS).expect("a few thousand") + 100;
        for n in 0..flood {
            throttle.fail(IpAddr::V4(n.into()), start);
        }
        assert!(throttle.failures.counts.lock().expect("free").len() <= MAX_KEYS);
    }
}
