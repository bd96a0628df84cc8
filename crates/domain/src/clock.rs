//! The clock.

use jiff::Timestamp;

/// Tells the time. Tests pass a clock of their own.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

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
