//! Counts of ended messages.

use std::collections::BTreeMap;

use domain::message::Recipient;
use domain::ports::{DeliveryCount, LATENCY_BOUNDS_US, LatencyCount, Span, TrafficCount};
use domain::{Country, Money, Network, Timestamp};

use super::{Corrupt, SqlRow, account_id, billing, channel, outcome};

/// `traffic.status` and `traffic.error` of cancelled messages.
pub(crate) const CANCELLED: i16 = 0;

/// `traffic.network` of a country whose network is unknown, without the country's slot. It reads as a network of MCC
/// 000, which is assigned to nobody.
const COUNTRY: i32 = 3000;

/// `message.country`: the country's slot, unless the network is known and tells the country.
pub(crate) fn country_column(recipient: &Recipient) -> Option<i16> {
    let country = recipient.country.filter(|_| recipient.network.is_none())?;
    i16::try_from(country.slot()).ok()
}

/// `traffic.network` of a place, as [`counted_network`].
pub(crate) fn place_code(network: Option<Network>, country: Option<Country>) -> i32 {
    let slot = country.and_then(|country| i16::try_from(country.slot()).ok());
    counted_network(network.map(Network::code), slot)
}

/// `traffic.network` of a message: its network, or its country, or 0 if both are unknown. `count_traffic!` does the
/// same in SQL.
pub(crate) fn counted_network(network: Option<i32>, country: Option<i16>) -> i32 {
    network.unwrap_or_else(|| country.map_or(0, |slot| COUNTRY + i32::from(slot)))
}

/// Reads `traffic.network`.
pub(crate) fn counted_place(code: i32) -> Result<(Option<Network>, Option<Country>), Corrupt> {
    let slot = usize::try_from(code - COUNTRY).ok();
    match slot.filter(|slot| *slot < Country::SLOTS) {
        Some(slot) => Ok((None, Country::from_slot(slot))),
        None => Ok((billing::network((code != 0).then_some(code))?, None)),
    }
}

const SPANS: [Span; 2] = [Span::Hour, Span::Day];

/// `traffic.span`.
pub(crate) fn span_number(span: Span) -> i16 {
    match span {
        Span::Hour => 0,
        Span::Day => 1,
    }
}

pub(crate) fn length_us(span: Span) -> i64 {
    match span {
        Span::Hour => 3_600_000_000,
        Span::Day => 86_400_000_000,
    }
}

/// `traffic.begins` of the first span that begins at `time` or later.
pub(crate) fn first_begin(span: Span, time: Timestamp) -> i64 {
    let (time_us, length_us) = (super::micros(time), length_us(span));
    time_us.div_euclid(length_us) + i64::from(time_us.rem_euclid(length_us) != 0)
}

/// An ended message, with the columns that are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedMessage {
    pub(crate) account_id: i64,
    pub(crate) channel: i16,
    /// As [`counted_network`] gives it.
    pub(crate) network: i32,
    pub(crate) status: i16,
    pub(crate) error: i16,
    pub(crate) parts: i16,
    /// The charge minus the refund.
    pub(crate) cost_micros: i64,
    pub(crate) at_us: i64,
    /// As [`latency_bucket`] gives it; `None` if it was not delivered, and for lookups.
    pub(crate) bucket: Option<i16>,
}

/// `latency_day.bucket` of a message that began and was delivered at these times. `END` does the same in SQL.
pub(crate) fn latency_bucket(began_us: i64, ended_us: i64) -> i16 {
    let latency_us = ended_us.saturating_sub(began_us);
    let reached = LATENCY_BOUNDS_US.partition_point(|bound_us| *bound_us <= latency_us);
    i16::try_from(reached).unwrap_or(i16::MAX)
}

/// The key of a row of `latency_day`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LatencyKey {
    pub(crate) account_id: i64,
    pub(crate) day: i64,
    pub(crate) bucket: i16,
}

/// The key of a row of `traffic`, without the shard: a single writer needs no shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TrafficKey {
    pub(crate) account_id: i64,
    pub(crate) span: i16,
    pub(crate) begins: i64,
    pub(crate) channel: i16,
    pub(crate) network: i32,
    pub(crate) status: i16,
    pub(crate) error: i16,
}

/// The sums of a row of `traffic`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TrafficSums {
    pub(crate) messages: i64,
    pub(crate) parts: i64,
    pub(crate) cost_micros: i64,
}

/// Counts a batch in memory, so that each row is written once.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<TrafficKey, TrafficSums>,
    latencies: BTreeMap<LatencyKey, i64>,
}

