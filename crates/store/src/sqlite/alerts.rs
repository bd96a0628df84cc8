//! The port for alerts and notifications.

use async_trait::async_trait;
use domain::Timestamp;
use domain::alert::Alert;
use domain::ids::AccountId;
use domain::ports::{
    AlertStore, FailingReceiver, NewNotification, Notification, NotifySetting, StoreError,
};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::{SqliteStore, operations};
use crate::rows::alerts::{
    AlertColumns, NotificationColumns, SettingColumns, account_column, tries_column,
};
use crate::rows::micros;
use crate::rows::operations::failing_receivers;
use crate::sql::alerts as sql;

#[async_trait]
impl AlertStore for SqliteStore {
    async fn list_alerts(
        &self,
        account: Option<AccountId>,
        limit: u32,
    ) -> Result<Vec<Alert>, StoreError> {
        let account = account.map(AccountId::as_i64);
        self.read("list alerts", move |db| {
            let read = |row: &Row<'_>| Ok(AlertColumns::read(row)?.alert()?);
            db.prepare_cached(sql::LIST.sqlite)?
                .query_map(params![account, limit], read)?
                .collect()
        })
        .await
    }

    async fn change_alert(
        &self,
        before: Option<&Alert>,
        after: Option<&Alert>,
        notifications: &[NewNotification],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let before = before.map(AlertColumns::from_alert);
        let after = after.map(AlertColumns::from_alert);
        let (notifications, now_us) = (notifications.to_vec(), micros(now));
        self.write("change an alert", move |db| {
            if !change(db, before.as_ref(), after.as_ref())? {
                return Ok(false);
            }
            for notification in &notifications {
                let account = account_column(notification.account);
                let values = params![account, notification.target, notification.body, now_us];
                db.prepare_cached(sql::NOTIFY.sqlite)?.execute(values)?;
            }
            Ok(true)
        })
        .await
    }

    async fn claim_notifications(
        &self,
        now: Timestamp,
        until: Timestamp,
        limits: [u32; 2],
    ) -> Result<Vec<Notification>, StoreError> {
        let (now_us, until_us) = (micros(now), micros(until));
        // The writer is not asked if nothing is due.
        let is_due: bool = self
            .read("find due notifications", move |db| {
                db.prepare_cached("SELECT EXISTS (SELECT 1 FROM notification WHERE due_us <= ?1)")?
                    .query_row([now_us], |row| row.get(0))
            })
            .await?;
        if !is_due {
            return Ok(Vec::new());
        }
        self.write("claim notifications", move |db| {
            let read = |row: &Row<'_>| Ok(NotificationColumns::read(row)?.notification()?);
            let claimed: Vec<Notification> = db
                .prepare_cached(sql::CLAIM.sqlite)?
                .query_map(params![now_us, until_us, limits[0], limits[1]], read)?
                .collect::<Result<_>>()?;
            for notification in &claimed {
                db.prepare_cached(sql::MOVE_OTHERS.sqlite)?
                    .execute(params![notification.id, notification.target, until_us])?;
            }
            Ok(claimed)
        })
        .await
    }

    async fn settle_notification(
        &self,
        notification: &Notification,
        again: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (id, tries) = (notification.id, tries_column(notification));
        let (target, again_us) = (notification.target.clone(), again.map(micros));
        let others_us = micros(again.unwrap_or(now));
        self.write("settle a notification", move |db| {
            let settled = match again_us {
                Some(again_us) => db
                    .prepare_cached(sql::RETRY.sqlite)?
                    .execute(params![id, tries, again_us])?,
                None => db
                    .prepare_cached(sql::DONE.sqlite)?
                    .execute(params![id, tries])?,
            };
            if settled > 0 {
                db.prepare_cached(sql::MOVE_OTHERS.sqlite)?
                    .execute(params![id, target, others_us])?;
            }
            Ok(())
        })
        .await
    }

    async fn find_notify_setting(&self, account: AccountId) -> Result<NotifySetting, StoreError> {
        let account = account.as_i64();
        self.read("find where an account is notified", move |db| {
            let read = |row: &Row<'_>| Ok(SettingColumns::read(row)?.setting()?);
            let found = db
                .prepare_cached(sql::FIND_SETTING.sqlite)?
                .query_row([account], read)
                .optional()?;
            Ok(found.unwrap_or_default())
        })
        .await
    }

    async fn set_notify_setting(
        &self,
        account: AccountId,
        setting: &NotifySetting,
    ) -> Result<(), StoreError> {
        let account = account.as_i64();
        let url = setting.url.as_ref().map(|url| url.as_str().to_owned());
        let email = setting
            .email
            .as_ref()
            .map(|email| email.as_str().to_owned());
        self.write("set where an account is notified", move |db| {
            db.prepare_cached(sql::SET_SETTING.sqlite)?
                .execute(params![account, url, email])?;
            Ok(())
        })
        .await
    }

    async fn list_failing_receivers(&self, tries: u32) -> Result<Vec<FailingReceiver>, StoreError> {
        self.read("list failing receivers", move |db| {
            Ok(failing_receivers(operations::list_waiting(db)?, tries)?)
        })
        .await
    }
}

fn change(
    db: &Connection,
    before: Option<&AlertColumns>,
    after: Option<&AlertColumns>,
) -> Result<bool> {
    let changed = match (before, after) {
        (None, None) => 0,
        (None, Some(after)) => db.prepare_cached(sql::CREATE.sqlite)?.execute(params![
            after.topic,
            after.subject,
            after.account_id,
            after.level,
            after.since_us,
            after.told,
            after.told_us[0],
            after.told_us[1],
            after.told_us[2],
            after.data
        ])?,
        (Some(before), Some(after)) => db.prepare_cached(sql::CHANGE.sqlite)?.execute(params![
            after.topic,
            after.subject,
            after.account_id,
            after.level,
            after.since_us,
            after.told,
            after.told_us[0],
            after.told_us[1],
            after.told_us[2],
            after.data,
            before.level,
            before.since_us,
            before.told
        ])?,
        (Some(before), None) => db.prepare_cached(sql::REMOVE.sqlite)?.execute(params![
            before.topic,
            before.subject,
            before.level,
            before.since_us,
            before.told
        ])?,
    };
    Ok(changed > 0)
}
