//! Starts futures in order.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use tokio::task::unconstrained;

/// Polls a future once here and spawns the rest. Spawned tasks start in any order; the first poll here puts messages
/// into the carrier's own queue in the order of their lane.
pub(super) async fn start_in_order(future: impl Future<Output = ()> + Send + 'static) {
    let mut future = Box::pin(future);
    let begun = poll_fn(|context| {
        // Without tokio's budget: once that is used up, nothing is ready and the next message would be first.
        let mut unlimited = unconstrained(&mut future);
        let poll = AssertUnwindSafe(|| Pin::new(&mut unlimited).poll(context));
        Poll::Ready(catch_unwind(poll))
    });
    // Like in a task, a panic ends only this future, not the loop.
    if let Ok(Poll::Pending) = begun.await {
        tokio::spawn(future);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn started_futures_queue_up_in_order() {
        const MANY: usize = 2000;
        let (turn, order) = (Arc::new(tokio::sync::Semaphore::new(0)), Arc::default());
        let order: Arc<Mutex<Vec<usize>>> = order;
        let (done, mut all_done) = tokio::sync::mpsc::channel::<()>(1);
        for number in 0..MANY {
            let (turn, order, done) = (turn.clone(), order.clone(), done.clone());
            start_in_order(async move {
                let permit = turn.acquire().await.expect("never closed");
                order.lock().expect("no holder panics").push(number);
                drop(permit);
                drop(done);
            })
            .await;
        }
        drop(done);
        turn.add_permits(1);
        assert_eq!(all_done.recv().await, None);
        let order = order.lock().expect("no holder panics");
        assert_eq!(*order, (0..MANY).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_panic_in_the_first_poll_ends_only_that_future() {
        let counted = Arc::new(());
        let held = counted.clone();
        start_in_order(async move { std::panic::resume_unwind(Box::new(held)) }).await;
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
