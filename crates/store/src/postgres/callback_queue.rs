//! Claiming callbacks, the queues of receivers, and callbacks that a node holds.

use std::time::Instant;

use domain::delivery::Callback;
use domain::delivery::receiver::ReceiverId;
use domain::ids::NodeId;
use domain::ports::{ClaimedCallbacks, HeldCallback, StoreError, UnreadableCallback};
use jiff::SignedDuration;
use tokio_postgres::Row;

use super::{PostgresStore, column, prune};
use crate::rows::callbacks::{CallbackColumns, TextColumns, held, queue_owner, receiver};
use crate::rows::{Corrupt, NOBODY, dispatch, duration_us, micros};

/// The first row has the time, and nothing else if nothing was claimed. A queue row without its callback is claimed,
/// too: it cannot be read and is set aside.
const CLAIM: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT owner, due_us, id FROM callback_queue WHERE owner = 0 AND (due_us, id) > ($3, $4) AND due_us <= ",
    now_us!(),
    " ORDER BY due_us, id LIMIT $2 FOR UPDATE SKIP LOCKED
    ), queued AS MATERIALIZED (
        SELECT d.owner, d.due_us, d.id
        FROM UNNEST($5::bigint[], $6::bigint[]) AS r (owner, most)
        CROSS JOIN LATERAL (
            SELECT q.owner, q.due_us, q.id FROM callback_queue AS q
            WHERE q.owner = r.owner ORDER BY q.due_us, q.id LIMIT r.most FOR UPDATE SKIP LOCKED
        ) AS d
    ), chosen AS MATERIALIZED (
        SELECT * FROM due UNION ALL SELECT * FROM queued
    ), taken AS (
        UPDATE callback_queue AS q SET owner = $1, attempt = q.attempt + 1 FROM chosen AS c
        WHERE q.owner = ANY(ARRAY[c.owner]) AND q.due_us = c.due_us AND q.id = c.id
        RETURNING q.due_us, q.id, q.attempt, q.message_id, c.owner
    )
    SELECT taken.id, c.account_id, coalesce(c.url, m.dlr_url), c.created_us, c.tries, taken.due_us, taken.attempt, c.kind,
        coalesce(c.payload, m.result), c.message_id, m.status, m.error, m.network, clock.now_us, taken.owner,
        coalesce(c.trace, m.trace)
    FROM (SELECT ",
    now_us!(),
    ") AS clock (now_us) LEFT JOIN (
        taken LEFT JOIN callback AS c ON c.id = taken.id AND c.message_id = taken.message_id
    ) ON TRUE
        LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
    ORDER BY taken.due_us, taken.id"
);
/// Steps from receiver to receiver through the index, however many callbacks wait for each.
const LIST_QUEUES: &str = "
    WITH RECURSIVE found (owner) AS (
        (SELECT owner FROM callback_queue WHERE owner > $1 AND owner < 0 ORDER BY owner LIMIT 1)
        UNION ALL
        SELECT (SELECT q.owner FROM callback_queue AS q WHERE q.owner > found.owner AND q.owner < 0
            ORDER BY q.owner LIMIT 1)
        FROM found WHERE found.owner IS NOT NULL
    )
    SELECT owner FROM found WHERE owner IS NOT NULL LIMIT $2";
const LIST_HELD: &str = concat!(
    "SELECT due_us, id, attempt FROM callback_queue
    WHERE owner = $1 AND (due_us, id) > ($2, $3) AND due_us <= ",
    now_us!(),
    " - $4::bigint ORDER BY due_us, id LIMIT $5"
);
/// The attempt number guards against stale claims: rows that were settled or claimed again are not changed.
const RELEASE: &str = "
    WITH released AS (
        UPDATE callback_queue AS q SET owner = 0
        FROM (SELECT $1::bigint AS node, g.* FROM UNNEST($2::bigint[], $3::bigint[], $4::int[])
            AS g (due_us, id, attempt)) AS g
        WHERE q.owner = ANY(ARRAY[g.node]) AND q.due_us = g.due_us AND q.id = g.id AND q.attempt = g.attempt RETURNING 1
    )
    SELECT count(*) FROM released";

/// A claimed row.
struct ClaimedCallback {
    owner: i64,
    held: HeldCallback,
    callback: Result<Callback, Corrupt>,
}

