//! Whether an account may send under a name.
//!
//! Most messages never get here: a plain name or number needs no approval unless the account was set so. What needs one
//! is looked up once and remembered until anything about accounts, tokens or senders changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, RwLock};

use domain::ports::{Store, StoreError};
use domain::{Access, AccountId, Originator};

use crate::identity::gate::Gate;
use crate::sending::submit::{Invalid, SubmitError};

/// Approved names that are remembered at once.
const MAX_KNOWN: usize = 10_000;

/// Knows what accounts may send under.
pub struct Approvals {
    store: Arc<dyn Store>,
    gate: Arc<Gate>,
    known: RwLock<Known>,
}

/// Only what is approved: what is not may become so at any time, and is then to count at once.
#[derive(Default)]
struct Known {
    version: u64,
    names: HashMap<AccountId, HashSet<String>>,
    count: usize,
}

impl Known {
    fn contains(&self, version: u64, account: AccountId, name: &str) -> bool {
        let names = self.names.get(&account).filter(|_| self.version == version);
        names.is_some_and(|names| names.contains(name))
    }

    fn remember(&mut self, version: u64, account: AccountId, name: &str) {
        if self.version != version || self.count >= MAX_KNOWN {
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
    /// Reads from a store what changes as the gate sees it.
    pub fn new(store: Arc<dyn Store>, gate: Arc<Gate>) -> Self {
        Self {
            store,
            gate,
            known: RwLock::default(),
        }
    }

    /// The originator of an SMS: a number or a plain name, or a sender of this account that is approved. Where the account
    /// may send under approved senders only, nothing else will do.
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
            Err(error) => Invalid::new("from", error),
        };
        match self.approved(access, from).await {
            Err(SubmitError::Sender(_)) => Err(error.into()),
            outcome => outcome,
        }
    }

    /// An originator that is an approved sender of this account.
    pub(crate) async fn approved(
        &self,
        access: &Access,
        from: &str,
    ) -> Result<Originator, SubmitError> {
        let originator = Originator::parse_approved(from).map_err(|e| Invalid::new("from", e))?;
        let name = originator.compared();
        if self.is_approved(access.account, name).await? {
            Ok(originator)
        } else {
            Err(SubmitError::Sender(originator))
        }
    }

    /// The version is read before the store is: what is remembered under it is at least as new.
    async fn is_approved(&self, account: AccountId, name: &str) -> Result<bool, StoreError> {
        let version = self.gate.version();
        if version.is_some_and(|version| self.is_known(version, account, name)) {
            return Ok(true);
        }
        let is_approved = self.store.is_sender_approved(account, name).await?;
        if let Some(version) = version.filter(|_| is_approved) {
            let mut known = self.known.write().expect("no holder panics");
            known.remember(version, account, name);
        }
        Ok(is_approved)
    }

    fn is_known(&self, version: u64, account: AccountId, name: &str) -> bool {
        let known = self.known.read().expect("no holder panics");
        known.contains(version, account, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_bounded_and_ends_with_its_version() {
        let (one, two) = (AccountId::new(1), AccountId::new(2));
        let (one, two) = (one.expect("in range"), two.expect("in range"));
        let mut known = Known::default();
        known.remember(7, one, "Acme-Inc");
        known.remember(7, one, "Acme-Inc");
        assert_eq!(known.count, 1);
        for (case, version, account, name, expected) in [
            ("itself", 7, one, "Acme-Inc", true),
            ("another name", 7, one, "Acme_Inc", false),
            ("another account", 7, two, "Acme-Inc", false),
            ("a newer version", 8, one, "Acme-Inc", false),
        ] {
            assert_eq!(known.contains(version, account, name), expected, "{case}");
        }
        known.remember(8, two, "B-2");
        assert!(!known.contains(8, one, "Acme-Inc"), "forgotten with 7");
        for number in 0..=MAX_KNOWN {
            known.remember(8, one, &format!("N-{number}"));
            assert!(known.count <= MAX_KNOWN);
        }
    }
}
