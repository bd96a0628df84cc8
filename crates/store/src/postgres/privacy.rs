//! The port for forgetting texts and for what is stored about one number.

use std::sync::PoisonError;

use async_trait::async_trait;
use domain::Msisdn;
use domain::ids::MessageId;
use domain::ports::{
    InboundDetail, PartSet, PrivacyStore, StoreError, SubjectMessage, SubjectPage,
};
use domain::verify::Verification;
use jiff::SignedDuration;
use tokio_postgres::Row;

use super::prune::count;
use super::{PostgresStore, column};
use crate::rows::privacy::{InboundChange, NumberColumns, ROWS, TextRow};
use crate::rows::verify::verification;
use crate::rows::{duration_us, message_id};
use crate::sql::{inbound as inbound_sql, verify};

const NOW: &str = concat!("SELECT ", now_us!());
/// The next rows: the last ID, their number, and the IDs of those that match.
const LIST: &str = "
    SELECT max(p.id), count(*), coalesce(array_agg(p.id ORDER BY p.id) FILTER (WHERE p.recipient = $2 OR p.originator = $3),
        '{}')
    FROM (SELECT id, recipient, originator FROM message WHERE id > $1 ORDER BY id LIMIT $4) AS p";
/// The messages that are over: ended, without a waiting callback.
macro_rules! is_over {
    () => {
        "m.final_us IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM callback AS c WHERE c.message_id = m.id AND c.kind <> 2 AND c.state = 0)"
    };
}
const FIND_OVER: &str = concat!(
    "SELECT m.id, ",
    is_over!(),
    " FROM UNNEST($1::bigint[]) AS g (id) JOIN message AS m ON m.id = ANY(ARRAY[g.id]) ORDER BY m.id"
);
/// The result of a lookup keeps its ID and error, as for a number that nobody knows anything about.
const ERASE: &str = concat!(
    "WITH erased AS (
        UPDATE message AS m SET recipient = CASE WHEN m.recipient = $2 THEN 0 ELSE m.recipient END,
            originator = CASE WHEN m.originator = $3 THEN '' ELSE m.originator END, body = '', interactive = NULL,
            dlr_url = CASE WHEN position($4::bytea IN m.dlr_url) > 0 THEN NULL ELSE m.dlr_url END,
            result = CASE WHEN m.result IS NOT NULL
                THEN '{\"id\":\"' || m.id || '\",\"error\":' || coalesce(m.error, 0) || '}' END
        FROM UNNEST($1::bigint[]) AS g (id)
        WHERE m.id = ANY(ARRAY[g.id]) AND (m.recipient = $2 OR m.originator = $3) AND ",
    is_over!(),
    " RETURNING m.id
    ), reports AS (
        UPDATE callback AS c SET payload = CASE WHEN c.kind <> 1 THEN c.payload END,
            url = CASE WHEN position($4::bytea IN c.url) > 0 THEN '' ELSE c.url END
        FROM erased WHERE c.message_id = ANY(ARRAY[erased.id]) AND c.kind <> 2
        RETURNING c.id, c.message_id
    ), answers AS (
        UPDATE callback_attempt AS a SET body = '' FROM reports
        WHERE a.callback_id = ANY(ARRAY[reports.id]) AND a.message_id = ANY(ARRAY[reports.message_id])
    ), parts AS (
        DELETE FROM transit AS t USING erased WHERE t.id = ANY(ARRAY[erased.id])
    ), codes AS (
        DELETE FROM code_text AS t USING erased WHERE t.message_id = ANY(ARRAY[erased.id])
    )
    SELECT count(*) FROM erased"
);
const LIST_TEXTS: &str = "
    SELECT id, accepted_us, final_us, length(body) > 0 OR interactive IS NOT NULL FROM message
    WHERE id > $1 ORDER BY id LIMIT $2";
const FORGET: &str = "
    UPDATE message AS m SET body = '', interactive = NULL FROM UNNEST($1::bigint[]) AS g (id)
    WHERE m.id = ANY(ARRAY[g.id]) AND m.final_us <= $2";

#[async_trait]
impl PrivacyStore for PostgresStore {
    async fn list_subject(
        &self,
        number: &Msisdn,
        after: Option<MessageId>,
    ) -> Result<SubjectPage, StoreError> {
        const OPERATION: &str = "find a number";
        let (number, after) = (
            NumberColumns::new(number),
            after.map_or(0, MessageId::as_i64),
        );
        let limit = i64::from(ROWS);
        let values: super::Values<'_> = &[&after, &number.recipient, &number.originator, &limit];
        let read = |row: &Row| {
            let (last, rows): (Option<i64>, i64) = (column(row, 0)?, column(row, 1)?);
            let next = last.filter(|_| rows >= limit).map(message_id);
            Ok((next.transpose()?, column::<Vec<i64>>(row, 2)?))
        };
        let (next, ids) = self.get(OPERATION, LIST, values, read).await?;
        if ids.is_empty() {
            return Ok(SubjectPage {
                messages: Vec::new(),
                next,
            });
        }
        let read = |row: &Row| {
            Ok(SubjectMessage {
                id: message_id(column(row, 0)?)?,
                is_over: column(row, 1)?,
            })
        };
        let messages = self.list(OPERATION, FIND_OVER, &[&ids], read).await?;
        Ok(SubjectPage { messages, next })
    }

