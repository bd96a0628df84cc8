//! Ported numbers: the networks that lookups and receipts named, where they differ from what the digits tell.
//!
//! Prices and routes need them for every message, so each node has all of them in memory. A node applies what it learns
//! at once and stores it in the background; the others follow by a counter in the database (`follow.rs`).

pub(crate) mod follow;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{OnceLock, RwLock};

use arc_swap::ArcSwap;
use domain::number::ported::PortedNumber;
use domain::{AccountId, Msisdn, Network, Timestamp};
use jiff::SignedDuration;
use numbering::reference::{Location, Reference};
use tokio::sync::mpsc;

/// How many numbers are remembered; maintenance removes the oldest beyond that. An entry takes 17 to 34 bytes.
pub(crate) const MAX_NUMBERS: usize = 1_000_000;
/// What a node has in memory at most, until maintenance has removed some.
const MAX_IN_MEMORY: usize = 2 * MAX_NUMBERS;
/// A change locks one shard, so that it stops few messages.
const SHARDS: usize = 256;
/// What is known is stored again at most this often, so that its age is right to a day.
const REFRESH_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Who named the network of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// It asked the home network.
    Lookup,
    /// Some carriers name the network that the digits tell, so only another one says something.
    Receipt,
}

/// What is known about numbers, and which accounts go by it.
#[derive(Default)]
pub(crate) struct PortedNumbers {
    known: ArcSwap<KnownNetworks>,
    accounts: ArcSwap<HashSet<AccountId>>,
    /// Stores what this node learns. A process that only answers learns nothing.
    learned: OnceLock<mpsc::Sender<PortedNumber>>,
}

impl PortedNumbers {
    /// Whether prices and routes of the account go by the networks of ported numbers.
    pub(crate) fn are_used_by(&self, account: AccountId) -> bool {
        self.accounts.load().contains(&account)
    }

    /// The location of a number: its network is the one that it was ported to, if that is known.
    pub(crate) fn locate(
        &self,
        reference: &Reference,
        number: &Msisdn,
        home: &Location,
    ) -> Location {
        let Some(known) = self.known.load().find(number) else {
            return *home;
        };
        let mut entries = reference.find_network(known.network);
        let operator = entries.find(|entry| entry.country == home.country);
        Location {
            country: home.country,
            operator: operator.map(|entry| entry.operator),
            network: Some(known.network),
        }
    }

    /// Remembers the network of a number, if that says something new.
    pub(crate) fn learn(
        &self,
        reference: &Reference,
        number: &Msisdn,
        network: Network,
        source: Source,
        at: Timestamp,
    ) {
        let home = reference.locate(number);
        let networks = self.known.load();
        let known = networks.find(number);
        let is_home = home.network == Some(network);
        if is_home && (source == Source::Receipt || known.is_none()) {
            return;
        }
        let is_recent =
            |known: Known| known.network == network && at < known.learned_at() + REFRESH_AFTER;
        if known.is_some_and(is_recent) || !is_in_country(reference, &home, network) {
            return;
        }
        let ported = PortedNumber {
            number: *number,
            network,
            learned_at: at,
        };
        let Some(learned) = self.learned.get() else {
            return;
        };
        if learned.try_send(ported).is_ok() {
            networks.apply(&ported);
        } else {
            // The next lookup or receipt tells it again.
            tracing::debug!("too many networks of ported numbers wait to be stored");
        }
    }

    /// How many numbers are known.
    pub(crate) fn count(&self) -> usize {
        self.known.load().count()
    }
}

/// A handset abroad may be reported with the network that it visits, which says nothing about its own.
fn is_in_country(reference: &Reference, home: &Location, network: Network) -> bool {
    let mut entries = reference.find_network(network).peekable();
    if entries.peek().is_none() {
        // A network that is not in the reference data.
        return home.network.is_some_and(|home| home.mcc() == network.mcc());
    }
    home.country.is_some() && entries.any(|entry| entry.country == home.country)
}

/// The network of a number, and when it was learned, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    network: Network,
    learned_s: u32,
}

impl Known {
    fn new(ported: &PortedNumber) -> Self {
        let seconds = ported.learned_at.as_second();
        Self {
            network: ported.network,
            learned_s: u32::try_from(seconds.max(0)).unwrap_or(u32::MAX),
        }
    }

    fn learned_at(self) -> Timestamp {
        Timestamp::from_second(self.learned_s.into()).unwrap_or(Timestamp::MAX)
    }
}

/// Networks by hashes of numbers.
///
/// Two numbers with the same hash are taken for one. With a million entries, one message of 10^13 goes by the network of
/// another number. The hash has a random key, so nobody can look for such numbers.
#[derive(Default)]
struct KnownNetworks {
    key: RandomState,
    shards: Shards,
}

struct Shards(Vec<RwLock<HashMap<u64, Known>>>);

impl Default for Shards {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| RwLock::default()).collect())
    }
}

impl KnownNetworks {
    fn shard(&self, number: &Msisdn) -> (u64, &RwLock<HashMap<u64, Known>>) {
        let hash = self.key.hash_one(number.as_i64());
        let index = usize::from(hash.to_le_bytes()[0]) % SHARDS;
        (hash, &self.shards.0[index])
    }

