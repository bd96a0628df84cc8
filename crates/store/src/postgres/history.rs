//! The port for finding messages, the newest first.
//!
//! An index finds the messages of an account, or to a number, within a segment of 2048 IDs. Segments are read from the
//! newest down, many with one statement. Other conditions are checked on the rows.

use async_trait::async_trait;
use domain::MessageId;
use domain::ids::{AccountId, CallbackId};
use domain::ports::{
    CallbackFilter, CallbackRecord, Cursor, HistoryStore, MessageDetail, MessageFilter,
    MessageSummary, Page, StoreError,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{PostgresStore, column, fault};
use crate::rows::history::{
    IndexColumns, MatchColumns, MessagePage, SummaryColumns, TimeSearch, summary_columns,
};
use crate::rows::{Corrupt, MessageColumns};
use crate::sql::history as sql;

/// The low bits of an ID, which count within a segment; the index depends on this number.
const SEGMENT_BITS: u32 = 11;
/// How many segments the first, second and third statement read if account and number are known.
const STEPS: &[i32] = &[16, 200, 600];
/// The same if only the number is known: then each segment is read in full.
const STEPS_OF_ALL: &[i32] = &[4, 16, 40];
/// How many segments each statement checks for messages of an account; more after each that found none.
const SEEK_STEPS: &[i32] = &[4, 64, 600];
/// How many IDs one statement of a search by time probes.
const PROBES: i64 = 31;
/// How many segments one page reads in full.
const SEGMENTS_READ: u32 = 8;

const PROBE: &str = "
    SELECT p.id, f.id, f.accepted_us FROM UNNEST($1::bigint[]) AS p (id)
    LEFT JOIN LATERAL (SELECT m.id, m.accepted_us FROM message AS m WHERE m.id >= p.id ORDER BY m.id LIMIT 1) AS f ON TRUE";
/// The non-empty segments below an ID ($1), the newest first, at most $2.
macro_rules! list_segments {
    () => {
        "WITH RECURSIVE walk (segment, n) AS (
            SELECT (SELECT max(id) >> 11 FROM message WHERE id < $1), 1
            UNION ALL
            SELECT (SELECT max(id) >> 11 FROM message WHERE id < walk.segment << 11), walk.n + 1 FROM walk
            WHERE walk.segment IS NOT NULL AND walk.n < $2::int
        ), bounds (low, is_end) AS (SELECT min(segment), bool_or(segment IS NULL) FROM walk) "
    };
}
/// The conditions that rows must meet.
macro_rules! matching {
    () => {
        " AND m.accepted_us >= $3 AND m.accepted_us < $4 AND ($5::smallint IS NULL OR m.channel = $5)
            AND ($6::text IS NULL OR m.originator = $6) AND ($7::smallint IS NULL OR m.status = $7)
            AND ($8::smallint IS NULL OR (m.state = $8 AND m.status IS NULL)) AND ($9::smallint IS NULL OR m.error = $9)
            AND ($10::boolean IS NULL OR $10 = EXISTS (SELECT 1 FROM queue AS q
                WHERE q.owner = -1 AND q.lane = 0 AND q.due_us = m.expires_us AND q.id = m.id))
            AND ($12::bigint IS NULL OR m.account_id = $12) AND ($13::bigint IS NULL OR m.recipient = $13)
            AND ($14::int[] IS NULL OR coalesce(m.network, 3000 + m.country, 0) = ANY($14))
        "
    };
}
/// Returns the matching rows and how far the search went. The bounds of the segment select its partition, and the index
/// on all of them finds its rows. The sums keep the planner from using the primary key, which would read whole
/// segments.
macro_rules! find_by_number {
    ($conditions:expr) => {
        concat!(
            list_segments!(),
            "SELECT bounds.low, bounds.is_end, found.* FROM bounds LEFT JOIN (
                SELECT f.* FROM walk CROSS JOIN LATERAL (SELECT ",
            summary_columns!(),
            " FROM message AS m WHERE m.id >> 11 = walk.segment AND m.id >= walk.segment << 11
                AND m.id < (walk.segment + 1) << 11 AND m.id + 0 < $1 ",
            $conditions,
            matching!(),
            " ORDER BY m.id + 0 DESC LIMIT $11) AS f ORDER BY f.id DESC LIMIT $11
            ) AS found ON TRUE ORDER BY found.id DESC"
        )
    };
}
const FIND_BY_NUMBER: &str = find_by_number!("AND m.account_id = $12 AND m.recipient = $13");
const FIND_BY_NUMBER_OF_ALL: &str = find_by_number!("AND m.recipient = $13");
/// The newest segment with messages of an account, or of any account, and the bounds of the checked segments.
const SEEK: &str = concat!(
    list_segments!(),
    "SELECT bounds.low, bounds.is_end, (
        SELECT max(segment) FROM walk WHERE $3::bigint IS NULL OR EXISTS (
            SELECT 1 FROM message AS m WHERE m.id >> 11 = walk.segment AND m.account_id = $3
                AND m.id >= walk.segment << 11 AND m.id < (walk.segment + 1) << 11))
    FROM bounds"
);
const FIND_IN_SEGMENT: &str = concat!(
    "SELECT NULL::bigint, NULL::boolean, ",
    summary_columns!(),
    " FROM message AS m WHERE m.id < $1 AND m.id >= $2::bigint",
    matching!(),
    " ORDER BY m.id DESC LIMIT $11"
);
const FIND_IN_SEGMENT_OF: &str = concat!(
    "SELECT NULL::bigint, NULL::boolean, ",
    summary_columns!(),
    " FROM message AS m WHERE m.id >> 11 = $2::bigint >> 11 AND m.account_id = $12 AND m.id < $1 AND m.id >= $2::bigint",
    matching!(),
    " ORDER BY m.id DESC LIMIT $11"
);

