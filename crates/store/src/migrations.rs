//! The schema, as numbered steps that only go forward.
//!
//! The runner is written here: each migration runs in a transaction, several nodes may start at once, and a newer
//! schema is refused. A migration crate would add many dependencies and its own locking.
//!
//! Programs of different versions may work on one database during an upgrade. So each migration says whether older
//! programs can still work with it, and the database stores the oldest program that can.

use crate::OpenError;

/// One step of the schema, in one database's dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    /// Counted from 1, without gaps.
    pub(crate) number: i64,
    /// What its file is called.
    pub(crate) name: &'static str,
    /// What it runs.
    pub(crate) sql: &'static str,
    /// Whether programs that do not know it can go on.
    pub(crate) fit: Fit,
}

/// Whether programs that do not know a step of the schema can go on working with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// They can: what they read and write is there as before. New tables, new columns with defaults, new indexes.
    Compatible,
    /// They cannot.
    Breaking,
}

/// The first step after which the database keeps who may still work with it, and what nodes say of themselves.
const HANDSHAKE: i64 = 14;

impl Migration {
    /// Whether the database keeps the oldest program that may still work once this step is applied.
    pub(crate) const fn keeps_oldest(&self) -> bool {
        self.number >= HANDSHAKE
    }

    /// Whether older nodes must have stopped before it.
    pub(crate) const fn waits_for_nodes(&self) -> bool {
        self.number > HANDSHAKE && matches!(self.fit, Fit::Breaking)
    }

    /// Why it is not applied yet.
    pub(crate) fn blocked_by(&self, nodes: Vec<String>) -> OpenError {
        OpenError::OlderNodes {
            name: self.name.to_owned(),
            nodes,
        }
    }

    /// Why this step failed.
    pub(crate) fn failed(
        &self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> OpenError {
        OpenError::Migrate {
            name: self.name.to_owned(),
            source: Box::new(source),
        }
    }
}

/// Declares both dialects of every step at once, so that neither can be forgotten.
macro_rules! migrations {
    ($($number:literal $name:literal $fit:ident),+ $(,)?) => {
        /// Every step, in the dialect of `SQLite`.
        pub(crate) const SQLITE: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            sql: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
            fit: Fit::$fit,
        }),+];
        /// Every step, in the dialect of `PostgreSQL`.
        pub(crate) const POSTGRES: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            sql: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
            fit: Fit::$fit,
        }),+];
    };
}

migrations! {
    1 "0001_messages" Breaking,
    2 "0002_access" Breaking,
    3 "0003_dispatch" Breaking,
    4 "0004_billing" Breaking,
    5 "0005_channels" Breaking,
    6 "0006_carriers" Breaking,
    7 "0007_oauth" Breaking,
    8 "0008_people" Breaking,
    9 "0009_dashboard" Breaking,
    10 "0010_people" Breaking,
    11 "0011_carriers" Breaking,
    12 "0012_append" Breaking,
    13 "0013_binds" Breaking,
    14 "0014_nodes" Compatible,
    15 "0015_partitions" Breaking,
    16 "0016_queue" Compatible,
    17 "0017_callbacks" Breaking,
    18 "0018_receipts" Breaking,
    19 "0019_transit" Breaking,
    20 "0020_codes" Breaking,
    21 "0021_account_rate" Compatible,
    22 "0022_encrypted" Breaking,
    23 "0023_sign_in" Compatible,
    24 "0024_grants" Compatible,
    25 "0025_memberships" Breaking,
}

/// The steps of the schema that a program knows.
#[derive(Debug, Clone)]
pub struct Schema {
    pub(crate) sqlite: Vec<Migration>,
    pub(crate) postgres: Vec<Migration>,
}

impl Schema {
    /// This program's own.
    pub fn current() -> Self {
        Self {
            sqlite: SQLITE.to_vec(),
            postgres: POSTGRES.to_vec(),
        }
    }

    /// That of a newer program, which has one step more.
    #[must_use]
    pub fn followed_by(mut self, name: &'static str, sql: &'static str, fit: Fit) -> Self {
        for steps in [&mut self.sqlite, &mut self.postgres] {
            let number = level(steps) + 1;
            steps.push(Migration {
                number,
                name,
                sql,
                fit,
            });
        }
        self
    }

    /// How many steps it has.
    pub fn level(&self) -> i64 {
        level(&self.sqlite)
    }
}

/// The last step that a program knows.
pub(crate) fn level(steps: &[Migration]) -> i64 {
    steps.last().map_or(0, |step| step.number)
}

