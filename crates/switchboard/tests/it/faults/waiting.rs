//! Waiting for a state, with a deadline that only matters when something is broken.

use std::thread;
use std::time::{Duration, Instant};

use testkit::PATIENCE;

pub(super) const POLL: Duration = Duration::from_millis(5);

/// Returns once `state` holds.
pub(super) fn wait_until(what: &str, mut state: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !state() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        thread::sleep(POLL); // tidy: between two looks at a state that nothing announces
    }
}
