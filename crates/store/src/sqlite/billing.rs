//! The port for balances, the ledger and spending rules.

use async_trait::async_trait;
use domain::billing::{
    AccountFunds, EntryKind, GrantCap, LedgerEntry, NotPaid, RECIPIENT_WINDOW_US, SpendingRules,
};
use domain::ids::{AccountId, GrantId};
use domain::ports::{BillingStore, Imbalance, StoreError};
use domain::{Money, Msisdn, Timestamp};
use jiff::SignedDuration;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::fold::{self, Next};
use super::{SqliteStore, access};
use crate::rows::billing::{EntryColumns, ImbalanceColumns, RulesColumns};
use crate::rows::{self, duration_us, micros};
use crate::sql::billing as sql;

mod charging;
mod grants;

pub(super) use charging::{BatchCharges, charge_more};

/// Accounts as `a`, each with its newest ledger entry as `l`, which has the balance.
macro_rules! account_with_balance {
    () => {
        " account AS a LEFT JOIN ledger AS l
            ON l.account_id = a.id AND l.id = (SELECT max(id) FROM ledger WHERE account_id = a.id) "
    };
}
pub(super) use account_with_balance;

const INSERT_ENTRY: &str = concat!(
    "INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages, note, spent_day,
        spent_micros)
    SELECT a.id, coalesce(l.id, 0) + 1, ?2, ?3, ?4, coalesce(l.balance_micros, 0) + ?4, ?5, ?6,
        coalesce(l.spent_day, 0), coalesce(l.spent_micros, 0) FROM",
    account_with_balance!(),
    "WHERE a.id = ?1 RETURNING balance_micros"
);
const SET_RULES: &str = "
    UPDATE account SET credit_limit_micros = ?2, daily_cap_micros = ?3, per_recipient_hour = ?4, countries = ?5,
        approved_senders_only = ?6, requests_per_second = ?12, codes_per_day = ?14, admins_consent_only = ?16,
        texts_for = ?18, low_balance_micros = ?20, ported_numbers = ?22, verify_price_micros = ?24
    WHERE id = ?1 AND (?7 IS NULL OR credit_limit_micros = ?7 AND daily_cap_micros IS ?8
        AND per_recipient_hour IS ?9 AND countries = ?10 AND approved_senders_only = ?11
        AND requests_per_second = ?13 AND codes_per_day = ?15 AND admins_consent_only = ?17
        AND texts_for = ?19 AND low_balance_micros IS ?21 AND ported_numbers = ?23
        AND verify_price_micros = ?25)";
const CHECK_LEDGER: &str = concat!(
    "WITH step AS (
        SELECT account_id, amount_micros,
            balance_micros - amount_micros <> coalesce(lag(balance_micros) OVER (PARTITION BY account_id ORDER BY id), 0)
                AS is_broken
        FROM ledger
    ), total AS (
        SELECT account_id, sum(amount_micros) AS amount, sum(is_broken) AS broken FROM step GROUP BY account_id
    )
    SELECT a.name, l.balance_micros, total.amount, total.broken FROM",
    account_with_balance!(),
    "JOIN total ON total.account_id = a.id
    WHERE l.balance_micros <> total.amount OR total.broken > 0
    ORDER BY a.id"
);

/// Stored among the idempotency keys of callers: both are hashes, so they never collide.
const USE_ONCE: &str = "
    INSERT OR IGNORE INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
    VALUES (?1, ?2, ?2, 1, 0, 0, ?3)";

const PRUNE_SENT: &str = "
    DELETE FROM recipient_sent WHERE (account_id, recipient, at_us, message_id) IN
        (SELECT account_id, recipient, at_us, message_id FROM recipient_sent WHERE at_us <= ?1 ORDER BY at_us LIMIT ?2)";

