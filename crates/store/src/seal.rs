//! A database that must not be used: an unfinished copy, or one with contents that were moved away.
//!
//! The seal is a row of `schema_migration` with a number that no migration has, so that it is seen first when the
//! database is opened. A database without a seal needs no row.

use crate::OpenError;

/// The number of the row.
pub(crate) const ROW: i64 = -1;

/// Why a database must not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) kind: Kind,
    /// When the other database was created. It identifies that database, even after a rename.
    pub(crate) created_us: i64,
    /// The URL of the other database, without a password.
    pub(crate) other: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `migrate` has not copied everything yet.
    Copying,
    /// `restore` has not copied everything yet.
    Restoring,
    /// The contents were moved to the other database.
    Moved,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Copying, Self::Restoring, Self::Moved];

    fn word(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::Restoring => "restoring",
            Self::Moved => "moved",
        }
    }
}

impl Seal {
    /// The name of the row.
    pub(crate) fn to_text(&self) -> String {
        format!("{} {} {}", self.kind.word(), self.created_us, self.other)
    }

    /// Parses the name of the row. An unknown text seals the database, too.
    pub(crate) fn parse(text: &str) -> Self {
        let known = || {
            let (word, rest) = text.split_once(' ')?;
            let (created_us, other) = rest.split_once(' ')?;
            Some(Self {
                kind: Kind::ALL.into_iter().find(|kind| kind.word() == word)?,
                created_us: created_us.parse().ok()?,
                other: other.to_owned(),
            })
        };
        known().unwrap_or_else(|| Self {
            kind: Kind::Copying,
            created_us: 0,
            other: text.to_owned(),
        })
    }

    /// The error for opening a sealed database.
    pub(crate) fn refusal(self) -> OpenError {
        let other = self.other;
        match self.kind {
            Kind::Copying => OpenError::Unfinished {
                what: format!("copy of {other}"),
                remedy: "stop the service that works on that one and run the same `switchboard migrate` again",
            },
            Kind::Restoring => OpenError::Unfinished {
                what: format!("restore of {other}"),
                remedy: "run the same `switchboard restore` again",
            },
            Kind::Moved => OpenError::Moved { target: other },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_survives_a_round_trip() {
        for kind in Kind::ALL {
            let seal = Seal {
                kind,
                created_us: 1_790_000_000_000_000,
                other: "sqlite:/a folder/x.db".to_owned(),
            };
            assert_eq!(Seal::parse(&seal.to_text()), seal);
        }
    }

    #[test]
    fn an_unknown_text_seals_the_database() {
        for text in ["", "moved", "moved soon", "frozen 1 x"] {
            let refusal = Seal::parse(text).refusal().to_string();
            assert!(refusal.contains("unfinished"), "{text}: {refusal}");
        }
    }
}
