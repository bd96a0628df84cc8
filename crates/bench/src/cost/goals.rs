//! The goals of `bench cost`, and whether the results reach them.

use super::turn::Turn;
use super::{Build, Path, Series, Subject};
use crate::goals::{Goal, hundredths, percent};
use testkit::Backend;

const P99_LIMIT_US: u64 = 5_000;

/// All goals, in the order of the report.
pub(super) fn evaluate(series: &[Series]) -> Vec<Goal> {
    let results = Results(series);
    let (sqlite, postgres) = (Backend::Sqlite, Backend::Postgres);
    vec![
        at_least(
            "accept, SQLite, 64 connections: at least 0.50 of the bare handler",
            results.of_bare(sqlite),
            50,
        ),
        at_least(
            "accept, PostgreSQL: at least 0.35 of the bare handler",
            results.of_bare(postgres),
            35,
        ),
        at_most(
            "whole path, SQLite: processor time at most 0.70 of the other build",
            results.of_other(sqlite, Results::time),
            70,
        ),
        at_most(
            "whole path, PostgreSQL: processor time with the database at most 0.60 of the other build",
            results.of_other(postgres, Results::time),
            60,
        ),
        at_least(
            "whole path, PostgreSQL: messages a second at least 1.50 of the other build",
            results.of_other(postgres, Results::rate),
            150,
        ),
        at_least(
            "whole path, SQLite: messages a second at least 4.50 of Kannel without a store",
            results.of_kannel(sqlite),
            450,
        ),
        at_least(
            "whole path, PostgreSQL: messages a second at least 2.50 of Kannel without a store",
            results.of_kannel(postgres),
            250,
        ),
        results.p99(sqlite),
        results.p99(postgres),
        results.all_delivered(),
    ]
}

fn at_least(text: &str, percent: Option<u64>, goal: u64) -> Goal {
    Goal::new(
        text,
        percent.map(|found| (hundredths(found), found >= goal)),
    )
}

fn at_most(text: &str, percent: Option<u64>, goal: u64) -> Goal {
    Goal::new(
        text,
        percent.map(|found| (hundredths(found), found <= goal)),
    )
}

struct Results<'a>(&'a [Series]);

impl Results<'_> {
    fn find(&self, path: Path, subject: Subject) -> Option<&Series> {
        let mut series = self.0.iter();
        series.find(|series| series.path == path && series.subject == subject)
    }

    fn service(&self, path: Path, build: Build, backend: Backend) -> Option<&Series> {
        let nodes = 1;
        self.find(
            path,
            Subject::Service {
                build,
                backend,
                nodes,
            },
        )
    }

    fn rate(series: &Series) -> u64 {
        series.median(|turn| turn.rate)
    }

    /// The processor time of a message in the service and its database.
    fn time(series: &Series) -> u64 {
        series.median(Turn::service_and_database)
    }

    fn of_bare(&self, backend: Backend) -> Option<u64> {
        let bare = self.find(Path::Accept, Subject::Bare)?;
        let own = self.service(Path::Accept, Build::This, backend)?;
        Some(percent(Self::rate(own), Self::rate(bare)))
    }

    fn of_kannel(&self, backend: Backend) -> Option<u64> {
        let kannel = self.find(Path::Whole, Subject::Kannel)?;
        let own = self.service(Path::Whole, Build::This, backend)?;
        Some(percent(Self::rate(own), Self::rate(kannel)))
    }

    fn of_other(&self, backend: Backend, value: fn(&Series) -> u64) -> Option<u64> {
        let other = self.service(Path::Whole, Build::Other, backend)?;
        let own = self.service(Path::Whole, Build::This, backend)?;
        Some(percent(value(own), value(other)))
    }

    fn p99(&self, backend: Backend) -> Goal {
        let name = match backend {
            Backend::Sqlite => "SQLite",
            Backend::Postgres => "PostgreSQL",
        };
        let series = self.service(Path::Accept, Build::This, backend);
        let found = series.map(|series| {
            series.median(|turn| u64::try_from(turn.p99.as_micros()).unwrap_or(u64::MAX))
        });
        let shown = found.map(|p99| {
            let tenths = p99 / 100;
            let shown = format!("{}.{} ms", tenths / 10, tenths % 10);
            (shown, p99 <= P99_LIMIT_US)
        });
        Goal::new(
            format!("accept, {name}: p99 of a request at most 5 ms"),
            shown,
        )
    }

    fn all_delivered(&self) -> Goal {
        let turns = self.0.iter().flat_map(|series| &series.turns);
        let failures: u64 = turns.map(|turn| turn.failures).sum();
        Goal::new(
            "every request answered 200, every message called back",
            Some((format!("{failures} failures"), failures == 0)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::evaluate;
    use crate::cost::turn::Turn;
    use crate::cost::{Build, Path, Series, Subject};
    use crate::processor_time::ProcessorTime;
    use std::time::Duration;
    use testkit::Backend;

    /// A turn of one message that takes `time_us` in the service and as much in the database.
    fn series(path: Path, subject: Subject, rate: u64, time_us: u64) -> Series {
        let time = ProcessorTime {
            user: Duration::from_micros(time_us),
            system: Duration::ZERO,
        };
        let turn = Turn {
            messages: 1,
            nodes: time,
            database: time,
            benchmark: time,
            rate,
            p99: Duration::from_millis(5),
            failures: 0,
            peak_kib: 1,
            work: None,
            statements: Vec::new(),
        };
        Series {
            path,
            subject,
            turns: vec![turn],
        }
    }

    fn service(build: Build, backend: Backend) -> Subject {
        Subject::Service {
            build,
            backend,
            nodes: 1,
        }
    }

    fn verdicts(series: &[Series]) -> Vec<Option<bool>> {
        let goals = evaluate(series).into_iter();
        goals.map(|goal| goal.reached).collect()
    }

    #[test]
    fn goals_are_evaluated_from_their_rows() {
        let (this, other) = (Build::This, Build::Other);
        let (sqlite, postgres) = (Backend::Sqlite, Backend::Postgres);
        let good = [
            series(Path::Accept, Subject::Bare, 100, 1),
            series(Path::Accept, service(this, sqlite), 50, 1),
            series(Path::Accept, service(this, postgres), 35, 1),
            series(Path::Whole, Subject::Kannel, 60, 1),
            series(Path::Whole, service(other, sqlite), 200, 100),
            series(Path::Whole, service(this, sqlite), 270, 70),
            series(Path::Whole, service(other, postgres), 100, 100),
            series(Path::Whole, service(this, postgres), 150, 60),
        ];
        assert_eq!(verdicts(&good), [Some(true); 10]);

        let mut poor = [
            series(Path::Accept, Subject::Bare, 100, 1),
            series(Path::Accept, service(this, sqlite), 49, 1),
            series(Path::Whole, service(other, postgres), 100, 100),
            series(Path::Whole, service(this, postgres), 149, 61),
        ];
        poor[1].turns[0].p99 = Duration::from_millis(6);
        poor[2].turns[0].failures = 1;
        let (no, open) = (Some(false), None);
        let expected = [no, open, open, no, no, open, open, no, open, no];
        assert_eq!(verdicts(&poor), expected);
    }
}
