//! Latencies in constant memory.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Percentiles are at most 1 % too high.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Measured durations. Recording one is an increment: nothing is sorted afterwards.
#[derive(Clone, Debug)]
pub struct Latencies {
    nanoseconds: Histogram<u64>,
    max: Duration,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            nanoseconds: Histogram::new(SIGNIFICANT_DIGITS).expect("a valid number of digits"),
            max: Duration::ZERO,
        }
    }
}

impl Latencies {
    /// Adds one measurement.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds
            .record(nanoseconds)
            .expect("the histogram grows to any value");
        self.max = self.max.max(latency);
    }

    /// The number of measurements.
    pub fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// The slowest measurement, exact.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The duration that `percent` of the measurements do not exceed, rounded up to the end of its histogram bucket;
    /// zero without measurements.
    pub fn percentile(&self, percent: u8) -> Duration {
        let nanoseconds = self.nanoseconds.value_at_percentile(f64::from(percent));
        Duration::from_nanos(nanoseconds).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::Latencies;
    use std::time::Duration;

    #[test]
    fn percentiles_of_any_duration_are_rounded_up_by_at_most_one_percent() {
        let near_powers = (0..62).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1, power + power / 3]
        });
        for value in near_powers {
            let exact = Duration::from_nanos(value);
            let mut latencies = Latencies::default();
            latencies.record(exact);
            latencies.record(exact * 2);
            let found = latencies.percentile(50);
            assert!(
                found >= exact && found <= exact + exact / 100,
                "{value}: {found:?}"
            );
        }
    }

    #[test]
    fn percentiles_of_known_measurements() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(99), Duration::ZERO, "empty");
        (1..=1_000).for_each(|n| latencies.record(Duration::from_micros(n)));
        for (percent, exact) in [(50, 500), (99, 990), (100, 1_000)] {
            let (exact, found) = (Duration::from_micros(exact), latencies.percentile(percent));
            assert!(
                found >= exact && found <= exact.mul_f64(1.02),
                "p{percent}: {found:?}"
            );
        }
        assert_eq!(latencies.max(), Duration::from_millis(1));
        assert_eq!(latencies.count(), 1_000);
    }
}
