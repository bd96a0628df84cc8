//! The ports of what the dashboard shows, each call handed to a reader.

use async_trait::async_trait;
use domain::ids::{AccountId, CallbackId, MessageId};
use domain::ports::{
    CallbackFilter, CallbackRecord, DatabaseFacts, Found, HistoryStore, Look, MessageFilter,
    MessageStory, MessageSummary, NodeSeen, OperationsStore, Overdue, QueueDepth, Receiver, Span,
    StoreError, TrafficCount, TrafficStore, Unmatched,
};
use jiff::{SignedDuration, Timestamp};

use super::{SqliteStore, history, operations, story, traffic};
use crate::rows::callbacks::FilterColumns;
use crate::rows::duration_us;
use crate::rows::history::{FittingColumns, WhoseColumns};
use crate::rows::traffic::first_begin;

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn look_for_messages(
        &self,
        filter: &MessageFilter,
        look: Look<MessageId>,
    ) -> Result<Found<MessageSummary, MessageId>, StoreError> {
        let (whose, fitting) = (WhoseColumns::of(filter), FittingColumns::of(filter));
        self.read("look for messages", move |db| {
            Ok(history::look(db, whose, &fitting, look)?.found()?)
        })
        .await
    }

    async fn look_for_callbacks(
        &self,
        filter: &CallbackFilter,
        look: Look<CallbackId>,
    ) -> Result<Found<CallbackRecord, CallbackId>, StoreError> {
        let (columns, with_done) = (FilterColumns::of(filter), filter.with_done);
        self.read("look for callbacks", move |db| {
            story::look_for_callbacks(db, &columns, with_done, look)
        })
        .await
    }

    async fn find_story(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageStory>, StoreError> {
        self.read("find the story of a message", move |db| {
            story::find(db, account, id)
        })
        .await
    }
}

#[async_trait]
impl TrafficStore for SqliteStore {
    async fn list_traffic(
        &self,
        account: Option<AccountId>,
        span: Span,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<TrafficCount>, StoreError> {
        let (first, end) = (first_begin(span, from), first_begin(span, until));
        self.read("list traffic", move |db| {
            traffic::list(db, account, span, first, end)
        })
        .await
    }

    async fn add_up_traffic(&self, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl OperationsStore for SqliteStore {
    async fn describe_database(&self) -> Result<DatabaseFacts, StoreError> {
        self.read("describe the database", operations::describe)
            .await
    }

    async fn list_nodes(&self) -> Result<Vec<NodeSeen>, StoreError> {
        self.read("list nodes", operations::list_nodes).await
    }

    async fn list_queues(&self) -> Result<Vec<QueueDepth>, StoreError> {
        self.read("list queues", operations::list_queues).await
    }

    async fn list_overdue(
        &self,
        age: SignedDuration,
        limit: u32,
    ) -> Result<Vec<Overdue>, StoreError> {
        let age_us = duration_us(age);
        self.read("list what is overdue", move |db| {
            operations::list_overdue(db, age_us, limit)
        })
        .await
    }

    async fn list_unmatched(&self, limit: u32) -> Result<Vec<Unmatched>, StoreError> {
        self.read("list receipts that fit nothing", move |db| {
            operations::list_unmatched(db, limit)
        })
        .await
    }

    async fn list_receivers(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<Receiver>, StoreError> {
        self.read("list receivers", move |db| {
            operations::list_receivers(db, account)
        })
        .await
    }
}
