//! Waiting for a state, with a deadline that only matters when something is broken.

use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything here takes, also on a machine that does something else besides.
pub(super) const DEADLINE: Duration = Duration::from_mins(1);
pub(super) const POLL: Duration = Duration::from_millis(5);

/// Returns once `state` holds.
pub(super) fn wait_until(what: &str, state: impl FnMut() -> bool) {
    wait_within(DEADLINE, what, state);
}

/// As [`wait_until`], with another deadline.
pub(super) fn wait_within(deadline: Duration, what: &str, mut state: impl FnMut() -> bool) {
    let until = Instant::now() + deadline;
    while !state() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        thread::sleep(POLL); // tidy: between two looks at a state that nothing announces
    }
}
