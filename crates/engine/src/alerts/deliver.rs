//! Sends stored notifications until they are received.
//!
//! Each target has one attempt under way at a time, over all nodes, so a slow one delays only its own notifications.

use std::sync::Arc;
use std::time::Duration;

use domain::Clock;
use domain::delivery::backoff::callback_pause;
use domain::person::Email;
use domain::ports::{
    Mail, Mailer, Notification, NotificationSender, SignedPost, Store, StoreError,
};
use jiff::SignedDuration;
use tokio::sync::Semaphore;

use super::targets::{Address, NotifyTarget, OwnTarget};
use super::words;
use crate::entropy;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Attempts under way at once: for the configuration's targets, and for those of accounts.
const RUNNING: [usize; 2] = [32, 64];
/// How long a claim holds. An attempt takes less.
const CLAIM: SignedDuration = SignedDuration::from_mins(2);
/// Older notifications are dropped.
const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(3 * 24);
const NO_MAIL: &str = "mail.url is not set";

/// Sends notifications.
pub(crate) struct Deliverer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sender: Arc<dyn NotificationSender>,
    pub(crate) mailer: Option<Arc<dyn Mailer>>,
    pub(crate) targets: Arc<[NotifyTarget]>,
    running: [Arc<Semaphore>; 2],
}

/// The end of an attempt.
enum Attempt {
    Received,
    Failed(String),
    /// Nobody wants it any more.
    Unwanted,
}

impl Deliverer {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        sender: Arc<dyn NotificationSender>,
        mailer: Option<Arc<dyn Mailer>>,
        targets: Arc<[NotifyTarget]>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            sender,
            mailer,
            targets,
            running: RUNNING.map(|most| Arc::new(Semaphore::new(most))),
        })
    }

    pub(crate) async fn run(self: Arc<Self>) {
        let mut tick = tokio::time::interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if let Err(error) = self.start_due().await {
                tracing::warn!(%error, "notifications cannot be claimed; trying again");
            }
        }
    }

    /// Starts an attempt for each target with a due notification, as far as there is capacity.
    async fn start_due(self: &Arc<Self>) -> Result<(), StoreError> {
        let free = |running: &Arc<Semaphore>| u32::try_from(running.available_permits());
        let limits = [0, 1].map(|kind| free(&self.running[kind]).unwrap_or(u32::MAX));
        let now = self.clock.now();
        for claimed in self
            .store
            .claim_notifications(now, now + CLAIM, limits)
            .await?
        {
            let running = &self.running[usize::from(claimed.account.is_some())];
            let Ok(permit) = running.clone().acquire_owned().await else {
                return Ok(());
            };
            let deliverer = self.clone();
            tokio::spawn(async move {
                deliverer.deliver(claimed).await;
                drop(permit);
            });
        }
        Ok(())
    }

    async fn deliver(&self, notification: Notification) {
        let attempt = match notification.account {
            Some(_) => self.try_own(&notification).await,
            None => self.try_configured(&notification).await,
        };
        let now = self.clock.now();
        let target = &notification.target;
        let again = match attempt {
            Ok(Attempt::Received | Attempt::Unwanted) => None,
            Ok(Attempt::Failed(reason)) => {
                let is_old = now.duration_since(notification.created_at) >= GIVE_UP_AFTER;
                if is_old {
                    tracing::error!(
                        target,
                        reason,
                        "a notification is dropped: it was not received in three days"
                    );
                    None
                } else {
                    tracing::warn!(
                        target,
                        reason,
                        tries = notification.tries,
                        "a notification was not received; trying again"
                    );
                    let dice = u32::from_le_bytes(entropy::bytes());
                    Some(now + callback_pause(notification.tries, dice))
                }
            }
            // It is due again when the claim ends.
            Err(error) => {
                tracing::warn!(target, %error, "a notification cannot be sent; trying again");
                return;
            }
        };
        let settled = self.store.settle_notification(&notification, again, now);
        if let Err(error) = settled.await {
            tracing::warn!(target, %error, "a notification cannot be settled; it may be sent again");
        }
    }

    async fn try_configured(&self, notification: &Notification) -> Result<Attempt, StoreError> {
        let mut targets = self.targets.iter();
        let Some(target) = targets.find(|target| target.key() == notification.target) else {
            return Ok(Attempt::Unwanted);
        };
        Ok(match &target.address {
            Address::Url { url, secret } => {
                let id = webhook_id(notification);
                let post = SignedPost {
                    url,
                    id: &id,
                    secrets: &[secret],
                    body: &notification.body,
                    is_operators: true,
                };
                self.post(post).await
            }
            Address::Email(email) => self.mail(email, notification).await,
        })
    }

    async fn try_own(&self, notification: &Notification) -> Result<Attempt, StoreError> {
        let (Some(account), Some(kind)) = (
            notification.account,
            OwnTarget::from_key(&notification.target),
        ) else {
            return Ok(Attempt::Unwanted);
        };
        let setting = self.store.find_notify_setting(account).await?;
        match kind {
            OwnTarget::Email => match setting.email {
                Some(email) => Ok(self.mail(&email, notification).await),
                None => Ok(Attempt::Unwanted),
            },
            OwnTarget::Url => {
                let secrets = self.store.find_signing_secrets(account).await?;
                let (Some(url), Some(secrets)) = (setting.url, secrets) else {
                    return Ok(Attempt::Unwanted);
                };
                let post = SignedPost {
                    url: &url,
                    id: &webhook_id(notification),
                    secrets: &secrets.at(self.clock.now()),
                    body: &notification.body,
                    is_operators: false,
                };
                Ok(self.post(post).await)
            }
        }
    }

    async fn post(&self, post: SignedPost<'_>) -> Attempt {
        match self.sender.post(post, self.clock.now()).await {
            Ok(()) => Attempt::Received,
            Err(reason) => Attempt::Failed(reason),
        }
    }

    async fn mail(&self, to: &Email, notification: &Notification) -> Attempt {
        let Some(mailer) = &self.mailer else {
            return Attempt::Failed(NO_MAIL.to_owned());
        };
        let (subject, text) = words::mail(&notification.body);
        let mail = Mail {
            to,
            subject: &subject,
            text: &text,
        };
        match mailer.send(mail).await {
            Ok(()) => Attempt::Received,
            Err(reason) => Attempt::Failed(reason),
        }
    }
}

/// The same for each attempt, and never used again.
fn webhook_id(notification: &Notification) -> String {
    let created_us = notification.created_at.as_microsecond();
    format!("notification-{}-{created_us}", notification.id)
}
