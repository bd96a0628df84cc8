//! Slowing down those who guess.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;

use jiff::Timestamp;

/// Failures that an address may make in quick succession.
const BURST: u32 = 30;
/// One failure is forgiven each time this many seconds pass.
const FORGIVEN_AFTER_S: i64 = 2;
/// Addresses that are remembered at once; when more come, those that are forgiven anyway are dropped.
const MAX_ADDRESSES: usize = 10_000;

/// Counts failures by address. An IPv6 caller counts by its /64: it owns all of it.
pub struct Throttle {
    burst: u32,
    forgiven_after_s: i64,
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
}

impl Throttle {
    /// So many failures in quick succession, one of which is forgiven each time so many seconds pass.
    pub fn new(burst: u32, forgiven_after_s: i64) -> Self {
        Self {
            burst,
            forgiven_after_s,
            failures: Mutex::default(),
        }
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
        let entry = failures.entry(network(address)).or_insert(Failures {
            count: 0,
            since: now,
        });
        let count = entry.forgiven(now, self.forgiven_after_s);
        if count >= self.burst {
            return Some(u32::try_from(self.forgiven_after_s).expect("a few seconds"));
        }
        *entry = Failures {
            count: count + 1,
            since: now,
        };
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

/// The network that a caller owns.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => {
            let s = v6.segments();
            Ipv6Addr::new(s[0], s[1], s[2], s[3], 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

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
    fn a_caller_cannot_escape_within_its_ipv6_network() {
        let throttle = Throttle::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let slowed = (0..=BURST)
            .filter_map(|n| throttle.fail(ip(&format!("2001:db8::{n:x}")), start))
            .count();
        assert_eq!(slowed, 1);
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
