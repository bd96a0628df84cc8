//! Balances and the ledger.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::billing::{LedgerEntry, NotPaid, Purse, RECIPIENT_WINDOW_US, SpendingRules, day_of};
use domain::ids::AccountId;
use domain::message::Submission;
use domain::ports::{BillingStore, Imbalance, StoreError};
use domain::{Money, Msisdn, Timestamp};
use jiff::SignedDuration;
use tokio_postgres::{Error, Row};

use super::attempt::Attempt;
use super::fault::Fault;
use super::{PostgresStore, attempt, column};
use crate::rows::billing::{EntryColumns, ImbalanceColumns, PurseColumns, RulesColumns};
use crate::rows::{self, Corrupt, duration_us, micros};

/// Whoever reads a balance in order to change it does so in a statement after this one. In the order of the accounts, as
/// everywhere.
const LOCK: &str = "
    SELECT id FROM account WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE";
const READ_PURSES: &str = concat!(
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
/// Those to whom something is owed for messages that were ended in this transaction.
const LOCK_OWED: &str = "
    SELECT id FROM account
    WHERE id IN (
        SELECT m.account_id FROM UNNEST($1::bigint[]) AS g (id) JOIN message AS m ON m.id = ANY(ARRAY[g.id])
        WHERE m.price_micros <> 0
    )
    ORDER BY id FOR NO KEY UPDATE";
const REFUND: &str = concat!(
    "INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages, spent_day, spent_micros)
    SELECT a.id, coalesce(l.id, 0) + 1, $2::bigint, 3, owed.amount, coalesce(l.balance_micros, 0) + owed.amount,
        owed.messages, coalesce(l.spent_day, 0), coalesce(l.spent_micros, 0)
    FROM (
        SELECT m.account_id, CAST(sum(m.price_micros - ",
    cost!(),
    ") AS bigint) AS amount, count(*) AS messages
        FROM UNNEST($1::bigint[], $3::smallint[]) AS g (id, charged) JOIN message AS m ON m.id = ANY(ARRAY[g.id])
        WHERE m.price_micros <> 0 GROUP BY m.account_id
    ) AS owed JOIN account AS a ON a.id = owed.account_id",
    newest_entry!("a.id"),
);
const CREDIT: &str = concat!(
    "INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages, note, spent_day,
        spent_micros)
    SELECT a.id, coalesce(l.id, 0) + 1, $4::bigint, 1, $2, coalesce(l.balance_micros, 0) + $2, 0, $3::text,
        coalesce(l.spent_day, 0), coalesce(l.spent_micros, 0)
    FROM account AS a",
    newest_entry!("a.id"),
    "WHERE a.id = $1 RETURNING balance_micros"
);
/// Among the keys of callers, none of which is ever the same: both are hashes.
const USE_ONCE: &str = "
    WITH used AS (
        INSERT INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
        VALUES ($1, $2, $2, 1, 0, 0, $3) ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM used)";
const SET_RULES: &str = "
    WITH changed AS (
        UPDATE account SET credit_limit_micros = $2, daily_cap_micros = $3, per_recipient_hour = $4, countries = $5,
            approved_senders_only = $6, requests_per_second = $12, codes_per_day = $14, admins_consent_only = $16
        WHERE id = $1 AND ($7::bigint IS NULL OR credit_limit_micros = $7
            AND daily_cap_micros IS NOT DISTINCT FROM $8 AND per_recipient_hour IS NOT DISTINCT FROM $9
            AND countries = $10 AND approved_senders_only = $11 AND requests_per_second = $13 AND codes_per_day = $15
            AND admins_consent_only = $17)
        RETURNING id
    ), raised AS (
        UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)
    )
    SELECT id FROM changed";
const LIST_LEDGER: &str = "
    SELECT id, at_us, kind, amount_micros, balance_micros, messages, note FROM ledger
    WHERE account_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
const CHECK_LEDGER: &str = concat!(
    "WITH step AS (
        SELECT account_id, amount_micros,
            balance_micros - amount_micros <> coalesce(lag(balance_micros) OVER (PARTITION BY account_id ORDER BY id), 0)
                AS is_broken
        FROM ledger
    ), total AS (
        SELECT account_id, sum(amount_micros) AS amount, count(*) FILTER (WHERE is_broken) AS broken
        FROM step GROUP BY account_id
    )
    SELECT a.name, l.balance_micros, CAST(total.amount AS bigint), total.broken
    FROM total JOIN account AS a ON a.id = total.account_id",
    newest_entry!("a.id"),
    "WHERE l.balance_micros <> total.amount OR total.broken > 0
    ORDER BY a.id"
);

