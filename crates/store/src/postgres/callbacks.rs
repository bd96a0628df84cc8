//! The port for callbacks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use domain::delivery::{Callback, CallbackAttempt, CallbackSettlement};
use domain::ids::{AccountId, CallbackId, NodeId};
use domain::ports::{CallbackFilter, CallbackRecord, CallbackStore, Page, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{PostgresStore, column, prune};
use crate::rows::callbacks::{
    AttemptColumns, CallbackColumns, FilterColumns, RecordColumns, TextColumns, next_columns,
};
use crate::rows::{Corrupt, dispatch, micros};

/// The first row tells the time, and nothing else if nothing was due.
const CLAIM: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT owner, due_us, id FROM callback_queue WHERE owner = 0 AND (due_us, id) > ($3, $4) AND due_us <= ",
    now_us!(),
    " ORDER BY due_us, id LIMIT $2 FOR UPDATE SKIP LOCKED
    ), taken AS (
        UPDATE callback_queue AS q SET owner = $1, attempt = q.attempt + 1 FROM due
        WHERE q.owner = due.owner AND q.due_us = due.due_us AND q.id = due.id
        RETURNING q.due_us, q.id, q.attempt, q.message_id
    )
    SELECT c.id, c.account_id, coalesce(c.url, m.dlr_url), c.created_us, c.tries, taken.due_us, taken.attempt, c.kind,
        coalesce(c.payload, m.result), c.message_id, m.status, m.error, m.network, clock.now_us
    FROM (SELECT ",
    now_us!(),
    ") AS clock (now_us) LEFT JOIN (
        taken JOIN callback AS c ON c.id = taken.id AND c.message_id = taken.message_id
    ) ON TRUE
        LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
    ORDER BY taken.due_us, taken.id"
);
/// Done and parked ones leave the queue, the others move within it; each is changed and its try written down.
const SETTLE: &str = "
    WITH given AS MATERIALIZED (
        SELECT $1::bigint AS node, g.* FROM UNNEST($2::bigint[], $3::bigint[], $4::int[], $5::smallint[], $6::bigint[], $7::bigint[],
            $8::int[], $9::bigint[], $10::bytea[], $11::text[], $12::bytea[])
            AS g (id, due_us, attempt, state, later_us, at_us, status, elapsed_ms, body, address, reason)
    ), removed AS (
        DELETE FROM callback_queue AS q USING given AS g
        WHERE g.later_us IS NULL
            AND q.owner = g.node AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt
        RETURNING q.message_id, g.*
    ), postponed AS (
        UPDATE callback_queue AS q SET owner = 0, due_us = g.later_us FROM given AS g
        WHERE g.later_us IS NOT NULL
            AND q.owner = g.node AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt
        RETURNING q.message_id, g.*
    ), changed AS (
        UPDATE callback AS c SET state = s.state, due_us = coalesce(s.later_us, c.due_us),
            tries = c.tries + CASE WHEN s.at_us IS NULL THEN 0 ELSE 1 END
        FROM (SELECT * FROM removed UNION ALL SELECT * FROM postponed) AS s
        WHERE c.id = s.id AND c.message_id = s.message_id
        RETURNING c.id, c.tries, c.message_id, s.at_us, s.status, s.elapsed_ms, s.body, s.address, s.reason
    ), logged AS (
        INSERT INTO callback_attempt (callback_id, number, message_id, at_us, status, elapsed_ms, body, address, reason)
        SELECT * FROM changed WHERE at_us IS NOT NULL
    )
    SELECT id FROM changed";
const RELEASE: &str = "
    WITH released AS (
        UPDATE callback_queue SET owner = 0 WHERE owner = $1 AND id <> ALL ($2::bigint[]) RETURNING 1
    )
    SELECT count(*) FROM released";

/// What is not done either waits in the queue or is parked, which has an index: the received ones, all but a few, are
/// not read.
macro_rules! not_done {
    () => {
        "(SELECT id, message_id FROM callback_queue UNION ALL SELECT id, message_id FROM callback WHERE state = 1) AS open
            JOIN callback AS c ON c.id = open.id AND c.message_id = open.message_id"
    };
}
macro_rules! matches {
    () => {
        " WHERE c.id BETWEEN $1 AND $2
            AND substring(coalesce(c.url, m.dlr_url) FROM 1 FOR length($3::bytea)) = $3::bytea
            AND c.created_us >= $4 AND c.created_us < $5 AND ($6::bigint IS NULL OR c.account_id = $6) "
    };
}
macro_rules! list {
    ($from:expr) => {
        concat!(
            list_callbacks!($from),
            matches!(),
            "ORDER BY c.id DESC LIMIT $7 OFFSET $8"
        )
    };
}
const LIST: &str = list!(not_done!());
const LIST_WITH_DONE: &str = list!("callback AS c");

