//! The port for looking for messages, from the newest down.
//!
//! An index finds an account's messages, or those to a number, within a segment of 512 IDs; segments are asked one after
//! the other. Whatever else is asked for is checked on the rows.

use async_trait::async_trait;
use domain::ids::{AccountId, CallbackId, MessageId};
use domain::ports::{
    CallbackFilter, CallbackRecord, Found, HistoryStore, Look, MessageFilter, MessageStory,
    MessageSummary, StoreError,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, ToSql, params};

use super::{SqliteStore, story};
use crate::rows::MessageColumns;
use crate::rows::callbacks::FilterColumns;
use crate::rows::history::{
    FittingColumns, Looked, SummaryColumns, TimeSearch, WhoseColumns, summary_columns,
};

/// How many bits of an ID tell the place within its segment; the index is built on it.
const SEGMENT_BITS: u32 = 9;
/// How many segments one look asks: a few microseconds each, when the account is known.
const SEGMENTS: u32 = 3_000;
/// How many it asks when only the number is known, so that the whole of each is read.
const SEGMENTS_OF_ALL: u32 = 250;
/// How many messages one look checks.
const ROWS: u32 = 4_000;

const EDGES: &str = "SELECT (SELECT min(id) FROM message), (SELECT max(id) FROM message)";
const ACCEPTED: &str = "SELECT id, accepted_us FROM message WHERE id >= ?1 ORDER BY id LIMIT 1";
/// The newest message before an ID.
const NEWEST: &str = "SELECT max(id) FROM message WHERE id < ?1";
const OF_ACCOUNT: &str = "
    SELECT id FROM message INDEXED BY message_found
    WHERE id >> 9 = ?1 AND account_id = ?3 AND id < ?2 AND ?4 IS NULL ORDER BY id DESC";
const OF_ACCOUNT_TO: &str = "
    SELECT id FROM message INDEXED BY message_found
    WHERE id >> 9 = ?1 AND account_id = ?3 AND recipient = ?4 AND id < ?2 ORDER BY id DESC";
const OF_ALL_TO: &str = "
    SELECT id FROM message INDEXED BY message_found
    WHERE id >> 9 = ?1 AND ?3 IS NULL AND recipient = ?4 AND id < ?2 ORDER BY id DESC";
const OF_ALL: &str = "
    SELECT id FROM message WHERE id >= ?1 << 9 AND id < ?2 AND ?3 IS NULL AND ?4 IS NULL ORDER BY id DESC";
const FITTING: &str = concat!(
    "SELECT ",
    summary_columns!(),
    " FROM message AS m WHERE m.id = ?1 AND m.accepted_us >= ?2 AND m.accepted_us < ?3
        AND (?4 IS NULL OR m.channel = ?4) AND (?5 IS NULL OR m.originator = ?5)
        AND (?6 IS NULL OR m.status = ?6) AND (?7 IS NULL OR (m.state = ?7 AND m.status IS NULL))
        AND (?8 IS NULL OR m.error = ?8)"
);

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn look_for_messages(
        &self,
        filter: &MessageFilter,
        look: Look<MessageId>,
    ) -> Result<Found<MessageSummary, MessageId>, StoreError> {
        let (whose, fitting) = (WhoseColumns::of(filter), FittingColumns::of(filter));
        self.read("look for messages", move |db| {
            Ok(find_page(db, whose, &fitting, look)?.found()?)
        })
        .await
    }

    async fn look_for_callbacks(
        &self,
        filter: &CallbackFilter,
        look: Look<CallbackId>,
    ) -> Result<Found<CallbackRecord, CallbackId>, StoreError> {
        let (columns, with_done) = (FilterColumns::of(filter), filter.with_done);
        self.read("look for callbacks", move |db| {
            story::look_for_callbacks(db, &columns, with_done, look)
        })
        .await
    }

    async fn find_story(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageStory>, StoreError> {
        self.read("find the story of a message", move |db| {
            story::find(db, account, id)
        })
        .await
    }
}

