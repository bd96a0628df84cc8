//! The goals of `bench inbound`, and whether the results reach them.

use super::Row;
use crate::goals::Goal;
use crate::report::median;
use testkit::Backend;

const SQLITE_RATE: u64 = 5_000;

/// All goals, in the order of the report.
pub(super) fn evaluate(rows: &[Row]) -> Vec<Goal> {
    let sqlite: Vec<u64> = rows
        .iter()
        .filter(|row| row.backend == Backend::Sqlite)
        .map(|row| row.totals.rate())
        .collect();
    let rate = (!sqlite.is_empty()).then(|| median(sqlite.into_iter()));
    let is_clean = rows.iter().all(|row| row.totals.is_clean());
    let shown = if is_clean { "all" } else { "see the table" };
    vec![
        Goal::new(
            format!("SQLite: at least {SQLITE_RATE} messages a second to answered callbacks"),
            rate.map(|rate| (format!("{rate}/s"), rate >= SQLITE_RATE)),
        ),
        Goal::new(
            "every message stored before its answer, and called back once",
            Some((shown.into(), is_clean)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tracker::Totals;
    use super::{Row, evaluate};
    use crate::cost::turn::Reading;
    use std::time::Duration;
    use testkit::Backend;

    fn row(backend: Backend, rate: u64) -> Row {
        Row {
            backend,
            totals: Totals {
                delivered: rate,
                taken: rate,
                called_back: rate,
                first_delivered: Duration::from_secs(1),
                last_callback: Duration::from_secs(2),
                ..Totals::default()
            },
            spent: Reading::default(),
            peak_kib: 0,
        }
    }

    fn verdicts(rows: &[Row]) -> Vec<Option<bool>> {
        evaluate(rows)
            .into_iter()
            .map(|goal| goal.reached)
            .collect()
    }

    #[test]
    fn goals_are_evaluated_from_their_rows() {
        let (yes, no) = (Some(true), Some(false));
        let (sqlite, postgres) = (Backend::Sqlite, Backend::Postgres);
        let good = [row(sqlite, 5_000), row(postgres, 1)];
        assert_eq!(verdicts(&good), [yes, yes]);
        let turns = [row(sqlite, 9_000), row(sqlite, 4_999), row(sqlite, 1)];
        assert_eq!(verdicts(&turns), [no, yes], "the median counts");
        assert_eq!(verdicts(&[row(postgres, 9_000)]), [None, yes]);
        let mut missing = row(sqlite, 5_000);
        missing.totals.delivered += 1;
        assert_eq!(verdicts(&[missing]), [yes, no]);
    }
}
