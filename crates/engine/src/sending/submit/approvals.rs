//! Whether an account may use an originator.
//!
//! Most originators need no approval unless the account's rules say so. Those that do are looked up once and cached
//! until anything about accounts, tokens or sender IDs changes, or a number is taken from an account.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use domain::ports::{SenderRight, SenderStore, StoreError};
use domain::{Access, AccountId, Originator};

use crate::identity::gate::Gate;
use crate::invalid::{Field, Invalid};
use crate::sending::submit::SubmitError;

/// Maximum number of cached names.
const MAX_CACHED: usize = 10_000;

pub struct Approvals {
    store: Arc<dyn SenderStore>,
    gate: Arc<Gate>,
    cache: RwLock<ApprovedNames>,
}

/// Holds only approved names: an approval must apply at once, so its absence is not cached.
#[derive(Default)]
struct ApprovedNames {
    version: u64,
    names: HashMap<AccountId, HashMap<String, SenderRight>>,
    count: usize,
}

impl ApprovedNames {
    fn find(&self, version: u64, account: AccountId, name: &str) -> Option<SenderRight> {
        let names = self.names.get(&account).filter(|_| self.version == version);
        names?.get(name).copied()
    }

    fn insert(&mut self, version: u64, account: AccountId, name: &str, right: SenderRight) {
        if self.version != version || self.count >= MAX_CACHED {
            *self = Self {
                version,
                ..Self::default()
            };
        }
        let names = self.names.entry(account).or_default();
        let replaced = names.insert(name.to_owned(), right);
        self.count += usize::from(replaced.is_none());
    }
}

impl Approvals {
    /// The cache follows the version that the gate watches.
    pub fn new(store: Arc<dyn SenderStore>, gate: Arc<Gate>) -> Self {
        Self {
            store,
            gate,
            cache: RwLock::default(),
        }
    }

    /// The originator of an SMS: a number, a plain name or an approved sender ID of this account. If the account's
    /// rules demand approved sender IDs, only the last one, or a number that the account owns.
    pub(crate) async fn originator(
        &self,
        access: &Access,
        from: &str,
    ) -> Result<Originator, SubmitError> {
        let originator = self.usable(access, from).await?;
        check_caller(access, originator)
    }

    /// An originator that the account may use.
    async fn usable(&self, access: &Access, from: &str) -> Result<Originator, SubmitError> {
        if access.approved_senders_only {
            return self.entitled(access, from, |_| true).await;
        }
        let plain = Originator::parse(from);
        let error = match plain {
            Ok(originator) => return Ok(originator),
            Err(error) => Invalid::new(Field::Originator, error),
        };
        match self.approved_of_account(access, from).await {
            Err(SubmitError::Sender(_)) => Err(error.into()),
            outcome => outcome,
        }
    }

    /// An originator that is an approved sender ID of this account.
    pub(crate) async fn approved(
        &self,
        access: &Access,
        from: &str,
    ) -> Result<Originator, SubmitError> {
        let originator = self.approved_of_account(access, from).await?;
        check_caller(access, originator)
    }

    async fn approved_of_account(
        &self,
        access: &Access,
        from: &str,
    ) -> Result<Originator, SubmitError> {
        self.entitled(access, from, |right| right == SenderRight::SenderId)
            .await
    }

    /// An originator that the account has a right to that is enough.
    async fn entitled(
        &self,
        access: &Access,
        from: &str,
        is_enough: fn(SenderRight) -> bool,
    ) -> Result<Originator, SubmitError> {
        let originator =
            Originator::parse_approved(from).map_err(|e| Invalid::new(Field::Originator, e))?;
        let right = self.right(access.account, originator.compared()).await?;
        if right.is_some_and(is_enough) {
            Ok(originator)
        } else {
            Err(SubmitError::Sender(originator))
        }
    }

    /// The version is read before the store, so a cached name is at least as new as its version.
    async fn right(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Option<SenderRight>, StoreError> {
        let version = self.gate.version();
        if let Some(right) = version.and_then(|version| self.find_cached(version, account, name)) {
            return Ok(Some(right));
        }
        let right = self.store.find_sender_right(account, name).await?;
        if let (Some(version), Some(right)) = (version, right) {
            let mut cache = self.cache.write().expect("no holder panics");
            cache.insert(version, account, name, right);
        }
        Ok(right)
    }

    fn find_cached(&self, version: u64, account: AccountId, name: &str) -> Option<SenderRight> {
        let cache = self.cache.read().expect("no holder panics");
        cache.find(version, account, name)
    }
}

/// Refuses an originator that the account may use, but not this caller.
fn check_caller(access: &Access, originator: Originator) -> Result<Originator, SubmitError> {
    if access.limits.senders.allows(&originator) {
        Ok(originator)
    } else {
        Err(SubmitError::Sender(originator))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded_and_cleared_with_each_version() {
        let (one, two) = (AccountId::new(1), AccountId::new(2));
        let (one, two) = (one.expect("in range"), two.expect("in range"));
        let mut cache = ApprovedNames::default();
        let right = SenderRight::SenderId;
        cache.insert(7, one, "Acme-Inc", right);
        cache.insert(7, one, "Acme-Inc", right);
        assert_eq!(cache.count, 1);
        for (case, version, account, name, expected) in [
            ("itself", 7, one, "Acme-Inc", true),
            ("another name", 7, one, "Acme_Inc", false),
            ("another account", 7, two, "Acme-Inc", false),
            ("a newer version", 8, one, "Acme-Inc", false),
        ] {
            let found = cache.find(version, account, name);
            assert_eq!(found, expected.then_some(right), "{case}");
        }
        cache.insert(8, two, "37120000001", SenderRight::Number);
        let number = cache.find(8, two, "37120000001");
        assert_eq!(number, Some(SenderRight::Number));
        let former = cache.find(8, one, "Acme-Inc");
        assert_eq!(former, None, "dropped with version 7");
        for number in 0..=MAX_CACHED {
            cache.insert(8, one, &format!("N-{number}"), right);
            assert!(cache.count <= MAX_CACHED);
        }
    }
}
