//! Names that no other test, running now or killed earlier, has taken.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::process;

/// A name such as `switchboard_data_4711_9c0f…`: letters, digits and underscores only, so it serves
/// as a folder and as a database. The process ID is for people who find a leftover; the random half
/// makes it unique.
pub(crate) fn unique_name(label: &str) -> String {
    // The standard library seeds each of these from the system's random source: 64 bits without
    // another dependency.
    let random = RandomState::new().build_hasher().finish();
    format!("switchboard_{label}_{}_{random:016x}", process::id())
}

#[cfg(test)]
mod tests {
    use super::unique_name;
    use std::collections::HashSet;

    #[test]
    fn names_differ_and_hold_no_character_that_needs_quoting() {
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
