//! Messages from handsets that are about one number, and forgetting their texts.

use std::collections::HashSet;

use deadpool_postgres::Object;
use domain::Msisdn;
use domain::ids::MessageId;
use domain::inbound::message::InboundMessage;
use domain::ports::{InboundDetail, PartSet, StoreError, SubjectMessage, SubjectPage};
use tokio_postgres::Row;

use super::fault::Fault;
use super::retry::Retryable;
use super::transaction::{commit, execute, query};
use super::{PostgresStore, Values, column, retry};
use crate::rows::inbound::{InboundColumns, message, set_key};
use crate::rows::message_id;
use crate::rows::privacy::{InboundChange, NumberColumns, ROWS};
use crate::sql::inbound as sql;

/// The next rows: the last ID, their number, and the IDs of those that match.
const LIST: &str = "
    SELECT max(p.id), count(*), coalesce(array_agg(p.id ORDER BY p.id) FILTER (WHERE p.sender = $2 OR p.number = $2), '{}')
    FROM (SELECT id, sender, number FROM inbound WHERE id > $1 ORDER BY id LIMIT $3) AS p";
/// Nobody can replay a callback while its row is locked.
const LOCK_CALLBACKS: &str = "
    SELECT c.message_id, c.state FROM UNNEST($1::bigint[]) AS g (id)
        JOIN callback AS c ON c.message_id = ANY(ARRAY[g.id])
    WHERE c.kind = 3 FOR UPDATE OF c";
const LOCK: &str = concat!(
    "SELECT ",
    sql::columns!(),
    " FROM inbound WHERE id = ANY($1) ORDER BY id FOR UPDATE"
);
const CHANGE: &str = "
    UPDATE inbound AS i SET sender = g.sender, number = g.number, body = g.body, udh = g.udh, keyword = g.keyword
    FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::text[])
        AS g (id, sender, number, body, udh, keyword)
    WHERE i.id = ANY(ARRAY[g.id])";
const CHANGE_CALLBACKS: &str = "
    UPDATE callback AS c SET payload = g.payload,
        url = CASE WHEN position($3::bytea IN c.url) > 0 THEN '' ELSE c.url END
    FROM UNNEST($1::bigint[], $2::text[]) AS g (id, payload)
    WHERE c.message_id = ANY(ARRAY[g.id]) AND c.kind = 3";
const ERASE_ANSWERS: &str = "
    UPDATE callback_attempt AS a SET body = ''
    FROM UNNEST($1::bigint[]) AS g (id) JOIN callback AS c ON c.message_id = ANY(ARRAY[g.id]) AND c.kind = 3
    WHERE a.callback_id = ANY(ARRAY[c.id]) AND a.message_id = ANY(ARRAY[c.message_id])";

/// Replies that are not sent yet.
const ERASE_REPLIES: &str = "DELETE FROM inbound_reply WHERE id = ANY($1)";

/// Changes messages that are over, and returns how many.
struct ChangeInbound<'a> {
    ids: &'a [i64],
    change: &'a InboundChange,
}

