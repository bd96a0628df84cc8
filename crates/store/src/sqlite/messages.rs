//! The port for messages.

use std::sync::Arc;

use async_trait::async_trait;
use domain::billing::NotPaid;
use domain::ids::{AccountId, MessageId};
use domain::message::lookup::LookupRecord;
use domain::message::{MessageRecord, MessageState, ScheduledRecord, Submission, WaitingMessage};
use domain::ports::{
    AcceptResult, Cancel, ListRange, MessageStore, Replace, StoreError, StoredAnswer,
    accept_results,
};
use domain::{Channel, Timestamp};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::{SqliteStore, accept, billing, replace};
use crate::rows::traffic::{self, EndedMessage, Tally};
use crate::rows::waiting::WaitingColumns;
use crate::rows::{self, CANCELLED, MessageColumns, ScheduledColumns, micros};
use crate::sql::messages as sql;

const RESERVE: &str = "UPDATE id_block SET next = next + ?1 RETURNING next - ?1";
const TAKE_FROM_QUEUE: &str = "
    DELETE FROM queue
    WHERE owner = 0 AND (lane, due_us, id) = (SELECT priority, scheduled_us, id FROM message WHERE id = ?1)";
const SET_CANCELLED: &str = "
    UPDATE message SET state = ?2, final_us = ?3, charged_micros = 0 WHERE id = ?1
    RETURNING price_micros, parts, network, country";
const PRUNE: &str = "
    DELETE FROM idempotency WHERE (account_id, key) IN
        (SELECT account_id, key FROM idempotency WHERE expires_us <= ?1 ORDER BY expires_us LIMIT ?2)";