const COUNT_SENT: &str = "
    SELECT s.account_id, s.recipient, count(*) FROM recipient_sent AS s
    JOIN (SELECT DISTINCT * FROM UNNEST($1::bigint[], $2::bigint[])) AS w (account_id, recipient)
        ON s.account_id = ANY(ARRAY[w.account_id]) AND s.recipient = w.recipient
    WHERE s.at_us > $3 GROUP BY s.account_id, s.recipient";
const REMEMBER_SENT: &str = "
    INSERT INTO recipient_sent (account_id, recipient, at_us, message_id)
    SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])";
/// Rows that another node is pruning are left to it.
const PRUNE_SENT: &str = "
    WITH old AS MATERIALIZED (
        SELECT account_id, recipient, at_us, message_id FROM recipient_sent WHERE at_us <= $1
        ORDER BY at_us LIMIT $2 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM recipient_sent AS s USING old
        WHERE s.account_id = ANY(ARRAY[old.account_id]) AND s.recipient = old.recipient AND s.at_us = ANY(ARRAY[old.at_us])
            AND s.message_id = old.message_id
        RETURNING 1
    )
    SELECT count(*) FROM pruned";

/// The money of the accounts that a batch of submissions comes from: locked, charged in memory, written once.
#[derive(Default)]
pub(super) struct Till {
    open: BTreeMap<i64, Open>,
    /// How many messages recipients of accounts with such a limit got within the last hour.
    sent: HashMap<(i64, i64), u64>,
    remembered: Remembered,
}

#[derive(Default)]
struct Open {
    purse: Purse,
    before: Money,
    /// The number of its newest entry.
    entry: i64,
    messages: i64,
    at_us: i64,
}

/// Messages that count for a limit per recipient, as [`REMEMBER_SENT`] takes them.
#[derive(Default)]
struct Remembered {
    account: Vec<i64>,
    recipient: Vec<i64>,
    at_us: Vec<i64>,
    message: Vec<i64>,
}

