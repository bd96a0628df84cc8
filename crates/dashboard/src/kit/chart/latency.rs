//! A chart of latencies by day: each column ends at the 95th percentile, its solid part at the median.

use domain::Timestamp;
use engine::reading::traffic::{Latencies, Latency};

use super::columns::{BOTTOM, Columns, LEFT};
use super::{BELOW, Bar, COLUMNS_HEIGHT, LEAST, Label, Line, WIDTH, ceiling};
use crate::kit::format::count;

pub(crate) struct LatencyChart {
    pub(crate) description: String,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) lines: Vec<Line>,
    pub(crate) labels: Vec<Label>,
    pub(crate) bars: Vec<Bar>,
    pub(crate) rows: Vec<LatencyRow>,
}

/// A day in the table.
pub(crate) struct LatencyRow {
    pub(crate) day: String,
    pub(crate) messages: String,
    pub(crate) p50: String,
    pub(crate) p95: String,
}

impl LatencyChart {
    /// `None` if nothing was delivered.
    pub(crate) fn new(latencies: &Latencies) -> Option<Self> {
        let days: Vec<(Timestamp, Option<Latency>)> = latencies
            .days
            .iter()
            .map(|(day, histogram)| (*day, histogram.latency()))
            .collect();
        let known = || days.iter().filter_map(|(day, it)| Some((day, (*it)?)));
        let slowest = known().max_by_key(|(_, latency)| latency.p95_ms)?;
        let most_ms = axis_end_ms(slowest.1.p95_ms);
        let columns = Columns::new(LEFT, days.len());
        let bar = |(place, (day, latency)): (usize, &(Timestamp, Option<Latency>))| {
            let piece = |kind, y, height| columns.piece(place, kind, y, height);
            let pieces = latency.map(|latency| {
                let p50 = height(latency.p50_ms, most_ms);
                let p95 = height(latency.p95_ms, most_ms).max(p50);
                let above = (p95 > p50).then(|| piece("p95", BOTTOM - p95, p95 - p50));
                let median = piece("p50", BOTTOM - p50, p50);
                [Some(median), above].into_iter().flatten().collect()
            });
            Bar {
                address: None,
                name: latency.map_or_else(String::new, |latency| words(*day, latency)),
                pieces: pieces.unwrap_or_default(),
            }
        };
        let lines = (0..=2).map(|half| columns.line(half, duration(most_ms * half / 2)));
        let (lines, mut labels): (Vec<_>, Vec<_>) = lines.unzip();
        let names = days
            .iter()
            .map(|(day, _)| day.strftime("%b %-d").to_string());
        labels.extend(columns.labels(names));
        Some(Self {
            description: format!(
                "Time until delivery by day, median and 95th percentile. The slowest: {}.",
                words(*slowest.0, slowest.1)
            ),
            width: WIDTH,
            height: BOTTOM + BELOW,
            lines,
            labels,
            bars: days.iter().enumerate().map(bar).collect(),
            rows: known().map(|(day, latency)| row(*day, latency)).collect(),
        })
    }
}

/// A round number of seconds, minutes or hours.
fn axis_end_ms(most_ms: u64) -> u64 {
    const MINUTE_MS: u64 = 60_000;
    const HOUR_MS: u64 = 60 * MINUTE_MS;
    let unit_ms = match most_ms {
        ..MINUTE_MS => 1_000,
        MINUTE_MS..HOUR_MS => MINUTE_MS,
        HOUR_MS.. => HOUR_MS,
    };
    ceiling(Some(most_ms.div_ceil(unit_ms))) * unit_ms
}

fn height(time_ms: u64, most_ms: u64) -> u64 {
    (time_ms * COLUMNS_HEIGHT / most_ms).clamp(LEAST, COLUMNS_HEIGHT)
}

fn row(day: Timestamp, latency: Latency) -> LatencyRow {
    LatencyRow {
        day: day.strftime("%Y-%m-%d").to_string(),
        messages: count(latency.messages),
        p50: duration(latency.p50_ms),
        p95: duration(latency.p95_ms),
    }
}

fn words(day: Timestamp, latency: Latency) -> String {
    let row = row(day, latency);
    format!(
        "{}: p50 {}, p95 {}, {} delivered",
        row.day, row.p50, row.p95, row.messages
    )
}

/// A time with at most one decimal, in the largest unit that it fills.
pub(crate) fn duration(time_ms: u64) -> String {
    let (unit_ms, unit) = match time_ms {
        ..60_000 => (1_000, "s"),
        60_000..3_600_000 => (60_000, "min"),
        3_600_000.. => (3_600_000, "h"),
    };
    let tenths = time_ms * 10 / unit_ms;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use domain::ports::LatencyCount;

    use super::super::TOP;
    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(day * 86_400).expect("within range")
    }

    fn latencies(counts: &[(i64, usize, u64)]) -> Latencies {
        let count = |&(day, bucket, messages): &(i64, usize, u64)| LatencyCount {
            day: at(day),
            bucket,
            messages,
        };
        let counts: Vec<_> = counts.iter().map(count).collect();
        Latencies::new(&[at(0), at(1), at(2)], &counts)
    }

    #[test]
    fn columns_end_at_the_95th_percentile() {
        // Between 1 and 2 seconds on the first day, between 5 and 8 on the last.
        let chart = LatencyChart::new(&latencies(&[(0, 2, 100), (2, 5, 1_000)]));
        let chart = chart.expect("something was delivered");
        let pieces = |bar: &Bar| -> Vec<(&str, u64)> {
            let pieces = bar.pieces.iter();
            pieces.map(|piece| (piece.kind, piece.height)).collect()
        };
        // The axis ends at 10 seconds.
        assert_eq!(pieces(&chart.bars[0]), [("p50", 24), ("p95", 7)]);
        assert_eq!(pieces(&chart.bars[1]), []);
        assert_eq!(pieces(&chart.bars[2]), [("p50", 104), ("p95", 21)]);
        let axis = chart.labels.iter().take(3).map(|label| label.text.as_str());
        assert_eq!(axis.collect::<Vec<_>>(), ["0 s", "5 s", "10 s"]);
        assert_eq!(
            chart.bars[0].name,
            "1970-01-01: p50 1.5 s, p95 1.9 s, 100 delivered"
        );
        assert_eq!(
            chart.description,
            "Time until delivery by day, median and 95th percentile. \
            The slowest: 1970-01-03: p50 6.5 s, p95 7.8 s, 1,000 delivered."
        );
        assert_eq!(chart.rows.len(), 2, "only days with messages");
    }

    #[test]
    fn the_longest_latency_fits_and_nothing_is_no_chart() {
        assert!(LatencyChart::new(&latencies(&[])).is_none());
        let chart = LatencyChart::new(&latencies(&[(1, 16, u64::MAX)]));
        let bar = &chart.expect("something was delivered").bars[1];
        assert!(bar.pieces.iter().all(|piece| piece.y >= TOP));
    }

    #[test]
    fn durations_are_in_the_largest_unit() {
        for (time_ms, text) in [
            (0, "0 s"),
            (250, "0.2 s"),
            (4_111, "4.1 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min"),
            (90_000, "1.5 min"),
            (3_600_000, "1 h"),
            (86_400_000, "24 h"),
        ] {
            assert_eq!(duration(time_ms), text);
        }
    }
}
