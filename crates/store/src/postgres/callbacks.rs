//! The port for callbacks.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::Object;
use domain::delivery::receiver::ReceiverId;
use domain::delivery::{CallbackAttempt, CallbackSettlement};
use domain::ids::{AccountId, CallbackId, NodeId};
use domain::ports::{
    CallbackFilter, CallbackRecord, CallbackStore, ClaimedCallbacks, HeldCallback, ListRange,
    ReplayCursor, ReplayRequest, Replayed, SigningSecrets, StoreError,
};
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::day_statements::DayStatements;
use super::days::Day;
use super::fault::Fault;
use super::retry::{self, Retryable};
use super::{PostgresStore, column};
use crate::rows::callbacks::{
    AttemptColumns, FilterColumns, RecordColumns, TextColumns, next_columns, next_queue,
};
use crate::rows::encrypted::{self, secret_context};
use crate::rows::{Corrupt, SecretColumns, dispatch, micros};
use crate::sql::callbacks as sql;

/// Delivered and parked callbacks leave the queue, others move within it; each is updated and its attempt is stored. A
/// callback that returns to the queue of its receiver without an attempt is only moved. The tables are those of
/// [`DayStatements`].
const SETTLE: &str = "
    WITH given AS MATERIALIZED (
        SELECT $1::bigint AS node, g.* FROM UNNEST($2::bigint[], $3::bigint[], $4::int[], $5::smallint[], $6::bigint[], $7::bigint[],
            $8::int[], $9::bigint[], $10::bytea[], $11::text[], $12::bytea[], $13::bigint[])
            AS g (id, due_us, attempt, state, later_us, at_us, status, elapsed_ms, body, address, reason, queue)
    ), removed AS (
        DELETE FROM callback_queue AS q USING given AS g
        WHERE g.later_us IS NULL AND g.queue IS NULL
            AND q.owner = ANY(ARRAY[g.node]) AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt
        RETURNING q.message_id, g.*
    ), postponed AS (
        UPDATE callback_queue AS q SET owner = 0, due_us = g.later_us FROM given AS g
        WHERE g.later_us IS NOT NULL
            AND q.owner = ANY(ARRAY[g.node]) AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt
        RETURNING q.message_id, g.*
    ), requeued AS (
        UPDATE callback_queue AS q SET owner = g.queue FROM given AS g
        WHERE g.queue IS NOT NULL
            AND q.owner = ANY(ARRAY[g.node]) AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt
        RETURNING g.id
    ), changed AS (
        UPDATE {callback} AS c SET state = s.state, due_us = coalesce(s.later_us, c.due_us),
            tries = c.tries + CASE WHEN s.at_us IS NULL THEN 0 ELSE 1 END
        FROM (SELECT * FROM removed UNION ALL SELECT * FROM postponed) AS s
        WHERE c.id = ANY(ARRAY[s.id]) AND c.message_id = ANY(ARRAY[s.message_id])
        RETURNING c.id, c.tries, c.message_id, s.at_us, s.status, s.elapsed_ms, s.body, s.address, s.reason
    ), logged AS (
        INSERT INTO {callback_attempt} (callback_id, number, message_id, at_us, status, elapsed_ms, body, address, reason)
        SELECT * FROM changed WHERE at_us IS NOT NULL
    )
    SELECT id FROM changed UNION ALL SELECT id FROM requeued";
macro_rules! list {
    ($from:expr) => {
        concat!(
            list_callbacks!($from),
            matches_filter!(),
            "ORDER BY c.id DESC LIMIT $7 OFFSET $8"
        )
    };
}
const LIST: &str = list!(not_done!());
const LIST_WITH_DONE: &str = list!("callback AS c");

const LIST_ATTEMPTS: &str = "
    SELECT at_us, status, elapsed_ms, body, address, reason FROM callback_attempt
    WHERE callback_id = $1 ORDER BY number";
const REPLACE_SECRET: &str = "
    UPDATE account SET former_secret = callback_secret, former_secret_until_us = $3, callback_secret = $2
    WHERE id = $1 RETURNING 1";

#[async_trait]
impl CallbackStore for PostgresStore {
    async fn claim_callbacks(
        &self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
    ) -> Result<ClaimedCallbacks, StoreError> {
        self.claim_from_queues(node, limit, queues).await
    }

    async fn list_receiver_queues(
        &self,
        after: Option<ReceiverId>,
        limit: u32,
    ) -> Result<Vec<ReceiverId>, StoreError> {
        self.list_queues_of_receivers(after, limit).await
    }