const OPERATION: &str = "search messages";

#[async_trait]
impl HistoryStore for PostgresStore {
    async fn search_messages(
        &self,
        filter: &MessageFilter,
        cursor: Cursor<MessageId>,
    ) -> Result<Page<MessageSummary, MessageId>, StoreError> {
        let search = Search {
            store: self,
            index: IndexColumns::from_filter(filter),
            matching: MatchColumns::from_filter(filter),
            limit: cursor.limit as usize,
            floor: 0,
        };
        let before = cursor.before.map_or(i64::MAX, MessageId::as_i64);
        let (search, before) = search.narrow_by_time(before).await?;
        let found = match filter.to {
            Some(_) => search.by_number(before).await?,
            None => search.by_account(before).await?,
        };
        found
            .into_page()
            .map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
    }

    async fn search_callbacks(
        &self,
        filter: &CallbackFilter,
        cursor: Cursor<CallbackId>,
    ) -> Result<Page<CallbackRecord, CallbackId>, StoreError> {
        self.find_callbacks(filter, cursor).await
    }

    async fn find_message_detail(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageDetail>, StoreError> {
        self.find_detail(account, id).await
    }
}

impl PostgresStore {
    /// Completes a search for a time.
    pub(super) async fn find_time(&self, mut search: TimeSearch) -> Result<TimeSearch, StoreError> {
        let read = |row: &Row| {
            let found: (Option<i64>, Option<i64>) = (column(row, 1)?, column(row, 2)?);
            Ok((column(row, 0)?, found.0.zip(found.1)))
        };
        loop {
            let probes = search.probes(PROBES);
            if probes.is_empty() {
                return Ok(search);
            }
            let values: super::Values<'_> = &[&probes];
            let found = self.list(OPERATION, PROBE, values, read).await?;
            for (probe, found) in found {
                search.narrow(probe, found);
            }
        }
    }
}

struct Search<'a> {
    store: &'a PostgresStore,
    index: IndexColumns,
    matching: MatchColumns,
    limit: usize,
    /// Messages at or below it do not match.
    floor: i64,
}

/// The lowest segment that was checked, and whether there is nothing below it.
struct Bounds {
    low: Option<i64>,
    is_end: bool,
}