impl Tally {
    pub(crate) fn add(&mut self, ended: &EndedMessage) {
        for span in SPANS {
            let key = TrafficKey {
                account_id: ended.account_id,
                span: span_number(span),
                begins: ended.at_us.div_euclid(length_us(span)),
                channel: ended.channel,
                network: match span {
                    Span::Hour => 0,
                    Span::Day => ended.network,
                },
                status: ended.status,
                error: ended.error,
            };
            let sums = self.counts.entry(key).or_default();
            sums.messages += 1;
            sums.parts += i64::from(ended.parts);
            sums.cost_micros += ended.cost_micros;
        }
        if let Some(bucket) = ended.bucket {
            let key = LatencyKey {
                account_id: ended.account_id,
                day: ended.at_us.div_euclid(length_us(Span::Day)),
                bucket,
            };
            *self.latencies.entry(key).or_default() += 1;
        }
    }

    /// The counts, in the order of their keys.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&TrafficKey, &TrafficSums)> {
        self.counts.iter()
    }

    /// The number of messages by latency, in the order of their keys.
    pub(crate) fn latencies(&self) -> impl Iterator<Item = (&LatencyKey, &i64)> {
        self.latencies.iter()
    }
}

/// The columns of a count, shards added up.
pub(crate) struct CountColumns {
    pub(crate) begins: i64,
    pub(crate) channel: i16,
    pub(crate) network: i32,
    pub(crate) status: i16,
    pub(crate) error: i16,
    pub(crate) messages: i64,
    pub(crate) parts: i64,
    pub(crate) cost_micros: i64,
}

impl CountColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            begins: row.column(0)?,
            channel: row.column(1)?,
            network: row.column(2)?,
            status: row.column(3)?,
            error: row.column(4)?,
            messages: row.column(5)?,
            parts: row.column(6)?,
            cost_micros: row.column(7)?,
        })
    }

    pub(crate) fn count(&self, span: Span) -> Result<TrafficCount, Corrupt> {
        let is_cancelled = self.status == CANCELLED;
        let (network, country) = counted_place(self.network)?;
        let number = |number: i64| u64::try_from(number).map_err(|_| Corrupt("count"));
        Ok(TrafficCount {
            start: super::timestamp(self.begins.saturating_mul(length_us(span)))?,
            channel: channel(self.channel)?,
            network,
            country,
            outcome: if is_cancelled {
                None
            } else {
                Some(outcome(Some(self.status), Some(self.error))?)
            },
            messages: number(self.messages)?,
            parts: number(self.parts)?,
            cost: Money::from_micros(self.cost_micros),
        })
    }
}

/// The account, the day, and how many messages were sent and delivered.
pub(crate) struct DeliveryColumns([i64; 4]);

impl DeliveryColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self([
            row.column(0)?,
            row.column(1)?,
            row.column(2)?,
            row.column(3)?,
        ]))
    }

    pub(crate) fn count(&self) -> Result<DeliveryCount, Corrupt> {
        let [account, day, sent, delivered] = self.0;
        let number = |number: i64| u64::try_from(number).map_err(|_| Corrupt("count"));
        Ok(DeliveryCount {
            account: account_id(account)?,
            day: super::timestamp(day.saturating_mul(length_us(Span::Day)))?,
            sent: number(sent)?,
            delivered: number(delivered)?,
        })
    }
}

/// The columns of a row of `latency_day`.
pub(crate) struct LatencyColumns {
    day: i64,
    bucket: i16,
    messages: i64,
}

impl LatencyColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            day: row.column(0)?,
            bucket: row.column(1)?,
            messages: row.column(2)?,
        })
    }

    pub(crate) fn count(&self) -> Result<LatencyCount, Corrupt> {
        let bucket = usize::try_from(self.bucket).ok();
        Ok(LatencyCount {
            day: super::timestamp(self.day.saturating_mul(length_us(Span::Day)))?,
            bucket: bucket
                .filter(|bucket| *bucket <= LATENCY_BOUNDS_US.len())
                .ok_or(Corrupt("latency"))?,
            messages: u64::try_from(self.messages).map_err(|_| Corrupt("count"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_has_the_bucket_whose_bound_it_reached() {
        for (latency_us, bucket) in [
            (-1, 0),
            (0, 0),
            (499_999, 0),
            (500_000, 1),
            (2_999_999, 3),
            (3_000_000, 4),
            (86_400_000_000, 16),
            (i64::MAX, 16),
        ] {
            assert_eq!(latency_bucket(0, latency_us), bucket, "{latency_us}");
        }
    }

    #[test]
    fn a_count_has_the_network_or_else_the_country() {
        let latvia = Country::parse("LV").expect("a country");
        let slot = i16::try_from(latvia.slot()).expect("small");
        let network = Network::new("247", "01").expect("a network");
        for (columns, expected) in [
            ((Some(network.code()), None), (Some(network), None)),
            ((Some(network.code()), Some(slot)), (Some(network), None)),
            ((None, Some(slot)), (None, Some(latvia))),
            ((None, None), (None, None)),
        ] {
            let code = counted_network(columns.0, columns.1);
            let place = counted_place(code).expect("a valid code");
            assert_eq!(place, expected, "{columns:?}");
        }
    }
}