/// One that waits moves to the front unless a node holds it; the others get into the queue again. The lock keeps two
/// that replay at once from queueing one callback twice.
macro_rules! replay {
    ($from:expr) => {
        concat!(
            "WITH found AS MATERIALIZED (
                SELECT 0::bigint AS owner, c.id, c.message_id, c.due_us, c.state, c.tries FROM ",
            $from,
            subject!(),
            matches!(),
            "FOR UPDATE OF c
            ), hurried AS (
                UPDATE callback_queue AS q SET due_us = ",
            now_us!(),
            " FROM found
                WHERE found.state = 0 AND q.owner = found.owner AND q.due_us = found.due_us AND q.id = found.id
                RETURNING q.id, q.message_id
            ), queued AS (
                INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
                SELECT 0, ",
            now_us!(),
            ", id, tries, message_id FROM found WHERE state <> 0 RETURNING id, message_id
            ), waiting AS (
                UPDATE callback AS c SET state = 0, due_us = ",
            now_us!(),
            " FROM (SELECT id, message_id FROM hurried UNION ALL SELECT id, message_id FROM queued) AS again
                WHERE c.id = again.id AND c.message_id = again.message_id RETURNING 1
            )
            SELECT count(*) FROM waiting"
        )
    };
}
const REPLAY: &str = replay!(not_done!());
const REPLAY_WITH_DONE: &str = replay!("callback AS c");

const LIST_ATTEMPTS: &str = "
    SELECT at_us, status, elapsed_ms, body, address, reason FROM callback_attempt
    WHERE callback_id = $1 ORDER BY number";
const FIND_SECRET: &str = "SELECT callback_secret FROM account WHERE id = $1";

#[async_trait]
impl CallbackStore for PostgresStore {
    async fn claim_callbacks(&self, node: NodeId, limit: u32) -> Result<Vec<Callback>, StoreError> {
        let scan = self.callbacks.begin(Instant::now());
        let (behind_us, behind_id) = scan.behind;
        let values: super::Values<'_> =
            &[&node.as_i64(), &i64::from(limit), &behind_us, &behind_id];
        let read = |row: &Row| Ok((column::<i64>(row, 13)?, callback(row)?));
        let claimed = self.list("claim callbacks", CLAIM, values, read).await?;
        let now_us = claimed.first().map_or(i64::MIN, |(now_us, _)| *now_us);
        let claimed: Vec<Callback> = claimed.into_iter().filter_map(|(_, found)| found).collect();
        let last = claimed.last().filter(|_| claimed.len() >= limit as usize);
        let last = last.map(|last| (micros(last.claim.due_at), last.id.as_i64()));
        self.callbacks.end(&scan, Instant::now(), now_us, last);
        Ok(claimed)
    }

    async fn settle_callbacks(
        &self,
        node: NodeId,
        batch: Arc<Vec<CallbackSettlement>>,
    ) -> Result<Vec<bool>, StoreError> {
        let columns = SettlementColumns::of(&batch);
        let node = node.as_i64();
        let settled = self
            .list("settle callbacks", SETTLE, &columns.values(&node), |row| {
                column(row, 0)
            })
            .await?;
        // Of two results for one callback only the first can count.
        let mut settled: HashSet<i64> = settled.into_iter().collect();
        let answers = batch
            .iter()
            .map(|settlement| settled.remove(&settlement.id.as_i64()));
        Ok(answers.collect())
    }

    async fn release_callbacks(
        &self,
        node: NodeId,
        keep: Vec<CallbackId>,
    ) -> Result<u64, StoreError> {
        let keep: Vec<i64> = keep.into_iter().map(CallbackId::as_i64).collect();
        let values: super::Values<'_> = &[&node.as_i64(), &keep];
        self.get("release callbacks", RELEASE, values, prune::count)
            .await
    }

    async fn list_callbacks(
        &self,
        filter: &CallbackFilter,
        page: Page,
    ) -> Result<Vec<CallbackRecord>, StoreError> {
        let sql = if filter.with_done {
            LIST_WITH_DONE
        } else {
            LIST
        };
        let filter = FilterColumns::of(filter);
        let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
        let values: super::Values<'_> = &[
            &filter.first_id,
            &filter.last_id,
            &filter.url_prefix,
            &filter.from_us,
            &filter.until_us,
            &filter.account_id,
            &i64::from(page.limit),
            &offset,
        ];
        self.list("list callbacks", sql, values, record).await
    }

    async fn list_attempts(&self, id: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError> {
        let read = |row: &Row| attempt_columns(row, 0)?.attempt();
        self.list(
            "list the tries of a callback",
            LIST_ATTEMPTS,
            &[&id.as_i64()],
            read,
        )
        .await
    }

    async fn replay_callbacks(&self, filter: &CallbackFilter) -> Result<u64, StoreError> {
        let sql = if filter.with_done {
            REPLAY_WITH_DONE
        } else {
            REPLAY
        };
        let filter = FilterColumns::of(filter);
        let values: super::Values<'_> = &[
            &filter.first_id,
            &filter.last_id,
            &filter.url_prefix,
            &filter.from_us,
            &filter.until_us,
            &filter.account_id,
        ];
        self.get("replay callbacks", sql, values, prune::count)
            .await
    }

    async fn find_callback_secret(&self, account: AccountId) -> Result<Option<String>, StoreError> {
        let account = account.as_i64();
        self.find("find a callback secret", FIND_SECRET, &[&account], |row| {
            column(row, 0)
        })
        .await
    }
}