impl Search<'_> {
    /// Messages to a number: few in each segment, so many segments are read at once.
    async fn by_number(&self, mut before: i64) -> Result<MessagePage, StoreError> {
        let (sql, steps) = match self.index.account_id {
            Some(_) => (FIND_BY_NUMBER, STEPS),
            None => (FIND_BY_NUMBER_OF_ALL, STEPS_OF_ALL),
        };
        let mut rows = Vec::new();
        for step in steps {
            let (bounds, found) = self.find_rows(sql, before, step, rows.len()).await?;
            rows.extend(found);
            if rows.len() >= self.limit {
                break;
            }
            match self.below(&bounds) {
                Some(below) => before = below,
                None => return Ok(MessagePage { rows, next: None }),
            }
        }
        Ok(self.finish(rows, before))
    }

    /// Messages of an account, or of all accounts. A segment may have many, so each is read separately.
    async fn by_account(&self, mut before: i64) -> Result<MessagePage, StoreError> {
        let sql = match self.index.account_id {
            Some(_) => FIND_IN_SEGMENT_OF,
            None => FIND_IN_SEGMENT,
        };
        let mut rows = Vec::new();
        let (mut read, mut steps) = (0, SEEK_STEPS.iter());
        while rows.len() < self.limit && read < SEGMENTS_READ {
            let Some(step) = steps.next() else { break };
            let (bounds, newest) = self.seek(before, *step).await?;
            if let Some(segment) = newest {
                let first = segment << SEGMENT_BITS;
                let end = before.min((segment + 1) << SEGMENT_BITS);
                let (_, found) = self.find_rows(sql, end, &first, rows.len()).await?;
                rows.extend(found);
                (before, read, steps) = (first, read + 1, SEEK_STEPS.iter());
            } else if let Some(below) = self.below(&bounds) {
                before = below;
            } else {
                return Ok(MessagePage { rows, next: None });
            }
            if before <= self.floor + 1 && rows.len() < self.limit {
                return Ok(MessagePage { rows, next: None });
            }
        }
        Ok(self.finish(rows, before))
    }

    /// Where the search continues; `None` when no further message can match.
    fn below(&self, bounds: &Bounds) -> Option<i64> {
        let below = bounds.low.filter(|_| !bounds.is_end)? << SEGMENT_BITS;
        (below > self.floor + 1).then_some(below)
    }

    /// Narrows the search to the requested times.
    async fn narrow_by_time(mut self, before: i64) -> Result<(Self, i64), StoreError> {
        let read = |row: &Row| Ok((column(row, 0)?, column(row, 1)?));
        let has_times = self.matching.since_us > i64::MIN || self.matching.until_us < i64::MAX;
        if !has_times {
            return Ok((self, before));
        }
        let first_and_last = self
            .store
            .get(OPERATION, sql::FIRST_AND_LAST.postgres, &[], read)
            .await?;
        let (Some(first), Some(last)) = first_and_last else {
            return Ok((self, before));
        };
        let since = TimeSearch::for_since(&self.matching, first, last);
        let until = TimeSearch::for_until(&self.matching, first, last);
        if let Some(since) = since {
            self.floor = self.store.find_time(since).await?.low;
        }
        let ceiling = match until {
            Some(until) => self.store.find_time(until).await?.high,
            None => i64::MAX,
        };
        Ok((self, before.min(ceiling)))
    }

    /// The page, when enough messages were found or checked.
    fn finish(&self, rows: Vec<SummaryColumns>, before: i64) -> MessagePage {
        let last = rows.last().map(|row| row.message.id);
        let next = last.filter(|_| rows.len() >= self.limit).unwrap_or(before);
        MessagePage {
            rows,
            next: Some(next),
        }
    }

    async fn seek(&self, before: i64, step: i32) -> Result<(Bounds, Option<i64>), StoreError> {
        let values: super::Values<'_> = &[&before, &step, &self.index.account_id];
        let read = |row: &Row| Ok((bounds(row)?, column(row, 2)?));
        self.store.get(OPERATION, SEEK, values, read).await
    }

    /// Runs a statement for the missing rows; the caller provides its second value.
    async fn find_rows(
        &self,
        sql: &'static str,
        before: i64,
        second: &(dyn ToSql + Sync),
        found: usize,
    ) -> Result<(Bounds, Vec<SummaryColumns>), StoreError> {
        let missing = i64::try_from(self.limit.saturating_sub(found)).unwrap_or(i64::MAX);
        let matching = &self.matching;
        let values: super::Values<'_> = &[
            &before,
            second,
            &matching.since_us,
            &matching.until_us,
            &matching.channel,
            &matching.originator,
            &matching.status,
            &matching.state,
            &matching.error,
            &matching.is_sent,
            &missing,
            &self.index.account_id,
            &self.index.recipient,
            &matching.places,
        ];
        let rows = self.store.query(OPERATION, sql, values).await?;
        read_all(&rows).map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
    }
}

/// If nothing is found, one row still has the bounds.
fn read_all(rows: &[Row]) -> Result<(Bounds, Vec<SummaryColumns>), Corrupt> {
    let nothing = Bounds {
        low: None,
        is_end: true,
    };
    let bounds = rows.first().map_or(Ok(nothing), bounds)?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        if column::<Option<i64>>(row, 2)?.is_some() {
            found.push(summary(row, 2)?);
        }
    }
    Ok((bounds, found))
}

fn bounds(row: &Row) -> Result<Bounds, Corrupt> {
    Ok(Bounds {
        low: column(row, 0)?,
        is_end: column::<Option<bool>>(row, 1)?.unwrap_or(true),
    })
}

/// Reads a message from this column on.
pub(super) fn summary(row: &Row, at: usize) -> Result<SummaryColumns, Corrupt> {
    Ok(SummaryColumns {
        message: MessageColumns::read(row, at)?,
        account_id: column(row, at + 10)?,
        originator: column(row, at + 11)?,
        recipient: column(row, at + 12)?,
        body: column(row, at + 13)?,
        price_micros: column(row, at + 14)?,
        accepted_us: column(row, at + 15)?,
        charged_micros: column(row, at + 16)?,
        test_mode: column(row, at + 17)?,
    })
}
