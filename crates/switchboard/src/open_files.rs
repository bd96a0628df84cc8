//! How many files and connections this process may have open.

use engine::MOST_TRIES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Fewer parallel attempts would be too slow.
const MIN_ATTEMPTS: usize = 16;

/// Raises the limit as far as the system allows, and returns it. Many systems start services with a limit of 1,024, for
/// old programs that use `select`, and allow a service to raise it.
pub(crate) fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised,
        Err(error) => {
            tracing::warn!(%error, "the limit on open files cannot be raised");
            limit
        }
    };
    let unlimited = usize::MAX;
    limit.current.map_or(unlimited, |files| {
        usize::try_from(files).unwrap_or(unlimited)
    })
}

/// How many callbacks may be sent at once: each needs a connection, and callers need most of them.
pub(crate) fn share_for_callbacks(open_files: usize) -> usize {
    (open_files / 4).clamp(MIN_ATTEMPTS, MOST_TRIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_get_a_quarter_within_bounds() {
        for (open_files, tries) in [
            (20, MIN_ATTEMPTS),
            (1_024, 256),
            (100_000, MOST_TRIES),
            (usize::MAX, MOST_TRIES),
        ] {
            assert_eq!(share_for_callbacks(open_files), tries, "{open_files}");
        }
    }

    #[test]
    fn the_limit_is_raised_to_what_the_system_allows() {
        let raised = raise();
        assert!(raised > 0);
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
