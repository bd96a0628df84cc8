//! The port for messages.

use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::Object;
use domain::billing::NotPaid;
use domain::ids::{AccountId, MessageId};
use domain::message::lookup::LookupRecord;
use domain::message::{MessageRecord, MessageState, ScheduledRecord, Submission, WaitingMessage};
use domain::ports::{
    AcceptResult, Accepted, Cancel, ListRange, MessageStore, Replace, StoreError, StoredAnswer,
    accept_results,
};
use domain::{Channel, Timestamp};
use tokio_postgres::Row;

use super::accept::{self, CarefulBatch, PlainBatch};
use super::fault::Fault;
use super::replace::ReplaceMessage;
use super::retry::Retryable;
use super::{PostgresStore, billing, column, idempotency, retry};
use crate::rows::waiting::WaitingColumns;
use crate::rows::{self, CANCELLED, Corrupt, MessageColumns, ScheduledColumns, micros};
use crate::sql::messages as sql;

/// `+ 0` keeps the planner from using the index of expiries: nearly all keys expire later.
const FIND_ANSWER: &str = "
    SELECT body, first_id, messages, parts FROM idempotency
    WHERE account_id = $1 AND key = $2 AND expires_us + 0 > $3";
/// When two callers cancel at once, the second finds no queue row.
const CANCEL: &str = concat!(
    "WITH waiting AS MATERIALIZED (
        SELECT 0::bigint AS owner, priority, scheduled_us, id FROM message
        WHERE id = $1 AND account_id = $2 AND state = 1
    ), taken AS (
        DELETE FROM queue AS q USING waiting AS w
        WHERE q.owner = ANY(ARRAY[w.owner]) AND q.lane = w.priority AND q.due_us = w.scheduled_us AND q.id = w.id RETURNING q.id
    ), cancelled AS (
        UPDATE message SET state = $3, final_us = $4, charged_micros = 0 WHERE id IN (SELECT id FROM taken)
        RETURNING id, account_id, price_micros, final_us, channel, network, country, parts
    ), counted AS (",
    count_traffic!(
        "SELECT account_id, final_us, channel, network, country, 0::smallint AS status, 0::smallint AS error, parts,
            0 AS cost_micros, NULL::smallint AS bucket
        FROM cancelled"
    ),
    ")
    SELECT id FROM cancelled"
);
/// How often a replacement is tried again because another one moved the message.
const MAX_MOVED: u32 = 10;
/// Skips rows that another node is deleting.
const PRUNE: &str = "
    WITH old AS MATERIALIZED (
        SELECT account_id, key FROM idempotency WHERE expires_us <= $1
        ORDER BY expires_us LIMIT $2 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM idempotency AS i USING old
        WHERE i.account_id = ANY(ARRAY[old.account_id]) AND i.key = old.key RETURNING 1
    )
    SELECT count(*) FROM pruned";

