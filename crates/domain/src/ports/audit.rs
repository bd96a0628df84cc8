//! The audit log: who changed what, and from where.

use std::net::IpAddr;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Cursor, Page, StoreError};
use crate::ids::{AccountId, AuditId};

/// A change, to be stored in the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// An email address, or `command line`.
    pub who: String,
    pub address: Option<IpAddr>,
    /// The account concerned.
    pub account: Option<AccountId>,
    /// Such as `token.create`.
    pub action: String,
    /// What was changed, such as `token 12 (backend)`. Never a secret.
    pub subject: String,
    /// The values in words. Never a secret.
    pub detail: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Increases with each entry.
    pub id: AuditId,
    pub change: Change,
}

/// All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    pub account: Option<AccountId>,
    pub who: Option<String>,
    /// The action, or its beginning.
    pub action: Option<String>,
}

/// The audit log. Entries are never changed or deleted, and both databases refuse to.
#[async_trait]
pub trait AuditStore: Send + Sync + 'static {
    async fn record_change(&self, change: &Change) -> Result<AuditId, StoreError>;

    /// Matching entries, the newest first. Reads a bounded number of rows.
    async fn search_changes(
        &self,
        filter: &AuditFilter,
        cursor: Cursor<AuditId>,
    ) -> Result<Page<AuditEntry, AuditId>, StoreError>;
}
