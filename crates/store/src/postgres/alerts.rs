//! The port for alerts and notifications.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::alert::Alert;
use domain::ids::AccountId;
use domain::person::Email;
use domain::ports::{
    AlertStore, FailingReceiver, NewNotification, Notification, NotifySetting, StoreError,
};
use domain::{CallbackUrl, Timestamp};

use super::fault::Fault;
use super::retry::Retryable;
use super::transaction::execute;
use super::{PostgresStore, fault, retry};
use crate::rows::alerts::{
    AlertColumns, NotificationColumns, SettingColumns, account_column, tries_column,
};
use crate::rows::micros;
use crate::rows::operations::failing_receivers;
use crate::sql::alerts as sql;

/// Changes an alert and stores the notifications about it.
struct ChangeAlert<'a> {
    before: Option<AlertColumns>,
    after: Option<AlertColumns>,
    notifications: &'a [NewNotification],
    now_us: i64,
}

impl Retryable for ChangeAlert<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        if !self.change(&transaction).await? {
            return Ok(false);
        }
        for notification in self.notifications {
            let account = account_column(notification.account);
            let values: super::Values<'_> = &[
                &account,
                &notification.target,
                &notification.body,
                &self.now_us,
            ];
            execute(&transaction, sql::NOTIFY.postgres, values).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}

impl ChangeAlert<'_> {
    async fn change(&self, transaction: &Transaction<'_>) -> Result<bool, Fault> {
        let changed = match (&self.before, &self.after) {
            (None, None) => 0,
            (None, Some(after)) => {
                let values: super::Values<'_> = &[
                    &after.topic,
                    &after.subject,
                    &after.account_id,
                    &after.level,
                    &after.since_us,
                    &after.told,
                    &after.told_us[0],
                    &after.told_us[1],
                    &after.told_us[2],
                    &after.data,
                ];
                execute(transaction, sql::CREATE.postgres, values).await?
            }
            (Some(before), Some(after)) => {
                let values: super::Values<'_> = &[
                    &after.topic,
                    &after.subject,
                    &after.account_id,
                    &after.level,
                    &after.since_us,
                    &after.told,
                    &after.told_us[0],
                    &after.told_us[1],
                    &after.told_us[2],
                    &after.data,
                    &before.level,
                    &before.since_us,
                    &before.told,
                ];
                execute(transaction, sql::CHANGE.postgres, values).await?
            }
            (Some(before), None) => {
                let values: super::Values<'_> = &[
                    &before.topic,
                    &before.subject,
                    &before.level,
                    &before.since_us,
                    &before.told,
                ];
                execute(transaction, sql::REMOVE.postgres, values).await?
            }
        };
        Ok(changed > 0)
    }
}

#[async_trait]
impl AlertStore for PostgresStore {
    async fn list_alerts(
        &self,
        account: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<Alert>, StoreError> {
        let (account, limit) = (account.map(AccountId::as_i64), i64::from(limit));
        let read = |row: &_| AlertColumns::read(row)?.alert();
        self.list("list alerts", sql::LIST.postgres, &[&account, &limit], read)
            .await
    }

    async fn change_alert(
        &self,
        before: Option<&Alert>,
        after: Option<&Alert>,
        notifications: &[NewNotification],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let change = ChangeAlert {
            before: before.map(AlertColumns::from_alert),
            after: after.map(AlertColumns::from_alert),
            notifications,
            now_us: micros(now),
        };
        retry::run(&self.pool, "change an alert", &change).await
    }

    async fn claim_notifications(
        &self,
        now: Timestamp,
        until: Timestamp,
        limits: [u32; 2],
    ) -> Result<Vec<Notification>, StoreError> {
        let (now_us, until_us) = (micros(now), micros(until));
        let read = |row: &_| NotificationColumns::read(row)?.notification();
        let [service, accounts] = limits.map(i64::from);
        let values: super::Values<'_> = &[&now_us, &until_us, &service, &accounts];
        let statement = sql::CLAIM_AND_HOLD.postgres;
        self.list("claim notifications", statement, values, read)
            .await
    }

    async fn settle_notification(
        &self,
        notification: &Notification,
        again: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "settle a notification";
        let (id, tries) = (notification.id, tries_column(notification));
        let settled = match again.map(micros) {
            Some(again_us) => {
                let values: super::Values<'_> = &[&id, &tries, &again_us];
                self.execute(OPERATION, sql::RETRY.postgres, values).await
            }
            None => {
                self.execute(OPERATION, sql::DONE.postgres, &[&id, &tries])
                    .await
            }
        };
        if settled? > 0 {
            let others_us = micros(again.unwrap_or(now));
            let values: super::Values<'_> = &[&id, &notification.target, &others_us];
            self.execute(OPERATION, sql::MOVE_OTHERS.postgres, values)
                .await?;
        }
        Ok(())
    }

    async fn find_notify_setting(&self, account: AccountId) -> Result<NotifySetting, StoreError> {
        let read = |row: &_| SettingColumns::read(row)?.setting();
        let values: super::Values<'_> = &[&account.as_i64()];
        let operation = "find where an account is notified";
        let found = self.find(operation, sql::FIND_SETTING.postgres, values, read);
        Ok(found.await?.unwrap_or_default())
    }

    async fn set_notify_setting(
        &self,
        account: AccountId,
        setting: &NotifySetting,
    ) -> Result<(), StoreError> {
        let url = setting.url.as_ref().map(CallbackUrl::as_str);
        let email = setting.email.as_ref().map(Email::as_str);
        let values: super::Values<'_> = &[&account.as_i64(), &url, &email];
        let operation = "set where an account is notified";
        let set = self.execute(operation, sql::SET_SETTING.postgres, values);
        set.await.map(drop)
    }

    async fn list_failing_receivers(&self, tries: u32) -> Result<Vec<FailingReceiver>, StoreError> {
        const OPERATION: &str = "list failing receivers";
        let waiting = self.list_waiting_callbacks(OPERATION).await?;
        failing_receivers(waiting, tries).map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
    }
}
