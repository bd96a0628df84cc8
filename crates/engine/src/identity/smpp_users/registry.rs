//! Creating, listing and revoking SMPP users.

use std::collections::HashMap;
use std::sync::Arc;

use domain::access::{AccessLimits, AllowList};
use domain::person::Password;
use domain::ports::{NewSmppUser, SmppIdentityStore, StoreError};
use domain::smpp_user::{
    BindKinds, NotASystemId, ReceiptFormat, SmppLimits, SmppUser, SystemId, generate_password,
};
use domain::{AccountId, Clock, SmppUserId};

use crate::audit::{Action, Actor, Audit};
use crate::entropy;
use crate::identity::hasher::{Busy, Hasher};

/// How often another generated system ID is tried when one is taken.
const GENERATE_ATTEMPTS: u32 = 5;

/// Why an SMPP user was not created or revoked.
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
    pub allow: AllowList,
    pub access_limits: AccessLimits,
    pub limits: SmppLimits,
    pub receipts: ReceiptFormat,
}

/// Creates and revokes SMPP users.
pub struct SmppUserRegistry {
    store: Arc<dyn SmppIdentityStore>,
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
            allow: input.allow,
            access_limits: input.access_limits,
            limits: input.limits,
            receipts: input.receipts,
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
        let (account, detail) = (Some(user.account), describe(user));
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

    /// The users of one account, or of all, without revoked ones.
    pub async fn list(&self, account: Option<AccountId>) -> Result<Vec<SmppUser>, StoreError> {
        self.store.list_smpp_users(account).await
    }

    /// How many sessions users have, over all nodes. Those that have none are left out.
    pub async fn count_binds(&self) -> Result<HashMap<SmppUserId, u32>, StoreError> {
        let counts = self.store.count_smpp_binds().await?;
        Ok(counts.into_iter().collect())
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

/// Describes a user for the audit log.
fn describe(user: &NewSmppUser) -> String {
    let list = |text: String, all: &str| match text.as_str() {
        "" => all.to_owned(),
        _ => text.replace('\n', ", "),
    };
    let limit = |limit: Option<u32>| limit.map_or_else(|| "any".to_owned(), |n| n.to_string());
    let limits = &user.limits;
    let mut parts = vec![
        format!("from {}", list(user.allow.to_string(), "anywhere")),
        format!("binds {}", limit(limits.max_binds)),
        format!("messages a second {}", limit(limits.max_per_second)),
        format!(
            "senders {}",
            list(user.access_limits.senders.to_string(), "any")
        ),
        format!(
            "countries {}",
            list(user.access_limits.countries.to_string(), "any")
        ),
    ];
    if limits.binds != BindKinds::all() {
        parts.push(format!("only {}", limits.binds));
    }
    parts.join("; ")
}
