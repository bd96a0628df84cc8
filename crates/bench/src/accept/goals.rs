//! The goals of `bench accept`, and whether the results reach them.

use super::Pair;
use super::soak::Soak;
use crate::goals::{Goal, hundredths, mebibytes};
use crate::measure::Subject;
use std::time::Duration;
use testkit::Backend;

const CONNECTIONS: usize = 64;
const MANY_CONNECTIONS: usize = 256;
const P99_LIMIT: Duration = Duration::from_millis(15);
const MEMORY_LIMIT_KIB: u64 = 100 << 10;
/// The use of allocators varies, so 10 % or 4 MiB more is not counted as growth. A leak of a few bytes for each message
/// would exceed this in a long run.
const GROWTH_LIMIT_PERCENT: u64 = 10;
const GROWTH_LIMIT_KIB: u64 = 4 << 10;

/// All goals, in the order of the report.
pub(super) fn evaluate(pairs: &[Pair], soak: Option<&Soak>) -> Vec<Goal> {
    let ratio = |text: &str, backend, percent| {
        let found = find(pairs, backend, CONNECTIONS).map(Pair::percent_of_bare);
        Goal::new(
            text,
            found.map(|found| (hundredths(found), found >= percent)),
        )
    };
    let mut goals = vec![
        ratio(
            "SQLite at 64 connections at least 0.40 of bare",
            Backend::Sqlite,
            40,
        ),
        ratio(
            "SQLite at 64 connections at least 0.50 of bare (wanted)",
            Backend::Sqlite,
            50,
        ),
        ratio(
            "PostgreSQL at 64 connections at least 0.20 of bare",
            Backend::Postgres,
            20,
        ),
    ];
    goals.extend(Backend::ALL.map(|backend| p99(pairs, backend)));
    goals.extend(Backend::ALL.map(|backend| many_connections(pairs, backend)));
    goals.push(memory(pairs, soak));
    goals.push(growth(soak));
    goals.push(all_accepted(pairs, soak));
    goals
}

fn find(pairs: &[Pair], backend: Backend, connections: usize) -> Option<&Pair> {
    let subject = Subject::Switchboard(backend);
    let mut rows = pairs.iter().filter(|pair| pair.service.subject == subject);
    rows.find(|pair| pair.service.connections == connections)
}

fn p99(pairs: &[Pair], backend: Backend) -> Goal {
    let name = Subject::Switchboard(backend).name();
    let found =
        find(pairs, backend, CONNECTIONS).map(|pair| pair.service.load.latency.percentile(99));
    let shown = found.map(|p99| {
        (
            format!("{:.1} ms", p99.as_secs_f64() * 1e3),
            p99 < P99_LIMIT,
        )
    });
    Goal::new(format!("{name} at 64 connections: p99 under 15 ms"), shown)
}

fn many_connections(pairs: &[Pair], backend: Backend) -> Goal {
    let name = Subject::Switchboard(backend).name();
    let found = find(pairs, backend, MANY_CONNECTIONS).map(|pair| &pair.service);
    let shown = found.map(|row| {
        (
            format!("{} served", row.load.served_connections),
            row.is_clean(),
        )
    });
    Goal::new(
        format!("{name}: {MANY_CONNECTIONS} connections opened at once are all served"),
        shown,
    )
}

fn memory(pairs: &[Pair], soak: Option<&Soak>) -> Goal {
    let rows = pairs.iter().map(|pair| pair.service.memory.peak_kib);
    let steps = soak
        .iter()
        .flat_map(|soak| &soak.steps)
        .map(|step| step.memory.peak_kib);
    let peak = rows.chain(steps).max();
    let shown = peak.map(|peak| (format!("{} MiB", mebibytes(peak)), peak < MEMORY_LIMIT_KIB));
    Goal::new("peak memory under 100 MiB in every run", shown)
}

