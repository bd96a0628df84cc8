//! Latencies: the time from the acceptance of a message, or from the time it was scheduled for, until the report that
//! it was delivered. The store counts them in buckets, so percentiles are estimates.

use domain::ports::{LATENCY_BOUNDS_US, LatencyCount, StoreError};
use domain::{AccountId, Timestamp};
use jiff::civil::Date;

use super::{DAY, DAYS, Traffic, period_days, starts};

const BUCKETS: usize = LATENCY_BOUNDS_US.len() + 1;

/// Delivered messages, by bucket of latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram([u64; BUCKETS]);

/// Estimated percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    pub messages: u64,
    /// Half of the messages were delivered within this time.
    pub p50_ms: u64,
    pub p95_ms: u64,
}

impl Histogram {
    fn add(&mut self, count: &LatencyCount) {
        if let Some(messages) = self.0.get_mut(count.bucket) {
            *messages += count.messages;
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        for (messages, more) in self.0.iter_mut().zip(other.0) {
            *messages += more;
        }
        self
    }

    /// `None` without messages.
    pub fn latency(&self) -> Option<Latency> {
        let messages: u64 = self.0.iter().sum();
        (messages > 0).then(|| Latency {
            messages,
            p50_ms: self.percentile_ms(messages, 50),
            p95_ms: self.percentile_ms(messages, 95),
        })
    }

    /// Assumes that the latencies of a bucket are spread evenly. The last bucket has no end, so its start is returned.
    fn percentile_ms(&self, messages: u64, percent: u64) -> u64 {
        let wanted = u128::from(messages) * u128::from(percent);
        let mut below = 0;
        let mut start_us = 0;
        for (number, end_us) in self.0.iter().zip(LATENCY_BOUNDS_US) {
            let end_us = end_us.unsigned_abs();
            let number = u128::from(*number) * 100;
            if number > 0 && below + number >= wanted {
                let share_us = u128::from(end_us - start_us) * (wanted - below) / number;
                let share_us = u64::try_from(share_us).unwrap_or_default();
                return (start_us + share_us) / 1000;
            }
            below += number;
            start_us = end_us;
        }
        start_us / 1000
    }
}

/// The latencies of a number of days, and of as many days before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latencies {
    /// Each day, oldest first.
    pub days: Vec<(Timestamp, Histogram)>,
    pub before: Histogram,
}

impl Latencies {
    pub fn new(days: &[Timestamp], counts: &[LatencyCount]) -> Self {
        let mut latencies = Self {
            days: days
                .iter()
                .map(|day| (*day, Histogram::default()))
                .collect(),
            before: Histogram::default(),
        };
        for count in counts {
            match days.binary_search(&count.day) {
                Ok(place) => latencies.days[place].1.add(count),
                Err(0) => latencies.before.add(count),
                Err(_) => {}
            }
        }
        latencies
    }

    /// The last days together.
    pub fn sum(&self, last: usize) -> Histogram {
        let newest = self.days.iter().rev().take(last);
        newest.fold(Histogram::default(), |sum, (_, day)| sum.plus(day))
    }
}

impl Traffic {
    /// The latencies of an account, or of all together, today and on the days before, [`DAYS`] in all.
    pub async fn recent_latencies(
        &self,
        account: Option<AccountId>,
        now: Timestamp,
    ) -> Result<Latencies, StoreError> {
        self.latencies_of(account, &starts(now, DAY, DAYS)).await
    }

    /// The latencies on the same days as [`Traffic::period`].
    pub async fn latencies(
        &self,
        account: Option<AccountId>,
        first: Date,
        last: Date,
    ) -> Result<Latencies, StoreError> {
        self.latencies_of(account, &period_days(first, last)).await
    }

    async fn latencies_of(
        &self,
        account: Option<AccountId>,
        days: &[Timestamp],
    ) -> Result<Latencies, StoreError> {
        let (first, last) = (days[0], days[days.len() - 1]);
        let before = starts(first, DAY, days.len() + 1);
        let until = last.saturating_add(DAY).expect("a length of hours");
        let counts = self.store.list_latencies(account, before[0], until).await?;
        Ok(Latencies::new(days, &counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[(usize, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        for (bucket, messages) in counts {
            histogram.0[*bucket] = *messages;
        }
        histogram
    }

    #[test]
    fn percentiles_are_interpolated_within_a_bucket() {
        type Case = (&'static [(usize, u64)], Option<(u64, u64)>);
        let cases: [Case; 8] = [
            (&[], None),
            // Between 0 and 500 ms.
            (&[(0, 100)], Some((250, 475))),
            (&[(0, 1)], Some((250, 475))),
            // Half below 500 ms, half between 1 and 2 seconds.
            (&[(0, 10), (2, 10)], Some((500, 1_900))),
            // 90 between 3 and 5 seconds, 10 between 60 and 120 seconds.
            (&[(4, 90), (10, 10)], Some((4_111, 90_000))),
            // The last bucket has no end.
            (&[(1, 50), (16, 50)], Some((1_000, 86_400_000))),
            (&[(16, 1)], Some((86_400_000, 86_400_000))),
            (&[(3, u64::MAX)], Some((2_500, 2_950))),
        ];
        for (counts, expected) in cases {
            let latency = histogram(counts).latency();
            let percentiles = latency.map(|latency| (latency.p50_ms, latency.p95_ms));
            assert_eq!(percentiles, expected, "{counts:?}");
        }
    }

    #[test]
    fn latencies_belong_to_their_day_or_to_the_days_before() {
        let day = |number: i64| Timestamp::from_second(number * 86_400).expect("within range");
        let count = |number, bucket, messages| LatencyCount {
            day: day(number),
            bucket,
            messages,
        };
        let counts = [
            count(8, 1, 2),
            count(9, 1, 3),
            count(10, 0, 5),
            count(10, 2, 7),
            count(12, 0, 11),
        ];
        let latencies = Latencies::new(&[day(10), day(11), day(12)], &counts);
        assert_eq!(latencies.before, histogram(&[(1, 5)]));
        assert_eq!(
            latencies.days,
            [
                (day(10), histogram(&[(0, 5), (2, 7)])),
                (day(11), Histogram::default()),
                (day(12), histogram(&[(0, 11)])),
            ]
        );
        assert_eq!(latencies.sum(2), histogram(&[(0, 11)]));
        assert_eq!(latencies.sum(9), histogram(&[(0, 16), (2, 7)]));
    }
}
