//! Tokens with their account.

use domain::access::{Access, AccessLimits};
use domain::billing::GrantCap;
use domain::ports::TokenRecord;
use domain::{Money, Permissions};

use super::{Corrupt, SqlRow, account_id, billing, oauth, timestamp, token_id};

/// The columns of a token and its account.
pub(crate) struct TokenColumns {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) account_id: i64,
    pub(crate) account_name: String,
    pub(crate) suspended: bool,
    pub(crate) countries: String,
    pub(crate) approved_senders_only: bool,
    pub(crate) permissions: String,
    pub(crate) allow_ips: String,
    pub(crate) expires_us: Option<i64>,
    pub(crate) created_us: i64,
    pub(crate) last_used_us: Option<i64>,
    pub(crate) grant_id: Option<i64>,
    pub(crate) requests_per_second: i64,
    pub(crate) daily_cap_micros: Option<i64>,
}

impl TokenColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            name: row.column(1)?,
            account_id: row.column(2)?,
            account_name: row.column(3)?,
            suspended: row.column(4)?,
            permissions: row.column(5)?,
            allow_ips: row.column(6)?,
            expires_us: row.column(7)?,
            created_us: row.column(8)?,
            countries: row.column(9)?,
            approved_senders_only: row.column(10)?,
            last_used_us: row.column(11)?,
            grant_id: row.column(12)?,
            requests_per_second: row.column(13)?,
            daily_cap_micros: row.column(14)?,
        })
    }

    pub(crate) fn record(self) -> Result<TokenRecord, Corrupt> {
        let grant = self.grant_id.map(oauth::grant_id).transpose()?;
        let daily_cap = self.daily_cap_micros.map(Money::from_micros);
        let grant_cap = grant.zip(daily_cap);
        Ok(TokenRecord {
            id: token_id(self.id)?,
            access: Access {
                name: self.name,
                account: account_id(self.account_id)?,
                account_name: self.account_name,
                suspended: self.suspended,
                countries: self.countries.parse().map_err(|_| Corrupt("country"))?,
                approved_senders_only: self.approved_senders_only,
                requests_per_second: billing::per_second(self.requests_per_second)?,
                permissions: Permissions::from_names(&self.permissions)
                    .map_err(|_| Corrupt("permission"))?,
                allow: self.allow_ips.parse().map_err(|_| Corrupt("network"))?,
                expires: self.expires_us.map(timestamp).transpose()?,
                grant_cap: grant_cap.map(|(grant, daily)| GrantCap { grant, daily }),
                limits: AccessLimits::default(),
            },
            created_at: timestamp(self.created_us)?,
            last_used_at: self.last_used_us.map(timestamp).transpose()?,
            grant,
        })
    }
}