fn growth(soak: Option<&Soak>) -> Goal {
    let ends = soak.and_then(|soak| Some((soak.steps.first()?, soak.steps.last()?)));
    let text = match ends {
        Some((first, last)) => {
            format!(
                "memory after {} messages at most 10 % or 4 MiB more than after {}",
                last.messages, first.messages
            )
        }
        None => "memory does not grow over a long run".into(),
    };
    let shown = ends
        .filter(|(first, last)| first.messages < last.messages)
        .map(|(first, last)| {
            let (before, after) = (first.memory.now_kib, last.memory.now_kib);
            let allowed = (before * GROWTH_LIMIT_PERCENT / 100).max(GROWTH_LIMIT_KIB);
            let measured = format!("{} → {} MiB", mebibytes(before), mebibytes(after));
            (measured, after <= before + allowed)
        });
    Goal::new(text, shown)
}

fn all_accepted(pairs: &[Pair], soak: Option<&Soak>) -> Goal {
    let mut soaked = soak.iter().flat_map(|soak| &soak.steps);
    let clean =
        pairs.iter().all(|pair| pair.service.is_clean()) && soaked.all(|step| step.is_clean);
    let shown = if clean { "all" } else { "see below" };
    Goal::new("every request answered 200", Some((shown.into(), clean)))
}

#[cfg(test)]
mod tests {
    use super::super::Pair;
    use super::super::soak::{Soak, Step};
    use super::evaluate;
    use crate::measure::{Row, Subject};
    use crate::memory::Memory;
    use std::time::Duration;
    use testkit::Backend;
    use testkit::load::Report;

    /// A row of one second in which all requests have the same latency.
    fn row(subject: Subject, connections: usize, rate: u64, latency_ms: u64) -> Row {
        let mut load = Report {
            elapsed: Duration::from_secs(1),
            served_connections: connections,
            ..Report::default()
        };
        (0..rate).for_each(|_| load.latency.record(Duration::from_millis(latency_ms)));
        let memory = Memory {
            now_kib: 50 << 10,
            peak_kib: 60 << 10,
        };
        Row {
            subject,
            connections,
            load,
            memory,
        }
    }

    fn pair(backend: Backend, connections: usize, rate: u64, latency_ms: u64) -> Pair {
        Pair {
            bare: row(Subject::Bare, connections, 1_000, 1),
            service: row(Subject::Switchboard(backend), connections, rate, latency_ms),
        }
    }

    fn soak(end_kib: u64) -> Soak {
        let step = |messages, now_kib| {
            let memory = Memory {
                now_kib,
                peak_kib: now_kib,
            };
            Step {
                messages,
                rate: 1,
                memory,
                is_clean: true,
            }
        };
        let steps = vec![step(100_000, 50 << 10), step(1_000_000, end_kib)];
        Soak {
            steps,
            bytes_per_message: 1,
            wrong_sample: None,
        }
    }

    fn verdicts(pairs: &[Pair], soak: Option<&Soak>) -> Vec<Option<bool>> {
        evaluate(pairs, soak)
            .into_iter()
            .map(|goal| goal.reached)
            .collect()
    }

    #[test]
    fn goals_are_evaluated_from_their_rows() {
        let (yes, no, open) = (Some(true), Some(false), None);
        let good = [
            pair(Backend::Sqlite, 64, 500, 14),
            pair(Backend::Postgres, 64, 200, 14),
            pair(Backend::Sqlite, 256, 500, 1),
            pair(Backend::Postgres, 256, 200, 1),
        ];
        assert_eq!(verdicts(&good, Some(&soak(55 << 10))), [yes; 10]);

        let mut poor = [
            pair(Backend::Sqlite, 64, 399, 16),
            pair(Backend::Sqlite, 256, 1, 1),
        ];
        poor[1].service.load.served_connections = 255;
        let expected = [no, no, open, no, open, no, open, no, no, no];
        assert_eq!(verdicts(&poor, Some(&soak(120 << 10))), expected);
        assert_eq!(verdicts(&good[..1], None)[8], open, "without a soak run");
    }
}
