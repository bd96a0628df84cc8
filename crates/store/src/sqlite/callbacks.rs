//! The port for callbacks.

use std::sync::Arc;

use async_trait::async_trait;
use domain::delivery::{CallbackAttempt, CallbackSettlement};
use domain::ids::{AccountId, CallbackId, NodeId};
use domain::ports::{
    CallbackFilter, CallbackRecord, CallbackStore, ClaimedCallbacks, HeldCallback, ListRange,
    ReplayCursor, ReplayRequest, Replayed, SigningSecrets, StoreError,
};
use domain::{KeyRing, ReceiverId, Timestamp};
use jiff::SignedDuration;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::{SqliteStore, callback_queue, replay};
use crate::rows::callbacks::{
    AttemptColumns, FilterColumns, RecordColumns, TextColumns, next_columns, next_queue,
};
use crate::rows::encrypted::{self, secret_context};
use crate::rows::{SecretColumns, dispatch, duration_us, micros};
use crate::sql::callbacks as sql;

const REMOVE: &str =
    "DELETE FROM callback_queue WHERE owner = ?1 AND due_us = ?2 AND id = ?3 AND attempt = ?4";
const POSTPONE: &str = "
    UPDATE callback_queue SET owner = 0, due_us = ?5
    WHERE owner = ?1 AND due_us = ?2 AND id = ?3 AND attempt = ?4";
const SETTLE: &str = "
    UPDATE callback SET state = ?2, due_us = coalesce(?3, 0), tries = tries + ?4 WHERE id = ?1";
/// A key has room for more attempts than any schedule makes; beyond that, the last attempt is overwritten.
const LOG: &str = "
    INSERT OR REPLACE INTO callback_attempt (id, at_us, status, elapsed_ms, body, address, reason)
    SELECT id * 1048576 + min(tries, 1048575), ?2, ?3, ?4, ?5, ?6, ?7 FROM callback WHERE id = ?1";

/// Moves a row to another queue, and changes nothing else.
const REQUEUE: &str = "
    UPDATE callback_queue SET owner = ?5 WHERE owner = ?1 AND due_us = ?2 AND id = ?3 AND attempt = ?4";

pub(super) const RECORD: &str = "
    SELECT c.id, c.account_id, coalesce(c.url, m.dlr_url, x''), c.created_us, c.due_us, c.state, c.tries, c.kind,
        a.at_us, a.status, a.elapsed_ms, a.body, a.address, a.reason,
        coalesce(c.payload, m.result), c.message_id, m.status, m.error, m.network
    FROM callback AS c LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
        LEFT JOIN callback_attempt AS a ON a.id = c.id * 1048576 + min(c.tries, 1048575)";
pub(super) const MATCHES: &str = "
    c.id BETWEEN ?1 AND ?2 AND substr(coalesce(c.url, m.dlr_url, x''), 1, length(?3)) = ?3
    AND c.created_us >= ?4 AND c.created_us < ?5 AND (?6 IS NULL OR c.account_id = ?6)";
/// Open callbacks are in the queue or parked, and both have an index. So the delivered ones, which are nearly all, are
/// not read.
const NOT_DONE: &str = "
    c.id IN (SELECT id FROM callback_queue UNION ALL SELECT id FROM callback WHERE state = 1)";
const LIST_ATTEMPTS: &str = "
    SELECT at_us, status, elapsed_ms, body, address, reason FROM callback_attempt
    WHERE id BETWEEN ?1 * 1048576 AND ?1 * 1048576 + 1048575 ORDER BY id";
const REPLACE_SECRET: &str = "
    UPDATE account SET former_secret = callback_secret, former_secret_until_us = ?3, callback_secret = ?2
    WHERE id = ?1";

#[async_trait]
impl CallbackStore for SqliteStore {
    async fn claim_callbacks(
        &self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
    ) -> Result<ClaimedCallbacks, StoreError> {
        let queues = queues.to_vec();
        self.write("claim callbacks", move |db| {
            callback_queue::claim(db, node, limit, &queues)
        })
        .await
    }

