//! Traffic figures: how many messages were sent, how they ended and what they cost, from counts in the store.

mod latency;
mod places;

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use domain::ports::{Span, StoreError, TrafficCount, TrafficStore};
use domain::{AccountId, Channel, Code, Country, Money, Network, Outcome, Timestamp};
use jiff::SignedDuration;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use numbering::reference::Reference;

use crate::catalogue::Catalogues;

pub use latency::{Histogram, Latencies, Latency};
pub use places::{country_places, operator_places};

/// Length of the hourly series.
pub const HOURS: usize = 48;
/// Length of the daily series.
pub const DAYS: usize = 30;
/// The longest [`Period`].
pub const MAX_PERIOD_DAYS: usize = 31;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Messages in a final state, and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// All but the cancelled ones.
    pub sent: u64,
    pub delivered: u64,
    pub failed: u64,
    pub expired: u64,
    pub cancelled: u64,
    /// The parts of the sent messages.
    pub parts: u64,
    /// Charges minus refunds.
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

/// The totals of one hour or day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub start: Timestamp,
    pub totals: Totals,
}

/// A delivery rate that fell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FallingRate {
    /// Today and yesterday.
    pub now: Totals,
    /// The 7 days before.
    pub before: Totals,
}

impl FallingRate {
    /// With fewer messages, a rate says little.
    const LEAST_MESSAGES: u64 = 50;
    /// In percentage points.
    const LEAST_FALL: u64 = 10;
    /// A rate that was falling has recovered below this, so that it does not change from moment to moment.
    const RECOVERED_FALL: u64 = 5;
    const RECENT_DAYS: usize = 2;
    const DAYS_BEFORE: usize = 7;

    /// The days that are compared, oldest first.
    pub fn days(now: Timestamp) -> Vec<Timestamp> {
        starts(now, DAY, Self::RECENT_DAYS + Self::DAYS_BEFORE)
    }

    /// The delivery rate; `None` if it says little.
    pub fn percent(totals: Totals) -> Option<u64> {
        let is_enough = totals.sent >= Self::LEAST_MESSAGES;
        is_enough.then(|| totals.delivered * 100 / totals.sent)
    }

    /// Whether the rate of the last days is clearly lower than before. `days` is a daily series.
    pub fn find(days: &[Point], was_falling: bool) -> Option<Self> {
        let (earlier, _) = days.split_at(days.len().saturating_sub(Self::RECENT_DAYS));
        let (now, before) = (
            sum(days, Self::RECENT_DAYS),
            sum(earlier, Self::DAYS_BEFORE),
        );
        let least = if was_falling {
            Self::RECOVERED_FALL
        } else {
            Self::LEAST_FALL
        };
        let has_fallen = Self::percent(now)? + least <= Self::percent(before)?;
        has_fallen.then_some(Self { now, before })
    }
}

/// The totals of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share<T> {
    pub of: T,
    pub totals: Totals,
}

/// The mobile operator of a network, as far as the reference data knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OperatorName {
    pub country: Option<Country>,
    /// `None` if the network is unknown or not in the reference data.
    pub name: Option<Box<str>>,
    /// `None` if it is unknown, or if several networks of an operator are counted together.
    pub network: Option<Network>,
}

/// The figures of an overview. Hours and days are in UTC; the last of each is still in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// Since midnight.
    pub today: Totals,
    /// The current hour and the 23 before it.
    pub last_24_hours: Totals,
    /// Today and the 6 days before it.
    pub last_7_days: Totals,
    /// Today and the 29 days before it.
    pub last_30_days: Totals,
    /// One point per hour, [`HOURS`] of them, oldest first.
    pub hours: Vec<Point>,
    /// One point per day, [`DAYS`] of them, oldest first.
    pub days: Vec<Point>,
    /// By channel. This and the following lists cover 30 days and begin with the largest share.
    pub channels: Vec<Share<Channel>>,
    /// By country; `None` if it is unknown.
    pub countries: Vec<Share<Option<Country>>>,
    /// By mobile operator.
    pub operators: Vec<Share<OperatorName>>,
    /// Failed and expired messages, by error code.
    pub errors: Vec<Share<Code>>,
}

/// The figures of a number of days, and of as many days before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    pub totals: Totals,
    pub before: Totals,
    /// One point per day, oldest first.
    pub days: Vec<Point>,
    pub countries: Vec<Share<Option<Country>>>,
    pub operators: Vec<Share<OperatorName>>,
    pub errors: Vec<Share<Code>>,
}

pub struct Traffic {
    store: Arc<dyn TrafficStore>,
    catalogues: Arc<Catalogues>,
}