#[async_trait]
impl BillingStore for SqliteStore {
    async fn credit(
        &self,
        account: AccountId,
        amount: Money,
        note: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Money>, StoreError> {
        let note = note.map(str::to_owned);
        let work = move |db: &_| {
            let change = Change {
                account_id: account.as_i64(),
                kind: EntryKind::Credit,
                amount_micros: amount.micros(),
                messages: 0,
                note: note.as_deref(),
                at_us: micros(now),
            };
            change.write_entry(db)
        };
        let balance = self.write("credit an account", work).await?;
        Ok(balance.map(Money::from_micros))
    }

    async fn use_once(
        &self,
        account: AccountId,
        key: &[u8; 32],
        expires: Timestamp,
    ) -> Result<bool, StoreError> {
        let key = *key;
        let work = move |db: &Connection| {
            let values = params![account.as_i64(), key, micros(expires)];
            Ok(db.prepare_cached(USE_ONCE)?.execute(values)? == 1)
        };
        self.write("use a key once", work).await
    }

    async fn set_rules(
        &self,
        account: AccountId,
        from: Option<&SpendingRules>,
        rules: &SpendingRules,
    ) -> Result<bool, StoreError> {
        let (from, rules) = (from.cloned(), rules.clone());
        self.write("change what an account may spend", move |db| {
            set_rules(db, account, from.as_ref(), &rules)
        })
        .await
    }

    async fn find_funds(&self, account: AccountId) -> Result<Option<AccountFunds>, StoreError> {
        self.read("find an account's funds", move |db| {
            charging::find_funds(db, account.as_i64())
        })
        .await
    }

    async fn find_flooded(
        &self,
        account: AccountId,
        recipients: &[Msisdn],
        limit: u32,
        now: Timestamp,
    ) -> Result<Option<Msisdn>, StoreError> {
        let recipients = recipients.to_vec();
        self.read("count the messages of recipients", move |db| {
            charging::find_flooded(db, account.as_i64(), &recipients, limit, now)
        })
        .await
    }

    async fn spend_of_grant(
        &self,
        cap: GrantCap,
        cost: Money,
        day: i32,
    ) -> Result<Result<(), NotPaid>, StoreError> {
        self.write("count what a client spends", move |db| {
            grants::spend(db, cap, cost, day)
        })
        .await
    }

    async fn unspend_of_grant(
        &self,
        grant: GrantId,
        cost: Money,
        day: i32,
    ) -> Result<(), StoreError> {
        self.write("take back what a client spent", move |db| {
            grants::unspend(db, grant, cost, day)
        })
        .await
    }

    async fn find_grant_spending(&self, grant: GrantId, day: i32) -> Result<Money, StoreError> {
        self.read("find what a client spent", move |db| {
            grants::find_spending(db, grant, day)
        })
        .await
    }

    async fn list_ledger(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let before = rows::before(before);
        self.read("list the ledger", move |db| {
            list_ledger(db, account, before, limit)
        })
        .await
    }

    async fn check_ledger(&self) -> Result<Vec<Imbalance>, StoreError> {
        self.read("check the ledger", check_ledger).await
    }

    async fn fold_ledger(&self, age: SignedDuration, limit: u32) -> Result<bool, StoreError> {
        const OPERATION: &str = "fold the ledger";
        let (folding, age_us) = (self.folding.clone(), duration_us(age));
        let find = move |db: &_| fold::find_due(db, &folding, age_us);
        let due = match self.read(OPERATION, find).await? {
            Next::Fold(due) => due,
            Next::Skipped(has_more) => return Ok(has_more),
        };
        let cursor = self.folding.cursor(due.account());
        let work = move |db: &_| fold::fold_account(db, &due, cursor, limit);
        let (account, cursor) = self.write(OPERATION, work).await?;
        self.folding.set_cursor(account, cursor);
        Ok(true)
    }

    async fn prune_recipients(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let before_us = micros(now) - RECIPIENT_WINDOW_US;
        self.write("prune recipients", move |db| {
            prune_recipients(db, before_us, limit)
        })
        .await
    }
}

/// A change of a balance.
pub(super) struct Change<'a> {
    pub(super) account_id: i64,
    pub(super) kind: EntryKind,
    pub(super) amount_micros: i64,
    pub(super) messages: u32,
    pub(super) note: Option<&'a str>,
    pub(super) at_us: i64,
}

