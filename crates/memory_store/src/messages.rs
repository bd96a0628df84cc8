//! The port for messages.

use std::sync::Arc;

use async_trait::async_trait;
use domain::billing::NotPaid;
use domain::message::lookup::LookupRecord;
use domain::message::{MessageRecord, ScheduledRecord, Submission, WaitingMessage};
use domain::ports::{
    AcceptResult, Cancel, ListRange, MessageStore, Replace, StoreError, StoredAnswer,
    accept_results,
};
use domain::{AccountId, MessageId, Timestamp};

use crate::calls::CallKind::{AssignsMessages, Plain};
use crate::calls::{Calls, MemoryStore, missing};
use crate::model::Model;

#[async_trait]
impl<C: Calls> MessageStore for MemoryStore<C> {
    async fn reserve_ids(&self, count: u64) -> Result<MessageId, StoreError> {
        let reserve = move |model: &mut Model, _| model.reserve_ids(count);
        self.0.call(Plain, "reserve", reserve).await
    }

    async fn accept(&self, batch: Arc<Vec<Submission>>) -> Vec<AcceptResult> {
        let mut results = Vec::with_capacity(batch.len());
        let most = batch.len().div_ceil(C::ACCEPT_TRANSACTIONS).max(1);
        for start in (0..batch.len()).step_by(most) {
            let range = start..batch.len().min(start + most);
            let (batch, count) = (batch.clone(), range.len());
            let accept = move |model: &mut Model, _| model.accept(&batch[range]);
            let accepted = self.0.call(AssignsMessages, "accept", accept).await;
            let accepted = accepted.and_then(|accepted| accepted.ok_or_else(id_taken));
            results.extend(accept_results(accepted, count));
        }
        results
    }

    async fn find_answer(
        &self,
        account: AccountId,
        key: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<StoredAnswer>, StoreError> {
        let key = *key;
        let find = move |model: &mut Model, _| model.find_answer(account, key, now);
        self.0.call(Plain, "find an answer", find).await
    }

    async fn find_message(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError> {
        let find = move |model: &mut Model, _| model.find_message(account, id);
        self.0.call(Plain, "find a message", find).await
    }

    async fn find_lookup(
        &self,
        _: AccountId,
        _: MessageId,
    ) -> Result<Option<LookupRecord>, StoreError> {
        Err(missing("find lookup"))
    }

    async fn list_scheduled(
        &self,
        _: AccountId,
        _: ListRange,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        Err(missing("list scheduled"))
    }

    async fn list_scheduled_after(
        &self,
        _: AccountId,
        _: Option<(Timestamp, MessageId)>,
        _: u32,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        Err(missing("list scheduled after"))
    }

    async fn cancel(&self, _: AccountId, _: MessageId, _: Timestamp) -> Result<Cancel, StoreError> {
        Err(missing("cancel"))
    }

    async fn find_waiting(
        &self,
        _: AccountId,
        _: MessageId,
    ) -> Result<Option<WaitingMessage>, StoreError> {
        Err(missing("find waiting"))
    }

    async fn replace(&self, _: Submission) -> Result<Result<Replace, NotPaid>, StoreError> {
        Err(missing("replace"))
    }

    async fn prune_answers(&self, _: Timestamp, _: u32) -> Result<u64, StoreError> {
        Err(missing("prune answers"))
    }
}

fn id_taken() -> StoreError {
    StoreError::IdTaken {
        source: "an ID that is taken".into(),
    }
}
