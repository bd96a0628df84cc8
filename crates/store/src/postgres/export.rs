//! The port for exporting messages, the oldest first.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::AccountId;
use domain::ports::{ExportFilter, ExportPage, ExportRange, ExportStore, LedgerTotals, StoreError};
use tokio_postgres::Row;

use super::{PostgresStore, column, fault};
use crate::rows::records::{
    ExportColumns, RecordColumns, export_range, range_searches, record_columns,
};
use crate::rows::{Corrupt, message_id};
use crate::sql::history as sql;

/// How many rows one page reads.
const ROWS: usize = 2_000;
/// How many segments one page checks for messages of an account.
const SEGMENTS: i32 = 4;
/// The low bits of an ID, which count within a segment; the index depends on this number.
const SEGMENT_BITS: u32 = 11;

const LIST: &str = concat!(
    "SELECT ",
    record_columns!(),
    " FROM message AS m WHERE m.id > $1 AND m.id < $2 ORDER BY m.id LIMIT $3"
);
/// The next segments that have messages, the oldest first.
const LIST_SEGMENTS: &str = "
    WITH RECURSIVE walk (segment, n) AS (
        SELECT (SELECT min(id) >> 11 FROM message WHERE id > $1 AND id < $2), 1
        UNION ALL
        SELECT (SELECT min(id) >> 11 FROM message WHERE id >= (walk.segment + 1) << 11 AND id < $2), walk.n + 1 FROM walk
        WHERE walk.segment IS NOT NULL AND walk.n < $3::int
    )
    SELECT segment FROM walk WHERE segment IS NOT NULL ORDER BY segment";
/// The bounds of the segment select its partition, and the index on all of them finds its rows.
const LIST_OF_ACCOUNT: &str = concat!(
    "SELECT ",
    record_columns!(),
    " FROM UNNEST($4::bigint[]) AS s (segment) JOIN message AS m ON m.id >> 11 = s.segment
        AND m.id >= s.segment << 11 AND m.id < (s.segment + 1) << 11
    WHERE m.account_id = $3 AND m.id + 0 > $1 AND m.id + 0 < $2 ORDER BY m.id + 0"
);

const OPERATION: &str = "export messages";

#[async_trait]
impl ExportStore for PostgresStore {
    async fn find_export_range(&self, filter: &ExportFilter) -> Result<ExportRange, StoreError> {
        const OPERATION: &str = "find messages by time";
        let read = |row: &Row| Ok((column(row, 0)?, column(row, 1)?));
        let first_and_last = self.get(OPERATION, sql::FIRST_AND_LAST.postgres, &[], read);
        let (Some(first), Some(last)) = first_and_last.await? else {
            return Ok(ExportRange::default());
        };
        let [since, until] = range_searches(filter, first, last);
        let found = [self.find_time(since).await?, self.find_time(until).await?];
        export_range(found).map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
    }

    async fn export_messages(
        &self,
        filter: &ExportFilter,
        range: ExportRange,
    ) -> Result<ExportPage, StoreError> {
        let columns = ExportColumns::new(filter, range);
        match columns.account_id {
            None => self.export_all(&columns).await,
            Some(account) => self.export_account(&columns, account).await,
        }
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

impl PostgresStore {
    async fn export_all(&self, columns: &ExportColumns) -> Result<ExportPage, StoreError> {
        let limit = i64::try_from(ROWS).expect("small");
        let values: super::Values<'_> = &[&columns.after, &columns.end, &limit];
        let rows = self
            .list(OPERATION, LIST, values, RecordColumns::read)
            .await?;
        let last = rows.last().map(|row| row.message.id);
        let next = last.filter(|_| rows.len() == ROWS);
        page(columns, rows, next)
    }

    async fn export_account(
        &self,
        columns: &ExportColumns,
        account: i64,
    ) -> Result<ExportPage, StoreError> {
        let values: super::Values<'_> = &[&columns.after, &columns.end, &SEGMENTS];
        let read = |row: &Row| column::<i64>(row, 0);
        let segments = self.list(OPERATION, LIST_SEGMENTS, values, read).await?;
        let Some(last) = segments.last() else {
            return page(columns, Vec::new(), None);
        };
        let next = ((last + 1) << SEGMENT_BITS) - 1;
        let values: super::Values<'_> = &[&columns.after, &columns.end, &account, &segments];
        let rows = self
            .list(OPERATION, LIST_OF_ACCOUNT, values, RecordColumns::read)
            .await?;
        page(columns, rows, Some(next))
    }
}

fn page(
    columns: &ExportColumns,
    rows: Vec<RecordColumns>,
    next: Option<i64>,
) -> Result<ExportPage, StoreError> {
    let within = rows.into_iter().filter(|row| row.is_within(columns));
    let messages: Result<Vec<_>, Corrupt> = within.map(RecordColumns::message).collect();
    let next = next.map(message_id).transpose();
    let read = messages.and_then(|messages| next.map(|next| ExportPage { messages, next }));
    read.map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
}
