//! Claiming callbacks, the queues of receivers, and callbacks that a node holds.

use domain::delivery::Callback;
use domain::delivery::receiver::ReceiverId;
use domain::ids::NodeId;
use domain::ports::{ClaimedCallbacks, HeldCallback, UnreadableCallback};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::clock;
use crate::rows::callbacks::{CallbackColumns, TextColumns, held, queue_owner, receiver};
use crate::rows::{Corrupt, NOBODY, dispatch, micros};

const FIND: &str = "
    SELECT due_us, id FROM callback_queue WHERE owner = ?1 AND due_us <= ?2 ORDER BY due_us, id LIMIT ?3";
const CLAIM: &str = "
    UPDATE callback_queue SET owner = ?1, attempt = attempt + 1 WHERE owner = ?2 AND due_us = ?3 AND id = ?4
    RETURNING attempt";
const READ: &str = "
    SELECT c.account_id, coalesce(c.url, m.dlr_url), c.created_us, c.tries, c.kind,
        coalesce(c.payload, m.result), c.message_id, m.status, m.error, m.network,
        coalesce(c.trace, m.trace)
    FROM callback AS c LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL WHERE c.id = ?1";
/// Steps from receiver to receiver through the index, however many callbacks wait for each.
const LIST_QUEUES: &str = "
    WITH RECURSIVE found (owner) AS (
        SELECT min(owner) FROM callback_queue WHERE owner > ?1 AND owner < 0
        UNION ALL
        SELECT (SELECT min(q.owner) FROM callback_queue AS q WHERE q.owner > found.owner AND q.owner < 0)
        FROM found WHERE found.owner IS NOT NULL LIMIT ?2
    )
    SELECT owner FROM found WHERE owner IS NOT NULL";
const LIST_HELD: &str = "
    SELECT due_us, id, attempt FROM callback_queue
    WHERE owner = ?1 AND (due_us, id) > (?2, ?3) AND due_us <= ?4 ORDER BY due_us, id LIMIT ?5";
/// The attempt number guards against stale claims: rows that were settled or claimed again are not changed.
const RELEASE: &str = "
    UPDATE callback_queue SET owner = 0 WHERE owner = ?1 AND due_us = ?2 AND id = ?3 AND attempt = ?4";

/// Claims callbacks that are due, and callbacks from the queues of receivers.
pub(super) fn claim(
    db: &Connection,
    node: NodeId,
    limit: u32,
    queues: &[(ReceiverId, u32)],
) -> Result<ClaimedCallbacks> {
    let mut claimed = ClaimedCallbacks::default();
    let now_us = clock::now_us(db)?;
    for (due_us, id) in due_keys(db, NOBODY, now_us, limit)? {
        match claim_one(db, node, NOBODY, (due_us, id))? {
            Ok(callback) => claimed.due.push(callback),
            Err(unreadable) => claimed.unreadable.push(unreadable),
        }
    }
    for (receiver, most) in queues {
        let owner = queue_owner(*receiver);
        for key in due_keys(db, owner, i64::MAX, *most)? {
            match claim_one(db, node, owner, key)? {
                Ok(callback) => claimed.queued.push(callback),
                Err(unreadable) => claimed.unreadable.push(unreadable),
            }
        }
    }
    Ok(claimed)
}

fn due_keys(db: &Connection, owner: i64, until_us: i64, limit: u32) -> Result<Vec<(i64, i64)>> {
    let mut find = db.prepare_cached(FIND)?;
    let values = params![owner, until_us, limit];
    find.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn claim_one(
    db: &Connection,
    node: NodeId,
    owner: i64,
    (due_us, id): (i64, i64),
) -> Result<std::result::Result<Callback, UnreadableCallback>> {
    let mut claim = db.prepare_cached(CLAIM)?;
    let values = [node.as_i64(), owner, due_us, id];
    let attempt = claim.query_row(values, |row| row.get(0))?;
    let held = held(id, due_us, attempt)?;
    let read = |row: &Row<'_>| Ok(columns(row, id, due_us, attempt));
    let columns = db.prepare_cached(READ)?.query_row([id], read).optional()?;
    let columns = columns.unwrap_or(Err(Corrupt("row")));
    let callback = columns.and_then(CallbackColumns::callback);
    Ok(callback.map_err(|Corrupt(part)| UnreadableCallback { held, part }))
}

fn columns(
    row: &Row<'_>,
    id: i64,
    due_us: i64,
    attempt: i32,
) -> std::result::Result<CallbackColumns, Corrupt> {
    let read = || {
        Ok(CallbackColumns {
            id,
            account_id: row.get(0)?,
            url: row.get(1)?,
            text: TextColumns::read(row, 5)?,
            created_us: row.get(2)?,
            tries: row.get(3)?,
            kind: row.get(4)?,
            due_us,
            attempt,
            trace: dispatch::trace(row.get_ref(10)?.as_bytes_or_null()?),
        })
    };
    read().map_err(|_: rusqlite::Error| Corrupt("column"))
}

/// Lists the receivers with a queue that is not empty, page by page.
pub(super) fn list_queues(
    db: &Connection,
    after: Option<ReceiverId>,
    limit: u32,
) -> Result<Vec<ReceiverId>> {
    let after = after.map_or(i64::MIN, queue_owner);
    let mut list = db.prepare_cached(LIST_QUEUES)?;
    let read = |row: &Row<'_>| Ok(receiver(row.get(0)?)?);
    list.query_map(params![after, limit], read)?.collect()
}

/// Callbacks that a node holds according to the database.
pub(super) fn list_held(
    db: &Connection,
    node: NodeId,
    age_us: i64,
    after: Option<HeldCallback>,
    limit: u32,
) -> Result<Vec<HeldCallback>> {
    let (after_us, after_id) = after.map_or((i64::MIN, i64::MIN), |held| {
        (micros(held.claim.due_at), held.id.as_i64())
    });
    let until_us = clock::now_us(db)?.saturating_sub(age_us);
    let mut list = db.prepare_cached(LIST_HELD)?;
    let read = |row: &Row<'_>| Ok(held(row.get(1)?, row.get(0)?, row.get(2)?)?);
    let values = params![node.as_i64(), after_us, after_id, until_us, limit];
    list.query_map(values, read)?.collect()
}

/// Releases callbacks that a node holds.
pub(super) fn release(db: &Connection, node: NodeId, held: &[HeldCallback]) -> Result<u64> {
    let mut release = db.prepare_cached(RELEASE)?;
    let mut released = 0;
    for one in held {
        let (due_us, attempt) = (micros(one.claim.due_at), dispatch::attempt(&one.claim));
        let values = params![node.as_i64(), due_us, one.id.as_i64(), attempt];
        released += release.execute(values)? as u64;
    }
    Ok(released)
}
