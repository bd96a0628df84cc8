//! The goals of `bench growth`, and whether the results reach them.

use super::Comparison;
use crate::goals::{Goal, hundredths};
use crate::measure::Subject;
use testkit::Backend;

/// In percent of the small installation.
const MAX_TIME: u64 = 110;
const MIN_RATE: u64 = 90;

pub(super) fn is_time_reached(percent: u64) -> bool {
    percent <= MAX_TIME
}

pub(super) fn is_rate_reached(percent: u64) -> bool {
    percent >= MIN_RATE
}

/// All goals, in the order of the report.
pub(super) fn evaluate(comparisons: &[Comparison]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for backend in Backend::ALL {
        let name = Subject::Switchboard(backend).name();
        let of_backend = || comparisons.iter().filter(|one| one.backend == backend);
        let slowest = of_backend().max_by_key(|one| one.time_percent());
        goals.push(Goal::new(
            format!("{name}: processor time at most 1.10 of the small installation in every case"),
            slowest.map(|one| worst(one, one.time_percent(), is_time_reached)),
        ));
        let slowest = of_backend().min_by_key(|one| one.rate_percent());
        goals.push(Goal::new(
            format!(
                "{name}: messages a second at least 0.90 of the small installation in every case"
            ),
            slowest.map(|one| worst(one, one.rate_percent(), is_rate_reached)),
        ));
    }
    let turns = comparisons
        .iter()
        .flat_map(|one| one.small.iter().chain(&one.grown));
    let failures: u64 = turns.map(|turn| turn.failures).sum();
    goals.push(Goal::new(
        "every request answered 200, every message called back",
        Some((format!("{failures} failures"), failures == 0)),
    ));
    goals
}

fn worst(comparison: &Comparison, percent: u64, is_reached: fn(u64) -> bool) -> (String, bool) {
    let shown = format!("{} ({})", hundredths(percent), comparison.size);
    (shown, is_reached(percent))
}

#[cfg(test)]
mod tests {
    use super::super::Comparison;
    use super::super::case::Case;
    use super::evaluate;
    use crate::cost::turn::Turn;
    use crate::processor_time::ProcessorTime;
    use std::time::Duration;
    use testkit::Backend;

    /// A turn of one message.
    fn turn(time_us: u64, rate: u64) -> Turn {
        let time = ProcessorTime {
            user: Duration::from_micros(time_us),
            system: Duration::ZERO,
        };
        Turn {
            messages: 1,
            nodes: time,
            database: ProcessorTime::default(),
            benchmark: time,
            rate,
            p99: Duration::ZERO,
            failures: 0,
            peak_kib: 1,
            work: None,
            statements: Vec::new(),
        }
    }

    /// Three turns; another program disturbs the last one.
    fn comparison(backend: Backend, case: Case, time_us: u64, rate: u64) -> Comparison {
        Comparison {
            backend,
            size: case.full(),
            small: vec![turn(100, 1_000), turn(200, 500), turn(100, 1_000)],
            grown: vec![
                turn(time_us, rate),
                turn(2 * time_us, rate / 2),
                turn(900, 10),
            ],
        }
    }

    #[test]
    fn the_worst_case_of_each_database_decides() {
        let comparisons = [
            comparison(Backend::Sqlite, Case::History, 110, 900),
            comparison(Backend::Sqlite, Case::Routes, 100, 1_000),
            comparison(Backend::Postgres, Case::History, 100, 880),
            comparison(Backend::Postgres, Case::Accounts, 112, 900),
        ];
        let found = |comparisons: &[Comparison]| -> Vec<(String, Option<bool>)> {
            let goals = evaluate(comparisons).into_iter();
            goals.map(|goal| (goal.measured, goal.reached)).collect()
        };
        let expected = [
            ("1.10 (10,000,000 messages of history)", Some(true)),
            ("0.90 (10,000,000 messages of history)", Some(true)),
            ("1.12 (1,000 accounts)", Some(false)),
            ("0.88 (10,000,000 messages of history)", Some(false)),
            ("0 failures", Some(true)),
        ];
        let expected = expected.map(|(measured, reached)| (measured.to_owned(), reached));
        assert_eq!(found(&comparisons), expected);
        let sqlite = found(&comparisons[..2]);
        assert_eq!((sqlite[1].1, sqlite[2].1), (Some(true), None));
    }
}
