//! How calls reach the model.

use std::sync::{Arc, Mutex};

use domain::ports::StoreError;
use domain::{Clock, Timestamp};

use crate::model::Model;

/// What a call does, for stores with faults: which faults it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    Plain,
    /// Its caller may panic without harm.
    MayPanic,
    /// Assigns messages to a node. Its caller may panic, too.
    AssignsMessages,
}

/// Executes the calls of a store.
pub trait Calls: Send + Sync + 'static {
    /// In how many transactions a batch is accepted. One may fail after another was committed, as on `PostgreSQL`.
    const ACCEPT_TRANSACTIONS: usize = 1;

    /// Executes a call, with the time of the store.
    fn call<T: Send + 'static>(
        &self,
        kind: CallKind,
        name: &'static str,
        work: impl FnOnce(&mut Model, Timestamp) -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;
}

/// A store in memory.
pub struct MemoryStore<C>(pub(crate) C);

impl<C: Calls> MemoryStore<C> {
    pub fn new(calls: C) -> Self {
        Self(calls)
    }
}

/// Executes every call at once.
pub struct Direct {
    model: Mutex<Model>,
    clock: Arc<dyn Clock>,
}

impl Direct {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            model: Mutex::default(),
            clock,
        }
    }
}

impl Calls for Direct {
    async fn call<T: Send + 'static>(
        &self,
        _: CallKind,
        _: &'static str,
        work: impl FnOnce(&mut Model, Timestamp) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut model = self.model.lock().expect("no holder panics");
        Ok(work(&mut model, self.clock.now()))
    }
}

/// The error of a call that the model does not have.
pub(crate) fn missing(operation: &'static str) -> StoreError {
    StoreError::Unexpected {
        operation,
        source: "the store in memory does not have this call".into(),
    }
}
