//! Whether an account may use an originator.
//!
//! Most originators need no approval unless the account's rules say so. Those that do are looked up once and cached
//! until anything about accounts, tokens or sender IDs changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, RwLock};

use domain::ports::{SenderStore, StoreError};
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
    names: HashMap<AccountId, HashSet<String>>,
    count: usize,
}

impl ApprovedNames {
    fn contains(&self, version: u64, account: AccountId, name: &str) -> bool {
        let names = self.names.get(&account).filter(|_| self.version == version);
        names.is_some_and(|names| names.contains(name))
    }

    fn insert(&mut self, version: u64, account: AccountId, name: &str) {
        if self.version != version || self.count >= MAX_CACHED {
            *self = Self {
                version,
                ..Self::default()
            };
        }
        let names = self.names.entry(account).or_default();
        self.count += usize::from(names.insert(name.to_owned()));
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
    /// rules demand approved sender IDs, only the last one.
    pub(crate) async fn originator(
        &self,
        access: &Access,
        from: &str,
    ) -> Result<Originator, SubmitError> {
        if access.approved_senders_only {
            return self.approved(access, from).await;
        }
        let plain = Originator::parse(from);
        let error = match plain {
            Ok(originator) => return Ok(originator),
            Err(error) => Invalid::new(Field::Originator, error),
        };
        match self.approved(access, from).await {
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
        let originator =
            Originator::parse_approved(from).map_err(|e| Invalid::new(Field::Originator, e))?;
        let name = originator.compared();
        if self.is_approved(access.account, name).await? {
            Ok(originator)
        } else {
            Err(SubmitError::Sender(originator))
        }
    }

    /// The version is read before the store, so a cached name is at least as new as its version.
    async fn is_approved(&self, account: AccountId, name: &str) -> Result<bool, StoreError> {
        let version = self.gate.version();
        if version.is_some_and(|version| self.is_cached(version, account, name)) {
            return Ok(true);
        }
        let is_approved = self.store.is_sender_approved(account, name).await?;
        if let Some(version) = version.filter(|_| is_approved) {
            let mut cache = self.cache.write().expect("no holder panics");
            cache.insert(version, account, name);
        }
        Ok(is_approved)
    }

    fn is_cached(&self, version: u64, account: AccountId, name: &str) -> bool {
        let cache = self.cache.read().expect("no holder panics");
        cache.contains(version, account, name)
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
        cache.insert(7, one, "Acme-Inc");
        cache.insert(7, one, "Acme-Inc");
        assert_eq!(cache.count, 1);
        for (case, version, account, name, expected) in [
            ("itself", 7, one, "Acme-Inc", true),
            ("another name", 7, one, "Acme_Inc", false),
            ("another account", 7, two, "Acme-Inc", false),
            ("a newer version", 8, one, "Acme-Inc", false),
        ] {
            assert_eq!(cache.contains(version, account, name), expected, "{case}");
        }
        cache.insert(8, two, "B-2");
        assert!(
            !cache.contains(8, one, "Acme-Inc"),
            "dropped with version 7"
        );
        for number in 0..=MAX_CACHED {
            cache.insert(8, one, &format!("N-{number}"));
            assert!(cache.count <= MAX_CACHED);
        }
    }
}
