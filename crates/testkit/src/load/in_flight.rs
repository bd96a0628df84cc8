//! A limit for work that was accepted and is not done yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Permits are returned in batches of at most this size, because each return wakes up the thread of the generator.
const MAX_BATCH: usize = 16;

/// Delays requests while too much accepted work is in flight.
///
/// An answer may come long before its work is done. Without a limit, a benchmark would measure how fast a queue grows.
/// With a limit, it measures the rate at which work is both accepted and finished.
#[derive(Debug)]
pub struct InFlightLimit {
    permits: Semaphore,
    batch: usize,
    released: AtomicUsize,
}

impl InFlightLimit {
    /// Allows `limit` items in flight.
    pub fn new(limit: usize) -> Self {
        Self {
            permits: Semaphore::new(limit),
            batch: (limit / 4).clamp(1, MAX_BATCH),
            released: AtomicUsize::new(0),
        }
    }

    /// Waits for a permit and takes it.
    pub async fn acquire(&self) {
        // `release` returns the permit on another thread.
        self.permits
            .acquire()
            .await
            .expect("the semaphore is never closed")
            .forget();
    }

    /// Takes a permit if there is one.
    pub fn try_acquire(&self) -> bool {
        self.permits
            .try_acquire()
            .map(SemaphorePermit::forget)
            .is_ok()
    }

    /// Returns the permit of an item that is done. Can be called from any thread.
    pub fn release(&self) {
        let before = self.released.fetch_add(1, Ordering::Relaxed);
        if (before + 1).is_multiple_of(self.batch) {
            self.permits.add_permits(self.batch);
        }
    }
}
