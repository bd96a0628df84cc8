//! The schema, as numbered migrations that only go forward.
//!
//! The runner is written here: each migration runs in a transaction, several nodes may start at once, and a newer
//! schema is refused. A migration crate would add many dependencies and its own locking.
//!
//! Programs of different versions may work on one database during an upgrade. So each migration says whether older
//! programs can still work with it, and the database stores the oldest program that can.

use crate::OpenError;

/// One migration, in the dialect of one database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    /// Counted from 1, without gaps.
    pub(crate) number: i64,
    /// The name of its file.
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    pub(crate) compatibility: Compatibility,
}

/// Whether programs that do not know a migration can still work after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compatibility {
    /// They can, because what they use is unchanged. Only new tables, columns with defaults, or indexes were added.
    Compatible,
    Breaking,
}

/// Since this migration, the database stores the oldest program that may use it, and the versions of the nodes.
const HANDSHAKE: i64 = 14;

impl Migration {
    /// Whether the database stores the oldest usable program after this migration.
    pub(crate) const fn stores_oldest(&self) -> bool {
        self.number >= HANDSHAKE
    }

    /// Whether older nodes must stop before this migration.
    pub(crate) const fn waits_for_nodes(&self) -> bool {
        self.number > HANDSHAKE && matches!(self.compatibility, Compatibility::Breaking)
    }

    /// The error if older nodes are running.
    pub(crate) fn blocked_by(&self, nodes: Vec<String>) -> OpenError {
        OpenError::OlderNodes {
            name: self.name.to_owned(),
            nodes,
        }
    }

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

/// Declares both dialects of every migration together, so that neither can be forgotten.
macro_rules! migrations {
    ($($number:literal $name:literal $compatibility:ident),+ $(,)?) => {
        /// Every migration, in the dialect of `SQLite`.
        pub(crate) const SQLITE: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            sql: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
            compatibility: Compatibility::$compatibility,
        }),+];
        /// Every migration, in the dialect of `PostgreSQL`.
        pub(crate) const POSTGRES: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            sql: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
            compatibility: Compatibility::$compatibility,
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
    26 "0026_fill_factor" Compatible,
    27 "0027_records" Compatible,
    28 "0028_alerts" Compatible,
    29 "0029_trace" Compatible,
    30 "0030_inbound" Compatible,
    31 "0031_opt_outs" Compatible,
    32 "0032_replies" Compatible,
    33 "0033_inbound_sources" Compatible,
    34 "0034_verification" Compatible,
    35 "0035_proof" Compatible,
    36 "0036_inbound_price" Compatible,
    37 "0037_ported_numbers" Compatible,
    38 "0038_grant_caps" Compatible,
    39 "0039_country" Compatible,
    40 "0040_templates" Compatible,
    41 "0041_request_log" Compatible,
    42 "0042_report_poll" Compatible,
    43 "0043_verify_price" Compatible,
    44 "0044_smpp_users" Compatible,
    45 "0045_latency" Compatible,
    46 "0046_smpp_sessions" Compatible,
}

/// The migrations that a program knows.
#[derive(Debug, Clone)]
pub struct Schema {
    pub(crate) sqlite: Vec<Migration>,
    pub(crate) postgres: Vec<Migration>,
}

impl Schema {
    /// The schema of this program.
    pub fn current() -> Self {
        Self {
            sqlite: SQLITE.to_vec(),
            postgres: POSTGRES.to_vec(),
        }
    }

    /// The schema of a newer program, with one more migration.
    #[must_use]
    pub fn followed_by(
        mut self,
        name: &'static str,
        sql: &'static str,
        compatibility: Compatibility,
    ) -> Self {
        for steps in [&mut self.sqlite, &mut self.postgres] {
            let number = level(steps) + 1;
            steps.push(Migration {
                number,
                name,
                sql,
                compatibility,
            });
        }
        self
    }

    /// The number of migrations.
    pub fn level(&self) -> i64 {
        level(&self.sqlite)
    }
}

/// The last migration that a program knows.
pub(crate) fn level(steps: &[Migration]) -> i64 {
    steps.last().map_or(0, |step| step.number)
}

/// The oldest program that may work with the schema once `step` is applied.
pub(crate) fn oldest(steps: &[Migration], step: &Migration) -> i64 {
    let breaking = steps.iter().rev().find(|earlier| {
        earlier.number <= step.number && matches!(earlier.compatibility, Compatibility::Breaking)
    });
    breaking.map_or(0, |step| step.number)
}

/// The state of a database's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchemaState {
    /// The last migration that was applied.
    pub(crate) applied: i64,
    /// The oldest program that may work with it; read only if the schema is newer than this program.
    pub(crate) oldest: Option<i64>,
}

/// The next migration to apply: `None` when the schema is current, or newer and still usable by this program.
pub(crate) fn next(steps: &[Migration], at: SchemaState) -> Result<Option<&Migration>, OpenError> {
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

/// The description of an older node in an error.
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
    fn migrations_are_numbered_from_one_without_gaps() {
        for (step, expected) in SQLITE.iter().zip(1..) {
            assert_eq!(step.number, expected);
            assert!(
                step.name.starts_with(&format!("{expected:04}_")),
                "{}",
                step.name
            );
        }
    }

    const fn step(number: i64, compatibility: Compatibility) -> Migration {
        Migration {
            number,
            name: "step",
            sql: "",
            compatibility,
        }
    }

    #[test]
    fn the_oldest_program_is_that_of_the_last_breaking_migration() {
        use Compatibility::{Breaking, Compatible};
        let steps = [Breaking, Compatible, Compatible, Breaking, Compatible];
        let steps: Vec<_> = (1..)
            .zip(steps)
            .map(|(n, compatibility)| step(n, compatibility))
            .collect();
        let all = steps.iter().map(|step| oldest(&steps, step));
        assert_eq!(all.collect::<Vec<_>>(), [1, 1, 1, 4, 4]);
    }

    #[test]
    fn the_next_migration_is_found_and_a_newer_schema_is_checked() {
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
            let found = next(SQLITE, SchemaState { applied, oldest });
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
    fn only_breaking_migrations_after_the_handshake_wait_for_nodes() {
        for (number, compatibility, expected) in [
            (HANDSHAKE, Compatibility::Breaking, false),
            (HANDSHAKE + 1, Compatibility::Breaking, true),
            (HANDSHAKE + 1, Compatibility::Compatible, false),
        ] {
            assert_eq!(
                step(number, compatibility).waits_for_nodes(),
                expected,
                "{number}"
            );
        }
    }
}
