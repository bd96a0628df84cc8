//! The machine's clock.

use domain::{Clock, Timestamp};

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else is handed"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
