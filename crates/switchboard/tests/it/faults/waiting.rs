//! Waiting for a state, with a deadline that only matters when something is broken.

use std::thread;
use std::time::{Duration, Instant};

use testkit::TEST_TIMEOUT;

pub(super) const POLL: Duration = Duration::from_millis(5);

/// Returns once `state` is true.
pub(super) fn wait_until(what: &str, mut state: impl FnMut() -> bool) {
    let until = Instant::now() + TEST_TIMEOUT;
    while !state() {
        assert!(Instant::now() < until, "timed out waiting until {what}");
        thread::sleep(POLL); // tidy: polls a state that nothing announces
    }
}