impl PostgresStore {
    /// Claims callbacks that are due, and callbacks from the queues of receivers.
    pub(super) async fn claim_from_queues(
        &self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
    ) -> Result<ClaimedCallbacks, StoreError> {
        let scan = self.callbacks.begin(Instant::now());
        let (after_us, after_id) = scan.after;
        let owner = |(receiver, _): &(ReceiverId, u32)| queue_owner(*receiver);
        let owners: Vec<i64> = queues.iter().map(owner).collect();
        let most: Vec<i64> = queues.iter().map(|(_, most)| i64::from(*most)).collect();
        let values: super::Values<'_> = &[
            &node.as_i64(),
            &i64::from(limit),
            &after_us,
            &after_id,
            &owners,
            &most,
        ];
        let read = |row: &Row| Ok((column::<i64>(row, 13)?, taken(row)?));
        let rows = self.list("claim callbacks", CLAIM, values, read).await?;
        let now_us = rows.first().map_or(i64::MIN, |(now_us, _)| *now_us);
        let taken: Vec<ClaimedCallback> = rows.into_iter().filter_map(|(_, taken)| taken).collect();
        let due = taken.iter().filter(|taken| taken.owner == NOBODY);
        let last = due.clone().next_back();
        let last = last.filter(|_| due.count() >= limit as usize);
        let last = last.map(|last| (micros(last.held.claim.due_at), last.held.id.as_i64()));
        self.callbacks.end(&scan, Instant::now(), now_us, last);
        Ok(claimed(taken))
    }

    /// Lists the receivers with a queue that is not empty, page by page.
    pub(super) async fn list_queues_of_receivers(
        &self,
        after: Option<ReceiverId>,
        limit: u32,
    ) -> Result<Vec<ReceiverId>, StoreError> {
        let after = after.map_or(i64::MIN, queue_owner);
        let values: super::Values<'_> = &[&after, &i64::from(limit)];
        let read = |row: &Row| receiver(column(row, 0)?);
        self.list("list the queues of receivers", LIST_QUEUES, values, read)
            .await
    }

    /// Callbacks that a node holds according to the database.
    pub(super) async fn list_held_by(
        &self,
        node: NodeId,
        age: SignedDuration,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Result<Vec<HeldCallback>, StoreError> {
        let (after_us, after_id) = after.map_or(super::scan_start::BEGINNING, |held| {
            (micros(held.claim.due_at), held.id.as_i64())
        });
        let values: super::Values<'_> = &[
            &node.as_i64(),
            &after_us,
            &after_id,
            &duration_us(age),
            &i64::from(limit),
        ];
        let read = |row: &Row| held(column(row, 1)?, column(row, 0)?, column(row, 2)?);
        self.list("list held callbacks", LIST_HELD, values, read)
            .await
    }

    /// Releases callbacks that a node holds.
    pub(super) async fn release_held(
        &self,
        node: NodeId,
        held: &[HeldCallback],
    ) -> Result<u64, StoreError> {
        let due_us: Vec<i64> = held.iter().map(|one| micros(one.claim.due_at)).collect();
        let ids: Vec<i64> = held.iter().map(|one| one.id.as_i64()).collect();
        let attempts = held.iter().map(|one| dispatch::attempt(&one.claim));
        let attempts: Vec<i32> = attempts.collect();
        let values: super::Values<'_> = &[&node.as_i64(), &due_us, &ids, &attempts];
        self.get("release callbacks", RELEASE, values, prune::count)
            .await
    }
}

fn claimed(taken: Vec<ClaimedCallback>) -> ClaimedCallbacks {
    let mut claimed = ClaimedCallbacks::default();
    for row in taken {
        match row.callback {
            Ok(callback) if row.owner == NOBODY => claimed.due.push(callback),
            Ok(callback) => claimed.queued.push(callback),
            Err(Corrupt(part)) => claimed.unreadable.push(UnreadableCallback {
                held: row.held,
                part,
            }),
        }
    }
    claimed
}

/// `None` for the row that has only the time.
fn taken(row: &Row) -> Result<Option<ClaimedCallback>, Corrupt> {
    let Some(id) = column(row, 0)? else {
        return Ok(None);
    };
    Ok(Some(ClaimedCallback {
        owner: column(row, 14)?,
        held: held(id, column(row, 5)?, column(row, 6)?)?,
        callback: callback(row, id),
    }))
}

fn callback(row: &Row, id: i64) -> Result<Callback, Corrupt> {
    let columns = CallbackColumns {
        id,
        account_id: column(row, 1)?,
        url: column(row, 2)?,
        created_us: column(row, 3)?,
        tries: column(row, 4)?,
        due_us: column(row, 5)?,
        attempt: column(row, 6)?,
        kind: column(row, 7)?,
        text: TextColumns::read(row, 8)?,
        trace: dispatch::trace(column(row, 15)?),
    };
    columns.callback()
}
