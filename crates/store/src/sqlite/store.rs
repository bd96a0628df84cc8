//! The ports, each call handed to the writer or to a reader.

use std::sync::Arc;

use async_trait::async_trait;
use domain::access::Access;
use domain::ids::{AccountId, MessageId, TokenId};
use domain::message::lookup::LookupRecord;
use domain::message::{MessageRecord, ScheduledRecord, Submission};
use domain::ports::{
    AcceptResult, AccessStore, AccountRecord, Cancel, Found, KeptAnswer, Look, MessageStore,
    NewAccount, NewToken, Page, StoreError, TokenRecord, accept_results,
};
use domain::{Timestamp, TokenHash};

use super::{SqliteStore, accept, access, messages};
use crate::rows::{self, micros};

#[async_trait]
impl MessageStore for SqliteStore {
    async fn reserve_ids(&self, count: u64) -> Result<MessageId, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.write("reserve message IDs", move |db| {
            messages::reserve_ids(db, count)
        })
        .await
    }

    async fn accept(&self, batch: Arc<Vec<Submission>>) -> Vec<AcceptResult> {
        let count = batch.len();
        let rows = batch
            .iter()
            .map(|submission| submission.recipients.len())
            .sum();
        let keys = self.keys.clone();
        let stored = self
            .writer
            .run("accept messages", rows, move |db| {
                accept::accept(db, &keys, &batch)
            })
            .await;
        accept_results(stored, count)
    }

    async fn find_answer(
        &self,
        account: AccountId,
        key: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<KeptAnswer>, StoreError> {
        let key = *key;
        self.read("find an idempotency key", move |db| {
            accept::find_answer(db, account, &key, micros(now))
        })
        .await
    }

    async fn find_message(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError> {
        self.read("find a message", move |db| messages::find(db, account, id))
            .await
    }

    async fn find_lookup(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<LookupRecord>, StoreError> {
        self.read("find a lookup", move |db| {
            messages::find_lookup(db, account, id)
        })
        .await
    }

    async fn list_scheduled(
        &self,
        account: AccountId,
        page: Page,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        self.read("list scheduled messages", move |db| {
            messages::list_scheduled(db, account, page)
        })
        .await
    }

    async fn list_scheduled_after(
        &self,
        account: AccountId,
        after: Option<(Timestamp, MessageId)>,
        limit: u32,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        let after = rows::scheduled_key(after);
        self.read("list scheduled messages", move |db| {
            messages::list_scheduled_after(db, account, after, limit)
        })
        .await
    }

    async fn cancel(
        &self,
        account: AccountId,
        id: MessageId,
        now: Timestamp,
    ) -> Result<Cancel, StoreError> {
        self.write("cancel a message", move |db| {
            messages::cancel(db, account, id, micros(now))
        })
        .await
    }

    async fn prune_answers(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune idempotency keys", move |db| {
            messages::prune_answers(db, micros(now), limit)
        })
        .await
    }
}

#[async_trait]
impl AccessStore for SqliteStore {
    async fn access_version(&self) -> Result<u64, StoreError> {
        self.read("read the access version", access::version).await
    }

    async fn find_access(&self, hash: &TokenHash) -> Result<Option<Access>, StoreError> {
        let hash = *hash;
        let found = self
            .read("find a token", move |db| access::find_token(db, &hash))
            .await?;
        Ok(found.map(|record| record.access))
    }

    async fn create_account(&self, account: &NewAccount) -> Result<Option<AccountId>, StoreError> {
        let account = rows::with_encrypted_secret(&self.keys, account);
        self.write("create an account", move |db| {
            access::create_account(db, &account)
        })
        .await
    }

    async fn find_account(&self, name: &str) -> Result<Option<AccountRecord>, StoreError> {
        let name = name.to_owned();
        self.read("find an account", move |db| access::find_account(db, &name))
            .await
    }

    async fn find_account_by_id(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError> {
        self.read("find an account", move |db| {
            access::find_account_by_id(db, id)
        })
        .await
    }

    async fn list_accounts(&self) -> Result<Vec<AccountRecord>, StoreError> {
        self.read("list accounts", access::list_accounts).await
    }

    async fn look_for_accounts(
        &self,
        name: Option<&str>,
        look: Look<AccountId>,
    ) -> Result<Found<AccountRecord, AccountId>, StoreError> {
        let name = name.map(str::to_owned);
        let before = rows::before(look.before.map(AccountId::get));
        let limit = look.limit;
        let found = self
            .read("look for accounts", move |db| {
                access::look_for_accounts(db, name.as_deref(), before, limit)
            })
            .await?;
        Ok(rows::found(found, limit, |account| account.id))
    }

    async fn list_account_names(
        &self,
        ids: &[AccountId],
    ) -> Result<Vec<(AccountId, String)>, StoreError> {
        let ids = ids.to_vec();
        self.read("list the names of accounts", move |db| {
            access::list_names(db, &ids)
        })
        .await
    }

    async fn set_suspended(&self, name: &str, suspended: bool) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.write("suspend an account", move |db| {
            access::set_suspended(db, &name, suspended)
        })
        .await
    }

    async fn create_token(&self, token: &NewToken) -> Result<TokenId, StoreError> {
        let token = token.clone();
        self.write("create a token", move |db| access::create_token(db, &token))
            .await
    }

    async fn list_tokens(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<TokenRecord>, StoreError> {
        self.read("list tokens", move |db| access::list_tokens(db, account))
            .await
    }

    async fn revoke_token(
        &self,
        account: Option<AccountId>,
        id: TokenId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write("revoke a token", move |db| {
            access::revoke_token(db, account, id, micros(now))
        })
        .await
    }

    async fn note_tokens_used(&self, used: &[(TokenHash, Timestamp)]) -> Result<(), StoreError> {
        let used: Vec<_> = used.iter().map(|(hash, at)| (*hash, micros(*at))).collect();
        self.write("note when tokens were used", move |db| {
            access::note_used(db, &used)
        })
        .await
    }
}
