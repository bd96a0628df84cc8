//! Group commit: many callers, one write.
//!
//! Callers hand in one item each and wait. A task gathers the waiting items into one write; the next items gather while
//! that write is in progress, so batches grow exactly when the database is the slower side. Where nobody waits for the
//! result, writes are also spaced out: a larger batch costs much less for each item.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// Limits of a batcher.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many items may wait; further ones are refused.
    pub queue: usize,
    /// Maximum number of items in one write.
    pub batch: usize,
    /// How many writes may be in progress at once.
    pub writes: usize,
    /// The shortest time from the beginning of a write to the beginning of the next one.
    pub interval: Duration,
}

/// Why an item was not written.
#[derive(Debug, thiserror::Error)]
pub enum BatchError<E: std::error::Error + 'static> {
    /// The queue is full. Nothing was written.
    #[error("too many items wait to be written")]
    Full,
    /// The batcher was stopped and nothing was written, or the write panicked and its result is unknown.
    #[error("the service is shutting down")]
    Stopped,
    /// The write that contained the item failed.
    #[error("the write failed")]
    Write(#[source] Arc<E>),
}

type QueuedItem<I, O, E> = (I, oneshot::Sender<Result<O, Arc<E>>>);

/// Gathers items into batches.
pub struct Batcher<I, O, E> {
    sender: mpsc::Sender<QueuedItem<I, O, E>>,
    stop: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl<I, O, E> Batcher<I, O, E>
where
    I: Send + 'static,
    O: Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    /// Starts the gathering task. `write` gets at most `limits.batch` items and returns one outcome for each, in order.
    pub fn start<W, F>(limits: Limits, write: W) -> Self
    where
        W: Fn(Vec<I>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<O>, E>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(limits.queue);
        let stop = Arc::new(Notify::new());
        let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
        let (stopping, write) = (stop.clone(), Arc::new(write));
        let task = supervise::spawn("batcher", move || {
            gather(limits, receiver.clone(), stopping.clone(), write.clone())
        });
        Self {
            sender,
            stop,
            task: Mutex::new(Some(task)),
        }
    }

    /// Hands in one item and waits until it is written.
    pub async fn write(&self, item: I) -> Result<O, BatchError<E>> {
        let (answer, answered) = oneshot::channel();
        self.sender
            .try_send((item, answer))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => BatchError::Full,
                mpsc::error::TrySendError::Closed(_) => BatchError::Stopped,
            })?;
        match answered.await {
            Ok(result) => result.map_err(BatchError::Write),
            Err(_) => Err(BatchError::Stopped),
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.sender.is_closed()
    }

    /// Refuses further items and returns once all accepted items are written.
    pub async fn stop(&self) {
        self.stop.notify_one();
        let task = self.task.lock().expect("no holder panics").take();
        let Some(task) = task else { return };
        if let Err(error) = task.await {
            tracing::error!(%error, "the batcher's task failed");
        }
    }
}

