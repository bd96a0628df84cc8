//! Lists that are read page by page, by the key of the last row.

use domain::ports::Page;

/// The key below which a page starts; without a cursor, every row is below it.
pub(crate) fn before(key: Option<u64>) -> i64 {
    key.and_then(|key| i64::try_from(key).ok())
        .unwrap_or(i64::MAX)
}

/// A page and the cursor of the next one. A page that is not full is the last.
pub(crate) fn page<T, I>(rows: Vec<T>, limit: u32, key: impl Fn(&T) -> I) -> Page<T, I> {
    let is_full = u32::try_from(rows.len()).is_ok_and(|count| count >= limit);
    let next = rows.last().filter(|_| is_full).map(key);
    Page { rows, next }
}
