//! Rows of balances, the ledger and catalogues.

use domain::billing::{AccountFunds, EntryKind, LedgerEntry, SpendingRules};
use domain::ports::{CatalogueEntry, CatalogueKind, Imbalance};
use domain::{Money, Network};

use super::{Corrupt, SqlRow, timestamp};

/// The columns of an account's rules.
pub(crate) struct RulesColumns {
    pub(crate) credit_limit_micros: i64,
    pub(crate) daily_cap_micros: Option<i64>,
    pub(crate) per_recipient_hour: Option<i64>,
    pub(crate) countries: String,
    pub(crate) approved_senders_only: bool,
    pub(crate) requests_per_second: i64,
    pub(crate) codes_per_day: i64,
    pub(crate) admins_consent_only: bool,
    pub(crate) texts_for: String,
    pub(crate) low_balance_micros: Option<i64>,
    pub(crate) ported_numbers: bool,
    pub(crate) verify_price_micros: i64,
}

impl RulesColumns {
    /// The columns from `first` on.
    pub(crate) fn read<R: SqlRow>(row: &R, first: usize) -> Result<Self, R::Error> {
        Ok(Self {
            credit_limit_micros: row.column(first)?,
            daily_cap_micros: row.column(first + 1)?,
            per_recipient_hour: row.column(first + 2)?,
            countries: row.column(first + 3)?,
            approved_senders_only: row.column(first + 4)?,
            requests_per_second: row.column(first + 5)?,
            codes_per_day: row.column(first + 6)?,
            admins_consent_only: row.column(first + 7)?,
            texts_for: row.column(first + 8)?,
            low_balance_micros: row.column(first + 9)?,
            ported_numbers: row.column(first + 10)?,
            verify_price_micros: row.column(first + 11)?,
        })
    }

    pub(crate) fn from_rules(rules: &SpendingRules) -> Self {
        Self {
            credit_limit_micros: rules.credit_limit.micros(),
            daily_cap_micros: rules.daily_cap.map(Money::micros),
            per_recipient_hour: rules.per_recipient_hour.map(i64::from),
            countries: rules.countries.to_string(),
            approved_senders_only: rules.approved_senders_only,
            requests_per_second: i64::from(rules.requests_per_second),
            codes_per_day: i64::from(rules.codes_per_day),
            admins_consent_only: rules.admins_consent_only,
            texts_for: rules.texts_for.to_string(),
            low_balance_micros: rules.low_balance.map(Money::micros),
            ported_numbers: rules.ported_numbers,
            verify_price_micros: rules.verify_price.micros(),
        }
    }

    pub(crate) fn rules(&self) -> Result<SpendingRules, Corrupt> {
        Ok(SpendingRules {
            credit_limit: Money::from_micros(self.credit_limit_micros),
            daily_cap: self.daily_cap_micros.map(Money::from_micros),
            per_recipient_hour: per_hour(self.per_recipient_hour)?,
            countries: self.countries.parse().map_err(|_| Corrupt("country"))?,
            approved_senders_only: self.approved_senders_only,
            requests_per_second: per_second(self.requests_per_second)?,
            codes_per_day: u32::try_from(self.codes_per_day)
                .map_err(|_| Corrupt("codes per day"))?,
            admins_consent_only: self.admins_consent_only,
            texts_for: self.texts_for.parse().map_err(|_| Corrupt("role"))?,
            low_balance: self.low_balance_micros.map(Money::from_micros),
            ported_numbers: self.ported_numbers,
            verify_price: Money::from_micros(self.verify_price_micros),
        })
    }
}

/// The request rate of an account.
pub(crate) fn per_second(number: i64) -> Result<u32, Corrupt> {
    u32::try_from(number).map_err(|_| Corrupt("request rate"))
}

fn per_hour(number: Option<i64>) -> Result<Option<u32>, Corrupt> {
    let limit = number.map(u32::try_from).transpose();
    limit.map_err(|_| Corrupt("limit per recipient"))
}

/// The columns of an account's money, in the order in which both databases select them.
pub(crate) struct AccountFundsColumns {
    pub(crate) balance_micros: i64,
    pub(crate) credit_limit_micros: i64,
    pub(crate) daily_cap_micros: Option<i64>,
    pub(crate) per_recipient_hour: Option<i64>,
    pub(crate) spent_day: i32,
    pub(crate) spent_micros: i64,
}

