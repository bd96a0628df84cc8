//! Compares two versions of the reference data, so that an operator can review an import.

use std::collections::BTreeMap;
use std::fmt;

use domain::{Country, Network};

use super::problem::File;
use super::read::Area;
use super::{NetworkEntry, Operator, OperatorId, Prefix, Reference};

/// How many lines of each list are shown.
const MAX_LINES: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub operators: Changes,
    /// Keyed by MCC, MNC, country and operator.
    pub networks: Changes,
    pub prefixes: Changes,
    pub areas: Changes,
}

/// The changes in one file. Each line describes one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    pub file: File,
    pub before: usize,
    pub after: usize,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

/// An import removes so many rows that the file is probably truncated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{removed} of {before} rows of {file} would vanish; more than a tenth is refused")]
pub struct TooManyRowsRemoved {
    pub file: File,
    pub removed: usize,
    pub before: usize,
}

pub fn difference(old: &Reference, new: &Reference) -> Difference {
    let versions = [old, new];
    Difference {
        operators: compare(File::Operators, versions.map(operators)),
        networks: compare(File::Networks, versions.map(networks)),
        prefixes: compare(
            File::Prefixes,
            versions.map(|version| prefixes(version, new)),
        ),
        areas: compare(File::Areas, versions.map(areas)),
    }
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        self.files().iter().all(|changes| changes.is_empty())
    }

    /// The reason to refuse an import: it removes more than a tenth of a file.
    pub fn refusal(&self) -> Option<TooManyRowsRemoved> {
        let is_too_much = |changes: &&&Changes| changes.removed.len() * 10 > changes.before;
        self.files()
            .iter()
            .find(is_too_much)
            .map(|changes| TooManyRowsRemoved {
                file: changes.file,
                removed: changes.removed.len(),
                before: changes.before,
            })
    }

    fn files(&self) -> [&Changes; 4] {
        [&self.operators, &self.networks, &self.prefixes, &self.areas]
    }
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files().iter().try_for_each(|changes| changes.fmt(f))
    }
}

/// The counts, then the first lines of each list.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} rows before, {} now; {} added, {} removed, {} changed",
            self.file,
            self.before,
            self.after,
            self.added.len(),
            self.removed.len(),
            self.changed.len()
        )?;
        let lists = [
            ('+', &self.added),
            ('-', &self.removed),
            ('~', &self.changed),
        ];
        for (sign, lines) in lists {
            for line in lines.iter().take(MAX_LINES) {
                writeln!(f, "  {sign} {line}")?;
            }
            if lines.len() > MAX_LINES {
                writeln!(f, "  {sign} and {} more", lines.len() - MAX_LINES)?;
            }
        }
        Ok(())
    }
}

/// Descriptions of rows by their key.
type Rows<K> = BTreeMap<K, String>;

fn compare<K: Ord + fmt::Display>(file: File, [old, new]: [Rows<K>; 2]) -> Changes {
    let changed = old.iter().filter_map(|(key, before)| {
        let after = new.get(key).filter(|&after| after != before)?;
        Some(format!("{key} {before} -> {after}"))
    });
    Changes {
        file,
        before: old.len(),
        after: new.len(),
        added: only_in(&new, &old),
        removed: only_in(&old, &new),
        changed: changed.collect(),
    }
}

fn only_in<K: Ord + fmt::Display>(rows: &Rows<K>, others: &Rows<K>) -> Vec<String> {
    rows.iter()
        .filter(|(key, _)| !others.contains_key(key))
        .map(|(key, description)| format!("{key} {description}"))
        .collect()
}

fn operators(reference: &Reference) -> Rows<OperatorId> {
    let row = |operator: &Operator| {
        let description = format!("{} {}", country_code(operator.country), operator.name);
        (operator.id, description)
    };
    reference.operators().iter().map(row).collect()
}

fn networks(reference: &Reference) -> Rows<NetworkKey> {
    let row = |entry: &NetworkEntry| {
        let key = NetworkKey(entry.network, entry.country, entry.operator);
        (key, format!("{}, {}", entry.name, entry.status.as_str()))
    };
    reference.networks.all().iter().map(row).collect()
}

/// Uses the new operator names for both versions, so that renaming an operator does not change all its prefixes.
fn prefixes(reference: &Reference, new: &Reference) -> Rows<Digits> {
    let row = |entry: &Prefix| {
        let operator = new
            .operator(entry.operator)
            .or_else(|| reference.operator(entry.operator));
        let name = operator.map_or("", |operator| &*operator.name);
        let description = format!("{} {} {name}", country_code(entry.country), entry.operator);
        (Digits(entry.prefix), description)
    };
    reference.prefixes.all().iter().map(row).collect()
}

fn areas(reference: &Reference) -> Rows<Digits> {
    let row = |area: &Area| (Digits(area.prefix), area.country.to_string());
    reference.areas.iter().map(row).collect()
}

fn country_code(country: Option<Country>) -> String {
    country.map_or_else(|| "--".to_owned(), |country| country.to_string())
}

/// The key of a network's row.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NetworkKey(Network, Option<Country>, OperatorId);

impl fmt::Display for NetworkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(network, country, operator) = self;
        let (mcc, mnc) = (network.mcc(), network.mnc());
        write!(f, "{mcc:03}-{mnc} {} {operator}", country_code(*country))
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Digits(u64);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}", self.0)
    }
}