#[async_trait]
impl MessageStore for SqliteStore {
    async fn reserve_ids(&self, count: u64) -> Result<MessageId, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.write("reserve message IDs", move |db| reserve_ids(db, count))
            .await
    }

    /// The writer finds the second batch when it has committed the first one, and does not wait for callers.
    fn concurrent_accepts(&self) -> usize {
        2
    }

    async fn accept(&self, batch: Arc<Vec<Submission>>) -> Vec<AcceptResult> {
        let count = batch.len();
        let rows = batch
            .iter()
            .map(|submission| submission.recipients.len())
            .sum();
        let keys = self.keys.clone();
        let stored = self
            .writer
            .run("accept messages", rows, move |db| {
                accept::accept(db, &keys, &batch)
            })
            .await;
        accept_results(stored, count)
    }

    async fn find_answer(
        &self,
        account: AccountId,
        key: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<StoredAnswer>, StoreError> {
        let key = *key;
        self.read("find an idempotency key", move |db| {
            accept::find_answer(db, account, &key, micros(now))
        })
        .await
    }

    async fn find_message(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError> {
        self.read("find a message", move |db| find(db, account, id))
            .await
    }

    async fn find_lookup(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<LookupRecord>, StoreError> {
        self.read("find a lookup", move |db| find_lookup(db, account, id))
            .await
    }

    async fn list_scheduled(
        &self,
        account: AccountId,
        page: ListRange,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        self.read("list scheduled messages", move |db| {
            list_scheduled(db, account, page)
        })
        .await
    }

    async fn list_scheduled_after(
        &self,
        account: AccountId,
        after: Option<(Timestamp, MessageId)>,
        limit: u32,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        let after = rows::scheduled_key(after);
        self.read("list scheduled messages", move |db| {
            list_scheduled_after(db, account, after, limit)
        })
        .await
    }

    async fn cancel(
        &self,
        account: AccountId,
        id: MessageId,
        now: Timestamp,
    ) -> Result<Cancel, StoreError> {
        self.write("cancel a message", move |db| {
            cancel(db, account, id, micros(now))
        })
        .await
    }

    async fn find_waiting(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<WaitingMessage>, StoreError> {
        self.read("find a scheduled message", move |db| {
            find_waiting(db, account, id)
        })
        .await
    }

    async fn replace(&self, by: Submission) -> Result<Result<Replace, NotPaid>, StoreError> {
        self.write("replace a message", move |db| replace_or_find(db, &by))
            .await
    }

    async fn prune_answers(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune idempotency keys", move |db| {
            prune_answers(db, micros(now), limit)
        })
        .await
    }
}

/// Reserves IDs and returns the first.
fn reserve_ids(db: &Connection, count: i64) -> Result<MessageId> {
    let first = db
        .prepare_cached(RESERVE)?
        .query_row([count], |row| row.get(0))?;
    Ok(rows::message_id(first)?)
}

/// One message of an account.
fn find(db: &Connection, account: AccountId, id: MessageId) -> Result<Option<MessageRecord>> {
    let mut statement = db.prepare_cached(sql::FIND.sqlite)?;
    statement
        .query_row([id.as_i64(), account.as_i64()], message)
        .optional()
}

/// One lookup of an account.
fn find_lookup(db: &Connection, account: AccountId, id: MessageId) -> Result<Option<LookupRecord>> {
    let Some(message) = find(db, account, id)?.filter(|found| found.channel == Channel::Hlr) else {
        return Ok(None);
    };
    let mut statement = db.prepare_cached(sql::FIND_RESULT.sqlite)?;
    let report = statement.query_row([id.as_i64()], |row| row.get(0))?;
    Ok(Some(LookupRecord {
        id,
        state: message.state,
        report,
    }))
}

/// The scheduled messages of an account.
fn list_scheduled(
    db: &Connection,
    account: AccountId,
    page: ListRange,
) -> Result<Vec<ScheduledRecord>> {
    let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
    let mut statement = db.prepare_cached(sql::LIST_SCHEDULED.sqlite)?;
    statement
        .query_map(params![account.as_i64(), page.limit, offset], scheduled)?
        .collect()
}

/// The scheduled messages of an account after a cursor.
fn list_scheduled_after(
    db: &Connection,
    account: AccountId,
    (after_us, after_id): (i64, i64),
    limit: u32,
) -> Result<Vec<ScheduledRecord>> {
    let mut statement = db.prepare_cached(sql::LIST_SCHEDULED_AFTER.sqlite)?;
    let values = params![account.as_i64(), after_us, after_id, limit];
    statement.query_map(values, scheduled)?.collect()
}

/// Cancels a scheduled message that is still in the queue.
fn cancel(db: &Connection, account: AccountId, id: MessageId, now_us: i64) -> Result<Cancel> {
    let Some(message) = find(db, account, id)? else {
        return Ok(Cancel::Unknown);
    };
    let waits = matches!(message.state, MessageState::Scheduled { .. });
    if !waits || db.prepare_cached(TAKE_FROM_QUEUE)?.execute([id.as_i64()])? == 0 {
        return Ok(Cancel::NotWaiting(rows::not_waiting(message.state)));
    }
    let values = params![id.as_i64(), CANCELLED, now_us];
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let (price, parts, network, country) =
        db.prepare_cached(SET_CANCELLED)?.query_row(values, read)?;
    billing::refund(db, account.as_i64(), price, now_us)?;
    let mut tally = Tally::default();
    tally.add(&EndedMessage {
        account_id: account.as_i64(),
        channel: rows::channel_number(message.channel),
        network: traffic::counted_network(network, country),
        status: traffic::CANCELLED,
        error: traffic::CANCELLED,
        parts,
        cost_micros: 0,
        at_us: now_us,
        bucket: None,
    });
    super::traffic::count(db, &tally)?;
    Ok(Cancel::Done)
}

/// A scheduled message of an account.
fn find_waiting(
    db: &Connection,
    account: AccountId,
    id: MessageId,
) -> Result<Option<WaitingMessage>> {
    let mut statement = db.prepare_cached(sql::FIND_WAITING.sqlite)?;
    statement
        .query_row([id.as_i64(), account.as_i64()], waiting)
        .optional()
}

/// Replaces a scheduled message, or says why not.
fn replace_or_find(
    db: &Connection,
    by: &Submission,
) -> Result<std::result::Result<Replace, NotPaid>> {
    Ok(match replace::replace(db, by)? {
        Ok(true) => Ok(Replace::Done),
        Ok(false) => {
            let found = find(db, by.account, by.recipients[0].id)?;
            Ok(found.map_or(Replace::Unknown, |message| {
                Replace::NotWaiting(rows::not_waiting(message.state))
            }))
        }
        Err(not_paid) => Err(not_paid),
    })
}

/// Deletes expired keys, the oldest first.
fn prune_answers(db: &Connection, now_us: i64, limit: u32) -> Result<u64> {
    let pruned = db.prepare_cached(PRUNE)?.execute(params![now_us, limit])?;
    Ok(pruned as u64)
}

fn message(row: &Row<'_>) -> Result<MessageRecord> {
    Ok(MessageColumns::read(row, 0)?.record()?)
}

fn scheduled(row: &Row<'_>) -> Result<ScheduledRecord> {
    Ok(ScheduledColumns::read(row)?.record()?)
}

fn waiting(row: &Row<'_>) -> Result<WaitingMessage> {
    Ok(WaitingColumns::read(row)?.message()?)
}