/// Settlements as [`SETTLE`] takes them.
#[derive(Default)]
struct SettlementColumns<'a> {
    id: Vec<i64>,
    due_us: Vec<i64>,
    attempt: Vec<i32>,
    state: Vec<i16>,
    later_us: Vec<Option<i64>>,
    at_us: Vec<Option<i64>>,
    status: Vec<Option<i32>>,
    elapsed_ms: Vec<Option<i64>>,
    body: Vec<Option<&'a [u8]>>,
    address: Vec<Option<&'a str>>,
    reason: Vec<Option<&'a [u8]>>,
}

impl<'a> SettlementColumns<'a> {
    /// In the order of IDs, in which rows are locked.
    fn of(batch: &'a [CallbackSettlement]) -> Self {
        let mut ordered: Vec<&CallbackSettlement> = batch.iter().collect();
        ordered.sort_by_key(|settlement| settlement.id);
        ordered.dedup_by_key(|settlement| settlement.id);
        let mut columns = Self::default();
        for settlement in ordered {
            columns.push(settlement);
            columns.push_attempt(settlement.attempt.as_ref());
        }
        columns
    }

    fn push(&mut self, settlement: &CallbackSettlement) {
        let (state, later_us) = next_columns(settlement.next);
        self.id.push(settlement.id.as_i64());
        self.due_us.push(micros(settlement.claim.due_at));
        self.attempt.push(dispatch::attempt(&settlement.claim));
        self.state.push(state);
        self.later_us.push(later_us);
    }

    fn push_attempt(&mut self, attempt: Option<&'a CallbackAttempt>) {
        self.at_us.push(attempt.map(|a| micros(a.at)));
        self.status
            .push(attempt.and_then(|a| a.status).map(i32::from));
        self.elapsed_ms
            .push(attempt.map(|a| i64::from(a.elapsed_ms)));
        self.body.push(attempt.map(|a| a.body.as_slice()));
        self.address
            .push(attempt.and_then(|a| a.address.as_deref()));
        self.reason.push(attempt.map(|a| a.reason.as_bytes()));
    }

    fn values<'s>(&'s self, node: &'s i64) -> [&'s (dyn ToSql + Sync); 12] {
        [
            node,
            &self.id,
            &self.due_us,
            &self.attempt,
            &self.state,
            &self.later_us,
            &self.at_us,
            &self.status,
            &self.elapsed_ms,
            &self.body,
            &self.address,
            &self.reason,
        ]
    }
}

/// `None` for the row that only tells the time.
fn callback(row: &Row) -> Result<Option<Callback>, Corrupt> {
    let Some(id) = column(row, 0)? else {
        return Ok(None);
    };
    let columns = CallbackColumns {
        id,
        account_id: column(row, 1)?,
        url: column(row, 2)?,
        created_us: column(row, 3)?,
        tries: column(row, 4)?,
        due_us: column(row, 5)?,
        attempt: column(row, 6)?,
        kind: column(row, 7)?,
        text: text_columns(row, 8)?,
    };
    columns.callback().map(Some)
}

fn text_columns(row: &Row, at: usize) -> Result<TextColumns, Corrupt> {
    Ok(TextColumns {
        payload: column(row, at)?,
        message_id: column(row, at + 1)?,
        status: column(row, at + 2)?,
        error: column(row, at + 3)?,
        network: column(row, at + 4)?,
    })
}

pub(super) fn record(row: &Row) -> Result<CallbackRecord, Corrupt> {
    let has_last = column::<Option<i64>>(row, 8)?.is_some();
    let columns = RecordColumns {
        id: column(row, 0)?,
        account_id: column(row, 1)?,
        url: column(row, 2)?,
        created_us: column(row, 3)?,
        due_us: column(row, 4)?,
        state: column(row, 5)?,
        tries: column(row, 6)?,
        kind: column(row, 7)?,
        last: has_last.then(|| attempt_columns(row, 8)).transpose()?,
        text: text_columns(row, 14)?,
    };
    columns.record()
}

pub(super) fn attempt_columns(row: &Row, at: usize) -> Result<AttemptColumns, Corrupt> {
    Ok(AttemptColumns {
        at_us: column(row, at)?,
        status: column(row, at + 1)?,
        elapsed_ms: column(row, at + 2)?,
        body: column(row, at + 3)?,
        address: column(row, at + 4)?,
        reason: column(row, at + 5)?,
    })
}
