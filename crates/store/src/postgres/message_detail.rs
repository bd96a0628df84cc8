//! The detail of one message, and the search for callbacks.

use std::collections::HashMap;

use domain::MessageId;
use domain::delivery::CallbackAttempt;
use domain::ids::{AccountId, CallbackId};
use domain::ports::{
    CallbackFilter, CallbackRecord, Cursor, MessageDetail, Page, PartDetail, StoreError,
};
use tokio_postgres::Row;

use super::callbacks;
use super::{PostgresStore, column, fault, history};
use crate::rows::Corrupt;
use crate::rows::callbacks::{AttemptColumns, FilterColumns, OPEN, ROWS, Window};
use crate::rows::history::{
    DetailColumns, PartColumns, QUEUE_ROWS, QueueRowColumns, RelatedRows, SummaryColumns,
    detail_columns, summary_columns,
};
use crate::sql::message_detail as sql;

const FIND: &str = concat!(
    "SELECT ",
    summary_columns!(),
    ", ",
    detail_columns!(),
    " FROM message AS m WHERE m.id = $1 AND ($2::bigint IS NULL OR m.account_id = $2)"
);
/// The queue is ordered by time, and only the row itself has the time of the next attempt. So a limited number of rows
/// of its lane is read, and of held rows and of route pools.
const FIND_WAITING: &str = "
    SELECT owner, due_us, attempt FROM (
        (SELECT * FROM queue WHERE owner = 0 AND lane = $1 AND due_us >= $2 ORDER BY due_us, id LIMIT $4)
        UNION ALL
        (SELECT * FROM queue WHERE owner > 0 LIMIT $4)
        UNION ALL
        (SELECT q.* FROM pool AS p CROSS JOIN LATERAL (
            SELECT * FROM queue WHERE owner = -1 - p.id AND lane = $1 AND due_us >= $2 ORDER BY due_us, id LIMIT $4
        ) AS q)
        UNION ALL
        (SELECT * FROM queue WHERE owner < -1 LIMIT $4)
    ) AS near WHERE id = $3";
const LIST_PARTS: &str = "
    SELECT part, carrier, reference, taken_us, status, error FROM transit WHERE id = $1 ORDER BY part, taken_us";
const LIST_CALLBACKS: &str = concat!(
    list_callbacks!("callback AS c"),
    " WHERE c.message_id = $1 AND c.kind <> 2 ORDER BY c.id"
);
const LIST_ATTEMPTS: &str = "
    SELECT at_us, status, elapsed_ms, body, address, reason FROM callback_attempt
    WHERE callback_id = $1 AND message_id = $2 ORDER BY number";

const LIST_OPEN: &str = "SELECT id, message_id FROM callback_queue WHERE id < $1 LIMIT $2";
const LIST_PARKED: &str = "
    SELECT id, message_id FROM callback WHERE state = 1 AND id < $1 ORDER BY id DESC LIMIT $2";
const LIST_ALL: &str =
    "SELECT id, message_id FROM callback WHERE id < $1 ORDER BY id DESC LIMIT $2";
const LIST_MATCHING: &str = concat!(
    list_callbacks!(
        "UNNEST($1::bigint[], $9::bigint[]) AS w (id, message_id)
            JOIN callback AS c ON c.id = ANY(ARRAY[w.id]) AND c.message_id = ANY(ARRAY[w.message_id])"
    ),
    " WHERE substring(coalesce(c.url, m.dlr_url, '') FROM 1 FOR length($2::bytea)) = $2::bytea
        AND c.created_us >= $3 AND c.created_us < $4 AND ($5::bigint IS NULL OR c.account_id = $5)
        AND ($6 OR c.state <> 2) AND c.id >= $7
    ORDER BY c.id DESC LIMIT $8"
);

