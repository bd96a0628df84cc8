//! The port for exporting messages, the oldest first.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::AccountId;
use domain::ports::{
    ExportFilter, ExportPage, ExportRange, ExportStore, ExportedMessage, LedgerTotals, StoreError,
};
use rusqlite::{Connection, Result, Row, params};

use super::{SqliteStore, history};
use crate::rows::message_id;
use crate::rows::records::{
    ExportColumns, RecordColumns, export_range, range_searches, record_columns,
};
use crate::sql::history as sql;

/// How many rows one page reads.
const ROWS: u32 = 2_000;
/// How many segments one page checks for messages of an account.
const SEGMENTS: u32 = 500;
/// The low bits of an ID, which count within a segment; the index depends on this number.
const SEGMENT_BITS: u32 = 9;

const LIST: &str = concat!(
    "SELECT ",
    record_columns!(),
    " FROM message AS m WHERE m.id > ?1 AND m.id < ?2 ORDER BY m.id LIMIT ?3"
);
/// The first message after an ID.
const NEXT: &str = "SELECT min(id) FROM message WHERE id > ?1 AND id < ?2";
const LIST_OF_ACCOUNT: &str = concat!(
    "SELECT ",
    record_columns!(),
    " FROM message AS m INDEXED BY message_found
    WHERE m.id >> 9 = ?4 AND m.account_id = ?3 AND m.id > ?1 AND m.id < ?2 ORDER BY m.id"
);

#[async_trait]
impl ExportStore for SqliteStore {
    async fn find_export_range(&self, filter: &ExportFilter) -> Result<ExportRange, StoreError> {
        let filter = *filter;
        self.read("find messages by time", move |db| find_range(db, &filter))
            .await
    }

    async fn export_messages(
        &self,
        filter: &ExportFilter,
        range: ExportRange,
    ) -> Result<ExportPage, StoreError> {
        let columns = ExportColumns::new(filter, range);
        self.read("export messages", move |db| match columns.account_id {
            None => list(db, &columns),
            Some(account) => list_of_account(db, &columns, account),
        })
        .await
    }

    async fn ledger_totals(
        &self,
        account: AccountId,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<LedgerTotals, StoreError> {
        self.add_up_ledger(account, since, until).await
    }
}

fn find_range(db: &Connection, filter: &ExportFilter) -> Result<ExportRange> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let mut first_and_last = db.prepare_cached(sql::FIRST_AND_LAST.sqlite)?;
    let (Some(first), Some(last)) = first_and_last.query_row([], read)? else {
        return Ok(ExportRange::default());
    };
    let [since, until] = range_searches(filter, first, last);
    let found = [
        history::find_time(db, since)?,
        history::find_time(db, until)?,
    ];
    Ok(export_range(found)?)
}

/// A page that is being read.
#[derive(Default)]
struct Page {
    messages: Vec<ExportedMessage>,
    read: u32,
    last: i64,
}

impl Page {
    fn add(&mut self, row: &Row<'_>, columns: &ExportColumns) -> Result<()> {
        let record = RecordColumns::read(row)?;
        self.read += 1;
        self.last = record.message.id;
        if record.is_within(columns) {
            self.messages.push(record.message()?);
        }
        Ok(())
    }

    fn finish(self, next: Option<i64>) -> Result<ExportPage> {
        Ok(ExportPage {
            messages: self.messages,
            next: next.map(message_id).transpose()?,
        })
    }
}

fn list(db: &Connection, columns: &ExportColumns) -> Result<ExportPage> {
    let mut page = Page::default();
    let mut list = db.prepare_cached(LIST)?;
    let mut rows = list.query(params![columns.after, columns.end, ROWS])?;
    while let Some(row) = rows.next()? {
        page.add(row, columns)?;
    }
    let next = (page.read == ROWS).then_some(page.last);
    page.finish(next)
}

/// Reads the segments that have messages, with the index that finds those of an account in each.
fn list_of_account(db: &Connection, columns: &ExportColumns, account: i64) -> Result<ExportPage> {
    let mut page = Page::default();
    let mut next = db.prepare_cached(NEXT)?;
    let mut list = db.prepare_cached(LIST_OF_ACCOUNT)?;
    let mut after = columns.after;
    for _ in 0..SEGMENTS {
        let found: Option<i64> = next.query_row([after, columns.end], |row| row.get(0))?;
        let Some(found) = found else {
            return page.finish(None);
        };
        let segment = found >> SEGMENT_BITS;
        let mut rows = list.query([after, columns.end, account, segment])?;
        while let Some(row) = rows.next()? {
            page.add(row, columns)?;
        }
        after = ((segment + 1) << SEGMENT_BITS) - 1;
        if page.read >= ROWS {
            break;
        }
    }
    page.finish(Some(after))
}