    async fn list_receiver_queues(
        &self,
        after: Option<ReceiverId>,
        limit: u32,
    ) -> Result<Vec<ReceiverId>, StoreError> {
        self.read("list the queues of receivers", move |db| {
            callback_queue::list_queues(db, after, limit)
        })
        .await
    }

    async fn settle_callbacks(
        &self,
        node: NodeId,
        batch: Arc<Vec<CallbackSettlement>>,
    ) -> Result<Vec<bool>, StoreError> {
        let rows = batch.len();
        let work = move |db: &_| settle(db, node, &batch);
        self.writer.run("settle callbacks", rows, work).await
    }

    async fn list_held_callbacks(
        &self,
        node: NodeId,
        age: SignedDuration,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Result<Vec<HeldCallback>, StoreError> {
        let age_us = duration_us(age);
        self.read("list held callbacks", move |db| {
            callback_queue::list_held(db, node, age_us, after, limit)
        })
        .await
    }

    async fn release_callbacks(
        &self,
        node: NodeId,
        held: Vec<HeldCallback>,
    ) -> Result<u64, StoreError> {
        self.write("release callbacks", move |db| {
            callback_queue::release(db, node, &held)
        })
        .await
    }

    async fn list_callbacks(
        &self,
        filter: &CallbackFilter,
        page: ListRange,
    ) -> Result<Vec<CallbackRecord>, StoreError> {
        let (columns, with_done) = (FilterColumns::from_filter(filter), filter.with_done);
        self.read("list callbacks", move |db| {
            list(db, &columns, with_done, page)
        })
        .await
    }

    async fn list_attempts(&self, id: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError> {
        self.read("list the attempts of a callback", move |db| {
            list_attempts(db, id)
        })
        .await
    }

    async fn replay_callbacks(
        &self,
        filter: &CallbackFilter,
        from: ReplayCursor,
    ) -> Result<Replayed, StoreError> {
        let filter = filter.clone();
        self.write("replay callbacks", move |db| {
            replay::step(db, &filter, from)
        })
        .await
    }

    async fn list_replay_requests(&self, above: u64) -> Result<Vec<ReplayRequest>, StoreError> {
        self.read("list requests to replay", move |db| {
            replay::list_requests(db, above)
        })
        .await
    }

    async fn find_signing_secrets(
        &self,
        account: AccountId,
    ) -> Result<Option<SigningSecrets>, StoreError> {
        let keys = self.keys.clone();
        self.read("find signing secrets", move |db| {
            find_secrets(db, &keys, account)
        })
        .await
    }

    async fn replace_signing_secret(
        &self,
        account: AccountId,
        secret: &str,
        former_until: Timestamp,
    ) -> Result<bool, StoreError> {
        let (keys, secret) = (self.keys.clone(), secret.to_owned());
        self.write("replace a signing secret", move |db| {
            replace_secret(db, &keys, account, &secret, micros(former_until))
        })
        .await
    }
}

/// Stores the results of attempts; `false` for a claim that the node has lost.
fn settle(db: &Connection, node: NodeId, batch: &[CallbackSettlement]) -> Result<Vec<bool>> {
    let mut settling = Settling {
        node,
        remove: db.prepare_cached(REMOVE)?,
        postpone: db.prepare_cached(POSTPONE)?,
        requeue: db.prepare_cached(REQUEUE)?,
        settle: db.prepare_cached(SETTLE)?,
        log: db.prepare_cached(LOG)?,
    };
    batch
        .iter()
        .map(|settlement| settling.settle(settlement))
        .collect()
}

/// The statements of the hot path, prepared once for a batch.
struct Settling<'db> {
    node: NodeId,
    remove: CachedStatement<'db>,
    postpone: CachedStatement<'db>,
    requeue: CachedStatement<'db>,
    settle: CachedStatement<'db>,
    log: CachedStatement<'db>,
}

impl Settling<'_> {
    fn settle(&mut self, settlement: &CallbackSettlement) -> Result<bool> {
        let (node, id) = (self.node.as_i64(), settlement.id.as_i64());
        let due_us = micros(settlement.claim.due_at);
        let attempt = dispatch::attempt(&settlement.claim);
        if let Some(queue) = next_queue(settlement.next) {
            let values = params![node, due_us, id, attempt, queue];
            return Ok(self.requeue.execute(values)? > 0);
        }
        let (state, later_us) = next_columns(settlement.next);
        let changed = match later_us {
            Some(later_us) => {
                let values = params![node, due_us, id, attempt, later_us];
                self.postpone.execute(values)?
            }
            None => self.remove.execute(params![node, due_us, id, attempt])?,
        };
        if changed == 0 {
            return Ok(false);
        }
        let tried = settlement.attempt.is_some();
        self.settle.execute(params![id, state, later_us, tried])?;
        if let Some(attempt) = &settlement.attempt {
            self.log(id, attempt)?;
        }
        Ok(true)
    }