    fn find(&self, number: &Msisdn) -> Option<Known> {
        let (hash, shard) = self.shard(number);
        let shard = shard.read().expect("no holder panics");
        shard.get(&hash).copied()
    }

    /// What was learned later stays.
    fn apply(&self, ported: &PortedNumber) {
        let (hash, shard) = self.shard(&ported.number);
        let mut shard = shard.write().expect("no holder panics");
        let known = Known::new(ported);
        if let Some(entry) = shard.get_mut(&hash) {
            if entry.learned_s <= known.learned_s {
                *entry = known;
            }
        } else if shard.len() < MAX_IN_MEMORY / SHARDS {
            shard.insert(hash, known);
        }
    }

    fn forget_before(&self, time: Timestamp) {
        for shard in &self.shards.0 {
            let mut shard = shard.write().expect("no holder panics");
            shard.retain(|_, known| known.learned_at() >= time);
        }
    }

    fn count(&self) -> usize {
        let shards = self.shards.0.iter();
        shards
            .map(|shard| shard.read().expect("no holder panics").len())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATVIAN: &str = "+37120000001";

    fn number(digits: &str) -> Msisdn {
        Msisdn::parse(digits).expect("a number")
    }

    fn network(code: &str) -> Network {
        code.parse().expect("a network")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
    }

    /// With room for one network that waits to be stored.
    fn learner() -> (PortedNumbers, mpsc::Receiver<PortedNumber>) {
        let ported = PortedNumbers::default();
        let (learned, stored) = mpsc::channel(1);
        ported.learned.get_or_init(|| learned);
        (ported, stored)
    }

    #[test]
    fn only_what_is_new_and_likely_is_learned() {
        use Source::{Lookup, Receipt};
        let reference = Reference::embedded();
        let home = reference.locate(&number(LATVIAN)).network;
        let home = home.expect("a network").to_string();
        let other = if home == "24702" { "24701" } else { "24702" };
        let day = 24 * 3600;
        // What is known and when it was learned, who names which network, and whether that is stored.
        for (case, known, source, named, is_stored) in [
            ("another network", None, Lookup, other, true),
            ("another network, reported", None, Receipt, other, true),
            ("the network of its digits", None, Lookup, &*home, false),
            ("the same again", Some((other, -60)), Lookup, other, false),
            (
                "again, a day later",
                Some((other, -day)),
                Lookup,
                other,
                true,
            ),
            ("ported back", Some((other, -60)), Lookup, &*home, true),
            ("a mere guess", Some((other, -60)), Receipt, &*home, false),
            ("a visited network", None, Receipt, "26201", false),
            ("unknown, of the country", None, Lookup, "247998", true),
            ("unknown, of another country", None, Lookup, "262998", false),
        ] {
            let (ported, mut stored) = learner();
            let to = number(LATVIAN);
            if let Some((known, seconds)) = known {
                ported.known.load().apply(&PortedNumber {
                    number: to,
                    network: network(known),
                    learned_at: at(seconds),
                });
            }
            ported.learn(&reference, &to, network(named), source, at(0));
            let expected = is_stored.then(|| PortedNumber {
                number: to,
                network: network(named),
                learned_at: at(0),
            });
            assert_eq!(stored.try_recv().ok(), expected, "{case}");
            if is_stored {
                let located = ported.locate(&reference, &to, &reference.locate(&to));
                assert_eq!(located.network, Some(network(named)), "{case}");
            }
        }
    }

    #[test]
    fn a_ported_number_keeps_its_country_and_changes_its_operator() {
        let reference = Reference::embedded();
        let (ported, _stored) = learner();
        let (to, other) = (number(LATVIAN), number("+37120000002"));
        let home = reference.locate(&to);
        let name = if home.network == Some(network("24702")) {
            "24701"
        } else {
            "24702"
        };
        ported.learn(&reference, &to, network(name), Source::Lookup, at(0));
        let located = ported.locate(&reference, &to, &home);
        assert_eq!(located.country, home.country);
        let operator = reference.find_network(network(name)).next();
        assert_eq!(located.operator, operator.map(|entry| entry.operator));
        assert_ne!(located.operator, home.operator);
        let home = reference.locate(&other);
        assert_eq!(ported.locate(&reference, &other, &home), home);
    }

    #[test]
    fn what_is_old_is_forgotten_and_what_is_newer_stays() {
        let networks = KnownNetworks::default();
        let apply = |digits, code, seconds| {
            networks.apply(&PortedNumber {
                number: number(digits),
                network: network(code),
                learned_at: at(seconds),
            });
        };
        apply("+37120000001", "24701", 10);
        apply("+37120000001", "24702", 5);
        apply("+37120000002", "24702", 20);
        let code = |digits| {
            let known = networks.find(&number(digits));
            known.map(|known| known.network.to_string())
        };
        assert_eq!(code("+37120000001").as_deref(), Some("24701"));
        networks.forget_before(at(15));
        assert_eq!(code("+37120000001"), None);
        assert_eq!(code("+37120000002").as_deref(), Some("24702"));
        assert_eq!(networks.count(), 1);
    }
}
