//! The clock.

use jiff::Timestamp;

/// Tells the time. Tests pass a clock of their own.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}
