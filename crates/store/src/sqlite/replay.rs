//! Replaying callbacks.

use domain::ports::{CallbackFilter, ReplayCursor, ReplayRequest, ReplaySource, Replayed};
use rusqlite::{Connection, Result, Row, params};

use super::callbacks::MATCHES;
use super::clock;
use crate::rows::callbacks::{FilterColumns, REPLAY_ROWS, replay_next, replay_request};
use crate::sql::replay as sql;

const IS_MATCH: &str = "
    SELECT EXISTS (SELECT 1 FROM callback AS c LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL WHERE ";
/// Rows that a node holds are skipped.
const REPLAY_QUEUE: &str = "
    SELECT owner, due_us, id FROM callback_queue
    WHERE owner <= 0 AND (owner, due_us, id) > (?1, ?2, ?3) AND id BETWEEN ?4 AND ?5
    ORDER BY owner, due_us, id LIMIT ?6";
const REPLAY_PARKED: &str = "
    SELECT 0, 0, id FROM callback WHERE state = 1 AND id > ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id LIMIT ?4";
const REPLAY_DONE: &str = "
    SELECT 0, 0, id FROM callback WHERE state = 2 AND id > ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id LIMIT ?4";
/// A callback with a later due time moves to the front.
const MAKE_DUE: &str =
    "UPDATE callback_queue SET due_us = ?1 WHERE owner = 0 AND due_us = ?2 AND id = ?3";
const QUEUE_AGAIN: &str = "
    INSERT INTO callback_queue (owner, due_us, id, attempt)
    SELECT 0, ?1, id, tries FROM callback WHERE id = ?2 AND state <> 0";
const SET_WAITING: &str = "UPDATE callback SET state = 0, due_us = ?1 WHERE id = ?2";
const DELETE_REQUESTS: &str = "DELETE FROM callback_replay WHERE at_us < ?1 - 3600000000";
/// A single callback is replayed for its receiver.
const REQUEST_FOR_ONE: &str = "
    INSERT INTO callback_replay (account_id, url_prefix, at_us)
    SELECT c.account_id, coalesce(c.url, m.dlr_url), ?1
    FROM callback AS c LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
    WHERE c.id = ?2 AND coalesce(c.url, m.dlr_url) IS NOT NULL";
const REQUEST: &str =
    "INSERT INTO callback_replay (account_id, url_prefix, at_us) VALUES (?1, ?2, ?3)";

/// Makes some callbacks due now. Callbacks that are due already, or in the queue of a receiver, keep their position.
pub(super) fn step(
    db: &Connection,
    filter: &CallbackFilter,
    from: ReplayCursor,
) -> Result<Replayed> {
    let columns = FilterColumns::from_filter(filter);
    let now_us = clock::now_us(db)?;
    let page = replay_page(db, &columns, from)?;
    let mut is_match = db.prepare_cached(&format!("{IS_MATCH} {MATCHES})"))?;
    let mut count = 0;
    for at in &page {
        let values = params![
            at.id,
            at.id,
            columns.url_prefix,
            columns.from_us,
            columns.until_us,
            columns.account_id,
        ];
        if !is_match.query_row(values, |row| row.get(0))? {
            continue;
        }
        count += 1;
        if from.source != ReplaySource::Queue {
            db.prepare_cached(QUEUE_AGAIN)?.execute([now_us, at.id])?;
        } else if at.owner == 0 && at.due_us > now_us {
            let values = [now_us, at.due_us, at.id];
            db.prepare_cached(MAKE_DUE)?.execute(values)?;
        } else {
            continue;
        }
        db.prepare_cached(SET_WAITING)?.execute([now_us, at.id])?;
    }
    let rows = i64::try_from(page.len()).unwrap_or(i64::MAX);
    let next = replay_next(from, rows, page.last().copied(), filter.with_done);
    if next.is_none() {
        request(db, filter, &columns, now_us)?;
    }
    Ok(Replayed { count, next })
}

/// The next rows to check.
fn replay_page(
    db: &Connection,
    columns: &FilterColumns,
    from: ReplayCursor,
) -> Result<Vec<ReplayCursor>> {
    let read = |row: &Row<'_>| {
        Ok(ReplayCursor {
            source: from.source,
            owner: row.get(0)?,
            due_us: row.get(1)?,
            id: row.get(2)?,
        })
    };
    let (first, last) = (columns.first_id, columns.last_id);
    let sql = match from.source {
        ReplaySource::Queue => {
            let values = [from.owner, from.due_us, from.id, first, last, REPLAY_ROWS];
            let mut find = db.prepare_cached(REPLAY_QUEUE)?;
            return find.query_map(values, read)?.collect();
        }
        ReplaySource::Parked => REPLAY_PARKED,
        ReplaySource::Done => REPLAY_DONE,
    };
    let mut find = db.prepare_cached(sql)?;
    let values = [from.id, first, last, REPLAY_ROWS];
    find.query_map(values, read)?.collect()
}

/// Tells the nodes which receivers to retry now.
fn request(
    db: &Connection,
    filter: &CallbackFilter,
    columns: &FilterColumns,
    now_us: i64,
) -> Result<()> {
    db.prepare_cached(DELETE_REQUESTS)?.execute([now_us])?;
    match filter.id {
        Some(id) => db
            .prepare_cached(REQUEST_FOR_ONE)?
            .execute([now_us, id.as_i64()])?,
        None => db.prepare_cached(REQUEST)?.execute(params![
            columns.account_id,
            columns.url_prefix,
            now_us
        ])?,
    };
    Ok(())
}

/// Replay requests with a higher number.
pub(super) fn list_requests(db: &Connection, above: u64) -> Result<Vec<ReplayRequest>> {
    let above = i64::try_from(above).unwrap_or(i64::MAX);
    let mut list = db.prepare_cached(sql::LIST_REQUESTS.sqlite)?;
    let read = |row: &Row<'_>| Ok(replay_request(row.get(0)?, row.get(1)?, row.get(2)?)?);
    list.query_map([above], read)?.collect()
}
