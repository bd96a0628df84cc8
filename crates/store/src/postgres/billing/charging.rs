//! Charges the submissions of a batch.

use std::collections::{BTreeMap, HashMap};

use deadpool_postgres::Transaction;
use domain::billing::{AccountFunds, NotPaid, RECIPIENT_WINDOW_US, day_of};
use domain::message::Submission;
use domain::{Money, Msisdn, Timestamp};
use tokio_postgres::Row;

use super::LOCK;
use crate::postgres::fault::Fault;
use crate::postgres::{Values, column};
use crate::rows::billing::AccountFundsColumns;
use crate::rows::{Corrupt, micros};

const READ_FUNDS: &str = concat!(
    "SELECT a.id, coalesce(l.balance_micros, 0), a.credit_limit_micros, a.daily_cap_micros, a.per_recipient_hour,
        coalesce(l.spent_day, 0), coalesce(l.spent_micros, 0), coalesce(l.id, 0)
    FROM account AS a",
    newest_entry!("a.id"),
    "WHERE a.id = ANY($1::bigint[])"
);
const CHARGE: &str = "
    INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages, spent_day, spent_micros)
    SELECT account_id, entry, at_us, 2, -cost, balance, messages, day, spent
    FROM UNNEST($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::int[], $7::bigint[],
        $8::bigint[]) AS c (account_id, entry, cost, balance, messages, day, spent, at_us)";

pub(super) const COUNT_SENT: &str = "
    SELECT s.account_id, s.recipient, count(*) FROM recipient_sent AS s
    JOIN (SELECT DISTINCT * FROM UNNEST($1::bigint[], $2::bigint[])) AS w (account_id, recipient)
        ON s.account_id = ANY(ARRAY[w.account_id]) AND s.recipient = w.recipient
    WHERE s.at_us > $3 GROUP BY s.account_id, s.recipient";
const REMEMBER_SENT: &str = "
    INSERT INTO recipient_sent (account_id, recipient, at_us, message_id)
    SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])";

/// The balances of the accounts of a batch: locked, charged in memory, written once.
#[derive(Default)]
pub(crate) struct BatchCharges {
    accounts: BTreeMap<i64, AccountCharge>,
    /// How many messages the recipients got within the last hour, for accounts with such a limit.
    sent: HashMap<(i64, i64), u64>,
    remembered: SentColumns,
}

#[derive(Default)]
struct AccountCharge {
    funds: AccountFunds,
    before: Money,
    /// The number of its newest entry.
    entry: i64,
    messages: i64,
    at_us: i64,
}

/// The parameters of [`REMEMBER_SENT`]: messages that count for a limit per recipient.
#[derive(Default)]
struct SentColumns {
    account: Vec<i64>,
    recipient: Vec<i64>,
    at_us: Vec<i64>,
    message: Vec<i64>,
}

