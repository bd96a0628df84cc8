//! SMPP users with their account.

use std::str::FromStr;
use std::sync::Arc;

use domain::access::{Access, AccessLimits};
use domain::person::PasswordHash;
use domain::ports::{NewSmppUser, SmppCredentials};
use domain::smpp_user::{
    ReceiptFormat, SessionReport, SmppLimits, SmppSession, SmppUser, SmppUserOptions,
};
use domain::{NodeId, Permission, SmppUserId};

use super::{Corrupt, SqlRow, account_id, billing, micros, node_id, timestamp};

/// Where a password is read after the columns of its user.
const PASSWORD: usize = 18;

/// Reads a user from the columns that all statements begin with.
pub(crate) fn read_user<R: SqlRow>(row: &R) -> Result<SmppUser, R::Error> {
    Ok(Columns::read(row)?.user()?)
}

pub(crate) fn read_credentials<R: SqlRow>(row: &R) -> Result<SmppCredentials, R::Error> {
    Ok(SmppCredentials {
        user: read_user(row)?,
        password: PasswordHash::new(row.column(PASSWORD)?),
    })
}

/// A user and the number of its sessions.
pub(crate) fn bind_count(user: i64, binds: i64) -> Result<(SmppUserId, u32), Corrupt> {
    let binds = u32::try_from(binds).map_err(|_| Corrupt("sum of sessions"))?;
    Ok((smpp_user_id(user)?, binds))
}

pub(crate) fn smpp_user_id(number: i64) -> Result<SmppUserId, Corrupt> {
    SmppUserId::from_i64(number).ok_or(Corrupt("SMPP user ID"))
}

/// The stored form of a user.
pub(crate) struct NewColumns {
    pub(crate) account_id: i64,
    pub(crate) system_id: String,
    pub(crate) password: String,
    pub(crate) options: OptionColumns,
    pub(crate) created_us: i64,
}

impl NewColumns {
    pub(crate) fn new(user: &NewSmppUser) -> Self {
        Self {
            account_id: user.account.as_i64(),
            system_id: user.system_id.to_string(),
            password: user.password.as_str().to_owned(),
            options: OptionColumns::new(&user.options),
            created_us: micros(user.created_at),
        }
    }
}

/// The stored form of a user's options.
pub(crate) struct OptionColumns {
    /// In the order in which statements take them.
    pub(crate) texts: [String; 7],
    pub(crate) max_binds: Option<i64>,
    pub(crate) max_per_second: Option<i64>,
}

impl OptionColumns {
    pub(crate) fn new(options: &SmppUserOptions) -> Self {
        let (limits, receipts) = (&options.limits, options.receipts);
        Self {
            texts: [
                options.allow.to_string(),
                options.access_limits.senders.to_string(),
                options.access_limits.countries.to_string(),
                limits.binds.to_string(),
                receipts.date.name().to_owned(),
                receipts.id.name().to_owned(),
                receipts.error.name().to_owned(),
            ],
            max_binds: limits.max_binds.map(i64::from),
            max_per_second: limits.max_per_second.map(i64::from),
        }
    }
}

/// The stored form of sessions, in columns.
#[derive(Default)]
pub(crate) struct SessionColumns {
    pub(crate) numbers: Vec<i64>,
    pub(crate) users: Vec<i64>,
    pub(crate) reports: Vec<String>,
}

impl SessionColumns {
    pub(crate) fn new(sessions: &[SmppSession]) -> Self {
        let mut columns = Self::default();
        for session in sessions {
            columns.numbers.push(session.number.cast_signed());
            columns.users.push(session.user.as_i64());
            columns.reports.push(session.report.to_json());
        }
        columns
    }
}

/// Reads a session and its node.
pub(crate) fn read_session<R: SqlRow>(row: &R) -> Result<(NodeId, SmppSession), R::Error> {
    let report: String = row.column(3)?;
    let session = SmppSession {
        number: row.column::<i64>(1)?.cast_unsigned(),
        user: smpp_user_id(row.column(2)?)?,
        report: SessionReport::from_json(&report).ok_or(Corrupt("report of a session"))?,
    };
    Ok((node_id(row.column(0)?)?, session))
}

struct Columns {
    id: i64,
    system_id: String,
    allow_ips: String,
    senders: String,
    countries: String,
    max_binds: Option<i64>,
    max_per_second: Option<i64>,
    binds: String,
    receipt_date: String,
    receipt_id: String,
    receipt_error: String,
    created_us: i64,
    account_id: i64,
    account_name: String,
    suspended: bool,
    account_countries: String,
    approved_senders_only: bool,
    requests_per_second: i64,
}

impl Columns {
    fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            system_id: row.column(1)?,
            allow_ips: row.column(2)?,
            senders: row.column(3)?,
            countries: row.column(4)?,
            max_binds: row.column(5)?,
            max_per_second: row.column(6)?,
            binds: row.column(7)?,
            receipt_date: row.column(8)?,
            receipt_id: row.column(9)?,
            receipt_error: row.column(10)?,
            created_us: row.column(11)?,
            account_id: row.column(12)?,
            account_name: row.column(13)?,
            suspended: row.column(14)?,
            account_countries: row.column(15)?,
            approved_senders_only: row.column(16)?,
            requests_per_second: row.column(17)?,
        })
    }

    fn user(self) -> Result<SmppUser, Corrupt> {
        let access = Access {
            name: self.system_id.clone(),
            account: account_id(self.account_id)?,
            account_name: self.account_name,
            suspended: self.suspended,
            countries: parse(&self.account_countries, "country")?,
            approved_senders_only: self.approved_senders_only,
            requests_per_second: billing::per_second(self.requests_per_second)?,
            permissions: [Permission::SmsSend, Permission::SmsRead]
                .into_iter()
                .collect(),
            allow: parse(&self.allow_ips, "network")?,
            expires: None,
            grant_cap: None,
            limits: AccessLimits {
                senders: parse(&self.senders, "sender")?,
                countries: parse(&self.countries, "country")?,
            },
        };
        Ok(SmppUser {
            id: smpp_user_id(self.id)?,
            system_id: parse(&self.system_id, "system ID")?,
            access: Arc::new(access),
            limits: SmppLimits {
                max_binds: limit(self.max_binds)?,
                max_per_second: limit(self.max_per_second)?,
                binds: parse(&self.binds, "kind of bind")?,
            },
            receipts: ReceiptFormat {
                date: parse(&self.receipt_date, "receipt format")?,
                id: parse(&self.receipt_id, "receipt format")?,
                error: parse(&self.receipt_error, "receipt format")?,
            },
            created_at: timestamp(self.created_us)?,
        })
    }
}

fn parse<T: FromStr>(text: &str, what: &'static str) -> Result<T, Corrupt> {
    text.parse().map_err(|_| Corrupt(what))
}

fn limit(number: Option<i64>) -> Result<Option<u32>, Corrupt> {
    let limit = number.map(u32::try_from).transpose();
    limit.map_err(|_| Corrupt("limit of an SMPP user"))
}
