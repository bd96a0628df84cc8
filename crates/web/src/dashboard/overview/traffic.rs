//! Counts of messages, put together for the charts.

use std::collections::HashMap;

use domain::ports::{Span, TrafficCount};
use domain::{AccountId, Channel, Timestamp};
use jiff::SignedDuration;

use crate::dashboard::Dashboard;
use crate::dashboard::chart::{Chart, Item, Tally};
use crate::dashboard::page::Failure;
use crate::dashboard::place::Places;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// The columns of the charts by time.
const HOURS: i32 = 48;
const DAYS: i32 = 30;
/// The days of a week.
const WEEK: i32 = 7;
/// The rows of the charts by name; what comes after them is put together.
const MAX_ROWS: usize = 8;
const UNKNOWN: &str = "unknown";

/// What is counted again and again.
pub(super) struct Recent {
    pub(super) today: Tally,
    pub(super) week: Tally,
    pub(super) hours: Chart,
}

impl Dashboard {
    /// The last days, hour by hour.
    pub(super) async fn recent(&self, account: AccountId) -> Result<Recent, Failure> {
        let now = self.engine.traffic.now();
        let hour = start_of(now, HOUR);
        let today = start_of(now, DAY);
        let week = today - DAY * (WEEK - 1);
        let traffic = &self.engine.traffic;
        let counts = traffic.list(account, Span::Hour, week, hour + HOUR).await?;
        let since = |from: Timestamp| {
            let messages = messages(&counts).filter(|count| count.start >= from);
            messages.fold(Tally::default(), add)
        };
        let items = slots(&counts, hour, HOUR, HOURS, "%H:%M", "%Y-%m-%d %H:%M UTC");
        Ok(Recent {
            today: since(today),
            week: since(week),
            hours: Chart::columns("hours", "The last 48 hours", "Hour", items),
        })
    }

    /// The last thirty days, each by itself and by where messages went and why they failed.
    pub(super) async fn charts(&self, account: AccountId) -> Result<Vec<Chart>, Failure> {
        let today = start_of(self.engine.traffic.now(), DAY);
        let from = today - DAY * (DAYS - 1);
        let traffic = &self.engine.traffic;
        let counts = traffic.list(account, Span::Day, from, today + DAY).await?;
        let catalogues = self.engine.catalogues.live();
        let places = Places::of(&catalogues);
        let country = |count: &TrafficCount| {
            let name = count.network.and_then(|network| places.country_of(network));
            Some(name.unwrap_or(UNKNOWN).to_owned())
        };
        let operator = |count: &TrafficCount| {
            let name = count
                .network
                .and_then(|network| places.operator_of(network));
            Some(name.unwrap_or_else(|| UNKNOWN.to_owned()))
        };
        let days = slots(&counts, today, DAY, DAYS, "%b %-d", "%Y-%m-%d");
        Ok(vec![
            Chart::columns("days", "The last 30 days", "Day", days),
            Chart::rows(
                "countries",
                "By country",
                "Country",
                named(&counts, country),
            ),
            Chart::rows(
                "operators",
                "By operator",
                "Operator",
                named(&counts, operator),
            ),
            Chart::rows("errors", "By error", "Error", named(&counts, error)),
        ])
    }
}

/// Why messages were not delivered.
fn error(count: &TrafficCount) -> Option<String> {
    let code = count.outcome?.code();
    (code.number() > 0).then(|| {
        let entry = code.entry();
        format!("{} {}", entry.number, entry.words)
    })
}

/// The beginning of the hour or day, UTC.
fn start_of(at: Timestamp, span: SignedDuration) -> Timestamp {
    let seconds = at.as_second();
    let start = seconds - seconds.rem_euclid(span.as_secs());
    Timestamp::from_second(start).expect("an earlier time of the same day is in range")
}

/// Messages that came to an end: neither lookups nor what was cancelled.
fn messages(counts: &[TrafficCount]) -> impl Iterator<Item = &TrafficCount> {
    counts
        .iter()
        .filter(|count| count.channel != Channel::Hlr && count.outcome.is_some())
}

fn add(mut tally: Tally, count: &TrafficCount) -> Tally {
    if let Some(outcome) = count.outcome {
        tally.add(outcome, count.messages, count.cost);
    }
    tally
}

