//! Creating, listing, changing and revoking SMPP users.

use std::collections::HashMap;
use std::sync::Arc;

use domain::access::{AllowList, AllowedSenders};
use domain::billing::Countries;
use domain::person::Password;
use domain::ports::{NewSmppUser, SmppIdentityStore, StoreError};
use domain::smpp_user::{
    BindKinds, NotASystemId, ReceiptDate, ReceiptErrorField, ReceiptId, SmppUser, SmppUserOptions,
    SystemId, generate_password,
};
use domain::{AccountId, Clock, SmppUserId};

use crate::audit::{self, Action, Actor, Audit};
use crate::entropy;
use crate::identity::hasher::{Busy, Hasher};

/// How often another generated system ID is tried when one is taken.
const GENERATE_ATTEMPTS: u32 = 5;

/// Why an SMPP user was not created, changed or revoked.
#[derive(Debug, thiserror::Error)]
pub enum SmppUserError {
    #[error(transparent)]
    SystemId(#[from] NotASystemId),
    #[error("the system ID '{0}' is taken")]
    Taken(SystemId),
    #[error("there is no SMPP user '{0}'; `switchboard smpp-user list` shows those there are")]
    Unknown(SystemId),
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An SMPP user to create.
#[derive(Debug, Clone, Default)]
pub struct SmppUserInput {
    /// Without one, the service generates one.
    pub system_id: Option<SystemId>,
    /// Whether the password has 16 characters, which SMPP 3.4 does not provide for.
    pub long_password: bool,
    pub options: SmppUserOptions,
}

/// New options of an SMPP user; `None` leaves an option as it is. 0 and an empty list stand for no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmppUserChange {
    pub max_binds: Option<u32>,
    pub max_per_second: Option<u32>,
    pub binds: Option<BindKinds>,
    pub allow: Option<AllowList>,
    pub senders: Option<AllowedSenders>,
    pub countries: Option<Countries>,
    pub receipt_date: Option<ReceiptDate>,
    pub receipt_id: Option<ReceiptId>,
    pub receipt_error: Option<ReceiptErrorField>,
}

impl From<SmppUserOptions> for SmppUserChange {
    fn from(options: SmppUserOptions) -> Self {
        let (limits, receipts) = (options.limits, options.receipts);
        Self {
            max_binds: Some(limits.max_binds.unwrap_or(0)),
            max_per_second: Some(limits.max_per_second.unwrap_or(0)),
            binds: Some(limits.binds),
            allow: Some(options.allow),
            senders: Some(options.access_limits.senders),
            countries: Some(options.access_limits.countries),
            receipt_date: Some(receipts.date),
            receipt_id: Some(receipts.id),
            receipt_error: Some(receipts.error),
        }
    }
}

impl SmppUserChange {
    fn apply(self, before: &SmppUserOptions) -> SmppUserOptions {
        let mut after = before.clone();
        let limit = |new: Option<u32>, old: Option<u32>| match new {
            None => old,
            Some(number) => Some(number).filter(|number| *number > 0),
        };
        after.limits.max_binds = limit(self.max_binds, after.limits.max_binds);
        after.limits.max_per_second = limit(self.max_per_second, after.limits.max_per_second);
        replace(&mut after.limits.binds, self.binds);
        replace(&mut after.allow, self.allow);
        replace(&mut after.access_limits.senders, self.senders);
        replace(&mut after.access_limits.countries, self.countries);
        replace(&mut after.receipts.date, self.receipt_date);
        replace(&mut after.receipts.id, self.receipt_id);
        replace(&mut after.receipts.error, self.receipt_error);
        after
    }
}

fn replace<T>(option: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *option = new;
    }
}

/// Creates, changes and revokes SMPP users.
pub struct SmppUserRegistry {
    pub(super) store: Arc<dyn SmppIdentityStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    hasher: Arc<Hasher>,
}

