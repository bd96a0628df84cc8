//! Replaying callbacks.

use deadpool_postgres::{Object, Transaction};
use domain::ports::{
    CallbackFilter, ReplayCursor, ReplayRequest, ReplaySource, Replayed, StoreError,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::Fault;
use super::retry::{self, Retryable};
use super::{PostgresStore, column, prune};
use crate::rows::Corrupt;
use crate::rows::callbacks::{FilterColumns, REPLAY_ROWS, replay_next, replay_request};
use crate::sql::replay as sql;

/// Callbacks in the queue: a callback that waits for a later time moves to the front; one in the queue of its receiver,
/// or due already, keeps its position. Rows that a node holds are skipped.
const REPLAY_QUEUE: &str = concat!(
    "WITH page AS MATERIALIZED (
        SELECT owner, due_us, id, message_id FROM callback_queue
        WHERE owner <= 0 AND (owner, due_us, id) > ($7::bigint, $8::bigint, $9::bigint) AND id BETWEEN $1 AND $2
        ORDER BY owner, due_us, id LIMIT $10
    ), found AS MATERIALIZED (
        SELECT p.owner AS place, 0::bigint AS owner, c.id, c.message_id, c.due_us, c.state
        FROM page AS p
            JOIN callback AS c ON c.id = ANY(ARRAY[p.id]) AND c.message_id = ANY(ARRAY[p.message_id])",
    subject!(),
    matches_filter!(),
    " FOR UPDATE OF c
    ), hurried AS (
        UPDATE callback_queue AS q SET due_us = ",
    now_us!(),
    " FROM found
        WHERE found.state = 0 AND found.place = 0 AND found.due_us > ",
    now_us!(),
    " AND q.owner = ANY(ARRAY[found.owner]) AND q.due_us = found.due_us AND q.id = found.id
        RETURNING q.id, q.message_id
    ), waiting AS (
        UPDATE callback AS c SET due_us = ",
    now_us!(),
    " FROM hurried AS again
        WHERE c.id = ANY(ARRAY[again.id]) AND c.message_id = ANY(ARRAY[again.message_id]) RETURNING 1
    )
    SELECT (SELECT count(*) FROM waiting)
            + (SELECT count(*) FROM found WHERE state = 0 AND (place < 0 OR due_us <= ",
    now_us!(),
    ")),
        (SELECT count(*) FROM page), last.owner, last.due_us, last.id
    FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
        SELECT owner, due_us, id FROM page ORDER BY owner DESC, due_us DESC, id DESC LIMIT 1
    ) AS last ON TRUE"
);
/// Callbacks in another state are queued again. The lock keeps two concurrent replays from queueing a callback twice.
macro_rules! replay_state {
    ($state:literal) => {
        concat!(
            "WITH page AS MATERIALIZED (
                SELECT id, message_id FROM callback
                WHERE state = ",
            $state,
            " AND id > $7 AND id BETWEEN $1 AND $2 ORDER BY id LIMIT $8
            ), found AS MATERIALIZED (
                SELECT c.id, c.message_id, c.tries
                FROM page AS p
                    JOIN callback AS c ON c.id = ANY(ARRAY[p.id]) AND c.message_id = ANY(ARRAY[p.message_id])",
            subject!(),
            matches_filter!(),
            " AND c.state = ",
            $state,
            " FOR UPDATE OF c
            ), queued AS (
                INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
                SELECT 0, ",
            now_us!(),
            ", id, tries, message_id FROM found RETURNING id, message_id
            ), waiting AS (
                UPDATE callback AS c SET state = 0, due_us = ",
            now_us!(),
            " FROM queued AS again
                WHERE c.id = ANY(ARRAY[again.id]) AND c.message_id = ANY(ARRAY[again.message_id]) RETURNING 1
            )
            SELECT (SELECT count(*) FROM waiting), (SELECT count(*) FROM page), 0::bigint, 0::bigint,
                (SELECT max(id) FROM page)"
        )
    };
}
const REPLAY_PARKED: &str = replay_state!("1");
const REPLAY_DONE: &str = replay_state!("2");
const DELETE_REQUESTS: &str = concat!(
    "DELETE FROM callback_replay WHERE at_us < ",
    now_us!(),
    " - 3600000000"
);
/// A single callback is replayed for its receiver.
const REQUEST_FOR_ONE: &str = concat!(
    "INSERT INTO callback_replay (account_id, url_prefix, at_us)
    SELECT c.account_id, coalesce(c.url, m.dlr_url), ",
    now_us!(),
    " FROM callback AS c",
    subject!(),
    " WHERE c.id = $1 AND coalesce(c.url, m.dlr_url) IS NOT NULL"
);
const REQUEST: &str = concat!(
    "INSERT INTO callback_replay (account_id, url_prefix, at_us) SELECT $1::bigint, $2::bytea, ",
    now_us!()
);

