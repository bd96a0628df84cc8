//! Who changed what, and from where.

use std::net::IpAddr;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Found, Look, StoreError};
use crate::ids::{AccountId, AuditId};

/// A change to note down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Who: an email address, or `command line`.
    pub who: String,
    /// From where, where that is known.
    pub address: Option<IpAddr>,
    /// The account that it is about.
    pub account: Option<AccountId>,
    /// What is done, such as `token.create`.
    pub action: String,
    /// To what, such as `token 12 (backend)`. Never a secret.
    pub subject: String,
    /// With which values, in words. Never a secret.
    pub detail: String,
    /// When.
    pub at: Timestamp,
}

/// A change that was noted down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Grows with each.
    pub id: AuditId,
    /// The change.
    pub change: Change,
}

/// Which changes. Every condition that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// About this account.
    pub account: Option<AccountId>,
    /// By whoever has this name.
    pub who: Option<String>,
    /// Of this action, or of those that begin so.
    pub action: Option<String>,
}

/// The log of changes. Nothing in it is ever changed or forgotten, and both databases refuse to.
#[async_trait]
pub trait AuditStore: Send + Sync + 'static {
    /// Notes a change down.
    async fn note_change(&self, change: &Change) -> Result<AuditId, StoreError>;

    /// Changes that fit, the newest first. Looks at a bounded number of rows.
    async fn look_for_changes(
        &self,
        filter: &AuditFilter,
        look: Look<AuditId>,
    ) -> Result<Found<AuditEntry, AuditId>, StoreError>;
}
