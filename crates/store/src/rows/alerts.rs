//! Rows of alerts and notifications.

use domain::CallbackUrl;
use domain::alert::{Alert, Level, Topic};
use domain::ids::AccountId;
use domain::person::Email;
use domain::ports::{Notification, NotifySetting};

use super::{Corrupt, SqlRow, account_id, micros, timestamp};

/// `account_id` of what belongs to no account.
const SERVICE: i64 = 0;

pub(crate) fn account_column(account: Option<AccountId>) -> i64 {
    account.map_or(SERVICE, AccountId::as_i64)
}

fn account(id: i64) -> Result<Option<AccountId>, Corrupt> {
    (id != SERVICE).then(|| account_id(id)).transpose()
}

pub(crate) struct AlertColumns {
    pub(crate) topic: String,
    pub(crate) subject: String,
    pub(crate) account_id: i64,
    pub(crate) level: i16,
    pub(crate) since_us: i64,
    pub(crate) told: i16,
    pub(crate) told_us: [Option<i64>; 3],
    pub(crate) data: String,
}

impl AlertColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            topic: row.column(0)?,
            subject: row.column(1)?,
            account_id: row.column(2)?,
            level: row.column(3)?,
            since_us: row.column(4)?,
            told: row.column(5)?,
            told_us: [row.column(6)?, row.column(7)?, row.column(8)?],
            data: row.column(9)?,
        })
    }

    pub(crate) fn from_alert(alert: &Alert) -> Self {
        Self {
            topic: alert.topic.name().to_owned(),
            subject: alert.subject.clone(),
            account_id: account_column(alert.account),
            level: level_column(alert.level),
            since_us: micros(alert.since),
            told: level_column(alert.told),
            told_us: alert.told_at.map(|at| at.map(micros)),
            data: alert.data.clone(),
        }
    }

    pub(crate) fn alert(self) -> Result<Alert, Corrupt> {
        let [fine, bad, worse] = self.told_us.map(|at| at.map(timestamp).transpose());
        Ok(Alert {
            topic: Topic::from_name(&self.topic).ok_or(Corrupt("topic"))?,
            subject: self.subject,
            account: account(self.account_id)?,
            level: level(self.level)?,
            since: timestamp(self.since_us)?,
            told: level(self.told)?,
            told_at: [fine?, bad?, worse?],
            data: self.data,
        })
    }
}

fn level_column(level: Level) -> i16 {
    i16::try_from(level.number()).unwrap_or(i16::MAX)
}

fn level(number: i16) -> Result<Level, Corrupt> {
    let index = usize::try_from(number).map_err(|_| Corrupt("level"))?;
    Level::ALL.get(index).copied().ok_or(Corrupt("level"))
}

pub(crate) struct NotificationColumns {
    id: i64,
    account_id: i64,
    target: String,
    body: String,
    created_us: i64,
    tries: i32,
}

impl NotificationColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            account_id: row.column(1)?,
            target: row.column(2)?,
            body: row.column(3)?,
            created_us: row.column(4)?,
            tries: row.column(5)?,
        })
    }

    pub(crate) fn notification(self) -> Result<Notification, Corrupt> {
        Ok(Notification {
            id: self.id,
            account: account(self.account_id)?,
            target: self.target,
            body: self.body,
            created_at: timestamp(self.created_us)?,
            tries: u32::try_from(self.tries).map_err(|_| Corrupt("tries"))?,
        })
    }
}

pub(crate) fn tries_column(notification: &Notification) -> i32 {
    i32::try_from(notification.tries).unwrap_or(i32::MAX)
}

pub(crate) struct SettingColumns {
    url: Option<String>,
    email: Option<String>,
}

impl SettingColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            url: row.column(0)?,
            email: row.column(1)?,
        })
    }

    pub(crate) fn setting(self) -> Result<NotifySetting, Corrupt> {
        let url = self.url.map(|url| CallbackUrl::parse(&url));
        let email = self.email.map(|email| email.parse::<Email>());
        Ok(NotifySetting {
            url: url.transpose().map_err(|_| Corrupt("URL"))?,
            email: email.transpose().map_err(|_| Corrupt("e-mail address"))?,
        })
    }
}
