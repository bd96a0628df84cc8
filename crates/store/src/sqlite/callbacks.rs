//! Reports on their way to the callers.

use domain::KeyRing;
use domain::delivery::{CallbackAttempt, CallbackSettlement};
use domain::ids::{AccountId, CallbackId, NodeId};
use domain::ports::{
    CallbackFilter, CallbackRecord, Page, ReplayCursor, ReplayRequest, ReplaySource, Replayed,
    SigningSecrets,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::clock;
use crate::encrypted::{self, secret_place};
use crate::rows::callbacks::{
    AttemptColumns, FilterColumns, REPLAY_ROWS, RecordColumns, TextColumns, next_columns,
    next_queue, replay_next, replay_request,
};
use crate::rows::{SecretColumns, dispatch, micros};

const REMOVE: &str =
    "DELETE FROM callback_queue WHERE owner = ?1 AND due_us = ?2 AND id = ?3 AND attempt = ?4";
const POSTPONE: &str = "
    UPDATE callback_queue SET owner = 0, due_us = ?5
    WHERE owner = ?1 AND due_us = ?2 AND id = ?3 AND attempt = ?4";
const SETTLE: &str = "
    UPDATE callback SET state = ?2, due_us = coalesce(?3, 0), tries = tries + ?4 WHERE id = ?1";
/// Of more tries than a key has room for, which no schedule comes near, the last is kept.
const LOG: &str = "
    INSERT OR REPLACE INTO callback_attempt (id, at_us, status, elapsed_ms, body, address, reason)
    SELECT id * 1048576 + min(tries, 1048575), ?2, ?3, ?4, ?5, ?6, ?7 FROM callback WHERE id = ?1";

/// Moves it, and nothing else.
const REQUEUE: &str = "
    UPDATE callback_queue SET owner = ?5 WHERE owner = ?1 AND due_us = ?2 AND id = ?3 AND attempt = ?4";

pub(super) const RECORD: &str = "
    SELECT c.id, c.account_id, coalesce(c.url, m.dlr_url, x''), c.created_us, c.due_us, c.state, c.tries, c.kind,
        a.at_us, a.status, a.elapsed_ms, a.body, a.address, a.reason,
        coalesce(c.payload, m.result), c.message_id, m.status, m.error, m.network
    FROM callback AS c LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
        LEFT JOIN callback_attempt AS a ON a.id = c.id * 1048576 + min(c.tries, 1048575)";
/// As much of it as conditions need.
const FITS: &str = "
    SELECT EXISTS (SELECT 1 FROM callback AS c LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL WHERE ";
pub(super) const MATCHES: &str = "
    c.id BETWEEN ?1 AND ?2 AND substr(coalesce(c.url, m.dlr_url, x''), 1, length(?3)) = ?3
    AND c.created_us >= ?4 AND c.created_us < ?5 AND (?6 IS NULL OR c.account_id = ?6)";
/// What is not done either waits in the queue or is parked, which has an index: the received ones, all but a few, are
/// not read.
const NOT_DONE: &str = "
    c.id IN (SELECT id FROM callback_queue UNION ALL SELECT id FROM callback WHERE state = 1)";
const LIST_ATTEMPTS: &str = "
    SELECT at_us, status, elapsed_ms, body, address, reason FROM callback_attempt
    WHERE id BETWEEN ?1 * 1048576 AND ?1 * 1048576 + 1048575 ORDER BY id";
const FIND_SECRETS: &str = "SELECT name, callback_secret, former_secret, former_secret_until_us FROM account WHERE id = ?1";
const FIND_NAME: &str = "SELECT name FROM account WHERE id = ?1";
const REPLACE_SECRET: &str = "
    UPDATE account SET former_secret = callback_secret, former_secret_until_us = ?3, callback_secret = ?2
    WHERE id = ?1";

/// What a node holds is not looked at.
const REPLAY_QUEUE: &str = "
    SELECT owner, due_us, id FROM callback_queue
    WHERE owner <= 0 AND (owner, due_us, id) > (?1, ?2, ?3) AND id BETWEEN ?4 AND ?5
    ORDER BY owner, due_us, id LIMIT ?6";
const REPLAY_PARKED: &str = "
    SELECT 0, 0, id FROM callback WHERE state = 1 AND id > ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id LIMIT ?4";
const REPLAY_DONE: &str = "
    SELECT 0, 0, id FROM callback WHERE state = 2 AND id > ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id LIMIT ?4";
/// One that waits for its time moves to the front.
const HURRY: &str =
    "UPDATE callback_queue SET due_us = ?1 WHERE owner = 0 AND due_us = ?2 AND id = ?3";
const QUEUE_AGAIN: &str = "
    INSERT INTO callback_queue (owner, due_us, id, attempt)
    SELECT 0, ?1, id, tries FROM callback WHERE id = ?2 AND state <> 0";
const WAIT_AGAIN: &str = "UPDATE callback SET state = 0, due_us = ?1 WHERE id = ?2";
const FORGET_REQUESTS: &str = "DELETE FROM callback_replay WHERE at_us < ?1 - 3600000000";
/// One callback stands for its receiver.
const REQUEST_FOR_ONE: &str = "
    INSERT INTO callback_replay (account_id, url_prefix, at_us)
    SELECT c.account_id, coalesce(c.url, m.dlr_url), ?1
    FROM callback AS c LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL
    WHERE c.id = ?2 AND coalesce(c.url, m.dlr_url) IS NOT NULL";
const REQUEST: &str =
    "INSERT INTO callback_replay (account_id, url_prefix, at_us) VALUES (?1, ?2, ?3)";
const LIST_REQUESTS: &str =
    "SELECT number, account_id, url_prefix FROM callback_replay WHERE number > ?1 ORDER BY number";

pub(super) fn text_columns(row: &Row<'_>, at: usize) -> Result<TextColumns> {
    Ok(TextColumns {
        payload: row.get(at)?,
        message_id: row.get(at + 1)?,
        status: row.get(at + 2)?,
        error: row.get(at + 3)?,
        network: row.get(at + 4)?,
    })
}

/// Stores what came of tries; `false` for a claim that is not the node's any more.
pub(super) fn settle(
    db: &Connection,
    node: NodeId,
    batch: &[CallbackSettlement],
) -> Result<Vec<bool>> {
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

/// Callbacks that fit a filter, the newest first.
pub(super) fn list(
    db: &Connection,
    filter: &FilterColumns,
    with_done: bool,
    page: Page,
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
        text: text_columns(row, 14)?,
        created_us: row.get(3)?,
        due_us: row.get(4)?,
        state: row.get(5)?,
        tries: row.get(6)?,
        kind: row.get(7)?,
        last: has_last.then(|| attempt_columns(row, 8)).transpose()?,
    };
    Ok(columns.record()?)
}

fn attempt_columns(row: &Row<'_>, at: usize) -> Result<AttemptColumns> {
    Ok(AttemptColumns {
        at_us: row.get(at)?,
        status: row.get(at + 1)?,
        elapsed_ms: row.get(at + 2)?,
        body: row.get(at + 3)?,
        address: row.get(at + 4)?,
        reason: row.get(at + 5)?,
    })
}

/// Every try of a callback.
pub(super) fn list_attempts(db: &Connection, id: CallbackId) -> Result<Vec<CallbackAttempt>> {
    let mut list = db.prepare_cached(LIST_ATTEMPTS)?;
    let read = |row: &Row<'_>| Ok(attempt_columns(row, 0)?.attempt()?);
    list.query_map([id.as_i64()], read)?.collect()
}

/// Makes some callbacks due now. Those in a receiver's queue, or due anyway, stay where they are.
pub(super) fn replay(
    db: &Connection,
    filter: &CallbackFilter,
    from: ReplayCursor,
) -> Result<Replayed> {
    let columns = FilterColumns::of(filter);
    let now_us = clock::now_us(db)?;
    let page = replay_page(db, &columns, from)?;
    let mut fits = db.prepare_cached(&format!("{FITS} {MATCHES})"))?;
    let mut count = 0;
    for at in &page {
        let values = params![
            at.id,
            at.id,
            columns.url_prefix,
            columns.from_us,
            columns.until_us,
            columns.account_id,
        ];
        if !fits.query_row(values, |row| row.get(0))? {
            continue;
        }
        count += 1;
        if from.source != ReplaySource::Queue {
            db.prepare_cached(QUEUE_AGAIN)?.execute([now_us, at.id])?;
        } else if at.owner == 0 && at.due_us > now_us {
            let values = [now_us, at.due_us, at.id];
            db.prepare_cached(HURRY)?.execute(values)?;
        } else {
            continue;
        }
        db.prepare_cached(WAIT_AGAIN)?.execute([now_us, at.id])?;
    }
    let rows = i64::try_from(page.len()).unwrap_or(i64::MAX);
    let next = replay_next(from, rows, page.last().copied(), filter.with_done);
    if next.is_none() {
        request(db, filter, &columns, now_us)?;
    }
    Ok(Replayed { count, next })
}

/// The next rows to look at.
fn replay_page(
    db: &Connection,
    columns: &FilterColumns,
    from: ReplayCursor,
) -> Result<Vec<ReplayCursor>> {
    let read = |row: &Row<'_>| {
        Ok(ReplayCursor {
            source: from.source,
            owner: row.get(0)?,
            due_us: row.get(1)?,
            id: row.get(2)?,
        })
    };
    let (first, last) = (columns.first_id, columns.last_id);
    let sql = match from.source {
        ReplaySource::Queue => {
            let values = [from.owner, from.due_us, from.id, first, last, REPLAY_ROWS];
            let mut find = db.prepare_cached(REPLAY_QUEUE)?;
            return find.query_map(values, read)?.collect();
        }
        ReplaySource::Parked => REPLAY_PARKED,
        ReplaySource::Done => REPLAY_DONE,
    };
    let mut find = db.prepare_cached(sql)?;
    let values = [from.id, first, last, REPLAY_ROWS];
    find.query_map(values, read)?.collect()
}

/// Tells the nodes whose receivers are to be tried now.
fn request(
    db: &Connection,
    filter: &CallbackFilter,
    columns: &FilterColumns,
    now_us: i64,
) -> Result<()> {
    db.prepare_cached(FORGET_REQUESTS)?.execute([now_us])?;
    match filter.id {
        Some(id) => db
            .prepare_cached(REQUEST_FOR_ONE)?
            .execute([now_us, id.as_i64()])?,
        None => db.prepare_cached(REQUEST)?.execute(params![
            columns.account_id,
            columns.url_prefix,
            now_us
        ])?,
    };
    Ok(())
}

/// Requests to send callbacks again.
pub(super) fn list_requests(db: &Connection, above: u64) -> Result<Vec<ReplayRequest>> {
    let above = i64::try_from(above).unwrap_or(i64::MAX);
    let mut list = db.prepare_cached(LIST_REQUESTS)?;
    let read = |row: &Row<'_>| Ok(replay_request(row.get(0)?, row.get(1)?, row.get(2)?)?);
    list.query_map([above], read)?.collect()
}

/// The secrets that sign an account's callbacks.
pub(super) fn find_secrets(
    db: &Connection,
    keys: &KeyRing,
    account: AccountId,
) -> Result<Option<SigningSecrets>> {
    let read = |row: &Row<'_>| {
        let columns = SecretColumns {
            name: row.get(0)?,
            newest: row.get(1)?,
            former: row.get(2)?,
            until_us: row.get(3)?,
        };
        Ok(columns.secrets(keys)?)
    };
    let mut find = db.prepare_cached(FIND_SECRETS)?;
    find.query_row([account.as_i64()], read).optional()
}

/// Gives an account a new secret and keeps the one before.
pub(super) fn replace_secret(
    db: &Connection,
    keys: &KeyRing,
    account: AccountId,
    secret: &str,
    until_us: i64,
) -> Result<bool> {
    let id = account.as_i64();
    let mut find = db.prepare_cached(FIND_NAME)?;
    let name: Option<String> = find.query_row([id], |row| row.get(0)).optional()?;
    let Some(name) = name else { return Ok(false) };
    let secret = encrypted::encrypt_text(keys, &secret_place(&name), secret);
    db.prepare_cached(REPLACE_SECRET)?
        .execute(params![id, secret, until_us])?;
    Ok(true)
}