/// A step that makes callbacks due now.
struct Replay<'a> {
    filter: &'a CallbackFilter,
    from: ReplayCursor,
}

impl Retryable for Replay<'_> {
    type Output = Replayed;

    async fn run(&self, client: &mut Object) -> Result<Replayed, Fault> {
        let filter = FilterColumns::from_filter(self.filter);
        let transaction = client.transaction().await?;
        let row = step(&transaction, &filter, self.from).await?;
        let last: Option<i64> = column(&row, 4)?;
        let last = match last {
            Some(id) => Some(ReplayCursor {
                source: self.from.source,
                owner: column(&row, 2)?,
                due_us: column(&row, 3)?,
                id,
            }),
            None => None,
        };
        let next = replay_next(self.from, column(&row, 1)?, last, self.filter.with_done);
        if next.is_none() {
            request(&transaction, self.filter, &filter).await?;
        }
        transaction.commit().await?;
        Ok(Replayed {
            count: prune::count(&row)?,
            next,
        })
    }
}

async fn step(
    transaction: &Transaction<'_>,
    filter: &FilterColumns,
    from: ReplayCursor,
) -> Result<Row, Fault> {
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![
        &filter.first_id,
        &filter.last_id,
        &filter.url_prefix,
        &filter.from_us,
        &filter.until_us,
        &filter.account_id,
    ];
    let sql = match from.source {
        ReplaySource::Queue => {
            values.extend([&from.owner as &(dyn ToSql + Sync), &from.due_us]);
            REPLAY_QUEUE
        }
        ReplaySource::Parked => REPLAY_PARKED,
        ReplaySource::Done => REPLAY_DONE,
    };
    values.extend([&from.id as &(dyn ToSql + Sync), &REPLAY_ROWS]);
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query_one(&statement, &values).await?)
}

/// Tells the nodes which receivers to retry now.
async fn request(
    transaction: &Transaction<'_>,
    filter: &CallbackFilter,
    columns: &FilterColumns,
) -> Result<(), Fault> {
    let forget = transaction.prepare_cached(DELETE_REQUESTS).await?;
    transaction.execute(&forget, &[]).await?;
    if let Some(id) = filter.id {
        let statement = transaction.prepare_cached(REQUEST_FOR_ONE).await?;
        transaction.execute(&statement, &[&id.as_i64()]).await?;
    } else {
        let statement = transaction.prepare_cached(REQUEST).await?;
        let values: super::Values<'_> = &[&columns.account_id, &columns.url_prefix];
        transaction.execute(&statement, values).await?;
    }
    Ok(())
}

impl PostgresStore {
    /// Makes some callbacks due now.
    pub(super) async fn replay(
        &self,
        filter: &CallbackFilter,
        from: ReplayCursor,
    ) -> Result<Replayed, StoreError> {
        let replay = Replay { filter, from };
        retry::run(&self.pool, "replay callbacks", &replay).await
    }

    /// Replay requests with a higher number.
    pub(super) async fn list_requests(&self, above: u64) -> Result<Vec<ReplayRequest>, StoreError> {
        let above = i64::try_from(above).unwrap_or(i64::MAX);
        self.list(
            "list requests to replay",
            sql::LIST_REQUESTS.postgres,
            &[&above],
            read,
        )
        .await
    }
}

fn read(row: &Row) -> Result<ReplayRequest, Corrupt> {
    replay_request(column(row, 0)?, column(row, 1)?, column(row, 2)?)
}
