//! Restarts long-running tasks that panic, and logs and counts each restart.
//!
//! Work that ends by itself, such as one message or one request, does not belong here.
//!
//! The numbers of tasks that are down and of panics are global to the process, like the metrics.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;

/// The pause before the first restart. It doubles with each further restart.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A restarted task counts as down until it has run for this long.
const STABLE_AFTER: Duration = Duration::from_secs(1);

static DOWN: AtomicUsize = AtomicUsize::new(0);
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Whether every task that was started with [`spawn`] or [`run`] is running.
pub fn all_up() -> bool {
    DOWN.load(Ordering::Acquire) == 0
}

/// How often a task has panicked since the process started.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Acquire)
}

/// Starts a task that runs until its future returns or the handle is aborted. After a panic, it is started again with a
/// fresh future. Must be called inside a tokio runtime.
pub fn spawn<M, F>(task: &'static str, make: M) -> JoinHandle<()>
where
    M: FnMut() -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(run(task, make))
}

/// Like [`spawn`], but runs in the calling task.
pub async fn run<M, F>(task: &'static str, mut make: M)
where
    M: FnMut() -> F + Send,
    F: Future<Output = ()> + Send,
{
    // Registers the metric before the first restart.
    restarts(task).increment(0);
    let mut down = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let running = AssertUnwindSafe(async { make().await }).catch_unwind();
        tokio::pin!(running);
        let outcome = tokio::select! {
            biased;
            outcome = &mut running => outcome,
            () = tokio::time::sleep(STABLE_AFTER), if down.is_some() => {
                (down, pause) = (None, FIRST_PAUSE);
                running.await
            }
        };
        if outcome.is_ok() {
            return;
        }
        // The panic's message is only on standard error, because it may contain secrets.
        tracing::error!(task, "a background task panicked; restarting it");
        restarts(task).increment(1);
        PANICS.fetch_add(1, Ordering::AcqRel);
        down.get_or_insert_with(Down::count);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn restarts(task: &'static str) -> metrics::Counter {
    metrics::counter!("switchboard_task_restarts_total", "task" => task)
}

/// Counts a task as down until it is dropped.
struct Down(());

impl Down {
    fn count() -> Self {
        DOWN.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Drop for Down {
    fn drop(&mut self) {
        DOWN.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// One test, because the number of tasks that are down is global.
    #[tokio::test(start_paused = true)]
    async fn a_panicking_task_is_restarted_and_counts_as_down_until_it_is_stable() {
        let starts = Arc::new(AtomicU32::new(0));
        let task = spawn("test", {
            let starts = starts.clone();
            move || {
                let start = starts.fetch_add(1, Ordering::SeqCst);
                async move {
                    assert!(start >= 3, "on purpose");
                    std::future::pending::<()>().await;
                }
            }
        });
        assert!(all_up(), "no task has panicked yet");
        let mut was_down = false;
        while starts.load(Ordering::SeqCst) < 4 {
            was_down |= !all_up();
            tokio::time::sleep(Duration::from_millis(10)).await; // tidy: on a clock that jumps
        }
        assert!(was_down && !all_up(), "restarted, but not stable yet");
        tokio::time::sleep(STABLE_AFTER * 2).await; // tidy: on a clock that jumps
        assert!(all_up(), "it is stable");
        assert_eq!((starts.load(Ordering::SeqCst), panics()), (4, 3));
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));

        let panicking = spawn("test", || async { panic!("on purpose") });
        while all_up() {
            tokio::time::sleep(Duration::from_millis(10)).await; // tidy: on a clock that jumps
        }
        panicking.abort();
        assert!(panicking.await.is_err());
        assert!(all_up(), "a stopped task is not down");

        let ends = spawn("test", || async {});
        ends.await.expect("a task that returns has ended");
    }
}
