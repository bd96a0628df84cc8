//! Chooses which callback hosts have metrics of their own.
//!
//! Customers name the hosts, so their number must be limited, also over time: a host keeps its place until nothing has
//! waited for it for an hour, and a new host gets only a free place. All others are counted together.

use std::collections::BTreeMap;

use domain::Timestamp;
use jiff::SignedDuration;

/// How many hosts have metrics of their own.
const PLACES: usize = 20;
/// How long a host keeps its place after the last callback that waited for it.
const KEEP: SignedDuration = SignedDuration::from_hours(1);

/// The label of all other hosts together.
pub(crate) const OTHER: &str = "other";

/// What waits for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HostBacklog {
    pub(crate) waiting: u32,
    pub(crate) oldest_at: Option<Timestamp>,
}

impl HostBacklog {
    fn add(&mut self, other: Self) {
        self.waiting = self.waiting.saturating_add(other.waiting);
        let oldest = [self.oldest_at, other.oldest_at].into_iter().flatten();
        self.oldest_at = oldest.min();
    }
}

/// The hosts with a place, and when a callback last waited for each.
#[derive(Debug, Default)]
pub(crate) struct HostPlaces(BTreeMap<String, Timestamp>);

impl HostPlaces {
    /// The backlog of each host with a place, and of all others together. Hosts with the largest backlog get the free
    /// places.
    pub(crate) fn arrange(
        &mut self,
        now: Timestamp,
        backlogs: BTreeMap<String, HostBacklog>,
    ) -> BTreeMap<String, HostBacklog> {
        self.0
            .retain(|_, used_at| now.duration_since(*used_at) < KEEP);
        let mut arranged: BTreeMap<String, HostBacklog> = self
            .0
            .keys()
            .map(|host| (host.clone(), HostBacklog::default()))
            .collect();
        arranged.insert(OTHER.to_owned(), HostBacklog::default());
        let mut backlogs: Vec<_> = backlogs.into_iter().collect();
        backlogs.sort_by_key(|(_, backlog)| std::cmp::Reverse(backlog.waiting));
        for (host, backlog) in backlogs
            .into_iter()
            .filter(|(_, backlog)| backlog.waiting > 0)
        {
            let label = if self.0.contains_key(&host) || self.0.len() < PLACES {
                self.0.insert(host.clone(), now);
                host
            } else {
                OTHER.to_owned()
            };
            arranged.entry(label).or_default().add(backlog);
        }
        arranged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn waiting(hosts: &[(&str, u32)]) -> BTreeMap<String, HostBacklog> {
        let backlog = |(host, waiting): &(&str, u32)| {
            let oldest_at = Some(at(i64::from(*waiting)));
            let waiting = *waiting;
            ((*host).to_owned(), HostBacklog { waiting, oldest_at })
        };
        hosts.iter().map(backlog).collect()
    }

    #[test]
    fn hosts_beyond_the_places_are_counted_together() {
        let names: Vec<String> = (0..30).map(|number| format!("host{number}")).collect();
        let hosts: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(1..).collect();
        let arranged = HostPlaces::default().arrange(at(0), waiting(&hosts));
        assert_eq!(arranged.len(), PLACES + 1);
        assert_eq!(arranged["host29"].waiting, 30, "the largest has a place");
        let others = HostBacklog {
            waiting: (1..=10).sum(),
            oldest_at: Some(at(1)),
        };
        assert_eq!(arranged[OTHER], others);
    }

    /// One customer with many hosts cannot create a series for each of them.
    #[test]
    fn a_host_keeps_its_place_for_an_hour_after_its_backlog() {
        let mut places = HostPlaces::default();
        let names: Vec<String> = (0..PLACES).map(|number| format!("host{number}")).collect();
        let hosts: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        places.arrange(at(0), waiting(&hosts));
        for (seconds, label) in [(10, OTHER), (3599, OTHER), (3600, "new")] {
            let arranged = places.arrange(at(seconds), waiting(&[("new", 5)]));
            assert_eq!(arranged[label].waiting, 5, "after {seconds} s");
        }
    }
}