impl Traffic {
    pub fn new(store: Arc<dyn TrafficStore>, catalogues: Arc<Catalogues>) -> Self {
        Self { store, catalogues }
    }

    /// The overview of one account, or of all accounts together.
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

impl Traffic {
    /// The figures of an account from one day to another, both included, at most [`MAX_PERIOD_DAYS`] days.
    pub async fn period(
        &self,
        account: Option<AccountId>,
        first: Date,
        last: Date,
    ) -> Result<Period, StoreError> {
        let until = midnight(last)
            .saturating_add(DAY)
            .expect("a length of hours");
        let starts = period_days(first, last);
        let before = self::starts(starts[0], DAY, starts.len() + 1);
        let counts = self
            .store
            .list_traffic(account, Span::Day, before[0], until)
            .await?;
        let reference = self.catalogues.live().reference.clone();
        Ok(period(&starts, &counts, &reference))
    }
}

/// The days from the first to the last, at most [`MAX_PERIOD_DAYS`].
fn period_days(first: Date, last: Date) -> Vec<Timestamp> {
    let days = midnight(last).duration_since(midnight(first)).as_hours() / 24 + 1;
    let days = usize::try_from(days).unwrap_or_default();
    starts(midnight(last), DAY, days.clamp(1, MAX_PERIOD_DAYS))
}

fn midnight(day: Date) -> Timestamp {
    let zoned = day.to_zoned(TimeZone::UTC);
    zoned.map_or(Timestamp::UNIX_EPOCH, |zoned| zoned.timestamp())
}

/// `counts` are those of the days and of the days before them.
fn period(days: &[Timestamp], counts: &[TrafficCount], reference: &Reference) -> Period {
    let first = days.first().copied().unwrap_or_default();
    let (before, counts) = counts.split_at(counts.partition_point(|count| count.start < first));
    Period {
        totals: total(counts),
        before: total(before),
        days: series(days, counts),
        countries: countries(counts, reference),
        operators: operators(counts, reference),
        errors: errors(counts),
    }
}

fn total(counts: &[TrafficCount]) -> Totals {
    let mut totals = Totals::default();
    for count in counts {
        totals.add(count);
    }
    totals
}

fn countries(counts: &[TrafficCount], reference: &Reference) -> Vec<Share<Option<Country>>> {
    shares(counts, |count| Some(operator_of(reference, count).country))
}

fn operators(counts: &[TrafficCount], reference: &Reference) -> Vec<Share<OperatorName>> {
    shares(counts, |count| Some(operator_of(reference, count)))
}

fn errors(counts: &[TrafficCount]) -> Vec<Share<Code>> {
    shares(counts, |count| match count.outcome {
        Some(Outcome::Failed(code)) => Some(code),
        Some(Outcome::Expired) => Some(Code::EXPIRED),
        Some(Outcome::Delivered) | None => None,
    })
}

/// The start times of the last `count` spans. The current span is the last one.
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
    Overview {
        today: sum(&days, 1),
        last_24_hours: sum(&hours, 24),
        last_7_days: sum(&days, 7),
        last_30_days: sum(&days, DAYS),
        channels: shares(by_day, |count| Some(count.channel)),
        countries: countries(by_day, reference),
        operators: operators(by_day, reference),
        errors: errors(by_day),
        hours,
        days,
    }
}

/// One point per span, including those without messages.
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

/// The totals of the last spans.
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

/// The totals by group, largest first. Cancelled messages are left out.
fn shares<T: Clone + Eq + Hash>(
    counts: &[TrafficCount],
    of: impl Fn(&TrafficCount) -> Option<T>,
) -> Vec<Share<T>> {
    let mut indices: HashMap<T, usize> = HashMap::new();
    let mut shares: Vec<Share<T>> = Vec::new();
    for count in counts.iter().filter(|count| count.outcome.is_some()) {
        let Some(of) = of(count) else { continue };
        let index = *indices.entry(of.clone()).or_insert(shares.len());
        if index == shares.len() {
            let totals = Totals::default();
            shares.push(Share { of, totals });
        }
        shares[index].totals.add(count);
    }
    shares.sort_by_key(|share| std::cmp::Reverse(share.totals.sent));
    shares
}

/// The mobile operator of a network. A network that the reference data does not know forms its own group.
fn operator_of(reference: &Reference, count: &TrafficCount) -> OperatorName {
    let network = count.network;
    let entry = network.and_then(|network| reference.find_network(network).next());
    let operator = entry.and_then(|entry| reference.operator(entry.operator));
    OperatorName {
        country: entry.map_or(count.country, |entry| entry.country),
        name: operator.map(|operator| operator.name.clone()),
        network: network.filter(|_| operator.is_none()),
    }
}

#[cfg(test)]
mod tests;
