//! `bench cost`: the processor time of a message. Other programs on the machine disturb it less than rates.

pub(crate) mod database_work;
mod goals;
mod options;
pub(crate) mod report;
pub(crate) mod turn;

pub(crate) use options::Options;

use crate::accept::check_prerequisites;
use anyhow::{Context, Result};
use std::process::{Command, Stdio};
use testkit::Backend;
use turn::Turn;

/// How far the messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// They are stored, and stay there.
    Accept,
    /// They are sent over SMPP, and their callbacks are answered.
    Whole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    This,
    Other,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Bare,
    Kannel,
    Service {
        build: Build,
        backend: Backend,
        nodes: usize,
    },
}

impl Subject {
    fn name(self) -> String {
        let Self::Service {
            build,
            backend,
            nodes,
        } = self
        else {
            let name = match self {
                Self::Bare => "bare handler",
                _ => "Kannel, no store",
            };
            return name.to_owned();
        };
        let database = match (backend, nodes) {
            (Backend::Sqlite, _) => "SQLite",
            (Backend::Postgres, 1) => "PostgreSQL",
            (Backend::Postgres, _) => "PostgreSQL, two nodes",
        };
        match build {
            Build::This => database.to_owned(),
            Build::Other => format!("{database}, other build"),
        }
    }
}

/// All turns of one subject.
struct Series {
    path: Path,
    subject: Subject,
    turns: Vec<Turn>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    check_prerequisites(&options.switchboard)?;
    let mut series: Vec<Series> = subjects(options);
    for number in 1..=options.turns {
        for series in &mut series {
            let name = series.subject.name();
            let turn = turn::run(options, series.path, series.subject)
                .with_context(|| format!("{:?}, {name}", series.path))?;
            eprintln!(
                "turn {number}: {:?}, {name}: {}",
                series.path,
                turn.summary()
            );
            series.turns.push(turn);
        }
    }
    print!("{}", report::markdown(options, &series));
    Ok(())
}

/// What to measure, in the order of a turn. The builds are next to each other, because the speed of a machine drifts.
fn subjects(options: &Options) -> Vec<Series> {
    let is_installed = |program: &str| {
        let mut command = Command::new(program);
        let started = command.arg("--version").stdout(Stdio::null());
        started.stderr(Stdio::null()).status().is_ok()
    };
    let builds = match options.other {
        Some(_) => &[Build::Other, Build::This][..],
        None => &[Build::This],
    };
    let databases = [
        (Backend::Sqlite, 1),
        (Backend::Postgres, 1),
        (Backend::Postgres, 2),
    ];
    let measured = databases
        .into_iter()
        .filter(|(backend, _)| options.measures(*backend));
    let services = measured.flat_map(|(backend, nodes)| {
        builds.iter().map(move |&build| Subject::Service {
            build,
            backend,
            nodes,
        })
    });
    let kannel = is_installed("bearerbox").then_some(Subject::Kannel);
    let accept = [Subject::Bare].into_iter().chain(services.clone());
    let whole = kannel.into_iter().chain(services);
    let on = |path| {
        move |subject| Series {
            path,
            subject,
            turns: Vec::new(),
        }
    };
    let accept = accept.map(on(Path::Accept));
    accept.chain(whole.map(on(Path::Whole))).collect()
}

impl Options {
    fn binary(&self, build: Build) -> Result<&std::path::Path> {
        let binary = match build {
            Build::This => Some(&self.switchboard),
            Build::Other => self.other.as_ref(),
        };
        Ok(binary.context("there is no other build")?)
    }
}
