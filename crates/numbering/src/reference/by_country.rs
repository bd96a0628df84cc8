//! Entries in one row, those of a country side by side.

use std::ops::Range;

use domain::Country;

/// Entries grouped by country.
pub(super) struct ByCountry<T> {
    entries: Box<[T]>,
    /// The first and the one after the last of each country, by [`Country::slot`].
    ranges: Box<[Range<u32>]>,
}

impl<T> ByCountry<T> {
    /// Groups the entries and puts those of a country in order; those without a country come last and are in no group.
    pub(super) fn new<K: Ord>(
        mut entries: Vec<T>,
        country: impl Fn(&T) -> Option<Country>,
        order: impl Fn(&T) -> K,
    ) -> Self {
        // The files are nearly in this order, which makes the stable sort the faster one.
        entries.sort_by_key(|entry| {
            let country = country(entry);
            (country.is_none(), country, order(entry))
        });
        let mut ranges = vec![0..0; Country::SLOTS];
        for (position, entry) in (0..).zip(&entries) {
            if let Some(country) = country(entry) {
                let range = &mut ranges[country.slot()];
                if range.start == range.end {
                    range.start = position;
                }
                range.end = position + 1;
            }
        }
        Self {
            entries: entries.into(),
            ranges: ranges.into(),
        }
    }

    /// The entries of a country.
    pub(super) fn of(&self, country: Country) -> &[T] {
        let Range { start, end } = self.ranges[country.slot()];
        &self.entries[start as usize..end as usize]
    }

    /// All entries.
    pub(super) fn all(&self) -> &[T] {
        &self.entries
    }
}