impl AccountFundsColumns {
    /// The columns from `first` on.
    pub(crate) fn read<R: SqlRow>(row: &R, first: usize) -> Result<Self, R::Error> {
        Ok(Self {
            balance_micros: row.column(first)?,
            credit_limit_micros: row.column(first + 1)?,
            daily_cap_micros: row.column(first + 2)?,
            per_recipient_hour: row.column(first + 3)?,
            spent_day: row.column(first + 4)?,
            spent_micros: row.column(first + 5)?,
        })
    }

    pub(crate) fn funds(&self) -> Result<AccountFunds, Corrupt> {
        Ok(AccountFunds {
            balance: Money::from_micros(self.balance_micros),
            credit_limit: Money::from_micros(self.credit_limit_micros),
            daily_cap: self.daily_cap_micros.map(Money::from_micros),
            per_recipient_hour: per_hour(self.per_recipient_hour)?,
            spent_day: self.spent_day,
            spent: Money::from_micros(self.spent_micros),
        })
    }
}

/// The columns of a ledger entry.
pub(crate) struct EntryColumns {
    pub(crate) id: i64,
    pub(crate) at_us: i64,
    pub(crate) kind: i16,
    pub(crate) amount_micros: i64,
    pub(crate) balance_micros: i64,
    pub(crate) messages: i64,
    pub(crate) note: Option<String>,
}

impl EntryColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            at_us: row.column(1)?,
            kind: row.column(2)?,
            amount_micros: row.column(3)?,
            balance_micros: row.column(4)?,
            messages: row.column(5)?,
            note: row.column(6)?,
        })
    }

    pub(crate) fn entry(self) -> Result<LedgerEntry, Corrupt> {
        Ok(LedgerEntry {
            id: u64::try_from(self.id).map_err(|_| Corrupt("ID of a ledger entry"))?,
            at: timestamp(self.at_us)?,
            kind: EntryKind::from_number(self.kind).ok_or(Corrupt("kind of ledger entry"))?,
            amount: Money::from_micros(self.amount_micros),
            balance: Money::from_micros(self.balance_micros),
            messages: count(self.messages)?,
            note: self.note,
        })
    }
}

/// The columns of an account with a ledger that does not add up to its balance.
pub(crate) struct ImbalanceColumns {
    pub(crate) account: String,
    pub(crate) balance_micros: i64,
    pub(crate) entries_micros: i64,
    pub(crate) broken_steps: i64,
}

impl ImbalanceColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            account: row.column(0)?,
            balance_micros: row.column(1)?,
            entries_micros: row.column(2)?,
            broken_steps: row.column(3)?,
        })
    }

    pub(crate) fn imbalance(self) -> Result<Imbalance, Corrupt> {
        Ok(Imbalance {
            account: self.account,
            balance: Money::from_micros(self.balance_micros),
            entries: Money::from_micros(self.entries_micros),
            broken_steps: count(self.broken_steps)?.into(),
        })
    }
}

/// The columns of a version of a catalogue.
pub(crate) struct CatalogueColumns {
    pub(crate) kind: i16,
    pub(crate) account_id: i64,
    pub(crate) version: i64,
    pub(crate) at_us: i64,
    pub(crate) row_count: i64,
}

impl CatalogueColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            kind: row.column(0)?,
            account_id: row.column(1)?,
            version: row.column(2)?,
            at_us: row.column(3)?,
            row_count: row.column(4)?,
        })
    }

    /// `None` for a kind that only a newer version knows.
    pub(crate) fn known_entry(&self) -> Result<Option<CatalogueEntry>, Corrupt> {
        let kind = CatalogueKind::from_numbers(self.kind, self.account_id);
        kind.map(|_| self.entry()).transpose()
    }

    pub(crate) fn entry(&self) -> Result<CatalogueEntry, Corrupt> {
        let kind = CatalogueKind::from_numbers(self.kind, self.account_id);
        Ok(CatalogueEntry {
            kind: kind.ok_or(Corrupt("kind of catalogue"))?,
            version: count(self.version)?,
            at: timestamp(self.at_us)?,
            rows: count(self.row_count)?,
        })
    }
}

/// Reads a network.
pub(crate) fn network(code: Option<i32>) -> Result<Option<Network>, Corrupt> {
    let read = |code| Network::from_code(code).ok_or(Corrupt("network"));
    code.map(read).transpose()
}

fn count(number: i64) -> Result<u32, Corrupt> {
    u32::try_from(number).map_err(|_| Corrupt("count"))
}
