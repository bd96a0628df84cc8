//! Rows that monitoring reads.

use domain::Money;
use domain::ports::{AccountBalance, PooledMessages, WaitingMessages};

use super::dispatch::priority;
use super::{Corrupt, SqlRow, account_id, timestamp};

/// The limit of counting, as a parameter.
pub(crate) const MOST: i64 = WaitingMessages::MOST as i64;

pub(crate) struct WaitingColumns {
    lane: i16,
    count: i64,
    oldest_us: Option<i64>,
}

impl WaitingColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            lane: row.column(0)?,
            count: row.column(1)?,
            oldest_us: row.column(2)?,
        })
    }

    pub(crate) fn waiting(&self) -> Result<WaitingMessages, Corrupt> {
        Ok(WaitingMessages {
            priority: priority(self.lane)?,
            count: count(self.count)?,
            oldest_due_at: self.oldest_us.map(timestamp).transpose()?,
        })
    }
}

pub(crate) struct PooledColumns {
    carrier: String,
    count: i64,
    oldest_us: Option<i64>,
}

impl PooledColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            carrier: row.column(0)?,
            count: row.column(1)?,
            oldest_us: row.column(2)?,
        })
    }

    pub(crate) fn pooled(&self) -> Result<PooledMessages, Corrupt> {
        let carrier = self.carrier.strip_prefix('=').unwrap_or(&self.carrier);
        Ok(PooledMessages {
            carrier: carrier.to_owned(),
            count: count(self.count)?,
            oldest_due_at: self.oldest_us.map(timestamp).transpose()?,
        })
    }
}

pub(crate) struct BalanceColumns {
    id: i64,
    name: String,
    credit_limit_micros: i64,
    balance_micros: i64,
    spent_day: i32,
    spent_micros: i64,
    low_balance_micros: Option<i64>,
}

impl BalanceColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            name: row.column(1)?,
            credit_limit_micros: row.column(2)?,
            balance_micros: row.column(3)?,
            spent_day: row.column(4)?,
            spent_micros: row.column(5)?,
            low_balance_micros: row.column(6)?,
        })
    }

    pub(crate) fn balance(self) -> Result<AccountBalance, Corrupt> {
        Ok(AccountBalance {
            id: account_id(self.id)?,
            name: self.name,
            balance: Money::from_micros(self.balance_micros),
            credit_limit: Money::from_micros(self.credit_limit_micros),
            spent_day: self.spent_day,
            spent: Money::from_micros(self.spent_micros),
            low_balance: self.low_balance_micros.map(Money::from_micros),
        })
    }
}

fn count(number: i64) -> Result<u32, Corrupt> {
    u32::try_from(number).map_err(|_| Corrupt("count"))
}

/// A size in bytes.
pub(crate) fn bytes(number: i64) -> Result<u64, Corrupt> {
    u64::try_from(number).map_err(|_| Corrupt("size"))
}
