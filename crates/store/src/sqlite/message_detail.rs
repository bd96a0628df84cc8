//! The detail of one message, and the search for callbacks.

use domain::MessageId;
use domain::ids::{AccountId, CallbackId};
use domain::ports::{CallbackRecord, Cursor, MessageDetail, Page, PartDetail};
use rusqlite::{Connection, OptionalExtension, Result, Row, ToSql, params};

use super::callbacks::{self, MATCHES, RECORD};
use super::history;
use crate::rows::callbacks::{FilterColumns, OPEN, ROWS, Window};
use crate::rows::history::{
    DetailColumns, PartColumns, QUEUE_ROWS, QueueRowColumns, RelatedRows, SummaryColumns,
    detail_columns, summary_columns,
};
use crate::sql::message_detail as sql;

const FIND: &str = concat!(
    "SELECT ",
    summary_columns!(),
    ", ",
    detail_columns!(),
    " FROM message AS m WHERE m.id = ?1 AND (?2 IS NULL OR m.account_id = ?2)"
);
/// The queue is ordered by time, and only the row itself has the time of the next attempt. So a limited number of rows
/// of its lane is read, and of route pools.
const FIND_WAITING: &str = "
    SELECT owner, due_us, attempt FROM (
        SELECT * FROM (
            SELECT * FROM queue WHERE owner = 0 AND lane = ?1 AND due_us >= ?2 ORDER BY due_us, id LIMIT ?4)
        UNION ALL
        SELECT * FROM (
            SELECT queue.* FROM pool CROSS JOIN queue
                ON queue.owner = -1 - pool.id AND queue.lane = ?1 AND queue.due_us >= ?2 LIMIT ?4)
    ) WHERE id = ?3";
const FIND_HELD: &str = "
    SELECT owner, due_us, attempt FROM (
        SELECT * FROM (SELECT * FROM queue WHERE owner > 0 LIMIT ?2)
        UNION ALL
        SELECT * FROM (SELECT * FROM queue WHERE owner < -1 LIMIT ?2)
    ) WHERE id = ?1";
const LIST_PARTS: &str = "
    SELECT part, carrier, reference, taken_us, status, error FROM transit WHERE id = ?1 ORDER BY part, number";

const LIST_OPEN: &str = "
    SELECT id FROM callback_queue WHERE id < ?1 LIMIT ?2";
const LIST_PARKED: &str = "
    SELECT id FROM callback WHERE state = 1 AND id < ?1 ORDER BY id DESC LIMIT ?2";
const LIST_ALL: &str = "SELECT id FROM callback WHERE id < ?1 ORDER BY id DESC LIMIT ?2";

/// Finds a message of one account, or of any.
pub(super) fn find(
    db: &Connection,
    account: Option<AccountId>,
    id: MessageId,
) -> Result<Option<MessageDetail>> {
    let values = params![id.as_i64(), account.map(AccountId::as_i64)];
    let read = |row: &Row<'_>| Ok((history::summary(row)?, DetailColumns::read(row)?));
    let found = db
        .prepare_cached(FIND)?
        .query_row(values, read)
        .optional()?;
    let Some((summary, detail)) = found else {
        return Ok(None);
    };
    let related = RelatedRows {
        queue_row: find_queue_row(db, &summary, &detail)?,
        parts: list_parts(db, id)?,
        callbacks: list_callbacks(db, id)?,
    };
    Ok(Some(detail.detail(summary, related)?))
}

/// The queue row of a message that has not ended.
fn find_queue_row(
    db: &Connection,
    summary: &SummaryColumns,
    detail: &DetailColumns,
) -> Result<Option<QueueRowColumns>> {
    if summary.message.final_us.is_some() {
        return Ok(None);
    }
    let id = summary.message.id;
    if summary.message.is_sent {
        return find_one(db, sql::FIND_SENT.sqlite, params![detail.expires_us, id]);
    }
    let from_us = summary.accepted_us;
    let waiting = params![detail.priority, from_us, id, QUEUE_ROWS];
    match find_one(db, FIND_WAITING, waiting)? {
        Some(queue_row) => Ok(Some(queue_row)),
        None => find_one(db, FIND_HELD, params![id, QUEUE_ROWS]),
    }
}

fn find_one(db: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<Option<QueueRowColumns>> {
    let read = |row: &Row<'_>| QueueRowColumns::read(row);
    db.prepare_cached(sql)?.query_row(values, read).optional()
}

fn list_parts(db: &Connection, id: MessageId) -> Result<Vec<PartDetail>> {
    let read = |row: &Row<'_>| Ok(PartColumns::read(row)?.part()?);
    db.prepare_cached(LIST_PARTS)?
        .query_map([id.as_i64()], read)?
        .collect()
}

pub(super) fn list_callbacks(
    db: &Connection,
    id: MessageId,
) -> Result<Vec<(CallbackRecord, Vec<domain::delivery::CallbackAttempt>)>> {
    let sql = format!("{RECORD} WHERE c.message_id = ?1 AND c.kind <> 2 ORDER BY c.id");
    let mut list = db.prepare_cached(&sql)?;
    let records = list.query_map([id.as_i64()], callbacks::record)?;
    records
        .map(|record| {
            let record = record?;
            let tries = callbacks::list_attempts(db, record.id)?;
            Ok((record, tries))
        })
        .collect()
}

/// Callbacks that match, the newest first.
pub(super) fn search_callbacks(
    db: &Connection,
    filter: &FilterColumns,
    with_done: bool,
    cursor: Cursor<CallbackId>,
) -> Result<Page<CallbackRecord, CallbackId>> {
    let before = cursor.before.map_or(i64::MAX, CallbackId::as_i64);
    let before = before.min(filter.last_id.saturating_add(1));
    let window = window(db, before, with_done)?;
    let sql = format!("{RECORD} WHERE {MATCHES} AND c.id = ?7");
    let mut find = db.prepare_cached(&sql)?;
    let mut records = Vec::new();
    for &id in &window.ids {
        let values = params![
            filter.first_id,
            filter.last_id,
            filter.url_prefix,
            filter.from_us,
            filter.until_us,
            filter.account_id,
            id,
        ];
        let record = find.query_row(values, callbacks::record).optional()?;
        records.extend(record.filter(|record| window.includes(record)));
        if records.len() >= cursor.limit as usize {
            return Ok(window.page(records, Some(id))?);
        }
    }
    Ok(window.page(records, None)?)
}

/// The callbacks to check.
fn window(db: &Connection, before: i64, with_done: bool) -> Result<Window> {
    if !with_done {
        let open = list_ids(db, LIST_OPEN, before, OPEN + 1)?;
        if open.len() <= OPEN {
            let parked = list_ids(db, LIST_PARKED, before, ROWS)?;
            return Ok(Window::from_open(open, parked));
        }
    }
    Ok(Window::from_all(
        list_ids(db, LIST_ALL, before, ROWS)?,
        with_done,
    ))
}

fn list_ids(db: &Connection, sql: &str, before: i64, limit: usize) -> Result<Vec<i64>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.prepare_cached(sql)?
        .query_map([before, limit], |row| row.get(0))?
        .collect()
}
