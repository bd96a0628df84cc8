//! The queue rows that this node holds in memory, so that they can be compared with the database.
//!
//! The database may say that this node holds a row that the node does not know: after a commit that landed when its
//! caller had given up, or a panic between commit and hand-over. No timeout bounds that, so the node regularly lists
//! the rows that the database says it holds, and releases those that are not in memory ([`HeldRows::missing`]).
//!
//! Rows of a write that has just committed are not in memory yet. So such a write is open ([`HeldRows::open`]) from
//! before it is sent until its rows are registered or it has failed, and a comparison waits for all writes that were
//! open when the list was read.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The rows of one queue that this node holds. `K` identifies a row.
pub(crate) struct HeldRows<K> {
    state: Mutex<State<K>>,
    closed: Notify,
}

struct State<K> {
    /// The attempt number of the claim under which each row is held.
    rows: HashMap<K, u32>,
    /// Number of comparisons so far.
    generation: u64,
    /// How many writes are open, by the generation in which they began.
    open: BTreeMap<u64, usize>,
}

/// Registers a row as held until this is dropped.
pub(crate) struct HeldRow<K: Copy + Eq + Hash> {
    rows: Arc<HeldRows<K>>,
    key: K,
    attempt: u32,
}

/// A write that may make this node the holder of rows. Open until this is dropped.
pub(crate) struct OpenWrite<K: Copy + Eq + Hash> {
    rows: Arc<HeldRows<K>>,
    generation: u64,
}

impl<K: Copy + Eq + Hash> HeldRows<K> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                rows: HashMap::new(),
                generation: 0,
                open: BTreeMap::new(),
            }),
            closed: Notify::new(),
        })
    }

    pub(crate) fn register(self: &Arc<Self>, key: K, attempt: u32) -> HeldRow<K> {
        self.lock().rows.insert(key, attempt);
        HeldRow {
            rows: self.clone(),
            key,
            attempt,
        }
    }

    /// Begins a write that may make this node the holder of rows.
    pub(crate) fn open(self: &Arc<Self>) -> OpenWrite<K> {
        let mut state = self.lock();
        let generation = state.generation;
        *state.open.entry(generation).or_default() += 1;
        drop(state);
        OpenWrite {
            rows: self.clone(),
            generation,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().rows.len()
    }

    /// Filters a list of rows that the database says this node holds: returns those not held under the same claim. Call
    /// it after the list was read; it waits for all writes that were open by then.
    pub(crate) async fn missing<R>(
        &self,
        listed: Vec<R>,
        claim: impl Fn(&R) -> (K, u32),
    ) -> Vec<R> {
        if listed.is_empty() {
            return listed;
        }
        let generation = {
            let mut state = self.lock();
            state.generation += 1;
            state.generation
        };
        self.closed_before(generation).await;
        let state = self.lock();
        let is_missing = |row: &R| {
            let (key, attempt) = claim(row);
            state.rows.get(&key) != Some(&attempt)
        };
        listed.into_iter().filter(is_missing).collect()
    }

    async fn closed_before(&self, generation: u64) {
        loop {
            let closed = self.closed.notified();
            tokio::pin!(closed);
            closed.as_mut().enable();
            if self.lock().open.range(..generation).next().is_none() {
                return;
            }
            closed.await;
        }
    }

    /// A panic elsewhere may leave wrong entries, which the next comparison corrects.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Drop for HeldRow<K> {
    fn drop(&mut self) {
        let mut state = self.rows.lock();
        // The row may have been claimed again, under another attempt number.
        if state.rows.get(&self.key) == Some(&self.attempt) {
            state.rows.remove(&self.key);
        }
    }
}

impl<K: Copy + Eq + Hash> Drop for OpenWrite<K> {
    fn drop(&mut self) {
        let mut state = self.rows.lock();
        if let Some(count) = state.open.get_mut(&self.generation) {
            *count -= 1;
            if *count == 0 {
                state.open.remove(&self.generation);
            }
        }
        drop(state);
        self.rows.closed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// ID and attempt number, as a database lists them.
    type Row = (u64, u32);

    async fn missing(rows: &HeldRows<u64>, listed: &[Row]) -> Vec<Row> {
        rows.missing(listed.to_vec(), |row| *row).await
    }

    #[tokio::test]
    async fn a_row_is_missing_unless_it_is_held_under_the_same_claim() {
        let rows = HeldRows::new();
        let _held = rows.register(1, 1);
        let again = rows.register(2, 3);
        drop(rows.register(3, 1));
        assert_eq!(
            missing(&rows, &[(1, 1), (2, 4), (3, 1), (4, 1)]).await,
            [(2, 4), (3, 1), (4, 1)]
        );
        drop(again);
        assert_eq!(rows.len(), 1);
    }

    #[tokio::test]
    async fn an_old_claim_that_ends_leaves_the_new_one_registered() {
        let rows = HeldRows::new();
        let old = rows.register(1, 1);
        let _new = rows.register(1, 2);
        drop(old);
        assert!(missing(&rows, &[(1, 2)]).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_comparison_waits_for_writes_that_were_open_and_not_for_later_ones() {
        let rows = HeldRows::new();
        let write = rows.open();
        let comparing = tokio::spawn({
            let rows = rows.clone();
            async move { missing(&rows, &[(1, 1), (2, 1)]).await }
        });
        tokio::time::sleep(Duration::from_mins(5)).await; // tidy: on a clock that jumps
        assert!(!comparing.is_finished(), "the write is still open");
        let _later = rows.open();
        let _held = rows.register(1, 1);
        drop(write);
        assert_eq!(comparing.await.expect("no panic"), [(2, 1)]);
    }

    #[tokio::test]
    async fn a_write_that_panics_is_closed() {
        let rows: Arc<HeldRows<u64>> = HeldRows::new();
        let write = rows.open();
        let panicked = tokio::spawn(async move {
            let _write = write;
            panic!("on purpose");
        });
        assert!(panicked.await.is_err());
        assert_eq!(missing(&rows, &[(1, 1)]).await, [(1, 1)]);
    }
}