    fn log(&mut self, id: i64, attempt: &CallbackAttempt) -> Result<()> {
        self.log.execute(params![
            id,
            micros(attempt.at),
            attempt.status,
            attempt.elapsed_ms,
            attempt.body,
            attempt.address,
            attempt.reason.as_bytes(),
        ])?;
        Ok(())
    }
}

/// Callbacks that match a filter, the newest first.
fn list(
    db: &Connection,
    filter: &FilterColumns,
    with_done: bool,
    page: ListRange,
) -> Result<Vec<CallbackRecord>> {
    let sql = if with_done {
        format!("{RECORD} WHERE {MATCHES} ORDER BY c.id DESC LIMIT ?7 OFFSET ?8")
    } else {
        format!("{RECORD} WHERE {MATCHES} AND {NOT_DONE} ORDER BY c.id DESC LIMIT ?7 OFFSET ?8")
    };
    let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
    let values = params![
        filter.first_id,
        filter.last_id,
        filter.url_prefix,
        filter.from_us,
        filter.until_us,
        filter.account_id,
        page.limit,
        offset,
    ];
    db.prepare_cached(&sql)?
        .query_map(values, record)?
        .collect()
}

pub(super) fn record(row: &Row<'_>) -> Result<CallbackRecord> {
    let has_last = row.get::<_, Option<i64>>(8)?.is_some();
    let columns = RecordColumns {
        id: row.get(0)?,
        account_id: row.get(1)?,
        url: row.get(2)?,
        text: TextColumns::read(row, 14)?,
        created_us: row.get(3)?,
        due_us: row.get(4)?,
        state: row.get(5)?,
        tries: row.get(6)?,
        kind: row.get(7)?,
        last: has_last.then(|| AttemptColumns::read(row, 8)).transpose()?,
    };
    Ok(columns.record()?)
}

/// Every attempt of a callback.
pub(super) fn list_attempts(db: &Connection, id: CallbackId) -> Result<Vec<CallbackAttempt>> {
    let mut list = db.prepare_cached(LIST_ATTEMPTS)?;
    let read = |row: &Row<'_>| Ok(AttemptColumns::read(row, 0)?.attempt()?);
    list.query_map([id.as_i64()], read)?.collect()
}

/// The secrets that sign an account's callbacks.
fn find_secrets(
    db: &Connection,
    keys: &KeyRing,
    account: AccountId,
) -> Result<Option<SigningSecrets>> {
    let read = |row: &Row<'_>| Ok(SecretColumns::read(row)?.secrets(keys)?);
    let mut find = db.prepare_cached(sql::FIND_SECRETS.sqlite)?;
    find.query_row([account.as_i64()], read).optional()
}

/// Gives an account a new secret and stores the former one.
fn replace_secret(
    db: &Connection,
    keys: &KeyRing,
    account: AccountId,
    secret: &str,
    until_us: i64,
) -> Result<bool> {
    let id = account.as_i64();
    let mut find = db.prepare_cached(sql::FIND_NAME.sqlite)?;
    let name: Option<String> = find.query_row([id], |row| row.get(0)).optional()?;
    let Some(name) = name else { return Ok(false) };
    let secret = encrypted::encrypt_text(keys, &secret_context(&name), secret);
    db.prepare_cached(REPLACE_SECRET)?
        .execute(params![id, secret, until_us])?;
    Ok(true)
}