impl BatchCharges {
    /// Locks the accounts that these submissions come from.
    pub(crate) async fn open<'a>(
        transaction: &Transaction<'_>,
        submissions: impl Iterator<Item = &'a Submission>,
    ) -> Result<Self, Fault> {
        let submissions: Vec<&Submission> = submissions.collect();
        let mut accounts = BTreeMap::new();
        for submission in &submissions {
            accounts.insert(submission.account.as_i64(), AccountCharge::default());
        }
        let mut charges = Self::lock(transaction, accounts).await?;
        charges.count_sent(transaction, &submissions).await?;
        Ok(charges)
    }

    /// Charges more for a message that is counted already.
    pub(crate) async fn charge_more(
        transaction: &Transaction<'_>,
        account: i64,
        amount: Money,
        at: Timestamp,
    ) -> Result<Result<(), NotPaid>, Fault> {
        let accounts = BTreeMap::from([(account, AccountCharge::default())]);
        let mut charges = Self::lock(transaction, accounts).await?;
        let charge = charges.accounts.entry(account).or_default();
        if let Err(not_paid) = charge.funds.charge(amount, day_of(at)) {
            return Ok(Err(not_paid));
        }
        charge.at_us = micros(at);
        charges.close(transaction).await?;
        Ok(Ok(()))
    }

    /// Locks accounts and reads their balances.
    async fn lock(
        transaction: &Transaction<'_>,
        accounts: BTreeMap<i64, AccountCharge>,
    ) -> Result<Self, Fault> {
        let mut charges = Self {
            accounts,
            ..Self::default()
        };
        let accounts: Vec<i64> = charges.accounts.keys().copied().collect();
        if accounts.is_empty() {
            return Ok(charges);
        }
        let lock = transaction.prepare_cached(LOCK).await?;
        let read = transaction.prepare_cached(READ_FUNDS).await?;
        let values: Values<'_> = &[&accounts];
        let (locked, funds_rows) = tokio::join!(
            biased;
            transaction.query(&lock, values),
            transaction.query(&read, values)
        );
        locked?;
        for row in funds_rows? {
            let funds = read_funds(&row)?;
            let charge = AccountCharge {
                funds,
                before: funds.balance,
                entry: column(&row, 7)?,
                ..AccountCharge::default()
            };
            charges.accounts.insert(column(&row, 0)?, charge);
        }
        Ok(charges)
    }

    /// Counts the messages of the last hour, for accounts with a limit per recipient.
    async fn count_sent(
        &mut self,
        transaction: &Transaction<'_>,
        submissions: &[&Submission],
    ) -> Result<(), Fault> {
        let limited = |submission: &&&Submission| {
            let charge = &self.accounts[&submission.account.as_i64()];
            charge.funds.per_recipient_hour.is_some()
        };
        let pairs = submissions.iter().filter(limited).flat_map(|submission| {
            let account = submission.account.as_i64();
            submission
                .recipients
                .iter()
                .map(move |recipient| (account, recipient.to.as_i64()))
        });
        let (accounts, recipients): (Vec<i64>, Vec<i64>) = pairs.unzip();
        if accounts.is_empty() {
            return Ok(());
        }
        let now_us = submissions
            .iter()
            .map(|submission| micros(submission.accepted_at))
            .max();
        let since_us = now_us.unwrap_or_default() - RECIPIENT_WINDOW_US;
        let statement = transaction.prepare_cached(COUNT_SENT).await?;
        let values: Values<'_> = &[&accounts, &recipients, &since_us];
        for row in transaction.query(&statement, values).await? {
            let count = u64::try_from(column::<i64>(&row, 2)?).map_err(|_| Corrupt("count"))?;
            self.sent
                .insert((column(&row, 0)?, column(&row, 1)?), count);
        }
        Ok(())
    }

    /// Charges a whole submission, or nothing.
    pub(crate) fn charge(&mut self, submission: &Submission) -> Result<(), NotPaid> {
        let account = submission.account.as_i64();
        let limit = self.accounts[&account].funds.per_recipient_hour;
        if let Some(limit) = limit
            && let Some(to) = self.find_flooded(submission, limit)
        {
            return Err(NotPaid::RecipientHour { to, limit });
        }
        let charge = self.accounts.entry(account).or_default();
        charge
            .funds
            .charge(submission.cost(), day_of(submission.accepted_at))?;
        charge.messages += i64::from(submission.receipt().messages);
        charge.at_us = charge.at_us.max(micros(submission.accepted_at));
        if limit.is_some() {
            self.remember(submission);
        }
        Ok(())
    }

    fn find_flooded(&self, submission: &Submission, limit: u32) -> Option<Msisdn> {
        let account = submission.account.as_i64();
        let recipients: Vec<Msisdn> = submission.recipients.iter().map(|one| one.to).collect();
        find_flooded(&recipients, limit, |number| {
            let sent = self.sent.get(&(account, number));
            sent.copied().unwrap_or_default()
        })
    }

    fn remember(&mut self, submission: &Submission) {
        let account = submission.account.as_i64();
        for recipient in &submission.recipients {
            let to = recipient.to.as_i64();
            *self.sent.entry((account, to)).or_default() += 1;
            self.remembered.account.push(account);
            self.remembered.recipient.push(to);
            self.remembered.at_us.push(micros(submission.accepted_at));
            self.remembered.message.push(recipient.id.as_i64());
        }
    }

    /// Writes one ledger entry for each charged account.
    pub(crate) async fn close(self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let charged = self
            .accounts
            .iter()
            .filter(|(_, charge)| charge.funds.balance != charge.before);
        let charged: Vec<(&i64, &AccountCharge)> = charged.collect();
        if !charged.is_empty() {
            let accounts: Vec<i64> = charged.iter().map(|(account, _)| **account).collect();
            let entries: Vec<i64> = charged.iter().map(|(_, charge)| charge.entry + 1).collect();
            let balance = |charge: &AccountCharge| charge.funds.balance.micros();
            let balances: Vec<i64> = charged.iter().map(|(_, charge)| balance(charge)).collect();
            let cost = |charge: &AccountCharge| charge.before.minus(charge.funds.balance).micros();
            let costs: Vec<i64> = charged.iter().map(|(_, charge)| cost(charge)).collect();
            let messages: Vec<i64> = charged.iter().map(|(_, charge)| charge.messages).collect();
            let days: Vec<i32> = charged
                .iter()
                .map(|(_, charge)| charge.funds.spent_day)
                .collect();
            let spent: Vec<i64> = charged
                .iter()
                .map(|(_, charge)| charge.funds.spent.micros())
                .collect();
            let times: Vec<i64> = charged.iter().map(|(_, charge)| charge.at_us).collect();
            let statement = transaction.prepare_cached(CHARGE).await?;
            let values: Values<'_> = &[
                &accounts, &entries, &costs, &balances, &messages, &days, &spent, &times,
            ];
            transaction.execute(&statement, values).await?;
        }
        let SentColumns {
            account,
            recipient,
            at_us,
            message,
        } = &self.remembered;
        if !account.is_empty() {
            let statement = transaction.prepare_cached(REMEMBER_SENT).await?;
            transaction
                .execute(&statement, &[account, recipient, at_us, message])
                .await?;
        }
        Ok(())
    }
}

fn read_funds(row: &Row) -> Result<AccountFunds, Corrupt> {
    AccountFundsColumns::read(row, 1)?.funds()
}

/// The first recipient that would exceed the limit of messages per hour. `sent` returns how many a number got.
pub(super) fn find_flooded(
    recipients: &[Msisdn],
    limit: u32,
    sent: impl Fn(i64) -> u64,
) -> Option<Msisdn> {
    let is_flooded = |(index, to): &(usize, &Msisdn)| {
        let before = recipients[..*index].iter().filter(|other| other == to);
        sent(to.as_i64()) + before.count() as u64 >= u64::from(limit)
    };
    let mut recipients = recipients.iter().enumerate();
    recipients.find(is_flooded).map(|(_, to)| *to)
}