impl PostgresStore {
    /// Finds a message of one account, or of any.
    pub(super) async fn find_detail(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<MessageDetail>, StoreError> {
        const OPERATION: &str = "find a message's details";
        let values: super::Values<'_> = &[&id.as_i64(), &account.map(AccountId::as_i64)];
        let read = |row: &Row| Ok((history::summary(row, 0)?, DetailColumns::read(row)?));
        let Some((summary, detail)) = self.find(OPERATION, FIND, values, read).await? else {
            return Ok(None);
        };
        let id = id.as_i64();
        let related = RelatedRows {
            queue_row: self.find_queue_row(&summary, &detail).await?,
            parts: self.list(OPERATION, LIST_PARTS, &[&id], part).await?,
            callbacks: self.list_callbacks_with_attempts(id).await?,
        };
        let detail = detail.detail(summary, related);
        detail
            .map(Some)
            .map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
    }

    /// The queue row of a message that has not ended.
    async fn find_queue_row(
        &self,
        summary: &SummaryColumns,
        detail: &DetailColumns,
    ) -> Result<Option<QueueRowColumns>, StoreError> {
        const OPERATION: &str = "find a message in the queue";
        let id = summary.message.id;
        if summary.message.final_us.is_some() {
            return Ok(None);
        }
        if summary.message.is_sent {
            let values: super::Values<'_> = &[&detail.expires_us, &id];
            return self
                .find(
                    OPERATION,
                    sql::FIND_SENT.postgres,
                    values,
                    QueueRowColumns::read,
                )
                .await;
        }
        let from_us = summary.accepted_us;
        let values: super::Values<'_> = &[&detail.priority, &from_us, &id, &QUEUE_ROWS];
        self.find(OPERATION, FIND_WAITING, values, QueueRowColumns::read)
            .await
    }

    pub(super) async fn list_callbacks_with_attempts(
        &self,
        id: i64,
    ) -> Result<Vec<(CallbackRecord, Vec<CallbackAttempt>)>, StoreError> {
        let operation = "list the callbacks of a message";
        let records = self
            .list(operation, LIST_CALLBACKS, &[&id], callbacks::record)
            .await?;
        let mut with_attempts = Vec::with_capacity(records.len());
        for record in records {
            let values: super::Values<'_> = &[&record.id.as_i64(), &id];
            let read = |row: &Row| AttemptColumns::read(row, 0)?.attempt();
            let tries = self.list(operation, LIST_ATTEMPTS, values, read).await?;
            with_attempts.push((record, tries));
        }
        Ok(with_attempts)
    }

    /// Callbacks that match, the newest first.
    pub(super) async fn find_callbacks(
        &self,
        filter: &CallbackFilter,
        cursor: Cursor<CallbackId>,
    ) -> Result<Page<CallbackRecord, CallbackId>, StoreError> {
        const OPERATION: &str = "search callbacks";
        let columns = FilterColumns::from_filter(filter);
        let before = cursor.before.map_or(i64::MAX, CallbackId::as_i64);
        let before = before.min(columns.last_id.saturating_add(1));
        let (window, messages) = self.window(before, filter.with_done).await?;
        let messages: Vec<i64> = window.ids.iter().map(|id| messages[id]).collect();
        let values: super::Values<'_> = &[
            &window.ids,
            &columns.url_prefix,
            &columns.from_us,
            &columns.until_us,
            &columns.account_id,
            &filter.with_done,
            &columns.first_id,
            &i64::from(cursor.limit),
            &messages,
        ];
        let records = self
            .list(OPERATION, LIST_MATCHING, values, callbacks::record)
            .await?;
        let is_full = records.len() >= cursor.limit as usize;
        let last = records.last().map(|record| record.id.as_i64());
        window
            .page(records, last.filter(|_| is_full))
            .map_err(|corrupt| fault::corrupt(OPERATION, corrupt))
    }

    /// The callbacks to check, and their messages.
    async fn window(
        &self,
        before: i64,
        with_done: bool,
    ) -> Result<(Window, HashMap<i64, i64>), StoreError> {
        if !with_done {
            let open = self.list_ids(LIST_OPEN, before, OPEN + 1).await?;
            if open.len() <= OPEN {
                let parked = self.list_ids(LIST_PARKED, before, ROWS).await?;
                let messages = open.iter().chain(&parked).copied().collect();
                return Ok((Window::from_open(ids(&open), ids(&parked)), messages));
            }
        }
        let all = self.list_ids(LIST_ALL, before, ROWS).await?;
        let messages = all.iter().copied().collect();
        Ok((Window::from_all(ids(&all), with_done), messages))
    }

    async fn list_ids(
        &self,
        sql: &'static str,
        before: i64,
        limit: usize,
    ) -> Result<Vec<(i64, i64)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read = |row: &Row| Ok((column(row, 0)?, column(row, 1)?));
        self.list("list callbacks to check", sql, &[&before, &limit], read)
            .await
    }
}

fn ids(listed: &[(i64, i64)]) -> Vec<i64> {
    listed.iter().map(|(id, _)| *id).collect()
}

fn part(row: &Row) -> Result<PartDetail, Corrupt> {
    PartColumns::read(row)?.part()
}
