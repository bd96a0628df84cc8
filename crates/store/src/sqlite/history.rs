//! The port for finding messages, the newest first.
//!
//! An index finds the messages of an account, or to a number, within a segment of 512 IDs. Segments are read one after
//! the other, from the newest down. Other conditions are checked on the rows.

use async_trait::async_trait;
use domain::ids::{AccountId, CallbackId, MessageId};
use domain::ports::{
    CallbackFilter, CallbackRecord, Cursor, HistoryStore, MessageDetail, MessageFilter,
    MessageSummary, Page, StoreError,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, ToSql, params};

use super::{SqliteStore, message_detail};
use crate::rows::MessageColumns;
use crate::rows::callbacks::FilterColumns;
use crate::rows::history::{
    IndexColumns, MatchColumns, MessagePage, SummaryColumns, TimeSearch, summary_columns,
};
use crate::sql::history as sql;

/// The low bits of an ID, which count within a segment; the index depends on this number.
const SEGMENT_BITS: u32 = 9;
/// How many segments one page checks if the account is known: a few microseconds each.
const SEGMENTS: u32 = 3_000;
/// The number of segments for a search by number alone, which reads each segment in full.
const SEGMENTS_OF_ALL: u32 = 250;
/// How many messages one page checks.
const ROWS: u32 = 4_000;

const PROBE: &str = "SELECT id, accepted_us FROM message WHERE id >= ?1 ORDER BY id LIMIT 1";
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
const FIND_MATCHING: &str = concat!(
    "SELECT ",
    summary_columns!(),
    " FROM message AS m WHERE m.id = ?1 AND m.accepted_us >= ?2 AND m.accepted_us < ?3
        AND (?4 IS NULL OR m.channel = ?4) AND (?5 IS NULL OR m.originator = ?5)
        AND (?6 IS NULL OR m.status = ?6) AND (?7 IS NULL OR (m.state = ?7 AND m.status IS NULL))
        AND (?8 IS NULL OR m.error = ?8)
        AND (?9 IS NULL OR instr(?9, ',' || coalesce(m.network, 3000 + m.country, 0) || ',') > 0)"
);

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn search_messages(
        &self,
        filter: &MessageFilter,
        cursor: Cursor<MessageId>,
    ) -> Result<Page<MessageSummary, MessageId>, StoreError> {
        let (index, matching) = (
            IndexColumns::from_filter(filter),
            MatchColumns::from_filter(filter),
        );
        self.read("search messages", move |db| {
            Ok(find_page(db, index, &matching, cursor)?.into_page()?)
        })
        .await
    }

    async fn search_callbacks(
        &self,
        filter: &CallbackFilter,
        cursor: Cursor<CallbackId>,
    ) -> Result<Page<CallbackRecord, CallbackId>, StoreError> {
        let (columns, with_done) = (FilterColumns::from_filter(filter), filter.with_done);
        self.read("search callbacks", move |db| {
            message_detail::search_callbacks(db, &columns, with_done, cursor)
        })
        .await
    }

    async fn find_message_detail(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageDetail>, StoreError> {
        self.read("find a message's details", move |db| {
            message_detail::find(db, account, id)
        })
        .await
    }
}

/// Matching messages, the newest first.
fn find_page(
    db: &Connection,
    index: IndexColumns,
    matching: &MatchColumns,
    cursor: Cursor<MessageId>,
) -> Result<MessagePage> {
    let (ids, segments) = match (index.account_id, index.recipient) {
        (Some(_), Some(_)) => (OF_ACCOUNT_TO, SEGMENTS),
        (Some(_), None) => (OF_ACCOUNT, SEGMENTS),
        (None, Some(_)) => (OF_ALL_TO, SEGMENTS_OF_ALL),
        (None, None) => (OF_ALL, SEGMENTS),
    };
    let mut search = Search {
        newest: db.prepare_cached(NEWEST)?,
        ids: db.prepare_cached(ids)?,
        matching: db.prepare_cached(FIND_MATCHING)?,
        limit: cursor.limit as usize,
        rows: Vec::new(),
        checked: 0,
        places: matching.places.as_deref().map(listed),
    };
    let (floor, ceiling) = bounds(db, matching)?;
    let before = cursor.before.map_or(i64::MAX, MessageId::as_i64);
    let mut end = before.min(ceiling);
    for _ in 0..segments {
        let newest = search.newest_before(end)?;
        let Some(newest) = newest.filter(|newest| *newest > floor) else {
            return Ok(search.finish(None));
        };
        let segment = newest >> SEGMENT_BITS;
        if let Some(last) = search.segment(segment, end, index, matching)? {
            return Ok(search.finish(Some(last)));
        }
        end = segment << SEGMENT_BITS;
    }
    Ok(search.finish(Some(end)))
}

