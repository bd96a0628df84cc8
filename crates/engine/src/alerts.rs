//! Alerts: what is wrong at present, and the notifications about it.
//!
//! | module | subject |
//! |---|---|
//! | `watch` | observes carriers, balances, receivers, senders, codes, disks and certificates, and stores what changed |
//! | `deliver` | sends stored notifications until they are received |
//! | [`targets`] | where notifications go |
//! | [`words`] | alerts in plain words |

pub(crate) mod deliver;
pub mod targets;
pub(crate) mod watch;
pub mod words;

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::alert::{Alert, Level};
use domain::ports::{ForbiddenUrl, NotifySetting, Store, StoreError, UrlGuard};
use domain::{AccountId, Clock};
use tokio::sync::Mutex;

use crate::audit::{Action, Actor, Audit};

/// How many alerts are read.
pub(crate) const MOST_ALERTS: u32 = 2_000;

/// How long pages show the alerts that were read last.
const FRESH: Duration = Duration::from_secs(2);

/// Why an account's setting was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    #[error(transparent)]
    Url(#[from] ForbiddenUrl),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was read last, and when.
type LastRead = Option<(Instant, Arc<[Alert]>)>;

/// Lists alerts, and sets where accounts are notified.
pub struct Alerts {
    store: Arc<dyn Store>,
    urls: Arc<dyn UrlGuard>,
    audit: Audit,
    last: Mutex<LastRead>,
}

impl Alerts {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, urls: Arc<dyn UrlGuard>) -> Self {
        Self {
            audit: Audit::new(store.clone(), clock),
            store,
            urls,
            last: Mutex::default(),
        }
    }

    /// What is wrong at present, the newest first. Every page shows it, so it is read every few seconds at most.
    pub async fn current(&self) -> Result<Arc<[Alert]>, StoreError> {
        let mut last = self.last.lock().await;
        if let Some((at, alerts)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(alerts.clone());
        }
        let mut alerts = self.store.list_alerts(None, MOST_ALERTS).await?;
        alerts.retain(|alert| alert.level != Level::Fine);
        let alerts: Arc<[Alert]> = alerts.into();
        *last = Some((Instant::now(), alerts.clone()));
        Ok(alerts)
    }

    /// Where an account is notified.
    pub async fn find_setting(&self, account: AccountId) -> Result<NotifySetting, StoreError> {
        self.store.find_notify_setting(account).await
    }

    /// Changes where an account is notified. The URL follows the rules for callbacks.
    pub async fn set_setting(
        &self,
        by: &Actor,
        account: AccountId,
        setting: &NotifySetting,
    ) -> Result<(), SettingError> {
        if let Some(url) = &setting.url {
            self.urls.check(account, url).await?;
        }
        // A URL may contain a secret, so the log says only what is set.
        let detail = match (&setting.url, &setting.email) {
            (Some(_), Some(_)) => "to a URL and by e-mail",
            (Some(_), None) => "to a URL",
            (None, Some(_)) => "by e-mail",
            (None, None) => "off",
        };
        let recorded = self
            .audit
            .record(by, Some(account), Action::AccountNotify, account, detail)
            .await?;
        let set = self.store.set_notify_setting(account, setting).await;
        Ok(recorded.done(set).await?)
    }
}
