//! Adding up the ledger of an account over a period.

use domain::Timestamp;
use domain::ids::AccountId;
use domain::ports::{LedgerTotals, StoreError};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use crate::rows::history::TimeSearch;
use crate::rows::ledger_totals::{ATTEMPTS, KeepsChanging, STEP, SumColumns, Sums, searches};
use crate::rows::micros;
use crate::sql::ledger_totals as sql;

const OPERATION: &str = "add up a ledger";

impl SqliteStore {
    pub(super) async fn add_up_ledger(
        &self,
        account: AccountId,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<LedgerTotals, StoreError> {
        let (account, since_us, until_us) = (account.as_i64(), micros(since), micros(until));
        for _ in 0..ATTEMPTS {
            let begin = move |db: &Connection| begin(db, account, since_us, until_us);
            let Some(mut sums) = self.read(OPERATION, begin).await? else {
                return Ok(LedgerTotals::default());
            };
            loop {
                let values = [account, sums.after, sums.end, since_us, until_us];
                let step = move |db: &Connection| {
                    let more = sums.add(&next(db, values)?)?;
                    Ok((sums, more))
                };
                let has_more;
                (sums, has_more) = self.read(OPERATION, step).await?;
                if !has_more {
                    break;
                }
            }
            let last = sums.end - 1;
            let end = self.read(OPERATION, move |db| balance(db, account, last));
            if let Some(totals) = sums.totals(end.await?) {
                return Ok(totals);
            }
        }
        Err(StoreError::Unexpected {
            operation: OPERATION,
            source: Box::new(KeepsChanging),
        })
    }
}

/// Finds the entries of the period; `None` if there are no entries at all.
fn begin(db: &Connection, account: i64, since_us: i64, until_us: i64) -> Result<Option<Sums>> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let mut first_and_last = db.prepare_cached(sql::FIRST_AND_LAST.sqlite)?;
    let (Some(first), Some(last)) = first_and_last.query_row([account], read)? else {
        return Ok(None);
    };
    let [since, until] = searches(since_us, until_us, first, last);
    let (since, until) = (search(db, account, since)?, search(db, account, until)?);
    let opening = balance(db, account, since.low)?;
    Ok(Some(Sums::new(since.low, until.high, opening)))
}

fn search(db: &Connection, account: i64, mut search: TimeSearch) -> Result<TimeSearch> {
    let mut probe = db.prepare_cached(sql::PROBE.sqlite)?;
    while let [id] = search.probes(1)[..] {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found = probe.query_row([account, id], read).optional()?;
        search.narrow(id, found);
    }
    Ok(search)
}

/// The balance after the last entry up to an ID.
fn balance(db: &Connection, account: i64, id: i64) -> Result<i64> {
    let mut find = db.prepare_cached(sql::BALANCE.sqlite)?;
    let found = find.query_row([account, id], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or_default())
}

fn next(db: &Connection, values: [i64; 5]) -> Result<SumColumns> {
    let [account, after, end, since_us, until_us] = values;
    let values = params![account, after, end, since_us, until_us, STEP];
    db.prepare_cached(sql::SUMS.sqlite)?
        .query_row(values, |row| SumColumns::read(row))
}
