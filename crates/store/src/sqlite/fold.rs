//! Folding the ledger.

use rusqlite::{Connection, Result, Row, params};

use super::clock;
use crate::rows::fold::{self, ACCOUNTS, FoldCursor, FoldEntry, Folding};
use crate::sql::fold as sql;

const READ: &str = "
    SELECT id, at_us, kind, amount_micros, balance_micros, messages, note IS NOT NULL, spent_day, spent_micros
    FROM ledger
    WHERE account_id = ?1 AND id > ?2 AND id < (SELECT max(id) FROM ledger WHERE account_id = ?1)
    ORDER BY id LIMIT ?3";
const REMOVE: &str = "DELETE FROM ledger WHERE account_id = ?1 AND id = ?2";
const CHANGE: &str = "
    UPDATE ledger SET at_us = ?3, kind = ?4, amount_micros = ?5, balance_micros = ?6, messages = ?7, spent_day = ?8,
        spent_micros = ?9
    WHERE account_id = ?1 AND id = ?2";

/// An account that has entries to fold, and the time before which they are old enough.
pub(super) struct Due {
    account: i64,
    before_us: i64,
}

impl Due {
    pub(super) fn account(&self) -> i64 {
        self.account
    }
}

/// The next step.
pub(super) enum Next {
    Fold(Due),
    /// Nothing to fold in these accounts; the value says whether more accounts may follow.
    Skipped(bool),
}

/// Finds the next account that has something to fold, on a read-only connection.
pub(super) fn find_due(db: &Connection, folding: &Folding, age_us: i64) -> Result<Next> {
    let before_us = fold::day_start_us(clock::now_us(db)?.saturating_sub(age_us));
    let mut list = db.prepare_cached(sql::LIST_ACCOUNTS.sqlite)?;
    let accounts = list.query_map(params![folding.next(), ACCOUNTS], |row| row.get(0))?;
    let accounts: Vec<i64> = accounts.collect::<Result<_>>()?;
    let mut is_due = db.prepare_cached(sql::IS_DUE.sqlite)?;
    for &account in &accounts {
        let done = folding.cursor(account).done;
        if is_due.query_row([account, done, before_us], |row| row.get(0))? {
            return Ok(Next::Fold(Due { account, before_us }));
        }
    }
    Ok(Next::Skipped(folding.skip(&accounts)))
}

/// Folds the next entries of an account; returns it with the cursor for the step that follows.
pub(super) fn fold_account(
    db: &Connection,
    due: &Due,
    cursor: FoldCursor,
    limit: u32,
) -> Result<(i64, FoldCursor)> {
    let values = params![due.account, cursor.after, limit];
    let mut read = db.prepare_cached(READ)?;
    let entries: Vec<FoldEntry> = read.query_map(values, entry)?.collect::<Result<_>>()?;
    let folded = fold::fold(&entries, due.before_us, cursor);
    let mut remove = db.prepare_cached(REMOVE)?;
    for id in &folded.removed {
        remove.execute([due.account, *id])?;
    }
    let mut change = db.prepare_cached(CHANGE)?;
    for entry in &folded.changed {
        change.execute(params![
            due.account,
            entry.id,
            entry.at_us,
            entry.kind,
            entry.amount_micros,
            entry.balance_micros,
            entry.messages,
            entry.spent_day,
            entry.spent_micros,
        ])?;
    }
    Ok((due.account, folded.cursor))
}

fn entry(row: &Row<'_>) -> Result<FoldEntry> {
    FoldEntry::read(row)
}
