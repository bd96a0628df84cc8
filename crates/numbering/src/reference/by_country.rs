//! Entries grouped by country.

use std::ops::Range;

use domain::Country;

pub(super) struct ByCountry<T> {
    entries: Box<[T]>,
    /// The range of each country in `entries`, by [`Country::slot`].
    ranges: Box<[Range<u32>]>,
}

impl<T> ByCountry<T> {
    /// Sorts the entries by country. Entries without a country come last and belong to no group.
    pub(super) fn new<K: Ord>(
        mut entries: Vec<T>,
        country: impl Fn(&T) -> Option<Country>,
        order: impl Fn(&T) -> K,
    ) -> Self {
        // The files are nearly sorted, which makes the stable sort the faster one.
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

    pub(super) fn get(&self, country: Country) -> &[T] {
        let Range { start, end } = self.ranges[country.slot()];
        &self.entries[start as usize..end as usize]
    }

    pub(super) fn all(&self) -> &[T] {
        &self.entries
    }
}
