//! Unique names.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::process;

/// A name such as `switchboard_data_4711_9c0f…`, which no other test uses. It needs no quoting in SQL. The process ID
/// helps people who find a leftover; the random part makes the name unique.
pub(crate) fn unique_name(label: &str) -> String {
    // The standard library seeds each `RandomState` from the system's random source.
    let random = RandomState::new().build_hasher().finish();
    format!("switchboard_{label}_{}_{random:016x}", process::id())
}

#[cfg(test)]
mod tests {
    use super::unique_name;
    use std::collections::HashSet;

    #[test]
    fn names_differ_and_need_no_quoting() {
        let names: HashSet<_> = (0..1_000).map(|_| unique_name("x")).collect();
        assert_eq!(names.len(), 1_000);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(
            names
                .iter()
                .all(|name| name.chars().all(plain) && name.len() < 63)
        );
    }
}