#[async_trait]
impl MessageStore for PostgresStore {
    async fn reserve_ids(&self, count: u64) -> Result<MessageId, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.reserve(count).await
    }

    async fn accept(&self, batch: Arc<Vec<Submission>>) -> Vec<AcceptResult> {
        const OPERATION: &str = "accept messages";
        let needs_checks = |submission: &Submission| {
            submission.idempotency.is_some()
                || submission.carries_code
                || submission.notice
                || submission.has_refused()
        };
        if batch.iter().any(needs_checks) {
            let whole = CarefulBatch {
                batch: batch.iter().collect(),
                keys: &self.keys,
                days: &self.day_statements,
            };
            let stored = self.store_batch(OPERATION, &batch, &whole).await;
            return accept_results(stored, batch.len());
        }
        let plain = PlainBatch(&batch);
        let charged = match self.store_batch(OPERATION, &batch, &plain).await {
            Ok(charged) => charged,
            Err(error) => return accept_results(Err(error), batch.len()),
        };
        let left = accept::find_unstored(&batch, &charged);
        let mut results = vec![Ok(Accepted::Stored); batch.len()];
        if !left.is_empty() {
            let rest = CarefulBatch {
                batch: left.iter().map(|&index| &batch[index]).collect(),
                keys: &self.keys,
                days: &self.day_statements,
            };
            let rest = self.store_batch(OPERATION, &batch, &rest).await;
            // The first transaction is committed, so a failure of the second affects only these submissions.
            for (index, result) in left.iter().zip(accept_results(rest, left.len())) {
                results[*index] = result;
            }
        }
        results
    }

    async fn find_answer(
        &self,
        account: AccountId,
        key: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<StoredAnswer>, StoreError> {
        let (account, key, now_us) = (account.as_i64(), key.as_slice(), micros(now));
        let read = |row: &Row| idempotency::read_answer(row, 0);
        self.find(
            "find an idempotency key",
            FIND_ANSWER,
            &[&account, &key, &now_us],
            read,
        )
        .await
    }

    async fn find_message(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError> {
        self.find(
            "find a message",
            sql::FIND.postgres,
            &[&id.as_i64(), &account.as_i64()],
            message,
        )
        .await
    }

    async fn find_lookup(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<LookupRecord>, StoreError> {
        let found = self.find_message(account, id).await?;
        let Some(message) = found.filter(|found| found.channel == Channel::Hlr) else {
            return Ok(None);
        };
        let read = |row: &Row| column(row, 0);
        let report = self
            .get(
                "find a lookup",
                sql::FIND_RESULT.postgres,
                &[&id.as_i64()],
                read,
            )
            .await?;
        Ok(Some(LookupRecord {
            id,
            state: message.state,
            report,
        }))
    }

    async fn list_scheduled(
        &self,
        account: AccountId,
        page: ListRange,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
        let values = (account.as_i64(), i64::from(page.limit), offset);
        self.list(
            "list scheduled messages",
            sql::LIST_SCHEDULED.postgres,
            &[&values.0, &values.1, &values.2],
            scheduled,
        )
        .await
    }

    async fn list_scheduled_after(
        &self,
        account: AccountId,
        after: Option<(Timestamp, MessageId)>,
        limit: u32,
    ) -> Result<Vec<ScheduledRecord>, StoreError> {
        let (after_us, after_id) = rows::scheduled_key(after);
        self.list(
            "list scheduled messages",
            sql::LIST_SCHEDULED_AFTER.postgres,
            &[&account.as_i64(), &after_us, &after_id, &i64::from(limit)],
            scheduled,
        )
        .await
    }

    async fn cancel(
        &self,
        account: AccountId,
        id: MessageId,
        now: Timestamp,
    ) -> Result<Cancel, StoreError> {
        let cancel = CancelMessage { account, id, now };
        if retry::run(&self.pool, "cancel a message", &cancel).await? {
            return Ok(Cancel::Done);
        }
        let found = self.find_message(account, id).await?;
        Ok(found.map_or(Cancel::Unknown, |message| {
            Cancel::NotWaiting(rows::not_waiting(message.state))
        }))
    }

    async fn find_waiting(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<WaitingMessage>, StoreError> {
        self.find(
            "find a scheduled message",
            sql::FIND_WAITING.postgres,
            &[&id.as_i64(), &account.as_i64()],
            waiting,
        )
        .await
    }

    async fn replace(&self, by: Submission) -> Result<Result<Replace, NotPaid>, StoreError> {
        let (account, id) = (by.account, by.recipients[0].id);
        let work = ReplaceMessage(by);
        let mut moved = 0;
        loop {
            match retry::run(&self.pool, "replace a message", &work).await? {
                Ok(true) => return Ok(Ok(Replace::Done)),
                Ok(false) => {}
                Err(not_paid) => return Ok(Err(not_paid)),
            }
            let Some(message) = self.find_message(account, id).await? else {
                return Ok(Ok(Replace::Unknown));
            };
            let waits = matches!(message.state, MessageState::Scheduled { .. });
            if !waits || message.channel != Channel::Sms || moved == MAX_MOVED {
                let state = rows::not_waiting(message.state);
                return Ok(Ok(Replace::NotWaiting(state)));
            }
            moved += 1;
        }
    }

    async fn prune_answers(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values = (micros(now), i64::from(limit));
        let read = |row: &Row| u64::try_from(column::<i64>(row, 0)?).map_err(|_| Corrupt("count"));
        self.get(
            "prune idempotency keys",
            PRUNE,
            &[&values.0, &values.1],
            read,
        )
        .await
    }
}

/// Cancels and refunds a message. Returns whether it was waiting.
struct CancelMessage {
    account: AccountId,
    id: MessageId,
    now: Timestamp,
}

impl Retryable for CancelMessage {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let (id, account, now_us) = (self.id.as_i64(), self.account.as_i64(), micros(self.now));
        let transaction = client.transaction().await?;
        let statement = transaction.prepare_cached(CANCEL).await?;
        let values: super::Values<'_> = &[&id, &account, &CANCELLED, &now_us];
        let cancelled = transaction.query_opt(&statement, values).await?;
        if cancelled.is_some() {
            billing::refund(&transaction, &[(id, 0)], now_us).await?;
            transaction.commit().await?;
        }
        Ok(cancelled.is_some())
    }
}

fn message(row: &Row) -> Result<MessageRecord, Corrupt> {
    MessageColumns::read(row, 0)?.record()
}

fn scheduled(row: &Row) -> Result<ScheduledRecord, Corrupt> {
    ScheduledColumns::read(row)?.record()
}

fn waiting(row: &Row) -> Result<WaitingMessage, Corrupt> {
    WaitingColumns::read(row)?.message()
}
