//! What an import would change, to be read before it is done.

use std::collections::BTreeMap;
use std::fmt;

use domain::{Country, Network};

use super::problem::File;
use super::read::Area;
use super::{NetworkEntry, Operator, OperatorId, Prefix, Reference};

/// At most this many lines of a list are shown.
const SHOWN: usize = 20;

/// What is different between two states of the reference data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Operators, by their ID.
    pub operators: Changes,
    /// Networks, by their codes, country and operator.
    pub networks: Changes,
    /// Prefixes, by their digits.
    pub prefixes: Changes,
    /// Areas, by their digits.
    pub areas: Changes,
}

/// What is different in one file. Each line says in words which row it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The file.
    pub file: File,
    /// How many rows there were.
    pub before: usize,
    /// How many rows there are.
    pub after: usize,
    /// Rows that were not there before.
    pub added: Vec<String>,
    /// Rows that are there no longer.
    pub removed: Vec<String>,
    /// Rows that are still there and say something else.
    pub changed: Vec<String>,
}

/// An import that looks like a truncated file rather than like news.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{removed} of {before} rows of {file} would vanish; more than a tenth is refused")]
pub struct TooMuchVanishes {
    /// The file.
    pub file: File,
    /// How many rows would go.
    pub removed: usize,
    /// Of how many.
    pub before: usize,
}

/// Compares two states of the reference data.
pub fn difference(old: &Reference, new: &Reference) -> Difference {
    let sides = [old, new];
    Difference {
        operators: compare(File::Operators, sides.map(operators)),
        networks: compare(File::Networks, sides.map(networks)),
        prefixes: compare(File::Prefixes, sides.map(|side| prefixes(side, new))),
        areas: compare(File::Areas, sides.map(areas)),
    }
}

impl Difference {
    /// Whether both states say the same.
    pub fn is_empty(&self) -> bool {
        self.files().iter().all(|changes| changes.is_empty())
    }

    /// Why the new state must not replace the old one, if it must not: more than a tenth of a file would vanish.
    pub fn refusal(&self) -> Option<TooMuchVanishes> {
        let is_too_much = |changes: &&&Changes| changes.removed.len() * 10 > changes.before;
        self.files()
            .iter()
            .find(is_too_much)
            .map(|changes| TooMuchVanishes {
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
    /// Whether the file says the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// A paragraph for each file.
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
            for line in lines.iter().take(SHOWN) {
                writeln!(f, "  {sign} {line}")?;
            }
            if lines.len() > SHOWN {
                writeln!(f, "  {sign} and {} more", lines.len() - SHOWN)?;
            }
        }
        Ok(())
    }
}

/// Rows by their key, each with what it says in words.
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
        .map(|(key, words)| format!("{key} {words}"))
        .collect()
}

fn operators(reference: &Reference) -> Rows<OperatorId> {
    let row = |operator: &Operator| {
        let words = format!("{} {}", shown(operator.country), operator.name);
        (operator.id, words)
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

/// Operators go by their present names where they have one, so that a rename is not a change of every prefix.
fn prefixes(reference: &Reference, present: &Reference) -> Rows<Digits> {
    let row = |entry: &Prefix| {
        let operator = present
            .operator(entry.operator)
            .or_else(|| reference.operator(entry.operator));
        let name = operator.map_or("", |operator| &*operator.name);
        let words = format!("{} {} {name}", shown(entry.country), entry.operator);
        (Digits(entry.prefix), words)
    };
    reference.prefixes.all().iter().map(row).collect()
}

fn areas(reference: &Reference) -> Rows<Digits> {
    let row = |area: &Area| (Digits(area.prefix), area.country.to_string());
    reference.areas.iter().map(row).collect()
}

fn shown(country: Option<Country>) -> String {
    country.map_or_else(|| "--".to_owned(), |country| country.to_string())
}

/// What makes a network's row the same one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NetworkKey(Network, Option<Country>, OperatorId);

impl fmt::Display for NetworkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(network, country, operator) = self;
        let (mcc, mnc) = (network.mcc(), network.mnc());
        write!(f, "{mcc:03}-{mnc} {} {operator}", shown(*country))
    }
}

/// The digits of a prefix.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Digits(u64);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}", self.0)
    }
}