/// Messages that fit, the newest first.
fn find_page(
    db: &Connection,
    whose: WhoseColumns,
    fitting: &FittingColumns,
    look: Look<MessageId>,
) -> Result<Looked> {
    let (ids, segments) = match (whose.account_id, whose.recipient) {
        (Some(_), Some(_)) => (OF_ACCOUNT_TO, SEGMENTS),
        (Some(_), None) => (OF_ACCOUNT, SEGMENTS),
        (None, Some(_)) => (OF_ALL_TO, SEGMENTS_OF_ALL),
        (None, None) => (OF_ALL, SEGMENTS),
    };
    let mut walk = Walk {
        newest: db.prepare_cached(NEWEST)?,
        ids: db.prepare_cached(ids)?,
        fitting: db.prepare_cached(FITTING)?,
        limit: look.limit as usize,
        rows: Vec::new(),
        checked: 0,
    };
    let (floor, ceiling) = bounds(db, fitting)?;
    let before = look.before.map_or(i64::MAX, MessageId::as_i64);
    let mut end = before.min(ceiling);
    for _ in 0..segments {
        let newest = walk.newest_before(end)?;
        let Some(newest) = newest.filter(|newest| *newest > floor) else {
            return Ok(walk.stopped(None));
        };
        let segment = newest >> SEGMENT_BITS;
        if let Some(last) = walk.segment(segment, end, whose, fitting)? {
            return Ok(walk.stopped(Some(last)));
        }
        end = segment << SEGMENT_BITS;
    }
    Ok(walk.stopped(Some(end)))
}

/// Where the times that are asked for begin and end: what is at or below the one, or at or above the other, fits not.
fn bounds(db: &Connection, fitting: &FittingColumns) -> Result<(i64, i64)> {
    let mut edges = db.prepare_cached(EDGES)?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (Some(first), Some(last)) = edges.query_row([], read)? else {
        return Ok((0, i64::MAX));
    };
    let since = search(db, TimeSearch::for_since(fitting, first, last))?;
    let until = search(db, TimeSearch::for_until(fitting, first, last))?;
    Ok((
        since.map_or(0, |found| found.low),
        until.map_or(i64::MAX, |found| found.high),
    ))
}

fn search(db: &Connection, search: Option<TimeSearch>) -> Result<Option<TimeSearch>> {
    let Some(mut search) = search else {
        return Ok(None);
    };
    let mut accepted = db.prepare_cached(ACCEPTED)?;
    while let [probe] = search.probes(1)[..] {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found = accepted.query_row([probe], read).optional()?;
        search.note(probe, found);
    }
    Ok(Some(search))
}

/// A look under way.
struct Walk<'db> {
    newest: CachedStatement<'db>,
    ids: CachedStatement<'db>,
    fitting: CachedStatement<'db>,
    limit: usize,
    rows: Vec<SummaryColumns>,
    checked: u32,
}

impl Walk<'_> {
    fn newest_before(&mut self, end: i64) -> Result<Option<i64>> {
        self.newest.query_row([end], |row| row.get(0))
    }

    /// Looks at a segment below `end`; names the last message looked at when that was enough.
    fn segment(
        &mut self,
        segment: i64,
        end: i64,
        whose: WhoseColumns,
        fitting: &FittingColumns,
    ) -> Result<Option<i64>> {
        let values = params![segment, end, whose.account_id, whose.recipient];
        let mut ids = self.ids.query(values)?;
        while let Some(row) = ids.next()? {
            let id: i64 = row.get(0)?;
            let found = self
                .fitting
                .query_row(fitting_values(&id, fitting), summary)
                .optional()?;
            let is_wanted = |found: &SummaryColumns| {
                let is_sent = found.message.is_sent;
                fitting.is_sent.is_none_or(|wanted| wanted == is_sent)
            };
            self.rows.extend(found.filter(is_wanted));
            self.checked += 1;
            if self.rows.len() >= self.limit || self.checked >= ROWS {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn stopped(self, next: Option<i64>) -> Looked {
        Looked {
            rows: self.rows,
            next,
        }
    }
}

fn fitting_values<'a>(id: &'a i64, fitting: &'a FittingColumns) -> [&'a dyn ToSql; 8] {
    [
        id,
        &fitting.since_us,
        &fitting.until_us,
        &fitting.channel,
        &fitting.originator,
        &fitting.status,
        &fitting.state,
        &fitting.error,
    ]
}

pub(super) fn summary(row: &Row<'_>) -> Result<SummaryColumns> {
    Ok(SummaryColumns {
        message: MessageColumns {
            id: row.get(0)?,
            state: row.get(1)?,
            scheduled_us: row.get(2)?,
            final_us: row.get(3)?,
            parts: row.get(4)?,
            status: row.get(5)?,
            error: row.get(6)?,
            network: row.get(7)?,
            channel: row.get(8)?,
            is_sent: row.get(9)?,
        },
        account_id: row.get(10)?,
        originator: row.get(11)?,
        recipient: row.get(12)?,
        body: row.get(13)?,
        price_micros: row.get(14)?,
        accepted_us: row.get(15)?,
    })
}