impl Retryable for ChangeInbound<'_> {
    type Output = u64;

    async fn run(&self, client: &mut Object) -> Result<u64, Fault> {
        let transaction = client.transaction().await?;
        let mut waiting = HashSet::new();
        for row in query(&transaction, LOCK_CALLBACKS, &[&self.ids]).await? {
            let (id, state): (i64, i16) = (column(&row, 0)?, column(&row, 1)?);
            if state == 0 {
                waiting.insert(id);
            }
        }
        let mut left = Vec::new();
        for row in query(&transaction, LOCK, &[&self.ids]).await? {
            let found = message(&row)?;
            if !waiting.contains(&found.id.as_i64()) {
                left.extend(self.change.apply(found));
            }
        }
        let rows: Vec<InboundColumns> = left.iter().map(InboundColumns::from_message).collect();
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let values: Values<'_> = &[
            &ids,
            &rows.iter().map(|row| &row.sender).collect::<Vec<_>>(),
            &rows.iter().map(|row| &row.number).collect::<Vec<_>>(),
            &rows.iter().map(|row| &row.body).collect::<Vec<_>>(),
            &rows.iter().map(|row| &row.udh).collect::<Vec<_>>(),
            &rows.iter().map(|row| &row.keyword).collect::<Vec<_>>(),
        ];
        let changed = execute(&transaction, CHANGE, values).await?;
        let payloads: Vec<String> = left.iter().map(InboundMessage::payload).collect();
        let values: Values<'_> = &[&ids, &payloads, &self.change.digits()];
        execute(&transaction, CHANGE_CALLBACKS, values).await?;
        if self.change.digits().is_some() {
            execute(&transaction, ERASE_ANSWERS, &[&ids]).await?;
            execute(&transaction, ERASE_REPLIES, &[&ids]).await?;
        }
        commit(transaction).await?;
        Ok(changed)
    }
}

impl PostgresStore {
    /// Messages from and to a number.
    pub(super) async fn list_inbound_of(
        &self,
        number: &Msisdn,
        after: Option<MessageId>,
    ) -> Result<SubjectPage, StoreError> {
        const OPERATION: &str = "find a number in inboxes";
        let (number, after) = (
            NumberColumns::new(number),
            after.map_or(0, MessageId::as_i64),
        );
        let limit = i64::from(ROWS);
        let read = |row: &Row| {
            let (last, rows): (Option<i64>, i64) = (column(row, 0)?, column(row, 1)?);
            let next = last.filter(|_| rows >= limit).map(message_id);
            let ids = column::<Vec<i64>>(row, 2)?.into_iter().map(message_id);
            Ok((next.transpose()?, ids.collect::<Result<Vec<_>, _>>()?))
        };
        let values: Values<'_> = &[&after, &number.originator, &limit];
        let (next, ids) = self.get(OPERATION, LIST, values, read).await?;
        let mut messages = Vec::with_capacity(ids.len());
        for id in ids {
            let read = |row: &Row| column::<bool>(row, 0);
            let number = id.as_i64();
            let values: Values<'_> = &[&number];
            let waiting = self.get(OPERATION, sql::IS_WAITING.postgres, values, read);
            let is_over = !waiting.await?;
            messages.push(SubjectMessage { id, is_over });
        }
        Ok(SubjectPage { messages, next })
    }

    pub(super) async fn find_detail_of_inbound(
        &self,
        id: MessageId,
    ) -> Result<Option<InboundDetail>, StoreError> {
        let (id, anyone) = (id.as_i64(), None::<i64>);
        let values: Values<'_> = &[&id, &anyone];
        let operation = "find a message from a handset";
        let found = self.find(operation, sql::FIND.postgres, values, message);
        let Some(message) = found.await? else {
            return Ok(None);
        };
        let callbacks = self.list_callbacks_with_attempts(id).await?;
        Ok(Some(InboundDetail { message, callbacks }))
    }

    /// Texts from and to a number that wait for parts.
    pub(super) async fn list_sets_of(
        &self,
        number: &Msisdn,
        limit: u32,
    ) -> Result<Vec<PartSet>, StoreError> {
        let (number, limit) = (NumberColumns::new(number), i64::from(limit));
        let values: Values<'_> = &[&number.originator, &limit];
        let sql = sql::LIST_SETS_OF.postgres;
        let keys = self.list("find parts of a number", sql, values, set_key);
        let mut listed = Vec::new();
        for (key, set_number) in keys.await? {
            let sets = self.find_part_sets(&key).await?.into_iter();
            listed.extend(sets.filter(|set| set.set == set_number));
        }
        Ok(listed)
    }

    pub(super) async fn change_inbound(
        &self,
        operation: &'static str,
        ids: &[i64],
        change: &InboundChange,
    ) -> Result<u64, StoreError> {
        let work = ChangeInbound { ids, change };
        retry::run(&self.pool, operation, &work).await
    }
}
