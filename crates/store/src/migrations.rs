//! The schema, as numbered steps that only go forward.
//!
//! The runner is our own: the few lines here and in each backend's `migrate` do all we ask of one (each step in a
//! transaction, several nodes at once, refusal of a newer schema), where a migration crate would bring a tree of
//! dependencies and its own idea of locking.

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
}

impl Migration {
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
    ($($number:literal $name:literal),+ $(,)?) => {
        /// Every step, in the dialect of `SQLite`.
        pub(crate) const SQLITE: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            sql: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
        }),+];
        /// Every step, in the dialect of `PostgreSQL`.
        pub(crate) const POSTGRES: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            sql: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
        }),+];
    };
}

migrations! {
    1 "0001_messages",
    2 "0002_access",
    3 "0003_dispatch",
    4 "0004_billing",
    5 "0005_channels",
    6 "0006_carriers",
    7 "0007_oauth",
    8 "0008_people",
    9 "0009_dashboard",
    10 "0010_people",
    11 "0011_carriers",
    12 "0012_append",
    13 "0013_binds",
    14 "0014_partitions",
}

/// The step that follows what was applied: `None` when the schema is current.
pub(crate) fn next(steps: &[Migration], applied: i64) -> Result<Option<&Migration>, OpenError> {
    let known = steps.last().map_or(0, |step| step.number);
    if applied > known {
        return Err(OpenError::TooNew {
            found: applied,
            known,
        });
    }
    Ok(steps.iter().find(|step| step.number > applied))
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

    #[test]
    fn the_next_step_follows_and_a_newer_schema_is_refused() {
        let known = SQLITE.last().expect("at least one").number;
        for (applied, expected) in [(0, Some(1)), (1, Some(2)), (known, None)] {
            let step = next(SQLITE, applied)
                .expect("known")
                .map(|step| step.number);
            assert_eq!(step, expected, "{applied}");
        }
        let error = next(SQLITE, known + 1).expect_err("newer").to_string();
        assert!(error.contains("run the newer version"), "{error}");
    }
}