    async fn erase_subject(&self, number: &Msisdn, ids: &[MessageId]) -> Result<u64, StoreError> {
        let number = NumberColumns::new(number);
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        let values: super::Values<'_> =
            &[&ids, &number.recipient, &number.originator, &number.digits];
        self.get("erase a number", ERASE, values, count).await
    }

    async fn list_verifications_of(
        &self,
        number: &Msisdn,
        limit: u32,
    ) -> Result<Vec<Verification>, StoreError> {
        let values: super::Values<'_> = &[&number.as_i64(), &i64::from(limit)];
        let statement = verify::LIST_OF_NUMBER.postgres;
        self.list("list verifications", statement, values, verification)
            .await
    }

    async fn erase_verifications(&self, number: &Msisdn) -> Result<(), StoreError> {
        let number = number.as_i64();
        self.execute("erase verifications", verify::ERASE.postgres, &[&number])
            .await
            .map(drop)
    }

    async fn forget_texts(&self, age: SignedDuration, limit: u32) -> Result<bool, StoreError> {
        const OPERATION: &str = "forget texts";
        let read = |row: &Row| column(row, 0);
        let now_us: i64 = self.get(OPERATION, NOW, &[], read).await?;
        let before_us = now_us.saturating_sub(duration_us(age));
        let sweep = *self
            .text_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let sweep = sweep.begin(now_us);
        let values: super::Values<'_> = &[&sweep.after, &i64::from(ROWS)];
        let rows = self
            .list(OPERATION, LIST_TEXTS, values, TextRow::read)
            .await?;
        let old = sweep.choose(&rows, before_us, limit);
        if !old.ids.is_empty() {
            let values: super::Values<'_> = &[&old.ids, &before_us];
            self.execute(OPERATION, FORGET, values).await?;
        }
        *self
            .text_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = old.sweep;
        Ok(old.has_more)
    }

    async fn list_inbound_subject(
        &self,
        number: &Msisdn,
        after: Option<MessageId>,
    ) -> Result<SubjectPage, StoreError> {
        self.list_inbound_of(number, after).await
    }

    async fn find_inbound_detail(
        &self,
        id: MessageId,
    ) -> Result<Option<InboundDetail>, StoreError> {
        self.find_detail_of_inbound(id).await
    }

    async fn erase_inbound_subject(
        &self,
        number: &Msisdn,
        ids: &[MessageId],
    ) -> Result<u64, StoreError> {
        let change = InboundChange::Erase(NumberColumns::new(number));
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        self.change_inbound("erase a number from inboxes", &ids, &change)
            .await
    }

    async fn list_subject_parts(
        &self,
        number: &Msisdn,
        limit: u32,
    ) -> Result<Vec<PartSet>, StoreError> {
        self.list_sets_of(number, limit).await
    }

    async fn erase_subject_parts(&self, number: &Msisdn) -> Result<(), StoreError> {
        let number = NumberColumns::new(number);
        let sql = inbound_sql::DELETE_PARTS_OF.postgres;
        let values: super::Values<'_> = &[&number.originator];
        let erased = self.execute("erase parts of a number", sql, values);
        erased.await.map(drop)
    }

    async fn forget_inbound_texts(
        &self,
        age: SignedDuration,
        limit: u32,
    ) -> Result<bool, StoreError> {
        const OPERATION: &str = "forget texts from handsets";
        let read = |row: &Row| column(row, 0);
        let now_us: i64 = self.get(OPERATION, NOW, &[], read).await?;
        let before_us = now_us.saturating_sub(duration_us(age));
        let sweep = *self
            .inbound_text_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let sweep = sweep.begin(now_us);
        let values: super::Values<'_> = &[&sweep.after, &i64::from(ROWS)];
        let sql = inbound_sql::LIST_TEXTS.postgres;
        let rows = self.list(OPERATION, sql, values, TextRow::read).await?;
        let old = sweep.choose(&rows, before_us, limit);
        if !old.ids.is_empty() {
            let change = InboundChange::ForgetText { before_us };
            self.change_inbound(OPERATION, &old.ids, &change).await?;
        }
        *self
            .inbound_text_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = old.sweep;
        Ok(old.has_more)
    }
}