/// The oldest program that may work with the schema once `step` is applied.
pub(crate) fn oldest(steps: &[Migration], step: &Migration) -> i64 {
    let breaking = steps
        .iter()
        .rev()
        .find(|earlier| earlier.number <= step.number && matches!(earlier.fit, Fit::Breaking));
    breaking.map_or(0, |step| step.number)
}

/// Where a database stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The last step that was applied.
    pub(crate) applied: i64,
    /// The oldest program that may work with it; asked for only where a newer program has been at work.
    pub(crate) oldest: Option<i64>,
}

/// The next migration to apply: `None` when the schema is current, or newer and still usable by this program.
pub(crate) fn next(steps: &[Migration], at: Standing) -> Result<Option<&Migration>, OpenError> {
    let (known, found) = (level(steps), at.applied);
    if found <= known {
        return Ok(steps.iter().find(|step| step.number > found));
    }
    match at.oldest {
        Some(oldest) if oldest <= known => {
            tracing::warn!(
                found,
                known,
                "a newer version has changed the database; this one can work with it, until it is replaced"
            );
            Ok(None)
        }
        _ => Err(OpenError::TooNew { found, known }),
    }
}

/// What an older node is called in an error.
pub(crate) fn describe_node(id: i64, version: Option<&str>, host: Option<&str>) -> String {
    match (version, host) {
        (Some(version), Some(host)) => format!("node {id} (version {version} on {host})"),
        _ => format!("node {id}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn both_folders_hold_the_declared_files_and_no_others() {
        for (folder, steps) in [("sqlite", SQLITE), ("postgres", POSTGRES)] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("migrations")
                .join(folder);
            let files = fs::read_dir(path).expect("the folder is part of the crate");
            let files: BTreeSet<_> = files
                .map(|file| file.expect("readable").file_name())
                .collect();
            let declared = steps.iter().map(|step| format!("{}.sql", step.name).into());
            assert_eq!(files, declared.collect::<BTreeSet<_>>(), "{folder}");
        }
    }

    #[test]
    fn steps_are_counted_from_one_without_gaps_and_named_by_their_number() {
        for (step, expected) in SQLITE.iter().zip(1..) {
            assert_eq!(step.number, expected);
            assert!(
                step.name.starts_with(&format!("{expected:04}_")),
                "{}",
                step.name
            );
        }
    }

    const fn step(number: i64, fit: Fit) -> Migration {
        Migration {
            number,
            name: "step",
            sql: "",
            fit,
        }
    }

    #[test]
    fn the_oldest_program_is_that_of_the_last_step_that_breaks() {
        use Fit::{Breaking, Compatible};
        let steps = [Breaking, Compatible, Compatible, Breaking, Compatible];
        let steps: Vec<_> = (1..).zip(steps).map(|(n, fit)| step(n, fit)).collect();
        let all = steps.iter().map(|step| oldest(&steps, step));
        assert_eq!(all.collect::<Vec<_>>(), [1, 1, 1, 4, 4]);
    }

    #[test]
    fn the_next_step_follows_and_a_newer_schema_says_who_may_work_with_it() {
        let known = level(SQLITE);
        let cases = [
            ("empty", 0, None, Some(Some(1))),
            ("one step", 1, None, Some(Some(2))),
            ("current", known, Some(known), Some(None)),
            ("newer, and fits", known + 2, Some(known), Some(None)),
            (
                "newer, and fits even older ones",
                known + 1,
                Some(3),
                Some(None),
            ),
            ("newer, and does not fit", known + 1, Some(known + 1), None),
            ("newer, and says nothing", known + 1, None, None),
        ];
        for (name, applied, oldest, expected) in cases {
            let found = next(SQLITE, Standing { applied, oldest });
            let found = found.map(|step| step.map(|step| step.number));
            if let Err(error) = &found {
                assert!(
                    error.to_string().contains("run the newer version"),
                    "{error}"
                );
            }
            assert_eq!(found.ok(), expected, "{name}");
        }
    }

    #[test]
    fn nodes_are_waited_for_only_by_steps_that_break_and_can_tell() {
        for (number, fit, expected) in [
            (HANDSHAKE, Fit::Breaking, false),
            (HANDSHAKE + 1, Fit::Breaking, true),
            (HANDSHAKE + 1, Fit::Compatible, false),
        ] {
            assert_eq!(step(number, fit).waits_for_nodes(), expected, "{number}");
        }
    }
}
