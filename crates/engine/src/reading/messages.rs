//! Reading and cancelling messages.

use std::sync::Arc;

use domain::kill_point::{KillPoint, pass};
use domain::message::lookup::LookupRecord;
use domain::message::{MessageRecord, ScheduledRecord, WaitingMessage};
use domain::ports::{Cancel, ListRange, MessageStore, StoreError};
use domain::{AccountId, Channel, Clock, MessageId, Timestamp};

/// What an account may do with its messages.
pub struct Messages {
    store: Arc<dyn MessageStore>,
    clock: Arc<dyn Clock>,
}

impl Messages {
    pub fn new(store: Arc<dyn MessageStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// One message of the account; messages of other accounts are not found.
    pub async fn find(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError> {
        let found = self.store.find_message(account, id).await?;
        Ok(found.filter(|message| message.channel != Channel::Hlr))
    }

    /// One lookup of the account; lookups of other accounts are not found.
    pub async fn find_lookup(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<LookupRecord>, StoreError> {
        self.store.find_lookup(account, id).await
    }

    /// The account's scheduled messages, by send time.
    pub async fn list_scheduled(
        &self,
        account: AccountId,
        page: ListRange,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        self.store.list_scheduled(account, page).await
    }

    /// The account's scheduled messages, by send time, after the one with this time and ID.
    pub async fn list_scheduled_after(
        &self,
        account: AccountId,
        after: Option<(Timestamp, MessageId)>,
        limit: u32,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        let store = &self.store;
        store.list_scheduled_after(account, after, limit).await
    }

    /// A scheduled SMS of the account, to be replaced; `None` if it is not scheduled any more.
    pub async fn find_waiting(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<WaitingMessage>, StoreError> {
        self.store.find_waiting(account, id).await
    }

    /// Cancels a scheduled message.
    pub async fn cancel(&self, account: AccountId, id: MessageId) -> Result<Cancel, StoreError> {
        pass(KillPoint::CancelBegins);
        let outcome = self.store.cancel(account, id, self.clock.now()).await?;
        pass(KillPoint::CancelCommitted);
        if outcome == Cancel::Done {
            metrics::counter!("switchboard_messages_cancelled_total").increment(1);
        }
        Ok(outcome)
    }
}
