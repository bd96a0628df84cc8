//! What an import would change, for people who check before they import.

use std::fmt;

use domain::Money;

use super::{Key, PriceList, PriceRow};

/// How many rows of each kind are printed.
const SHOWN: usize = 20;

/// How one list differs from another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriceDifference {
    /// Rows that are new.
    pub added: Vec<PriceRow>,
    /// Rows that are gone.
    pub removed: Vec<PriceRow>,
    /// Rows whose price changes: the new row, and the price before.
    pub changed: Vec<(PriceRow, Money)>,
    /// How many rows stay as they are.
    pub same: usize,
}

impl PriceDifference {
    /// What changes from `old` to `new`.
    pub fn between(old: &PriceList, new: &PriceList) -> Self {
        let mut difference = Self::default();
        let rows = |list: &PriceList| -> Vec<(Key, PriceRow)> {
            list.keys
                .iter()
                .copied()
                .zip(list.rows.iter().cloned())
                .collect()
        };
        for (key, row) in rows(new) {
            match old.prices.get(&key) {
                None => difference.added.push(row),
                Some(&before) if before != row.rate => difference.changed.push((row, before)),
                Some(_) => difference.same += 1,
            }
        }
        let gone = rows(old)
            .into_iter()
            .filter(|(key, _)| !new.prices.contains_key(key));
        difference.removed = gone.map(|(_, row)| row).collect();
        difference
    }
}

impl fmt::Display for PriceDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (added, changed, removed) = (self.added.len(), self.changed.len(), self.removed.len());
        writeln!(
            f,
            "{added} added, {changed} changed, {removed} removed, {} as before",
            self.same
        )?;
        list(f, &self.added, |f, row| {
            write!(f, "+ {}  {}", Name(row), row.rate)
        })?;
        list(f, &self.changed, |f, (row, before)| {
            write!(f, "~ {}  {before} -> {}", Name(row), row.rate)
        })?;
        list(f, &self.removed, |f, row| {
            write!(f, "- {}  {}", Name(row), row.rate)
        })
    }
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    rows: &[T],
    line: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for row in rows.iter().take(SHOWN) {
        f.write_str("  ")?;
        line(f, row)?;
        f.write_str("\n")?;
    }
    match rows.len().checked_sub(SHOWN) {
        Some(more @ 1..) => writeln!(f, "  … and {more} more"),
        _ => Ok(()),
    }
}

struct Name<'a>(&'a PriceRow);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.0;
        match &row.country {
            Some(country) => write!(f, "{country} ")?,
            None => f.write_str("elsewhere ")?,
        }
        if let (Some(mcc), Some(mnc)) = (row.mcc, &row.mnc) {
            write!(f, "{mcc}-{mnc} ")?;
        }
        f.write_str(&row.operator)
    }
}