impl SmppUserRegistry {
    pub fn new(
        store: Arc<dyn SmppIdentityStore>,
        clock: Arc<dyn Clock>,
        hasher: Arc<Hasher>,
    ) -> Self {
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
            hasher,
        }
    }

    /// Creates a user of an account. The password is returned here; only its slow hash is stored.
    pub async fn create(
        &self,
        by: &Actor,
        account: AccountId,
        input: SmppUserInput,
    ) -> Result<(SystemId, Password), SmppUserError> {
        let password = generate_password(&entropy::bytes(), input.long_password);
        let hash = self.hasher.hash(password.clone()).await?;
        let mut user = NewSmppUser {
            account,
            system_id: input.system_id.clone().unwrap_or_else(generated_system_id),
            password: hash,
            options: input.options,
            created_at: self.clock.now(),
        };
        let mut left = match input.system_id {
            Some(_) => 1,
            None => GENERATE_ATTEMPTS,
        };
        loop {
            let created = self.create_once(by, &user).await;
            left -= 1;
            match created {
                Err(SmppUserError::Taken(_)) if left > 0 => {
                    user.system_id = generated_system_id();
                }
                Err(error) => return Err(error),
                Ok(()) => return Ok((user.system_id, password)),
            }
        }
    }

    async fn create_once(&self, by: &Actor, user: &NewSmppUser) -> Result<(), SmppUserError> {
        let subject = format!("SMPP user {}", user.system_id);
        let (account, detail) = (Some(user.account), describe(&user.options));
        let recorded = self
            .audit
            .record(by, account, Action::SmppUserCreate, subject, detail)
            .await?;
        let created = match self.store.create_smpp_user(user).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(SmppUserError::Taken(user.system_id.clone())),
            Err(error) => Err(error.into()),
        };
        recorded.done(created).await
    }

    /// A user, unless it is revoked.
    pub async fn find(&self, id: SmppUserId) -> Result<Option<SmppUser>, StoreError> {
        Ok(self.store.find_smpp_users(&[id]).await?.pop())
    }

    /// The users of one account, or of all, without revoked ones.
    pub async fn list(&self, account: Option<AccountId>) -> Result<Vec<SmppUser>, StoreError> {
        self.store.list_smpp_users(account).await
    }

    /// How many sessions users have, over all nodes. Those that have none are left out.
    pub async fn count_binds(&self) -> Result<HashMap<SmppUserId, u32>, StoreError> {
        let counts = self.store.count_smpp_binds().await?;
        Ok(counts.into_iter().collect())
    }

    /// Changes options of a user. All nodes follow within a second: bound sessions get the new limits, and those that
    /// may not bind any more are unbound.
    pub async fn change(
        &self,
        by: &Actor,
        system_id: &SystemId,
        change: SmppUserChange,
    ) -> Result<(), SmppUserError> {
        let unknown = || SmppUserError::Unknown(system_id.clone());
        let found = self.store.find_smpp_credentials(system_id).await?;
        let user = found.ok_or_else(unknown)?.user;
        let before = user.options();
        let after = change.apply(&before);
        if after == before {
            return Ok(());
        }
        let (account, detail) = (Some(user.access.account), differences(&before, &after));
        let subject = format!("SMPP user {system_id}");
        let recorded = self
            .audit
            .record(by, account, Action::SmppUserChange, subject, detail)
            .await?;
        let changed = match self.store.change_smpp_user(system_id, &after).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(unknown()),
            Err(error) => Err(error.into()),
        };
        recorded.done(changed).await
    }

    /// Revokes a user. All nodes refuse it within a second and end its sessions.
    pub async fn revoke(&self, by: &Actor, system_id: &SystemId) -> Result<(), SmppUserError> {
        let unknown = || SmppUserError::Unknown(system_id.clone());
        let found = self.store.find_smpp_credentials(system_id).await?;
        let account = found.ok_or_else(unknown)?.user.access.account;
        let subject = format!("SMPP user {system_id}");
        let recorded = self
            .audit
            .record(by, Some(account), Action::SmppUserRevoke, subject, "")
            .await?;
        let now = self.clock.now();
        let revoked = match self.store.revoke_smpp_user(system_id, now).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(unknown()),
            Err(error) => Err(error.into()),
        };
        recorded.done(revoked).await
    }
}

/// A system ID that says nothing about the account.
fn generated_system_id() -> SystemId {
    let digits = u64::from_le_bytes(entropy::bytes()) % 10_000_000_000;
    let text = format!("sb{digits:010}");
    text.parse().expect("12 ASCII characters")
}

/// Options with their names, for the audit log.
fn facts(options: &SmppUserOptions) -> [(&'static str, String); 9] {
    let list = |text: String, all: &str| match text.as_str() {
        "" => all.to_owned(),
        _ => text.replace('\n', ", "),
    };
    let limit = |limit: Option<u32>| limit.map_or_else(|| "any".to_owned(), |n| n.to_string());
    let (limits, access, receipts) = (&options.limits, &options.access_limits, options.receipts);
    [
        ("from", list(options.allow.to_string(), "anywhere")),
        ("binds", limit(limits.max_binds)),
        ("messages a second", limit(limits.max_per_second)),
        ("senders", list(access.senders.to_string(), "any")),
        ("countries", list(access.countries.to_string(), "any")),
        ("only", limits.binds.to_string()),
        ("receipt date", receipts.date.name().to_owned()),
        ("receipt ID", receipts.id.name().to_owned()),
        ("receipt error", receipts.error.name().to_owned()),
    ]
}

/// Describes a new user: its limits, and what else is not the default.
fn describe(options: &SmppUserOptions) -> String {
    const LIMITS: usize = 5;
    let facts = facts(options).into_iter().enumerate();
    let usual = self::facts(&SmppUserOptions::default());
    let told = facts.filter(|(index, fact)| *index < LIMITS || *fact != usual[*index]);
    let told: Vec<String> = told.map(|(_, (name, is))| format!("{name} {is}")).collect();
    told.join("; ")
}

/// Describes what a change changes.
fn differences(before: &SmppUserOptions, after: &SmppUserOptions) -> String {
    audit::differences(facts(before), facts(after))
}

#[cfg(test)]
mod tests {
    use domain::smpp_user::BindKind;

    use super::*;

    #[test]
    fn a_change_replaces_what_is_given_and_says_so() {
        let before = SmppUserOptions {
            allow: "192.0.2.0/24".parse().expect("a network"),
            ..SmppUserOptions::default()
        };
        let unchanged = SmppUserChange::default().apply(&before);
        assert_eq!(unchanged, before);
        assert_eq!(differences(&before, &unchanged), "");
        let change = SmppUserChange {
            max_binds: Some(0),
            max_per_second: Some(50),
            binds: Some([BindKind::Receiver].into_iter().collect()),
            allow: Some(AllowList::default()),
            receipt_id: Some(ReceiptId::Hex),
            ..SmppUserChange::default()
        };
        let after = change.apply(&before);
        assert_eq!(after.limits.max_binds, None);
        assert_eq!(
            differences(&before, &after),
            "from 192.0.2.0/24 → anywhere; binds 10 → any; messages a second any → 50; \
             only transmitter receiver transceiver → receiver; receipt ID decimal → hex"
        );
        assert_eq!(SmppUserChange::from(after.clone()).apply(&before), after);
        assert_eq!(
            describe(&after),
            "from anywhere; binds any; messages a second 50; senders any; countries any; only receiver; receipt ID hex"
        );
    }
}