/// The bounds of the requested times: messages at or below the first, or at or above the second, do not match.
fn bounds(db: &Connection, matching: &MatchColumns) -> Result<(i64, i64)> {
    let mut first_and_last = db.prepare_cached(sql::FIRST_AND_LAST.sqlite)?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (Some(first), Some(last)) = first_and_last.query_row([], read)? else {
        return Ok((0, i64::MAX));
    };
    let since = search(db, TimeSearch::for_since(matching, first, last))?;
    let until = search(db, TimeSearch::for_until(matching, first, last))?;
    Ok((
        since.map_or(0, |found| found.low),
        until.map_or(i64::MAX, |found| found.high),
    ))
}

fn search(db: &Connection, search: Option<TimeSearch>) -> Result<Option<TimeSearch>> {
    search.map(|search| find_time(db, search)).transpose()
}

/// Completes a search for a time.
pub(super) fn find_time(db: &Connection, mut search: TimeSearch) -> Result<TimeSearch> {
    let mut accepted = db.prepare_cached(PROBE)?;
    while let [probe] = search.probes(1)[..] {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found = accepted.query_row([probe], read).optional()?;
        search.narrow(probe, found);
    }
    Ok(search)
}

struct Search<'db> {
    newest: CachedStatement<'db>,
    ids: CachedStatement<'db>,
    matching: CachedStatement<'db>,
    limit: usize,
    rows: Vec<SummaryColumns>,
    checked: u32,
    /// The places of the filter, with a comma before and after each.
    places: Option<String>,
}

impl Search<'_> {
    fn newest_before(&mut self, end: i64) -> Result<Option<i64>> {
        self.newest.query_row([end], |row| row.get(0))
    }

    /// Reads a segment below `end`; returns the last message read when the page is full.
    fn segment(
        &mut self,
        segment: i64,
        end: i64,
        index: IndexColumns,
        matching: &MatchColumns,
    ) -> Result<Option<i64>> {
        let values = params![segment, end, index.account_id, index.recipient];
        let mut ids = self.ids.query(values)?;
        while let Some(row) = ids.next()? {
            let id: i64 = row.get(0)?;
            let found = self
                .matching
                .query_row(matching_values(&id, matching, &self.places), summary)
                .optional()?;
            let is_wanted = |found: &SummaryColumns| {
                let is_sent = found.message.is_sent;
                matching.is_sent.is_none_or(|wanted| wanted == is_sent)
            };
            self.rows.extend(found.filter(is_wanted));
            self.checked += 1;
            if self.rows.len() >= self.limit || self.checked >= ROWS {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn finish(self, next: Option<i64>) -> MessagePage {
        MessagePage {
            rows: self.rows,
            next,
        }
    }
}

fn listed(places: &[i32]) -> String {
    let mut list = String::from(",");
    for code in places {
        list.push_str(&code.to_string());
        list.push(',');
    }
    list
}

fn matching_values<'a>(
    id: &'a i64,
    matching: &'a MatchColumns,
    places: &'a dyn ToSql,
) -> [&'a dyn ToSql; 9] {
    [
        id,
        &matching.since_us,
        &matching.until_us,
        &matching.channel,
        &matching.originator,
        &matching.status,
        &matching.state,
        &matching.error,
        places,
    ]
}

pub(super) fn summary(row: &Row<'_>) -> Result<SummaryColumns> {
    Ok(SummaryColumns {
        message: MessageColumns::read(row, 0)?,
        account_id: row.get(10)?,
        originator: row.get(11)?,
        recipient: row.get(12)?,
        body: row.get(13)?,
        price_micros: row.get(14)?,
        accepted_us: row.get(15)?,
        charged_micros: row.get(16)?,
        test_mode: row.get(17)?,
    })
}
