//! Accounts whose delivery rate is falling, and the rate of all accounts together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use domain::alert::{Alert, Level, Observation, Topic};
use domain::ports::{DeliveryCount, StoreError};
use domain::{AccountId, Timestamp};
use serde_json::json;

use super::slowed::Counting;
use super::{AlertWatch, Seen};
use crate::reading::traffic::{FallingRate, Point, Totals};

/// At most this many accounts cause notifications: those with the most messages.
const ACCOUNTS: usize = 100;
/// The subject of the rate of all accounts together.
const ALL: &str = "all";

impl AlertWatch {
    pub(super) async fn falling_rates(
        &self,
        alerts: &[Alert],
        counting: &mut Counting,
    ) -> Result<Seen, StoreError> {
        if !counting.is_due() {
            return Ok(seen(Some(BTreeSet::new()), Vec::new()));
        }
        let began = Instant::now();
        let days = FallingRate::days(self.clock.now());
        let (from, until) = (days[0], Timestamp::MAX);
        let counts = self.store.list_deliveries(from, until).await?;
        counting.took(began.elapsed());
        let falling = falling(&days, &counts, |subject| {
            let mut known = alerts.iter();
            known.any(|it| {
                it.topic == Topic::DeliveryRate && it.subject == subject && it.level != Level::Fine
            })
        });
        let ids: Vec<AccountId> = falling.iter().filter_map(|(account, _)| *account).collect();
        let names = self.names(&ids).await?;
        let observations = falling.into_iter().map(|(account, rate)| Observation {
            topic: Topic::DeliveryRate,
            subject: subject(account),
            account,
            level: Level::Bad,
            data: json!({
                "account": account.and_then(|account| names.get(&account)),
                "rate": FallingRate::percent(rate.now),
                "rateBefore": FallingRate::percent(rate.before),
                "sent": rate.now.sent,
            })
            .to_string(),
            quiet_at_first: false,
        });
        Ok(seen(None, observations.collect()))
    }
}

fn seen(scope: Option<BTreeSet<String>>, observations: Vec<Observation>) -> Seen {
    Seen {
        topic: Topic::DeliveryRate,
        scope,
        observations,
    }
}

fn subject(account: Option<AccountId>) -> String {
    account.map_or_else(|| ALL.to_owned(), |account| account.to_string())
}

/// The falling rates of all together (`None`) and of accounts. A rate that was falling must recover further.
fn falling(
    days: &[Timestamp],
    counts: &[DeliveryCount],
    was_falling: impl Fn(&str) -> bool,
) -> Vec<(Option<AccountId>, FallingRate)> {
    let none = || -> Vec<Point> {
        let point = |start: &Timestamp| Point {
            start: *start,
            totals: Totals::default(),
        };
        days.iter().map(point).collect()
    };
    let mut series: BTreeMap<Option<AccountId>, Vec<Point>> = BTreeMap::new();
    for count in counts {
        let Ok(place) = days.binary_search(&count.day) else {
            continue;
        };
        for account in [None, Some(count.account)] {
            let totals = &mut series.entry(account).or_insert_with(none)[place].totals;
            totals.sent += count.sent;
            totals.delivered += count.delivered;
        }
    }
    let rate = |(account, points): (Option<AccountId>, Vec<Point>)| {
        let rate = FallingRate::find(&points, was_falling(&subject(account)))?;
        Some((account, rate))
    };
    let mut falling: Vec<_> = series.into_iter().filter_map(rate).collect();
    falling.sort_by_key(|(_, rate)| std::cmp::Reverse(rate.now.sent));
    falling.truncate(ACCOUNTS);
    falling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fall_by_account_and_all_together() {
        let now = Timestamp::from_second(100 * 86_400 + 5).expect("within range");
        let days = FallingRate::days(now);
        let account = |id| AccountId::new(id).expect("an ID");
        let count = |id, day: usize, sent, delivered| DeliveryCount {
            account: account(id),
            day: days[day],
            sent,
            delivered,
        };
        let last = days.len() - 1;
        let counts = [
            count(1, 0, 100, 95),
            count(1, last, 100, 60),
            // Too few messages.
            count(2, 0, 100, 95),
            count(2, last, 10, 0),
            // Between the two limits.
            count(3, 0, 100, 95),
            count(3, last, 100, 88),
        ];
        let found = |was_falling: bool| -> Vec<Option<AccountId>> {
            let falling = falling(&days, &counts, |_| was_falling);
            falling.into_iter().map(|(account, _)| account).collect()
        };
        assert_eq!(found(false), [None, Some(account(1))]);
        assert_eq!(found(true), [None, Some(account(1)), Some(account(3))]);
    }
}
