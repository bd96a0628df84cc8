//! Sums of ledger entries over a period.

use domain::Money;
use domain::ports::LedgerTotals;

use super::history::TimeSearch;
use super::{Corrupt, SqlRow};

/// How many entries one step adds up.
pub(crate) const STEP: u32 = 20_000;
/// How often the ledger is added up again if it was folded meanwhile.
pub(crate) const ATTEMPTS: u32 = 5;

/// The ledger was folded each time while it was added up.
#[derive(Debug, thiserror::Error)]
#[error("the ledger keeps changing while it is added up; try again")]
pub(crate) struct KeepsChanging;

/// The searches for the entries of a period. Entries are in the order of their times, except for clocks that differ and
/// for folded entries, which stay within their day.
pub(crate) fn searches(since_us: i64, until_us: i64, first: i64, last: i64) -> [TimeSearch; 2] {
    [
        TimeSearch::before(since_us, first, last),
        TimeSearch::after(until_us, first, last),
    ]
}

/// The sums of some consecutive entries.
pub(crate) struct SumColumns {
    last: Option<i64>,
    entries: i64,
    all: i64,
    before: i64,
    credits: i64,
    corrections: i64,
    charges: i64,
    charged_messages: i64,
    refunds: i64,
    refunded_messages: i64,
    inbound: i64,
    inbound_messages: i64,
    verifications: i64,
    approved_verifications: i64,
}

impl SumColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            last: row.column(0)?,
            entries: row.column(1)?,
            all: row.column(2)?,
            before: row.column(3)?,
            credits: row.column(4)?,
            corrections: row.column(5)?,
            charges: row.column(6)?,
            charged_messages: row.column(7)?,
            refunds: row.column(8)?,
            refunded_messages: row.column(9)?,
            inbound: row.column(10)?,
            inbound_messages: row.column(11)?,
            verifications: row.column(12)?,
            approved_verifications: row.column(13)?,
        })
    }
}

/// Adds up the entries between two IDs.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) after: i64,
    pub(crate) end: i64,
    balance: i64,
    totals: LedgerTotals,
}

impl Sums {
    /// `balance` is the balance after the entry `after`.
    pub(crate) fn new(after: i64, end: i64, balance: i64) -> Self {
        let opening = Money::from_micros(balance);
        let totals = LedgerTotals {
            opening,
            ..LedgerTotals::default()
        };
        Self {
            after,
            end,
            balance,
            totals,
        }
    }

    /// Adds some entries; returns whether there are more.
    pub(crate) fn add(&mut self, sums: &SumColumns) -> Result<bool, Corrupt> {
        let count = |number: i64| u64::try_from(number).map_err(|_| Corrupt("count"));
        let add = |sum: &mut Money, micros: i64| *sum = sum.plus(Money::from_micros(micros));
        let totals = &mut self.totals;
        add(&mut totals.opening, sums.before);
        add(&mut totals.credits, sums.credits);
        add(&mut totals.corrections, sums.corrections);
        add(&mut totals.charges, sums.charges);
        add(&mut totals.refunds, sums.refunds);
        add(&mut totals.inbound, sums.inbound);
        add(&mut totals.verifications, sums.verifications);
        totals.charged_messages += count(sums.charged_messages)?;
        totals.refunded_messages += count(sums.refunded_messages)?;
        totals.inbound_messages += count(sums.inbound_messages)?;
        totals.approved_verifications += count(sums.approved_verifications)?;
        self.balance = self.balance.saturating_add(sums.all);
        self.after = sums.last.unwrap_or(self.after);
        Ok(sums.entries >= i64::from(STEP))
    }

    /// The totals, if the entries lead to the balance of the last one; `None` if they were folded meanwhile.
    pub(crate) fn totals(&self, balance: i64) -> Option<LedgerTotals> {
        (self.balance == balance).then_some(self.totals)
    }
}
