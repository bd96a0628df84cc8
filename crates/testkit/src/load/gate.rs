//! A bound on work that was asked for and is not done yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// At most so many ends are told to the generator at once: each telling wakes its thread.
const MOST_TOGETHER: usize = 16;

/// Holds requests back while too much of what was accepted is still under way.
///
/// An answer may come long before the work behind it is done. Without a bound a benchmark would
/// measure how fast a queue grows; with one it finds the rate at which work comes in and goes out
/// evenly.
#[derive(Debug)]
pub struct Gate {
    places: Semaphore,
    together: usize,
    ended: AtomicUsize,
}

impl Gate {
    /// At most `limit` under way.
    pub fn new(limit: usize) -> Self {
        Self {
            places: Semaphore::new(limit),
            together: (limit / 4).clamp(1, MOST_TOGETHER),
            ended: AtomicUsize::new(0),
        }
    }

    /// Takes a place, once there is one.
    pub(super) async fn enter(&self) {
        // The place is given back by `leave`, on another thread.
        self.places
            .acquire()
            .await
            .expect("a gate is never closed")
            .forget();
    }

    /// Says that a piece of work has ended. Callable from any thread.
    pub fn leave(&self) {
        let before = self.ended.fetch_add(1, Ordering::Relaxed);
        if (before + 1).is_multiple_of(self.together) {
            self.places.add_permits(self.together);
        }
    }
}
