//! The ports for balances and catalogues, each call handed to the writer or to a reader.

use async_trait::async_trait;
use domain::billing::{EntryKind, LedgerEntry, RECIPIENT_WINDOW_US, SpendingRules};
use domain::ids::AccountId;
use domain::ports::{
    BillingStore, Catalogue, CatalogueEntry, CatalogueKind, CatalogueStore, Imbalance, StoreError,
};
use domain::{Money, Timestamp};
use jiff::SignedDuration;
use rusqlite::{Connection, params};

use super::billing::{self, Change};
use super::fold::Next;
use super::{SqliteStore, catalogue, fold};
use crate::rows::{self, duration_us, micros};

/// Among the keys of callers, none of which is ever the same: both are hashes.
const USE_ONCE: &str = "
    INSERT OR IGNORE INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
    VALUES (?1, ?2, ?2, 1, 0, 0, ?3)";

#[async_trait]
impl BillingStore for SqliteStore {
    async fn credit(
        &self,
        account: AccountId,
        amount: Money,
        note: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Money>, StoreError> {
        let note = note.map(str::to_owned);
        let work = move |db: &_| {
            let change = Change {
                account_id: account.as_i64(),
                kind: EntryKind::Credit,
                amount_micros: amount.micros(),
                messages: 0,
                note: note.as_deref(),
                at_us: micros(now),
            };
            change.enter(db)
        };
        let balance = self.write("credit an account", work).await?;
        Ok(balance.map(Money::from_micros))
    }

    async fn use_once(
        &self,
        account: AccountId,
        key: &[u8; 32],
        expires: Timestamp,
    ) -> Result<bool, StoreError> {
        let key = *key;
        let work = move |db: &Connection| {
            let values = params![account.as_i64(), key, micros(expires)];
            Ok(db.prepare_cached(USE_ONCE)?.execute(values)? == 1)
        };
        self.write("use a key once", work).await
    }

    async fn set_rules(
        &self,
        account: AccountId,
        from: Option<&SpendingRules>,
        rules: &SpendingRules,
    ) -> Result<bool, StoreError> {
        let (from, rules) = (from.cloned(), rules.clone());
        self.write("change what an account may spend", move |db| {
            billing::set_rules(db, account, from.as_ref(), &rules)
        })
        .await
    }

    async fn list_ledger(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let before = rows::before(before);
        self.read("list the ledger", move |db| {
            billing::list_ledger(db, account, before, limit)
        })
        .await
    }

    async fn check_ledger(&self) -> Result<Vec<Imbalance>, StoreError> {
        self.read("check the ledger", billing::check_ledger).await
    }

    async fn fold_ledger(&self, age: SignedDuration, limit: u32) -> Result<bool, StoreError> {
        const OPERATION: &str = "fold the ledger";
        let (folding, age_us) = (self.folding.clone(), duration_us(age));
        let find = move |db: &_| fold::find_due(db, &folding, age_us);
        let due = match self.read(OPERATION, find).await? {
            Next::Fold(due) => due,
            Next::Skipped(has_more) => return Ok(has_more),
        };
        let cursor = self.folding.cursor(due.account());
        let work = move |db: &_| fold::fold_account(db, &due, cursor, limit);
        let (account, cursor) = self.write(OPERATION, work).await?;
        self.folding.note(account, cursor);
        Ok(true)
    }

    async fn prune_recipients(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let before_us = micros(now) - RECIPIENT_WINDOW_US;
        self.write("prune recipients", move |db| {
            billing::prune_recipients(db, before_us, limit)
        })
        .await
    }
}

#[async_trait]
impl CatalogueStore for SqliteStore {
    async fn list_newest(&self) -> Result<Vec<CatalogueEntry>, StoreError> {
        self.read("list catalogues", catalogue::list_newest).await
    }

    async fn list_versions(&self, kind: CatalogueKind) -> Result<Vec<CatalogueEntry>, StoreError> {
        self.read("list the versions of a catalogue", move |db| {
            catalogue::list_versions(db, kind)
        })
        .await
    }

    async fn find_catalogue(
        &self,
        kind: CatalogueKind,
        version: u32,
    ) -> Result<Option<Catalogue>, StoreError> {
        self.read("find a catalogue", move |db| {
            catalogue::find(db, kind, version)
        })
        .await
    }

    async fn import(
        &self,
        kind: CatalogueKind,
        previous: u32,
        content: &str,
        rows: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let content = content.to_owned();
        self.write("import a catalogue", move |db| {
            catalogue::import(db, kind, previous, &content, rows, micros(now))
        })
        .await
    }
}
