//! Work that would keep a thread of the runtime busy.

use tokio::sync::Semaphore;

/// Runs blocking work on other threads, at most as many pieces at once as there are processors.
pub struct BlockingWork(Semaphore);

impl BlockingWork {
    /// Waits for a free slot and runs the work; `None` if it panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _permit = self.0.acquire().await.ok()?;
        tokio::task::spawn_blocking(work).await.ok()
    }
}

impl Default for BlockingWork {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self(Semaphore::new(threads))
    }
}
