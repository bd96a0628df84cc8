//! Sending callbacks again.

use deadpool_postgres::{Object, Transaction};
use domain::ports::{CallbackFilter, ReplayRequest, StoreError};
use tokio_postgres::Row;

use super::attempt::{self, Attempt};
use super::fault::Fault;
use super::{PostgresStore, column, prune};
use crate::rows::Corrupt;
use crate::rows::callbacks::{FilterColumns, replay_request};

/// One that waits for its time moves to the front; one in its receiver's queue is due already; one that a node holds is
/// left alone; the others get into the queue again. The lock keeps two that replay at once from queueing one callback
/// twice.
macro_rules! replay {
    ($place:literal, $from:expr, $condition:literal) => {
        concat!(
            "WITH found AS MATERIALIZED (
                SELECT 0::bigint AS owner, ",
            $place,
            " AS place, c.id, c.message_id, c.due_us, c.state, c.tries FROM ",
            $from,
            subject!(),
            matches_filter!(),
            $condition,
            " FOR UPDATE OF c
            ), hurried AS (
                UPDATE callback_queue AS q SET due_us = ",
            now_us!(),
            " FROM found
                WHERE found.state = 0 AND found.place = 0
                    AND q.owner = ANY(ARRAY[found.owner]) AND q.due_us = found.due_us AND q.id = found.id
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
                WHERE c.id = ANY(ARRAY[again.id]) AND c.message_id = ANY(ARRAY[again.message_id]) RETURNING 1
            )
            SELECT (SELECT count(*) FROM waiting) + (SELECT count(*) FROM found WHERE state = 0 AND place < 0)"
        )
    };
}
const REPLAY: &str = replay!("open.owner", not_done!(), "");
const REPLAY_DONE: &str = replay!("NULL::bigint", "callback AS c", " AND c.state = 2");
const FORGET_REQUESTS: &str = concat!(
    "DELETE FROM callback_replay WHERE at_us < ",
    now_us!(),
    " - 3600000000"
);
/// One callback stands for its receiver.
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
const LIST_REQUESTS: &str =
    "SELECT number, account_id, url_prefix FROM callback_replay WHERE number > $1 ORDER BY number";

/// Makes callbacks due now.
struct Replay<'a>(&'a CallbackFilter);

impl Attempt for Replay<'_> {
    type Output = u64;

    async fn run(&self, client: &mut Object) -> Result<u64, Fault> {
        let filter = FilterColumns::of(self.0);
        let transaction = client.transaction().await?;
        let mut replayed = replay(&transaction, REPLAY, &filter).await?;
        if self.0.with_done {
            replayed += replay(&transaction, REPLAY_DONE, &filter).await?;
        }
        request(&transaction, self.0, &filter).await?;
        transaction.commit().await?;
        Ok(replayed)
    }
}

async fn replay(
    transaction: &Transaction<'_>,
    sql: &'static str,
    filter: &FilterColumns,
) -> Result<u64, Fault> {
    let values: super::Values<'_> = &[
        &filter.first_id,
        &filter.last_id,
        &filter.url_prefix,
        &filter.from_us,
        &filter.until_us,
        &filter.account_id,
    ];
    let statement = transaction.prepare_cached(sql).await?;
    let counted = transaction.query_one(&statement, values).await?;
    Ok(prune::count(&counted)?)
}

/// Tells the nodes whose receivers are to be tried now.
async fn request(
    transaction: &Transaction<'_>,
    filter: &CallbackFilter,
    columns: &FilterColumns,
) -> Result<(), Fault> {
    let forget = transaction.prepare_cached(FORGET_REQUESTS).await?;
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
    /// Makes callbacks due now, and says how many.
    pub(super) async fn replay(&self, filter: &CallbackFilter) -> Result<u64, StoreError> {
        attempt::run(&self.pool, "replay callbacks", &Replay(filter)).await
    }

    /// Requests to send callbacks again.
    pub(super) async fn list_requests(&self, above: u64) -> Result<Vec<ReplayRequest>, StoreError> {
        let above = i64::try_from(above).unwrap_or(i64::MAX);
        self.list("list requests to replay", LIST_REQUESTS, &[&above], read)
            .await
    }
}

fn read(row: &Row) -> Result<ReplayRequest, Corrupt> {
    replay_request(column(row, 0)?, column(row, 1)?, column(row, 2)?)
}