    async fn settle_callbacks(
        &self,
        node: NodeId,
        batch: Arc<Vec<CallbackSettlement>>,
    ) -> Result<Vec<bool>, StoreError> {
        let days = &self.day_statements;
        let with_day = |settlement| (day(days, settlement), settlement);
        let mut ordered: Vec<(Option<Day>, &CallbackSettlement)> =
            batch.iter().map(with_day).collect();
        // Rows are locked in this order.
        ordered.sort_by_key(|(day, settlement)| (*day, settlement.id));
        ordered.dedup_by_key(|(_, settlement)| settlement.id);
        let mut settled = HashSet::with_capacity(batch.len());
        for same_day in ordered.chunk_by(|(one, _), (other, _)| one == other) {
            let settle = SettleDay {
                node: node.as_i64(),
                day: same_day[0].0,
                columns: SettlementColumns::from_settlements(same_day.iter().map(|(_, s)| *s)),
                days,
            };
            settled.extend(retry::run(&self.pool, "settle callbacks", &settle).await?);
        }
        // If a batch has two results for one callback, the first one counts.
        let answers = batch
            .iter()
            .map(|settlement| settled.remove(&settlement.id.as_i64()));
        Ok(answers.collect())
    }

    async fn list_held_callbacks(
        &self,
        node: NodeId,
        age: SignedDuration,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Result<Vec<HeldCallback>, StoreError> {
        self.list_held_by(node, age, after, limit).await
    }

    async fn release_callbacks(
        &self,
        node: NodeId,
        held: Vec<HeldCallback>,
    ) -> Result<u64, StoreError> {
        self.release_held(node, &held).await
    }

    async fn list_callbacks(
        &self,
        filter: &CallbackFilter,
        page: ListRange,
    ) -> Result<Vec<CallbackRecord>, StoreError> {
        let sql = if filter.with_done {
            LIST_WITH_DONE
        } else {
            LIST
        };
        let filter = FilterColumns::from_filter(filter);
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
        let read = |row: &Row| AttemptColumns::read(row, 0)?.attempt();
        self.list(
            "list the attempts of a callback",
            LIST_ATTEMPTS,
            &[&id.as_i64()],
            read,
        )
        .await
    }

    async fn replay_callbacks(
        &self,
        filter: &CallbackFilter,
        from: ReplayCursor,
    ) -> Result<Replayed, StoreError> {
        self.replay(filter, from).await
    }

    async fn list_replay_requests(&self, above: u64) -> Result<Vec<ReplayRequest>, StoreError> {
        self.list_requests(above).await
    }

    async fn find_signing_secrets(
        &self,
        account: AccountId,
    ) -> Result<Option<SigningSecrets>, StoreError> {
        let account = account.as_i64();
        let read = |row: &Row| SecretColumns::read(row)?.secrets(&self.keys);
        self.find(
            "find signing secrets",
            sql::FIND_SECRETS.postgres,
            &[&account],
            read,
        )
        .await
    }

    async fn replace_signing_secret(
        &self,
        account: AccountId,
        secret: &str,
        former_until: Timestamp,
    ) -> Result<bool, StoreError> {
        const OPERATION: &str = "replace a signing secret";
        let account = account.as_i64();
        let name = |row: &Row| column::<String>(row, 0);
        // Names of accounts do not change.
        let Some(name) = self
            .find(OPERATION, sql::FIND_NAME.postgres, &[&account], name)
            .await?
        else {
            return Ok(false);
        };
        let secret = encrypted::encrypt_text(&self.keys, &secret_context(&name), secret);
        let values: super::Values<'_> = &[&account, &secret, &micros(former_until)];
        let replaced = self.query(OPERATION, REPLACE_SECRET, values).await?;
        Ok(!replaced.is_empty())
    }
}

/// The day to name in the statement that settles a callback.
fn day(days: &DayStatements, settlement: &CallbackSettlement) -> Option<Day> {
    days.day(settlement.message?.as_i64())
}

/// Settles callbacks whose partition is the same.
struct SettleDay<'a> {
    node: i64,
    day: Option<Day>,
    columns: SettlementColumns<'a>,
    days: &'a DayStatements,
}

impl Retryable for SettleDay<'_> {
    /// The IDs of the settled callbacks.
    type Output = Vec<i64>;

    async fn run(&self, client: &mut Object) -> Result<Vec<i64>, Fault> {
        let values = self.columns.values(&self.node);
        // After an error that names the table, the next attempt uses the partitioned one.
        let day = self.day.filter(|day| self.days.is_named(*day));
        let settled = self.days.query(&*client, SETTLE, day, &values).await?;
        let settled: Result<_, Corrupt> = settled.iter().map(|row| column(row, 0)).collect();
        Ok(settled?)
    }
}

/// The parameters of [`SETTLE`].
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
    queue: Vec<Option<i64>>,
}

impl<'a> SettlementColumns<'a> {
    fn from_settlements(settlements: impl Iterator<Item = &'a CallbackSettlement>) -> Self {
        let mut columns = Self::default();
        for settlement in settlements {
            columns.push(settlement);
            columns.push_attempt(settlement.attempt.as_ref());
        }
        columns
    }

    fn push(&mut self, settlement: &CallbackSettlement) {
        let (state, later_us) = next_columns(settlement.next);
        self.queue.push(next_queue(settlement.next));
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

    fn values<'s>(&'s self, node: &'s i64) -> [&'s (dyn ToSql + Sync); 13] {
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
            &self.queue,
        ]
    }
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
        last: has_last.then(|| AttemptColumns::read(row, 8)).transpose()?,
        text: TextColumns::read(row, 14)?,
    };
    columns.record()
}