impl Till {
    /// Locks the accounts that these submissions come from.
    pub(super) async fn open<'a>(
        transaction: &Transaction<'_>,
        submissions: impl Iterator<Item = &'a Submission>,
    ) -> Result<Self, Fault> {
        let submissions: Vec<&Submission> = submissions.collect();
        let mut till = Self::default();
        for submission in &submissions {
            till.open.entry(submission.account.as_i64()).or_default();
        }
        let accounts: Vec<i64> = till.open.keys().copied().collect();
        if accounts.is_empty() {
            return Ok(till);
        }
        let lock = transaction.prepare_cached(LOCK).await?;
        let read = transaction.prepare_cached(READ_PURSES).await?;
        let values: super::Values<'_> = &[&accounts];
        let (locked, purses) = tokio::join!(
            biased;
            transaction.query(&lock, values),
            transaction.query(&read, values)
        );
        locked?;
        for row in purses? {
            let purse = read_purse(&row)?;
            let open = Open {
                purse,
                before: purse.balance,
                entry: column(&row, 7)?,
                ..Open::default()
            };
            till.open.insert(column(&row, 0)?, open);
        }
        till.count_sent(transaction, &submissions).await?;
        Ok(till)
    }

    /// Counts what the recipients got that some limit is about.
    async fn count_sent(
        &mut self,
        transaction: &Transaction<'_>,
        submissions: &[&Submission],
    ) -> Result<(), Fault> {
        let limited = |submission: &&&Submission| {
            let open = &self.open[&submission.account.as_i64()];
            open.purse.per_recipient_hour.is_some()
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
        let values: super::Values<'_> = &[&accounts, &recipients, &since_us];
        for row in transaction.query(&statement, values).await? {
            let count = u64::try_from(column::<i64>(&row, 2)?).map_err(|_| Corrupt("count"))?;
            self.sent
                .insert((column(&row, 0)?, column(&row, 1)?), count);
        }
        Ok(())
    }

    /// Charges a submission, all of it or nothing.
    pub(super) fn charge(&mut self, submission: &Submission) -> Result<(), NotPaid> {
        let account = submission.account.as_i64();
        let limit = self.open[&account].purse.per_recipient_hour;
        if let Some(limit) = limit
            && let Some(to) = self.find_flooded(submission, limit)
        {
            return Err(NotPaid::RecipientHour { to, limit });
        }
        let open = self.open.entry(account).or_default();
        open.purse
            .charge(submission.cost(), day_of(submission.accepted_at))?;
        open.messages += i64::from(submission.receipt().messages);
        open.at_us = open.at_us.max(micros(submission.accepted_at));
        if limit.is_some() {
            self.remember(submission);
        }
        Ok(())
    }

    /// The first recipient that would get more messages within an hour than it may.
    fn find_flooded(&self, submission: &Submission, limit: u32) -> Option<Msisdn> {
        let account = submission.account.as_i64();
        let recipients = &submission.recipients;
        let is_flooded = |place: usize| {
            let to = recipients[place].to;
            let sent = self
                .sent
                .get(&(account, to.as_i64()))
                .copied()
                .unwrap_or_default();
            let before = recipients[..place]
                .iter()
                .filter(|other| other.to == to)
                .count();
            sent + before as u64 >= u64::from(limit)
        };
        (0..recipients.len())
            .find(|&place| is_flooded(place))
            .map(|place| recipients[place].to)
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

    /// Writes what was charged: one entry for each account.
    pub(super) async fn close(self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let charged = self
            .open
            .iter()
            .filter(|(_, open)| open.purse.balance != open.before);
        let charged: Vec<(&i64, &Open)> = charged.collect();
        if !charged.is_empty() {
            let accounts: Vec<i64> = charged.iter().map(|(account, _)| **account).collect();
            let entries: Vec<i64> = charged.iter().map(|(_, open)| open.entry + 1).collect();
            let balance = |open: &Open| open.purse.balance.micros();
            let balances: Vec<i64> = charged.iter().map(|(_, open)| balance(open)).collect();
            let cost = |open: &Open| open.before.minus(open.purse.balance).micros();
            let costs: Vec<i64> = charged.iter().map(|(_, open)| cost(open)).collect();
            let messages: Vec<i64> = charged.iter().map(|(_, open)| open.messages).collect();
            let days: Vec<i32> = charged
                .iter()
                .map(|(_, open)| open.purse.spent_day)
                .collect();
            let spent: Vec<i64> = charged
                .iter()
                .map(|(_, open)| open.purse.spent.micros())
                .collect();
            let times: Vec<i64> = charged.iter().map(|(_, open)| open.at_us).collect();
            let statement = transaction.prepare_cached(CHARGE).await?;
            let values: super::Values<'_> = &[
                &accounts, &entries, &costs, &balances, &messages, &days, &spent, &times,
            ];
            transaction.execute(&statement, values).await?;
        }
        let Remembered {
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

/// Locks accounts and then does what reads and adds to their ledgers, in one transaction and one round trip: all of it is
/// on its way before the first answer comes, the end too, so that nothing can be left half done.
pub(super) async fn with_locked<T>(
    client: &Object,
    accounts: &[i64],
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Fault> {
    let lock = client.prepare_cached(LOCK).await?;
    let values: super::Values<'_> = &[&accounts];
    let (begun, locked, done, committed) = tokio::join!(
        biased;
        client.batch_execute("BEGIN"),
        client.query(&lock, values),
        work,
        client.batch_execute("COMMIT")
    );
    begun?;
    locked?;
    let done = done?;
    committed?;
    Ok(done)
}

/// Gives back the price of messages that this transaction ended.
pub(super) async fn refund(
    transaction: &Transaction<'_>,
    messages: &[(i64, i16)],
    at_us: i64,
) -> Result<(), Fault> {
    let (ids, charged): (Vec<i64>, Vec<i16>) = messages.iter().copied().unzip();
    let lock = transaction.prepare_cached(LOCK_OWED).await?;
    let statement = transaction.prepare_cached(REFUND).await?;
    let values: super::Values<'_> = &[&ids, &at_us, &charged];
    let (locked, refunded) = tokio::join!(
        biased;
        transaction.query(&lock, &values[..1]),
        transaction.execute(&statement, values)
    );
    locked?;
    refunded?;
    Ok(())
}

/// Money that whoever runs the service adds or takes off.
struct Credit<'a> {
    account: i64,
    amount: Money,
    note: Option<&'a str>,
    at_us: i64,
}

impl Attempt for Credit<'_> {
    type Output = Option<Money>;

    async fn run(&self, client: &mut Object) -> Result<Option<Money>, Fault> {
        let client = &*client;
        let statement = client.prepare_cached(CREDIT).await?;
        let amount = self.amount.micros();
        let values: super::Values<'_> = &[&self.account, &amount, &self.note, &self.at_us];
        let credit = client.query_opt(&statement, values);
        let credited = with_locked(client, &[self.account], credit).await?;
        let balance = credited.map(|row| column(&row, 0)).transpose()?;
        Ok(balance.map(Money::from_micros))
    }
}

#[async_trait]
impl BillingStore for PostgresStore {
    async fn credit(
        &self,
        account: AccountId,
        amount: Money,
        note: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Money>, StoreError> {
        let credit = Credit {
            account: account.as_i64(),
            amount,
            note,
            at_us: micros(now),
        };
        attempt::run(&self.pool, "credit an account", &credit).await
    }

    async fn use_once(
        &self,
        account: AccountId,
        key: &[u8; 32],
        expires: Timestamp,
    ) -> Result<bool, StoreError> {
        let values = (account.as_i64(), key.as_slice(), micros(expires));
        let values: super::Values<'_> = &[&values.0, &values.1, &values.2];
        let read = |row: &Row| column(row, 0);
        self.get("use a key once", USE_ONCE, values, read).await
    }

    async fn set_rules(
        &self,
        account: AccountId,
        from: Option<&SpendingRules>,
        rules: &SpendingRules,
    ) -> Result<bool, StoreError> {
        let columns = RulesColumns::of(rules);
        let before = from.map(RulesColumns::of);
        let before = before.as_ref();
        let account = account.as_i64();
        let values: super::Values<'_> = &[
            &account,
            &columns.credit_limit_micros,
            &columns.daily_cap_micros,
            &columns.per_recipient_hour,
            &columns.countries,
            &columns.approved_senders_only,
            &before.map(|before| before.credit_limit_micros),
            &before.and_then(|before| before.daily_cap_micros),
            &before.and_then(|before| before.per_recipient_hour),
            &before.map(|before| before.countries.as_str()),
            &before.map(|before| before.approved_senders_only),
            &columns.requests_per_second,
            &before.map(|before| before.requests_per_second),
            &columns.codes_per_day,
            &before.map(|before| before.codes_per_day),
            &columns.admins_consent_only,
            &before.map(|before| before.admins_consent_only),
        ];
        let changed = self
            .query("change what an account may spend", SET_RULES, values)
            .await?;
        Ok(!changed.is_empty())
    }

    async fn list_ledger(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let values = (account.as_i64(), rows::before(before), i64::from(limit));
        let values: super::Values<'_> = &[&values.0, &values.1, &values.2];
        self.list("list the ledger", LIST_LEDGER, values, read_entry)
            .await
    }

    async fn check_ledger(&self) -> Result<Vec<Imbalance>, StoreError> {
        self.list("check the ledger", CHECK_LEDGER, &[], read_imbalance)
            .await
    }

    async fn fold_ledger(&self, age: SignedDuration, limit: u32) -> Result<bool, StoreError> {
        self.fold_next(duration_us(age), limit).await
    }

    async fn prune_recipients(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values = (micros(now) - RECIPIENT_WINDOW_US, i64::from(limit));
        let read = |row: &Row| u64::try_from(column::<i64>(row, 0)?).map_err(|_| Corrupt("count"));
        self.get(
            "prune recipients",
            PRUNE_SENT,
            &[&values.0, &values.1],
            read,
        )
        .await
    }
}

fn read_purse(row: &Row) -> Result<Purse, Corrupt> {
    let columns = PurseColumns {
        balance_micros: column(row, 1)?,
        credit_limit_micros: column(row, 2)?,
        daily_cap_micros: column(row, 3)?,
        per_recipient_hour: column(row, 4)?,
        spent_day: column(row, 5)?,
        spent_micros: column(row, 6)?,
    };
    columns.purse()
}

fn read_entry(row: &Row) -> Result<LedgerEntry, Corrupt> {
    let columns = EntryColumns {
        id: column(row, 0)?,
        at_us: column(row, 1)?,
        kind: column(row, 2)?,
        amount_micros: column(row, 3)?,
        balance_micros: column(row, 4)?,
        messages: column(row, 5)?,
        note: column(row, 6)?,
    };
    columns.entry()
}

fn read_imbalance(row: &Row) -> Result<Imbalance, Corrupt> {
    let columns = ImbalanceColumns {
        account: column(row, 0)?,
        balance_micros: column(row, 1)?,
        entries_micros: column(row, 2)?,
        broken_steps: column(row, 3)?,
    };
    columns.imbalance()
}