impl Change<'_> {
    /// Writes the entry and returns the balance after it; `None` when there is no such account.
    pub(super) fn write_entry(&self, db: &Connection) -> Result<Option<i64>> {
        let values = params![
            self.account_id,
            self.at_us,
            self.kind.number(),
            self.amount_micros,
            self.messages,
            self.note,
        ];
        db.prepare_cached(INSERT_ENTRY)?
            .query_row(values, |row| row.get(0))
            .optional()
    }
}

/// Refunds a message.
pub(super) fn refund(
    db: &Connection,
    account_id: i64,
    price_micros: i64,
    at_us: i64,
) -> Result<()> {
    if price_micros == 0 {
        return Ok(());
    }
    give_back(db, account_id, price_micros, 1, at_us)
}

/// Refunds an amount for a number of messages; 0 for a part of the price of a message that goes on.
pub(super) fn give_back(
    db: &Connection,
    account_id: i64,
    amount_micros: i64,
    messages: u32,
    at_us: i64,
) -> Result<()> {
    let refund = Change {
        account_id,
        kind: EntryKind::Refund,
        amount_micros,
        messages,
        note: None,
        at_us,
    };
    refund.write_entry(db).map(drop)
}

/// Replaces an account's rules; `false` when there is no such account, or when they are not `from`.
fn set_rules(
    db: &Connection,
    account: AccountId,
    from: Option<&SpendingRules>,
    rules: &SpendingRules,
) -> Result<bool> {
    let columns = RulesColumns::from_rules(rules);
    let before = from.map(RulesColumns::from_rules);
    let before = before.as_ref();
    let values = params![
        account.as_i64(),
        columns.credit_limit_micros,
        columns.daily_cap_micros,
        columns.per_recipient_hour,
        columns.countries,
        columns.approved_senders_only,
        before.map(|before| before.credit_limit_micros),
        before.and_then(|before| before.daily_cap_micros),
        before.and_then(|before| before.per_recipient_hour),
        before.map(|before| &before.countries),
        before.map(|before| before.approved_senders_only),
        columns.requests_per_second,
        before.map(|before| before.requests_per_second),
        columns.codes_per_day,
        before.map(|before| before.codes_per_day),
        columns.admins_consent_only,
        before.map(|before| before.admins_consent_only),
        columns.texts_for,
        before.map(|before| &before.texts_for),
        columns.low_balance_micros,
        before.and_then(|before| before.low_balance_micros),
        columns.ported_numbers,
        before.map(|before| before.ported_numbers),
        columns.verify_price_micros,
        before.map(|before| before.verify_price_micros),
    ];
    access::change(db, SET_RULES, values)
}

/// The newest entries of an account before an entry.
fn list_ledger(
    db: &Connection,
    account: AccountId,
    before: i64,
    limit: u32,
) -> Result<Vec<LedgerEntry>> {
    db.prepare_cached(sql::LIST_LEDGER.sqlite)?
        .query_map(params![account.as_i64(), before, limit], entry)?
        .collect()
}

/// The accounts with a ledger that does not add up to the balance.
fn check_ledger(db: &Connection) -> Result<Vec<Imbalance>> {
    db.prepare_cached(CHECK_LEDGER)?
        .query_map([], imbalance)?
        .collect()
}

/// Deletes the recipients of messages that were sent before a time.
fn prune_recipients(db: &Connection, before_us: i64, limit: u32) -> Result<u64> {
    let pruned = db
        .prepare_cached(PRUNE_SENT)?
        .execute(params![before_us, limit])?;
    Ok(pruned as u64)
}

fn entry(row: &Row<'_>) -> Result<LedgerEntry> {
    Ok(EntryColumns::read(row)?.entry()?)
}

fn imbalance(row: &Row<'_>) -> Result<Imbalance> {
    Ok(ImbalanceColumns::read(row)?.imbalance()?)
}
