//! What was sent, how it ended and what it cost: the figures of an overview, from counts that the store keeps.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use domain::ports::{Span, Store, StoreError, TrafficCount};
use domain::{AccountId, Channel, Code, Country, Money, Network, Outcome, Timestamp};
use jiff::SignedDuration;
use numbering::reference::Reference;

use crate::catalogue::Catalogues;

/// How many hours the series by hour has.
pub const HOURS: usize = 48;
/// How many days the series by day has.
pub const DAYS: usize = 30;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Messages that ended, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// All that ended but for those that were cancelled.
    pub sent: u64,
    /// Those that reached the handset.
    pub delivered: u64,
    /// Those that did not.
    pub failed: u64,
    /// Those that were not delivered in time.
    pub expired: u64,
    /// Those that were taken back.
    pub cancelled: u64,
    /// The parts of those that were sent.
    pub parts: u64,
    /// What they cost, after what was given back.
    pub cost: Money,
}

impl Totals {
    fn add(&mut self, count: &TrafficCount) {
        match count.outcome {
            None => self.cancelled += count.messages,
            Some(Outcome::Delivered) => self.delivered += count.messages,
            Some(Outcome::Failed(_)) => self.failed += count.messages,
            Some(Outcome::Expired) => self.expired += count.messages,
        }
        if count.outcome.is_some() {
            self.sent += count.messages;
            self.parts += count.parts;
        }
        self.cost = self.cost.plus(count.cost);
    }
}

/// What ended within an hour or a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Its beginning.
    pub start: Timestamp,
    /// What ended.
    pub totals: Totals,
}

/// What ended for one of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share<T> {
    /// Which.
    pub of: T,
    /// What ended.
    pub totals: Totals,
}

/// A network's operator, as far as the reference data knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OperatorName {
    /// Where it works.
    pub country: Option<Country>,
    /// What it is called; `None`: the network is not known, or not in the reference data.
    pub name: Option<Box<str>>,
    /// The network; `None` where several of one operator count together or it is not known.
    pub network: Option<Network>,
}

/// What an overview shows. Hours and days are those of UTC, the last of each has only begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// Since midnight.
    pub today: Totals,
    /// The hour that has begun and the 23 before it.
    pub last_24_hours: Totals,
    /// Today and the six days before it.
    pub last_7_days: Totals,
    /// Today and the 29 days before it.
    pub last_30_days: Totals,
    /// Hour by hour, [`HOURS`] of them, the oldest first.
    pub hours: Vec<Point>,
    /// Day by day, [`DAYS`] of them, the oldest first.
    pub days: Vec<Point>,
    /// By channel, within the 30 days, as all that follow; each list begins with what has most messages.
    pub channels: Vec<Share<Channel>>,
    /// By country; `None`: not known.
    pub countries: Vec<Share<Option<Country>>>,
    /// By operator.
    pub operators: Vec<Share<OperatorName>>,
    /// Those that failed or expired, by why.
    pub errors: Vec<Share<Code>>,
}

/// Figures of what was sent.
pub struct Traffic {
    store: Arc<dyn Store>,
    catalogues: Arc<Catalogues>,
}

impl Traffic {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>, catalogues: Arc<Catalogues>) -> Self {
        Self { store, catalogues }
    }

    /// What an overview of an account, or of all of them together, shows.
    pub async fn overview(
        &self,
        account: Option<AccountId>,
        now: Timestamp,
    ) -> Result<Overview, StoreError> {
        let hours = starts(now, HOUR, HOURS);
        let days = starts(now, DAY, DAYS);
        let list = |span, first, length: SignedDuration| {
            let end = now.saturating_add(length).expect("a length of hours");
            self.store.list_traffic(account, span, first, end)
        };
        let by_hour = list(Span::Hour, hours[0], HOUR).await?;
        let by_day = list(Span::Day, days[0], DAY).await?;
        let reference = self.catalogues.live().reference.clone();
        Ok(overview(&hours, &by_hour, &days, &by_day, &reference))
    }
}

