//! The goals of `bench deliver`, and whether the results reach them.

use super::Sustained;
use super::growth::Step;
use crate::goals::{Goal, hundredths};
use crate::measure::Subject;
use testkit::Backend;

const SQLITE_RATE: u64 = 10_000;
const POSTGRES_RATE: u64 = 5_000;
const MANY_WAITING: u64 = 1_000_000;
const MIN_PERCENT_OF_NONE: u64 = 90;

/// All goals, in the order of the report.
pub(super) fn evaluate(sustained: &[Sustained], steps: &[Step]) -> Vec<Goal> {
    let rate = |backend| {
        let mut runs = sustained.iter().filter(|run| run.backend == backend);
        runs.next().map(|run| run.full.delivered_rate())
    };
    let percent = |backend| {
        let mut wanted = steps
            .iter()
            .filter(|step| step.backend == backend && step.waiting == MANY_WAITING);
        wanted.next().map(Step::percent_of_none)
    };
    let mut goals = vec![
        at_least(Backend::Sqlite, SQLITE_RATE, rate(Backend::Sqlite)),
        at_least(Backend::Postgres, POSTGRES_RATE, rate(Backend::Postgres)),
    ];
    goals.extend(Backend::ALL.map(|backend| with_many_waiting(backend, percent(backend))));
    goals.push(all_delivered(sustained, steps));
    goals
}

fn at_least(backend: Backend, wanted: u64, rate: Option<u64>) -> Goal {
    let name = Subject::Switchboard(backend).name();
    Goal::new(
        format!("{name}: at least {wanted} messages a second end to end"),
        rate.map(|rate| (format!("{rate}/s"), rate >= wanted)),
    )
}

fn with_many_waiting(backend: Backend, percent: Option<u64>) -> Goal {
    let name = Subject::Switchboard(backend).name();
    Goal::new(
        format!("{name}: with a million waiting at least 0.90 of the rate with none"),
        percent.map(|percent| (hundredths(percent), percent >= MIN_PERCENT_OF_NONE)),
    )
}

fn all_delivered(sustained: &[Sustained], steps: &[Step]) -> Goal {
    let runs = sustained.iter().flat_map(|run| [&run.full, &run.light]);
    let steps = steps.iter().flat_map(Step::flows);
    let clean = runs.chain(steps).all(super::Flow::is_clean);
    let shown = if clean { "all" } else { "see below" };
    Goal::new(
        "every request answered 200, every message called back as delivered",
        Some((shown.into(), clean)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Flow, Sustained};
    use super::{Step, evaluate};
    use crate::memory::Memory;
    use testkit::Backend;

    fn sustained(backend: Backend, rate: u64) -> Sustained {
        Sustained {
            backend,
            full: Flow::with_rate(rate),
            light: Flow::with_rate(1),
            memory: Memory::default(),
            bytes_per_message: 1,
        }
    }

    fn step(backend: Backend, waiting: u64, rate: u64) -> Step {
        Step {
            backend,
            waiting,
            none: vec![Flow::with_rate(1_000), Flow::with_rate(1_000)],
            with: vec![Flow::with_rate(rate - 1), Flow::with_rate(rate + 1)],
        }
    }

    fn verdicts(sustained: &[Sustained], steps: &[Step]) -> Vec<Option<bool>> {
        let goals = evaluate(sustained, steps).into_iter();
        goals.map(|goal| goal.reached).collect()
    }

    #[test]
    fn goals_are_evaluated_from_their_rows() {
        let (yes, no, open) = (Some(true), Some(false), None);
        let good = [
            sustained(Backend::Sqlite, 10_000),
            sustained(Backend::Postgres, 5_000),
        ];
        let steps = Backend::ALL.map(|backend| step(backend, 1_000_000, 900));
        assert_eq!(verdicts(&good, &steps), [yes; 5]);
        let poor = [sustained(Backend::Sqlite, 9_999)];
        let steps = [
            step(Backend::Sqlite, 10_000, 1_000),
            step(Backend::Sqlite, 1_000_000, 899),
        ];
        assert_eq!(verdicts(&poor, &steps), [no, open, no, open, yes]);
    }

    #[test]
    fn a_missing_callback_fails_its_goal() {
        let mut run = [sustained(Backend::Sqlite, 10_000)];
        run[0].light.totals.accepted += 1;
        assert_eq!(verdicts(&run, &[]).last(), Some(&Some(false)));
    }
}