/// A column for each hour or day, up to the last one, also for those without messages.
fn slots(
    counts: &[TrafficCount],
    last: Timestamp,
    span: SignedDuration,
    number: i32,
    label: &str,
    name: &str,
) -> Vec<Item> {
    let mut tallies: HashMap<Timestamp, Tally> = HashMap::new();
    for count in messages(counts) {
        let tally = tallies.entry(count.start).or_default();
        *tally = add(*tally, count);
    }
    let item = |back: i32| {
        let start = last - span * back;
        Item {
            label: start.strftime(label).to_string(),
            name: start.strftime(name).to_string(),
            tally: tallies.get(&start).copied().unwrap_or_default(),
        }
    };
    (0..number).rev().map(item).collect()
}

/// A row for each name, the largest first.
fn named(counts: &[TrafficCount], name: impl Fn(&TrafficCount) -> Option<String>) -> Vec<Item> {
    let mut tallies: HashMap<String, Tally> = HashMap::new();
    for count in messages(counts) {
        if let Some(name) = name(count) {
            let tally = tallies.entry(name).or_default();
            *tally = add(*tally, count);
        }
    }
    let mut items: Vec<Item> = tallies
        .into_iter()
        .map(|(name, tally)| Item {
            label: name.clone(),
            name,
            tally,
        })
        .collect();
    items.sort_by(|a, b| {
        let by_size = b.tally.all().cmp(&a.tally.all());
        by_size.then_with(|| a.name.cmp(&b.name))
    });
    if items.len() > MAX_ROWS {
        let rest = items.split_off(MAX_ROWS - 1);
        let mut others = Item {
            label: format!("{} others", rest.len()),
            name: format!("{} others", rest.len()),
            tally: Tally::default(),
        };
        for item in &rest {
            others.tally = others.tally.plus(item.tally);
        }
        items.push(others);
    }
    items
}

#[cfg(test)]
mod tests {
    use domain::delivery::Outcome;
    use domain::{Code, Money, Network};

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn counted(start: &str, outcome: Option<Outcome>, messages: u64) -> TrafficCount {
        TrafficCount {
            start: at(start),
            channel: Channel::Sms,
            network: Network::new("247", "01"),
            outcome,
            messages,
            parts: messages,
            cost: Money::from_micros(10),
        }
    }

    #[test]
    fn hours_and_days_begin_in_utc() {
        let now = at("2026-03-29T13:45:59.5Z");
        assert_eq!(start_of(now, HOUR), at("2026-03-29T13:00:00Z"));
        assert_eq!(start_of(now, DAY), at("2026-03-29T00:00:00Z"));
    }

    #[test]
    fn every_slot_has_a_column() {
        let lookup = TrafficCount {
            channel: Channel::Hlr,
            ..counted("2026-01-02T10:00:00Z", Some(Outcome::Delivered), 9)
        };
        let counts = [
            counted("2026-01-02T08:00:00Z", Some(Outcome::Delivered), 3),
            counted(
                "2026-01-02T10:00:00Z",
                Some(Outcome::Failed(Code::ABSENT)),
                1,
            ),
            counted("2026-01-02T10:00:00Z", Some(Outcome::Delivered), 2),
            counted("2026-01-02T10:00:00Z", None, 5),
            lookup,
        ];
        let last = at("2026-01-02T10:00:00Z");
        let items = slots(&counts, last, HOUR, 3, "%H:%M", "%H");
        let shown: Vec<_> = items
            .iter()
            .map(|item| (item.label.as_str(), item.tally.delivered, item.tally.failed))
            .collect();
        assert_eq!(shown, [("08:00", 3, 0), ("09:00", 0, 0), ("10:00", 2, 1)]);
    }

    #[test]
    fn what_is_small_is_put_together() {
        let counts: Vec<_> = (0..12)
            .map(|number| TrafficCount {
                network: Network::new("247", &format!("{number:02}")),
                ..counted(
                    "2026-01-02T00:00:00Z",
                    Some(Outcome::Delivered),
                    20 - number,
                )
            })
            .collect();
        let name = |count: &TrafficCount| count.network.map(|network| network.to_string());
        let items = named(&counts, name);
        assert_eq!(items.len(), MAX_ROWS);
        assert_eq!(
            (items[0].name.as_str(), items[0].tally.all()),
            ("24700", 20)
        );
        let last = items.last().expect("a row");
        assert_eq!((last.name.as_str(), last.tally.all()), ("5 others", 55));
        let errors = named(&counts, error);
        assert_eq!(errors.len(), 0, "what was delivered has no error");
    }
}
