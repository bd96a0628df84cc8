//! The port for balances, the ledger and spending rules.

use std::collections::HashMap;

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::billing::{
    AccountFunds, EntryKind, GrantCap, LedgerEntry, NotPaid, RECIPIENT_WINDOW_US, SpendingRules,
};
use domain::ids::{AccountId, GrantId};
use domain::ports::{BillingStore, Imbalance, StoreError};
use domain::{Money, Msisdn, Timestamp};
use jiff::SignedDuration;
use tokio_postgres::{Error, Row};

use super::fault::Fault;
use super::retry::Retryable;
use super::transaction::execute;
use super::{PostgresStore, column, retry};
use crate::rows::billing::{AccountFundsColumns, EntryColumns, ImbalanceColumns, RulesColumns};
use crate::rows::{self, Corrupt, duration_us, micros};
use crate::sql::{billing as sql, oauth as grants};

mod charging;

pub(super) use charging::BatchCharges;

/// To change a balance, lock its account first and read the balance in a later statement. Accounts are locked in the
/// order of their IDs, as everywhere.
const LOCK: &str = "
    SELECT id FROM account WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE";
const FIND_FUNDS: &str = "
    SELECT coalesce(l.balance_micros, 0), a.credit_limit_micros, a.daily_cap_micros, a.per_recipient_hour,
        coalesce(l.spent_day, 0), coalesce(l.spent_micros, 0)
    FROM account AS a LEFT JOIN ledger AS l
        ON l.account_id = a.id AND l.id = (SELECT max(id) FROM ledger WHERE account_id = a.id)
    WHERE a.id = $1";
/// Locks the accounts that get a refund for messages that ended in this transaction.
const LOCK_FOR_REFUND: &str = "
    SELECT id FROM account
    WHERE id = ANY(ARRAY(
        SELECT m.account_id FROM UNNEST($1::bigint[]) AS g (id) JOIN message AS m ON m.id = ANY(ARRAY[g.id])
        WHERE m.price_micros <> 0
    ))
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
const CHARGE_DONE: &str = concat!(
    "INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages, spent_day, spent_micros)
    SELECT a.id, coalesce(l.id, 0) + 1, ",
    now_us!(),
    ", $3::smallint, -owed.amount, coalesce(l.balance_micros, 0) - owed.amount, owed.messages, coalesce(l.spent_day, 0),
        coalesce(l.spent_micros, 0)
    FROM (
        SELECT account_id, CAST(sum(price_micros) AS bigint) AS amount, count(*) AS messages
        FROM UNNEST($1::bigint[], $2::bigint[]) AS g (account_id, price_micros) GROUP BY account_id
    ) AS owed JOIN account AS a ON a.id = owed.account_id",
    newest_entry!("a.id"),
);
const CREDIT: &str = concat!(
    "INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages, note, spent_day,
        spent_micros)
    SELECT a.id, coalesce(l.id, 0) + 1, $4::bigint, $5::smallint, $2, coalesce(l.balance_micros, 0) + $2, 0, $3::text,
        coalesce(l.spent_day, 0), coalesce(l.spent_micros, 0)
    FROM account AS a",
    newest_entry!("a.id"),
    "WHERE a.id = $1 RETURNING balance_micros"
);
/// Stored among the idempotency keys of callers: both are hashes, so they never collide.
const USE_ONCE: &str = "
    WITH used AS (
        INSERT INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
        VALUES ($1, $2, $2, 1, 0, 0, $3) ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM used)";
const SET_RULES: &str = "
    WITH changed AS (
        UPDATE account SET credit_limit_micros = $2, daily_cap_micros = $3, per_recipient_hour = $4, countries = $5,
            approved_senders_only = $6, requests_per_second = $12, codes_per_day = $14, admins_consent_only = $16,
            texts_for = $18, low_balance_micros = $20, ported_numbers = $22, verify_price_micros = $24
        WHERE id = $1 AND ($7::bigint IS NULL OR credit_limit_micros = $7
            AND daily_cap_micros IS NOT DISTINCT FROM $8 AND per_recipient_hour IS NOT DISTINCT FROM $9
            AND countries = $10 AND approved_senders_only = $11 AND requests_per_second = $13 AND codes_per_day = $15
            AND admins_consent_only = $17 AND texts_for = $19
            AND low_balance_micros IS NOT DISTINCT FROM $21 AND ported_numbers = $23
            AND verify_price_micros = $25)
        RETURNING id
    ), raised AS (
        UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)
    )
    SELECT id FROM changed";
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

/// Skips rows that another node is deleting.
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

/// Locks accounts and then runs `work` on their ledgers, in one transaction and one round trip. Everything, including
/// the commit, is sent before the first answer arrives, so no transaction is left open.
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