/// The beginnings of so many spans, the last of which is under way.
fn starts(now: Timestamp, length: SignedDuration, count: usize) -> Vec<Timestamp> {
    let length_s = length.as_secs();
    let last = now.as_second().div_euclid(length_s);
    let count = i64::try_from(count).expect("a few dozen");
    let start = |n| Timestamp::from_second(n * length_s).unwrap_or(Timestamp::UNIX_EPOCH);
    (last + 1 - count..=last).map(start).collect()
}

fn overview(
    hours: &[Timestamp],
    by_hour: &[TrafficCount],
    days: &[Timestamp],
    by_day: &[TrafficCount],
    reference: &Reference,
) -> Overview {
    let hours = series(hours, by_hour);
    let days = series(days, by_day);
    let operator = |count: &TrafficCount| Some(operator_of(reference, count.network));
    Overview {
        today: sum(&days, 1),
        last_24_hours: sum(&hours, 24),
        last_7_days: sum(&days, 7),
        last_30_days: sum(&days, DAYS),
        channels: shares(by_day, |count| Some(count.channel)),
        countries: shares(by_day, |count| {
            Some(operator_of(reference, count.network).country)
        }),
        operators: shares(by_day, operator),
        errors: shares(by_day, |count| match count.outcome {
            Some(Outcome::Failed(code)) => Some(code),
            Some(Outcome::Expired) => Some(Code::EXPIRED),
            Some(Outcome::Delivered) | None => None,
        }),
        hours,
        days,
    }
}

/// Every span, also those in which nothing ended.
fn series(starts: &[Timestamp], counts: &[TrafficCount]) -> Vec<Point> {
    let mut totals: BTreeMap<Timestamp, Totals> = BTreeMap::new();
    for count in counts {
        totals.entry(count.start).or_default().add(count);
    }
    let point = |start: &Timestamp| Point {
        start: *start,
        totals: totals.get(start).copied().unwrap_or_default(),
    };
    starts.iter().map(point).collect()
}

/// The last so many spans together.
fn sum(series: &[Point], last: usize) -> Totals {
    let first = series.len().saturating_sub(last);
    let add = |mut sum: Totals, point: &Point| {
        let totals = point.totals;
        sum.sent += totals.sent;
        sum.delivered += totals.delivered;
        sum.failed += totals.failed;
        sum.expired += totals.expired;
        sum.cancelled += totals.cancelled;
        sum.parts += totals.parts;
        sum.cost = sum.cost.plus(totals.cost);
        sum
    };
    series[first..].iter().fold(Totals::default(), add)
}

/// What each of several has, the one with most messages first. What was cancelled went nowhere.
fn shares<T: Clone + Eq + Hash>(
    counts: &[TrafficCount],
    of: impl Fn(&TrafficCount) -> Option<T>,
) -> Vec<Share<T>> {
    let mut places: HashMap<T, usize> = HashMap::new();
    let mut shares: Vec<Share<T>> = Vec::new();
    for count in counts.iter().filter(|count| count.outcome.is_some()) {
        let Some(of) = of(count) else { continue };
        let place = *places.entry(of.clone()).or_insert(shares.len());
        if place == shares.len() {
            let totals = Totals::default();
            shares.push(Share { of, totals });
        }
        shares[place].totals.add(count);
    }
    shares.sort_by_key(|share| std::cmp::Reverse(share.totals.sent));
    shares
}

/// Who runs a network. One that the reference data does not know stands for itself.
fn operator_of(reference: &Reference, network: Option<Network>) -> OperatorName {
    let entry = network.and_then(|network| reference.find_network(network).next());
    let operator = entry.and_then(|entry| reference.operator(entry.operator));
    OperatorName {
        country: entry.and_then(|entry| entry.country),
        name: operator.map(|operator| operator.name.clone()),
        network: network.filter(|_| operator.is_none()),
    }
}

#[cfg(test)]
mod tests;