async fn gather<I, O, E, W, F>(
    limits: Limits,
    receiver: Arc<tokio::sync::Mutex<mpsc::Receiver<QueuedItem<I, O, E>>>>,
    stop: Arc<Notify>,
    write: Arc<W>,
) where
    I: Send + 'static,
    O: Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
    W: Fn(Vec<I>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<O>, E>> + Send + 'static,
{
    // A restarted task takes the receiver over: the lock is released when its predecessor panics.
    let mut receiver = receiver.lock().await;
    let mut writes = JoinSet::new();
    let mut begun = Instant::now() - limits.interval;
    loop {
        while writes.len() >= limits.writes {
            join_next(&mut writes).await;
        }
        if !limits.interval.is_zero() && receiver.len() < limits.batch {
            sleep_until(begun + limits.interval).await;
        }
        let mut waiting = Vec::with_capacity(limits.batch.min(64));
        let count = tokio::select! {
            biased;
            count = receiver.recv_many(&mut waiting, limits.batch) => count,
            () = stop.notified() => {
                // Items that are already queued are still received; then the count is 0.
                receiver.close();
                continue;
            }
        };
        if count == 0 {
            break;
        }
        begun = Instant::now();
        let write = write.clone();
        // Each write has its own task, so that a panic affects only the callers of its batch.
        writes.spawn(async move {
            let (items, answers): (Vec<I>, Vec<_>) = waiting.into_iter().unzip();
            deliver(write(items).await, answers);
        });
    }
    while !writes.is_empty() {
        join_next(&mut writes).await;
    }
}

async fn join_next(writes: &mut JoinSet<()>) {
    if let Some(Err(error)) = writes.join_next().await {
        tracing::error!(%error, "a write panicked");
    }
}

/// A caller that hung up does not wait for its answer, so a closed channel is not an error.
fn deliver<O, E>(result: Result<Vec<O>, E>, answers: Vec<oneshot::Sender<Result<O, Arc<E>>>>) {
    match result {
        Ok(outcomes) => {
            debug_assert_eq!(outcomes.len(), answers.len(), "one outcome for each item");
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                answer.send(Ok(outcome)).ok();
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for answer in answers {
                answer.send(Err(error.clone())).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("refused")]
    struct Refused;

    const LIMITS: Limits = Limits {
        queue: 8,
        batch: 4,
        writes: 1,
        interval: Duration::ZERO,
    };

    #[tokio::test]
    async fn each_caller_gets_the_answer_to_its_own_item() {
        let batcher = Arc::new(Batcher::start(LIMITS, |items: Vec<u32>| async move {
            assert!(items.len() <= LIMITS.batch);
            Ok::<_, Refused>(items.iter().map(|n| n * 2).collect())
        }));
        let calls = (0..8).map(|n| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.write(n).await.expect("written") })
        });
        let calls: Vec<_> = calls.collect();
        for (n, call) in (0..8).zip(calls) {
            assert_eq!(call.await.expect("no panic"), n * 2);
        }
    }

    #[tokio::test]
    async fn a_failed_write_reaches_every_caller() {
        let batcher = Batcher::start(LIMITS, |_: Vec<u32>| async { Err::<Vec<u32>, _>(Refused) });
        let (a, b) = tokio::join!(batcher.write(1), batcher.write(2));
        assert!(matches!(
            (a, b),
            (Err(BatchError::Write(_)), Err(BatchError::Write(_)))
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn writes_are_spaced_out() {
        let limits = Limits {
            interval: Duration::from_millis(10),
            ..LIMITS
        };
        let batcher = Batcher::start(limits, |items: Vec<()>| async move {
            Ok::<_, Refused>(vec![Instant::now(); items.len()])
        });
        let first = batcher.write(()).await.expect("written");
        let second = batcher.write(()).await.expect("written");
        assert!(second - first >= limits.interval);
        tokio::time::sleep(limits.interval).await;
        let now = Instant::now();
        assert_eq!(
            batcher.write(()).await.expect("written"),
            now,
            "it does not wait"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_writes_as_allowed_are_in_progress_at_once() {
        let limits = Limits {
            batch: 1,
            writes: 2,
            ..LIMITS
        };
        let in_progress = Arc::new(AtomicUsize::new(0));
        let batcher = Arc::new(Batcher::start(limits, {
            let in_progress = in_progress.clone();
            move |_: Vec<()>| {
                let in_progress = in_progress.clone();
                async move {
                    let now = in_progress.fetch_add(1, Ordering::SeqCst) + 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    in_progress.fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, Refused>(vec![now])
                }
            }
        }));
        let calls = (0..6).map(|_| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.write(()).await.expect("written") })
        });
        let mut most = 0;
        for call in calls.collect::<Vec<_>>() {
            most = most.max(call.await.expect("no panic"));
        }
        assert_eq!(most, limits.writes);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_stopping_drains() {
        let release = Arc::new(Notify::new());
        let written = Arc::new(AtomicUsize::new(0));
        let batcher = Arc::new(Batcher::start(LIMITS, {
            let (release, written) = (release.clone(), written.clone());
            move |items: Vec<usize>| {
                let (release, written) = (release.clone(), written.clone());
                async move {
                    release.notified().await;
                    release.notify_one();
                    written.fetch_add(items.len(), Ordering::SeqCst);
                    Ok::<_, Refused>(items)
                }
            }
        }));
        let mut calls = Vec::new();
        let mut taken = 0;
        let refused = loop {
            let mut call = Box::pin({
                let batcher = batcher.clone();
                async move { batcher.write(taken).await }
            });
            // One poll hands the item in and shows a refusal at once. Yielding lets the task pick items up.
            let polled =
                std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx))).await;
            match polled {
                std::task::Poll::Ready(Err(error)) => break error,
                std::task::Poll::Ready(Ok(_)) => panic!("nothing is written yet"),
                std::task::Poll::Pending => calls.push(call),
            }
            taken += 1;
            tokio::task::yield_now().await;
        };
        assert!(matches!(refused, BatchError::Full));
        assert!(taken <= LIMITS.queue + LIMITS.batch, "{taken} were taken");

        release.notify_one();
        batcher.stop().await;
        assert_eq!(written.load(Ordering::SeqCst), taken);
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.expect("written"), n);
        }
        assert!(matches!(batcher.write(0).await, Err(BatchError::Stopped)));
    }
}