/// Refunds messages that ended in this transaction.
pub(super) async fn refund(
    transaction: &Transaction<'_>,
    messages: &[(i64, i16)],
    at_us: i64,
) -> Result<(), Fault> {
    let (ids, charged): (Vec<i64>, Vec<i16>) = messages.iter().copied().unzip();
    let lock = transaction.prepare_cached(LOCK_FOR_REFUND).await?;
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

/// Refunds a part of the price of a message that goes on.
pub(super) async fn give_back(
    transaction: &Transaction<'_>,
    account: i64,
    amount_micros: i64,
    at_us: i64,
) -> Result<(), Fault> {
    execute(transaction, LOCK, &[&[account].as_slice()]).await?;
    let (note, kind) = (None::<&str>, EntryKind::Refund.number());
    let values: super::Values<'_> = &[&account, &amount_micros, &note, &at_us, &kind];
    execute(transaction, CREDIT, values).await?;
    Ok(())
}

/// Charges what has been done already, by accounts and prices: messages from handsets, and verifications. They are
/// charged even if that leaves no money.
pub(super) async fn charge_done(
    transaction: &Transaction<'_>,
    kind: EntryKind,
    done: &[(i64, i64)],
) -> Result<(), Fault> {
    if done.is_empty() {
        return Ok(());
    }
    let (accounts, prices): (Vec<i64>, Vec<i64>) = done.iter().copied().unzip();
    let lock = transaction.prepare_cached(LOCK).await?;
    let statement = transaction.prepare_cached(CHARGE_DONE).await?;
    let values: super::Values<'_> = &[&accounts, &prices, &kind.number()];
    let (locked, charged) = tokio::join!(
        biased;
        transaction.query(&lock, &values[..1]),
        transaction.execute(&statement, values)
    );
    locked?;
    charged?;
    Ok(())
}

/// A credit by an operator, positive or negative.
struct Credit<'a> {
    account: i64,
    amount: Money,
    note: Option<&'a str>,
    at_us: i64,
}

impl Retryable for Credit<'_> {
    type Output = Option<Money>;

    async fn run(&self, client: &mut Object) -> Result<Option<Money>, Fault> {
        let client = &*client;
        let statement = client.prepare_cached(CREDIT).await?;
        let amount = self.amount.micros();
        let kind = EntryKind::Credit.number();
        let values: super::Values<'_> = &[&self.account, &amount, &self.note, &self.at_us, &kind];
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
        retry::run(&self.pool, "credit an account", &credit).await
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
        let columns = RulesColumns::from_rules(rules);
        let before = from.map(RulesColumns::from_rules);
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
            &columns.texts_for,
            &before.map(|before| before.texts_for.as_str()),
            &columns.low_balance_micros,
            &before.and_then(|before| before.low_balance_micros),
            &columns.ported_numbers,
            &before.map(|before| before.ported_numbers),
            &columns.verify_price_micros,
            &before.map(|before| before.verify_price_micros),
        ];
        let changed = self
            .query("change what an account may spend", SET_RULES, values)
            .await?;
        Ok(!changed.is_empty())
    }

    async fn find_funds(&self, account: AccountId) -> Result<Option<AccountFunds>, StoreError> {
        let values: super::Values<'_> = &[&account.as_i64()];
        let read = |row: &Row| AccountFundsColumns::read(row, 0)?.funds();
        self.find("find an account's funds", FIND_FUNDS, values, read)
            .await
    }

    async fn find_flooded(
        &self,
        account: AccountId,
        recipients: &[Msisdn],
        limit: u32,
        now: Timestamp,
    ) -> Result<Option<Msisdn>, StoreError> {
        let accounts = vec![account.as_i64(); recipients.len()];
        let numbers: Vec<i64> = recipients.iter().map(Msisdn::as_i64).collect();
        let since_us = micros(now) - RECIPIENT_WINDOW_US;
        let values: super::Values<'_> = &[&accounts, &numbers, &since_us];
        let operation = "count the messages of recipients";
        let counts = self.list(operation, charging::COUNT_SENT, values, |row: &Row| {
            let count = u64::try_from(column::<i64>(row, 2)?).map_err(|_| Corrupt("count"))?;
            Ok((column::<i64>(row, 1)?, count))
        });
        let sent: HashMap<i64, u64> = counts.await?.into_iter().collect();
        Ok(charging::find_flooded(recipients, limit, |number| {
            sent.get(&number).copied().unwrap_or_default()
        }))
    }

    async fn spend_of_grant(
        &self,
        cap: GrantCap,
        cost: Money,
        day: i32,
    ) -> Result<Result<(), NotPaid>, StoreError> {
        let (grant, daily) = (cap.grant.as_i64(), cap.daily.micros());
        let values: super::Values<'_> = &[&grant, &day, &cost.micros(), &daily];
        let operation = "count what a client spends";
        if self
            .execute(operation, grants::SPEND.postgres, values)
            .await?
            > 0
        {
            return Ok(Ok(()));
        }
        let left = cap.left(self.find_grant_spending(cap.grant, day).await?);
        Ok(Err(NotPaid::GrantCap { cost, left }))
    }

    async fn unspend_of_grant(
        &self,
        grant: GrantId,
        cost: Money,
        day: i32,
    ) -> Result<(), StoreError> {
        let values: super::Values<'_> = &[&grant.as_i64(), &day, &cost.micros()];
        let operation = "take back what a client spent";
        let taken = self.execute(operation, grants::UNSPEND.postgres, values);
        taken.await.map(drop)
    }

    async fn find_grant_spending(&self, grant: GrantId, day: i32) -> Result<Money, StoreError> {
        let values: super::Values<'_> = &[&grant.as_i64(), &day];
        let operation = "find what a client spent";
        let found = self.find(operation, grants::FIND_SPENDING.postgres, values, |row| {
            column::<i64>(row, 0).map(Money::from_micros)
        });
        Ok(found.await?.unwrap_or(Money::ZERO))
    }

    async fn list_ledger(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let values = (account.as_i64(), rows::before(before), i64::from(limit));
        let values: super::Values<'_> = &[&values.0, &values.1, &values.2];
        self.list(
            "list the ledger",
            sql::LIST_LEDGER.postgres,
            values,
            read_entry,
        )
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

fn read_entry(row: &Row) -> Result<LedgerEntry, Corrupt> {
    EntryColumns::read(row)?.entry()
}

fn read_imbalance(row: &Row) -> Result<Imbalance, Corrupt> {
    ImbalanceColumns::read(row)?.imbalance()
}
