//! The one source of time.

use jiff::Timestamp;

/// Tells the time. The service reads it in one place, tests hand in a clock of their own.
pub trait Clock: Send + Sync + 'static {
    /// The present moment.
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
