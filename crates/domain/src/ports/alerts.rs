//! Alerts, and the notifications about them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::alert::Alert;
use crate::callback_url::CallbackUrl;
use crate::ids::AccountId;
use crate::person::Email;

/// A notification to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNotification {
    /// The account whose setting it goes to; `None` for an entry of the configuration.
    pub account: Option<AccountId>,
    /// Where it goes. It has no address in it, because a log may show it.
    pub target: String,
    /// The JSON that is sent.
    pub body: String,
}

/// A notification that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub id: i64,
    pub account: Option<AccountId>,
    pub target: String,
    pub body: String,
    pub created_at: Timestamp,
    /// The number of this attempt.
    pub tries: u32,
}

/// Where an account wants to be notified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotifySetting {
    pub url: Option<CallbackUrl>,
    pub email: Option<Email>,
}

/// A receiver of an account's callbacks whose attempts fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingReceiver {
    pub account: AccountId,
    /// The beginning of its URLs: scheme, host and port, in lower case.
    pub address: String,
    /// The host, with its port if the URL has one.
    pub host: String,
    pub waiting: u32,
    /// How often one of its callbacks was tried.
    pub tries: u32,
    pub oldest_at: Timestamp,
    pub last_reason: String,
}

#[async_trait]
pub trait AlertStore: Send + Sync + 'static {
    /// The alerts of an account, or all, those of the service first, then the newest first, at most `limit`.
    async fn list_alerts(
        &self,
        account: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<Alert>, StoreError>;

    /// Replaces an alert and stores the notifications about it. `false`, and no change, if it is not `before`: another
    /// node was faster. At most 500 notifications wait for a target; further ones are dropped.
    async fn change_alert(
        &self,
        before: Option<&Alert>,
        after: Option<&Alert>,
        notifications: &[NewNotification],
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Claims the first due notification of each target until `until`: at most so many for the configuration's targets
    /// and for those of accounts. It is due again then, unless it is settled. The others of its target wait for it.
    async fn claim_notifications(
        &self,
        now: Timestamp,
        until: Timestamp,
        limits: [u32; 2],
    ) -> Result<Vec<Notification>, StoreError>;

    /// Stores when a claimed notification, and the others of its target, are tried again. `None` deletes it, and the
    /// others are due now. Nothing changes if it was claimed again.
    async fn settle_notification(
        &self,
        notification: &Notification,
        again: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    async fn find_notify_setting(&self, account: AccountId) -> Result<NotifySetting, StoreError>;

    async fn set_notify_setting(
        &self,
        account: AccountId,
        setting: &NotifySetting,
    ) -> Result<(), StoreError>;

    /// Receivers whose callbacks were tried at least `tries` times. Reads a bounded number of callbacks.
    async fn list_failing_receivers(&self, tries: u32) -> Result<Vec<FailingReceiver>, StoreError>;
}
