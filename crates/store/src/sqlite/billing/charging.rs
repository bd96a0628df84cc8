//! Charges the submissions of a batch.

use domain::billing::{AccountFunds, NotPaid, RECIPIENT_WINDOW_US, day_of};
use domain::message::Submission;
use domain::{Money, Msisdn, Timestamp};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::account_with_balance;
use crate::rows::billing::AccountFundsColumns;
use crate::rows::micros;

const FIND_FUNDS: &str = concat!(
    "SELECT coalesce(l.balance_micros, 0), a.credit_limit_micros, a.daily_cap_micros, a.per_recipient_hour,
        coalesce(l.spent_day, 0), coalesce(l.spent_micros, 0) FROM",
    account_with_balance!(),
    "WHERE a.id = ?1"
);
const CHARGE: &str = "
    INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages, spent_day, spent_micros)
    SELECT ?1, coalesce(max(id), 0) + 1, ?2, 2, ?3, ?4, ?5, ?6, ?7 FROM ledger WHERE account_id = ?1";
const COUNT_SENT: &str = "
    SELECT count(*) FROM recipient_sent WHERE account_id = ?1 AND recipient = ?2 AND at_us > ?3";
const REMEMBER_SENT: &str =
    "INSERT INTO recipient_sent (account_id, recipient, at_us, message_id) VALUES (?1, ?2, ?3, ?4)";

/// The balances of the accounts of a batch: read once, charged in memory, written once.
pub(crate) struct BatchCharges<'db> {
    db: &'db Connection,
    accounts: Vec<AccountCharge>,
}

struct AccountCharge {
    account_id: i64,
    funds: AccountFunds,
    before: Money,
    messages: u32,
    at_us: i64,
}

impl<'db> BatchCharges<'db> {
    pub(crate) fn new(db: &'db Connection) -> Self {
        Self {
            db,
            accounts: Vec::new(),
        }
    }

    /// Charges a whole submission, or nothing.
    pub(crate) fn charge(
        &mut self,
        submission: &Submission,
    ) -> Result<std::result::Result<(), NotPaid>> {
        if submission.test_mode.is_some() {
            return Ok(Ok(()));
        }
        let index = self.index_of(submission.account.as_i64())?;
        let per_hour = self.accounts[index].funds.per_recipient_hour;
        if let Some(limit) = per_hour
            && let Some(to) = find_flooded_of(self.db, submission, limit)?
        {
            return Ok(Err(NotPaid::RecipientHour { to, limit }));
        }
        let account = &mut self.accounts[index];
        let day = day_of(submission.accepted_at);
        if let Err(not_paid) = account.funds.charge(submission.cost(), day) {
            return Ok(Err(not_paid));
        }
        account.messages += submission.receipt().messages;
        account.at_us = micros(submission.accepted_at);
        if per_hour.is_some() {
            remember(self.db, submission)?;
        }
        Ok(Ok(()))
    }

    fn index_of(&mut self, account_id: i64) -> Result<usize> {
        let known = self
            .accounts
            .iter()
            .position(|account| account.account_id == account_id);
        if let Some(index) = known {
            return Ok(index);
        }
        let funds = find_funds(self.db, account_id)?.unwrap_or_default();
        self.accounts.push(AccountCharge {
            account_id,
            funds,
            before: funds.balance,
            messages: 0,
            at_us: 0,
        });
        Ok(self.accounts.len() - 1)
    }

    /// Writes one ledger entry for each charged account.
    pub(crate) fn close(self) -> Result<()> {
        for account in self
            .accounts
            .iter()
            .filter(|account| account.funds.balance != account.before)
        {
            self.db.prepare_cached(CHARGE)?.execute(params![
                account.account_id,
                account.at_us,
                account.funds.balance.minus(account.before).micros(),
                account.funds.balance.micros(),
                account.messages,
                account.funds.spent_day,
                account.funds.spent.micros(),
            ])?;
        }
        Ok(())
    }
}

/// Charges more for a message that is counted already.
pub(crate) fn charge_more(
    db: &Connection,
    account_id: i64,
    amount: Money,
    at: Timestamp,
) -> Result<std::result::Result<(), NotPaid>> {
    let mut charges = BatchCharges::new(db);
    let index = charges.index_of(account_id)?;
    let account = &mut charges.accounts[index];
    if let Err(not_paid) = account.funds.charge(amount, day_of(at)) {
        return Ok(Err(not_paid));
    }
    account.at_us = micros(at);
    charges.close()?;
    Ok(Ok(()))
}

fn find_flooded_of(db: &Connection, submission: &Submission, limit: u32) -> Result<Option<Msisdn>> {
    let recipients: Vec<Msisdn> = submission.recipients.iter().map(|one| one.to).collect();
    let account_id = submission.account.as_i64();
    find_flooded(db, account_id, &recipients, limit, submission.accepted_at)
}

/// The first recipient that would exceed the limit of messages per hour.
pub(super) fn find_flooded(
    db: &Connection,
    account_id: i64,
    recipients: &[Msisdn],
    limit: u32,
    now: Timestamp,
) -> Result<Option<Msisdn>> {
    let since_us = micros(now) - RECIPIENT_WINDOW_US;
    let mut count = db.prepare_cached(COUNT_SENT)?;
    for (index, to) in recipients.iter().enumerate() {
        let values = [account_id, to.as_i64(), since_us];
        let sent: i64 = count.query_row(values, |row| row.get(0))?;
        let before = recipients[..index].iter().filter(|other| *other == to);
        if sent.unsigned_abs() + before.count() as u64 >= u64::from(limit) {
            return Ok(Some(*to));
        }
    }
    Ok(None)
}

fn remember(db: &Connection, submission: &Submission) -> Result<()> {
    let mut remember = db.prepare_cached(REMEMBER_SENT)?;
    for recipient in &submission.recipients {
        remember.execute([
            submission.account.as_i64(),
            recipient.to.as_i64(),
            micros(submission.accepted_at),
            recipient.id.as_i64(),
        ])?;
    }
    Ok(())
}

pub(super) fn find_funds(db: &Connection, account_id: i64) -> Result<Option<AccountFunds>> {
    let mut statement = db.prepare_cached(FIND_FUNDS)?;
    statement.query_row([account_id], funds).optional()
}

fn funds(row: &Row<'_>) -> Result<AccountFunds> {
    Ok(AccountFundsColumns::read(row, 0)?.funds()?)
}
