//! The opt-out lists of accounts.

use std::sync::Arc;

use domain::opt_out::{OptOut, OptOutKey, Via};
use domain::ports::{AuditStore, OptOutStore, StoreError};
use domain::{AccountId, Clock};

use super::follow::ListFollower;
use crate::audit::{Action, Actor, Audit};

/// How many entries an account can add by the API and the dashboard.
pub const MAX_PER_ACCOUNT: u64 = 5_000_000;
/// How many entries one write of an import adds, so that no other write waits long.
pub const IMPORT_STEP: usize = 1_000;

#[derive(Debug, thiserror::Error)]
pub enum OptOutError {
    #[error(
        "the opt-out list of this account has {MAX_PER_ACCOUNT} entries, which is the limit; remove entries of numbers \
         that you do not write to any more, or ask the operator of this service"
    )]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads and changes opt-out lists.
pub struct OptOuts {
    store: Arc<dyn OptOutStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    /// `None` in a command, which sends nothing.
    follower: Option<Arc<ListFollower>>,
}

impl OptOuts {
    pub fn new(
        store: Arc<dyn OptOutStore>,
        audit: Arc<dyn AuditStore>,
        clock: Arc<dyn Clock>,
        follower: Option<Arc<ListFollower>>,
    ) -> Self {
        Self {
            store,
            audit: Audit::new(audit, clock.clone()),
            clock,
            follower,
        }
    }

    /// Puts a recipient on the account's list, and returns the entry, also if it was there. From now on this node
    /// refuses its messages, and the others do so within a second or two.
    pub async fn add(
        &self,
        by: &Actor,
        account: AccountId,
        key: OptOutKey,
        via: Via,
    ) -> Result<OptOut, OptOutError> {
        self.check_room(account)?;
        let recorded = self
            .audit
            .record(
                by,
                Some(account),
                Action::OptOutAdd,
                subject(&key),
                via.name(),
            )
            .await?;
        let added = self.add_one(account, key, via).await;
        Ok(recorded.done(added).await?)
    }

    /// Like [`Self::add`], for a recipient that sent a word such as STOP. The list itself tells that, so the audit log
    /// does not.
    pub async fn add_by_keyword(
        &self,
        account: AccountId,
        key: OptOutKey,
    ) -> Result<OptOut, StoreError> {
        self.add_one(account, key, Via::Keyword).await
    }

    async fn add_one(
        &self,
        account: AccountId,
        key: OptOutKey,
        via: Via,
    ) -> Result<OptOut, StoreError> {
        let now = self.clock.now();
        let keys = std::slice::from_ref(&key);
        self.store.add_opt_outs(account, keys, via, now).await?;
        self.follow().await;
        let found = self.store.find_opt_out(account, &key).await?;
        // Somebody may have removed it again.
        Ok(found.unwrap_or(OptOut {
            key,
            since: now,
            via,
        }))
    }

    /// Takes a recipient off the account's list. Returns whether it was there.
    pub async fn remove(
        &self,
        by: &Actor,
        account: AccountId,
        key: &OptOutKey,
    ) -> Result<bool, StoreError> {
        let recorded = self
            .audit
            .record(by, Some(account), Action::OptOutRemove, subject(key), "")
            .await?;
        match self.remove_one(account, key).await {
            Ok(false) => {
                recorded.refused(&"it is not on the list").await;
                Ok(false)
            }
            removed => recorded.done(removed).await,
        }
    }

    /// Like [`Self::remove`], for a recipient that sent a word such as START.
    pub async fn remove_by_keyword(
        &self,
        account: AccountId,
        key: &OptOutKey,
    ) -> Result<bool, StoreError> {
        self.remove_one(account, key).await
    }

    async fn remove_one(&self, account: AccountId, key: &OptOutKey) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let removed = self.store.remove_opt_out(account, key, now).await?;
        self.follow().await;
        Ok(removed)
    }

    /// Records that an import of this many entries begins.
    pub async fn begin_import(
        &self,
        by: &Actor,
        account: AccountId,
        entries: usize,
    ) -> Result<(), OptOutError> {
        self.check_room(account)?;
        let subject = format!("{entries} entries");
        let recorded = self
            .audit
            .record(by, Some(account), Action::OptOutImport, subject, "");
        drop(recorded.await?);
        Ok(())
    }

    /// Adds some entries of an import, at most [`IMPORT_STEP`]. Returns how many are new.
    pub async fn import(&self, account: AccountId, keys: &[OptOutKey]) -> Result<u64, OptOutError> {
        self.check_room(account)?;
        let now = self.clock.now();
        let added = self.store.add_opt_outs(account, keys, Via::Import, now);
        let added = added.await?;
        self.follow().await;
        Ok(added)
    }

    /// The account's list, sorted by recipient and sender, after `after`.
    pub async fn list(
        &self,
        account: AccountId,
        after: Option<&OptOutKey>,
        limit: u32,
    ) -> Result<Vec<OptOut>, StoreError> {
        self.store.list_opt_outs(account, after, limit).await
    }

    fn check_room(&self, account: AccountId) -> Result<(), OptOutError> {
        let refusals = self.follower.as_ref().map(|follower| follower.refusals());
        match refusals {
            Some(refusals) if refusals.count(account) >= MAX_PER_ACCOUNT => Err(OptOutError::Full),
            _ => Ok(()),
        }
    }

    /// Applies a change on this node at once. If that fails, the node follows a little later.
    async fn follow(&self) {
        if let Some(follower) = &self.follower
            && let Err(error) = follower.refresh().await
        {
            tracing::warn!(%error, "a change of an opt-out list is stored, and takes effect later");
        }
    }
}

/// The audit log does not have whole numbers.
fn subject(key: &OptOutKey) -> String {
    let digits = key.recipient.digits();
    let number = format!("+{}…{}", &digits[..3], &digits[digits.len() - 2..]);
    match &key.sender {
        None => number,
        Some(sender) => format!("{number} for sender {sender}"),
    }
}
