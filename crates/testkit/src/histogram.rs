//! Latencies in constant memory: log-linear buckets, at most 1.6 % wide.

use std::time::Duration;

/// Each power of two is cut into this many buckets of equal width.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 6;
const BUCKETS: usize = (u64::BITS - STEP_BITS + 1) as usize * STEPS;

/// Counts durations by nanosecond buckets. Recording is an increment: no allocation, no sorting
/// afterwards.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            total: 0,
            max: Duration::ZERO,
        }
    }
}

impl Histogram {
    /// Adds one measurement.
    pub fn record(&mut self, latency: Duration) {
        self.counts[bucket(nanoseconds(latency))] += 1;
        self.total += 1;
        self.max = self.max.max(latency);
    }

    /// How many measurements it holds.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The slowest measurement, exact.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// What `percent` of the measurements did not exceed, rounded up to the end of its bucket; zero
    /// when empty.
    pub fn percentile(&self, percent: u8) -> Duration {
        let rank = (self.total * u64::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(bucket_end(index)).min(self.max);
            }
        }
        self.max
    }
}

fn nanoseconds(latency: Duration) -> u64 {
    u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)
}

/// Values below `STEPS` have a bucket each; above, the leading bits choose the bucket.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(STEP_BITS + 1);
    let step = usize::try_from(value >> shift).expect("at most STEP_BITS + 1 bits are left");
    shift as usize * STEPS + step
}

/// The largest value that falls into a bucket: the inverse of [`bucket`].
fn bucket_end(index: usize) -> u64 {
    let shift = (index / STEPS).saturating_sub(1);
    let step = (index - shift * STEPS) as u128;
    u64::try_from(((step + 1) << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Histogram, bucket, bucket_end};
    use std::time::Duration;

    #[test]
    fn every_value_is_within_its_bucket_and_buckets_are_narrow() {
        let near_powers = (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1, power + power / 3]
        });
        for value in near_powers.chain([u64::MAX]) {
            let index = bucket(value);
            assert!(index < BUCKETS, "{value}: bucket {index}");
            let end = bucket_end(index);
            assert!(
                end >= value && end - value <= value / 64,
                "{value}: ends at {end}"
            );
            assert!(
                index == 0 || bucket_end(index - 1) < value,
                "{value}: belongs a bucket lower"
            );
        }
    }

    #[test]
    fn percentiles_of_known_measurements() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(99), Duration::ZERO, "empty");
        (1..=1_000).for_each(|n| histogram.record(Duration::from_micros(n)));
        for (percent, exact) in [(50, 500), (99, 990), (100, 1_000)] {
            let (exact, found) = (Duration::from_micros(exact), histogram.percentile(percent));
            assert!(
                found >= exact && found <= exact.mul_f64(1.02),
                "p{percent}: {found:?}"
            );
        }
        assert_eq!(histogram.max(), Duration::from_millis(1));
        assert_eq!(histogram.count(), 1_000);
    }
}
