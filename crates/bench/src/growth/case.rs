//! What grows, and how much.

use anyhow::{Context, Result};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    History,
    Waiting,
    Callbacks,
    Accounts,
    Routes,
    Prices,
}

impl Case {
    pub(super) const ALL: [Self; 6] = [
        Self::History,
        Self::Waiting,
        Self::Callbacks,
        Self::Accounts,
        Self::Routes,
        Self::Prices,
    ];

    /// On the command line.
    const fn name(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Waiting => "waiting",
            Self::Callbacks => "callbacks",
            Self::Accounts => "accounts",
            Self::Routes => "routes",
            Self::Prices => "prices",
        }
    }

    pub(super) fn parse(name: &str) -> Result<Self> {
        let mut cases = Self::ALL.into_iter();
        let names = Self::ALL.map(Self::name).join(", ");
        cases
            .find(|case| case.name() == name)
            .with_context(|| format!("--case takes some of {names}, not {name:?}"))
    }

    pub(super) fn full(self) -> Size {
        let count = match self {
            Self::History => 10_000_000,
            Self::Waiting => 1_000_000,
            Self::Callbacks => 100_000,
            Self::Accounts => 1_000,
            Self::Routes => 200,
            // More carriers are refused.
            Self::Prices => 255,
        };
        Size { case: self, count }
    }

    pub(super) fn quick(self) -> Size {
        let count = match self {
            Self::History => 30_000,
            Self::Waiting | Self::Callbacks => 2_000,
            Self::Accounts | Self::Routes | Self::Prices => 20,
        };
        Size { case: self, count }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) case: Case,
    pub(super) count: u64,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = grouped(self.count);
        match self.case {
            Case::History => write!(f, "{count} messages of history"),
            Case::Waiting => write!(f, "{count} scheduled messages"),
            Case::Callbacks => write!(f, "{count} callbacks for dead hosts"),
            Case::Accounts => write!(f, "{count} accounts"),
            Case::Routes => write!(f, "{count} routes"),
            Case::Prices => write!(f, "{count} carriers with cost lists"),
        }
    }
}

/// Formats 1000000 as `1,000,000`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::{Case, grouped};

    #[test]
    fn every_case_is_found_by_its_name() {
        for case in Case::ALL {
            assert_eq!(Case::parse(case.name()).expect("known"), case);
        }
        let error = Case::parse("prizes").expect_err("unknown").to_string();
        assert!(
            error.contains("prices") && error.contains("prizes"),
            "{error}"
        );
    }

    #[test]
    fn digits_are_grouped() {
        for (count, expected) in [(20, "20"), (200, "200"), (1_000, "1,000")] {
            assert_eq!(grouped(count), expected);
        }
        assert_eq!(grouped(10_000_000), "10,000,000");
    }
}
