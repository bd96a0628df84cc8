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
use rusqlite::{Connection, Result, params};

use super::{SqliteStore, clock, inbound_privacy};
use crate::rows::privacy::{InboundChange, NumberColumns, OldTexts, ROWS, TextRow, TextSweep};
use crate::rows::verify::verification;
use crate::rows::{duration_us, message_id};
use crate::sql::{inbound as inbound_sql, verify};

const LIST: &str = "
    SELECT m.id, m.recipient = ?2 OR m.originator = ?3,
        m.final_us IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM callback AS c WHERE c.message_id = m.id AND c.kind <> 2 AND c.state = 0)
    FROM message AS m WHERE m.id > ?1 ORDER BY m.id LIMIT ?4";
/// The result of a lookup keeps its ID and error, as for a number that nobody knows anything about.
const ERASE_MESSAGE: &str = "
    UPDATE message SET recipient = CASE WHEN recipient = ?2 THEN 0 ELSE recipient END,
        originator = CASE WHEN originator = ?3 THEN '' ELSE originator END, body = x'', interactive = NULL,
        dlr_url = CASE WHEN instr(dlr_url, ?4) > 0 THEN NULL ELSE dlr_url END,
        result = CASE WHEN result IS NOT NULL
            THEN '{\"id\":\"' || id || '\",\"error\":' || coalesce(error, 0) || '}' END
    WHERE id = ?1 AND (recipient = ?2 OR originator = ?3) AND final_us IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM callback WHERE message_id = ?1 AND kind <> 2 AND state = 0)";
const ERASE_CALLBACKS: &str = "
    UPDATE callback SET payload = CASE WHEN kind <> 1 THEN payload END,
        url = CASE WHEN instr(url, ?2) > 0 THEN x'' ELSE url END
    WHERE message_id = ?1 AND kind <> 2";
const ERASE_ATTEMPTS: &str = "
    UPDATE callback_attempt SET body = x'' WHERE id IN (
        SELECT a.id FROM callback AS c CROSS JOIN callback_attempt AS a
            ON a.id BETWEEN c.id * 1048576 AND c.id * 1048576 + 1048575
        WHERE c.message_id = ?1 AND c.kind <> 2)";
const ERASE_PARTS: &str = "DELETE FROM transit WHERE id = ?1";
const ERASE_CODE: &str = "DELETE FROM code_text WHERE message_id = ?1";
const LIST_TEXTS: &str = "
    SELECT id, accepted_us, final_us, length(body) > 0 OR interactive IS NOT NULL FROM message
    WHERE id > ?1 ORDER BY id LIMIT ?2";
const FORGET_TEXT: &str = "
    UPDATE message SET body = x'', interactive = NULL WHERE id = ?1 AND final_us <= ?2";

#[async_trait]
impl PrivacyStore for SqliteStore {
    async fn list_subject(
        &self,
        number: &Msisdn,
        after: Option<MessageId>,
    ) -> Result<SubjectPage, StoreError> {
        let (number, after) = (
            NumberColumns::new(number),
            after.map_or(0, MessageId::as_i64),
        );
        self.read("find a number", move |db| list(db, &number, after))
            .await
    }

    async fn erase_subject(&self, number: &Msisdn, ids: &[MessageId]) -> Result<u64, StoreError> {
        let number = NumberColumns::new(number);
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        self.write("erase a number", move |db| {
            let mut erased = 0;
            for id in ids {
                erased += u64::from(erase(db, &number, id)?);
            }
            Ok(erased)
        })
        .await
    }

    async fn list_verifications_of(
        &self,
        number: &Msisdn,
        limit: u32,
    ) -> Result<Vec<Verification>, StoreError> {
        let number = number.as_i64();
        self.read("list verifications", move |db| {
            db.prepare_cached(verify::LIST_OF_NUMBER.sqlite)?
                .query_map(params![number, limit], |row| verification(row))?
                .collect()
        })
        .await
    }

    async fn erase_verifications(&self, number: &Msisdn) -> Result<(), StoreError> {
        let number = number.as_i64();
        self.write("erase verifications", move |db| {
            let mut erase = db.prepare_cached(verify::ERASE.sqlite)?;
            erase.execute([number]).map(drop)
        })
        .await
    }

    async fn forget_texts(&self, age: SignedDuration, limit: u32) -> Result<bool, StoreError> {
        const OPERATION: &str = "forget texts";
        let age_us = duration_us(age);
        let sweep = *self
            .text_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let find = move |db: &Connection| find_texts(db, LIST_TEXTS, sweep, age_us, limit);
        let OldTexts {
            before_us,
            ids,
            sweep,
            has_more,
        } = self.read(OPERATION, find).await?;
        if !ids.is_empty() {
            let forget = move |db: &Connection| {
                let mut forget = db.prepare_cached(FORGET_TEXT)?;
                for id in ids {
                    forget.execute([id, before_us])?;
                }
                Ok(())
            };
            self.write(OPERATION, forget).await?;
        }
        *self
            .text_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = sweep;
        Ok(has_more)
    }

    async fn list_inbound_subject(
        &self,
        number: &Msisdn,
        after: Option<MessageId>,
    ) -> Result<SubjectPage, StoreError> {
        let (number, after) = (
            NumberColumns::new(number),
            after.map_or(0, MessageId::as_i64),
        );
        self.read("find a number in inboxes", move |db| {
            inbound_privacy::list(db, &number, after)
        })
        .await
    }

    async fn find_inbound_detail(
        &self,
        id: MessageId,
    ) -> Result<Option<InboundDetail>, StoreError> {
        self.read("find a message from a handset", move |db| {
            inbound_privacy::find_detail(db, id)
        })
        .await
    }

    async fn erase_inbound_subject(
        &self,
        number: &Msisdn,
        ids: &[MessageId],
    ) -> Result<u64, StoreError> {
        let change = InboundChange::Erase(NumberColumns::new(number));
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        self.write("erase a number from inboxes", move |db| {
            inbound_privacy::change(db, &ids, &change)
        })
        .await
    }

    async fn list_subject_parts(
        &self,
        number: &Msisdn,
        limit: u32,
    ) -> Result<Vec<PartSet>, StoreError> {
        let number = NumberColumns::new(number);
        self.read("find parts of a number", move |db| {
            inbound_privacy::list_sets(db, &number, limit)
        })
        .await
    }

    async fn erase_subject_parts(&self, number: &Msisdn) -> Result<(), StoreError> {
        let number = NumberColumns::new(number);
        self.write("erase parts of a number", move |db| {
            let mut delete = db.prepare_cached(inbound_sql::DELETE_PARTS_OF.sqlite)?;
            delete.execute([&number.originator]).map(drop)
        })
        .await
    }

    async fn forget_inbound_texts(
        &self,
        age: SignedDuration,
        limit: u32,
    ) -> Result<bool, StoreError> {
        const OPERATION: &str = "forget texts from handsets";
        let age_us = duration_us(age);
        let sweep = *self
            .inbound_text_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let list = inbound_sql::LIST_TEXTS.sqlite;
        let find = move |db: &Connection| find_texts(db, list, sweep, age_us, limit);
        let OldTexts {
            before_us,
            ids,
            sweep,
            has_more,
        } = self.read(OPERATION, find).await?;
        if !ids.is_empty() {
            let change = InboundChange::ForgetText { before_us };
            let forget = move |db: &Connection| inbound_privacy::change(db, &ids, &change);
            self.write(OPERATION, forget).await?;
        }
        *self
            .inbound_text_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = sweep;
        Ok(has_more)
    }
}

fn list(db: &Connection, number: &NumberColumns, after: i64) -> Result<SubjectPage> {
    let mut statement = db.prepare_cached(LIST)?;
    let values = params![after, number.recipient, number.originator, ROWS];
    let mut rows = statement.query(values)?;
    let (mut messages, mut read, mut last) = (Vec::new(), 0, 0);
    while let Some(row) = rows.next()? {
        read += 1;
        last = row.get(0)?;
        if row.get(1)? {
            messages.push(SubjectMessage {
                id: message_id(last)?,
                is_over: row.get(2)?,
            });
        }
    }
    let next = (read == ROWS).then(|| message_id(last)).transpose()?;
    Ok(SubjectPage { messages, next })
}

/// Erases a number from one message; `false` if the message is not over.
fn erase(db: &Connection, number: &NumberColumns, id: i64) -> Result<bool> {
    let values = params![id, number.recipient, number.originator, number.digits];
    if db.prepare_cached(ERASE_MESSAGE)?.execute(values)? == 0 {
        return Ok(false);
    }
    let values = params![id, number.digits];
    db.prepare_cached(ERASE_CALLBACKS)?.execute(values)?;
    for statement in [ERASE_ATTEMPTS, ERASE_PARTS, ERASE_CODE] {
        db.prepare_cached(statement)?.execute([id])?;
    }
    Ok(true)
}

fn find_texts(
    db: &Connection,
    list: &str,
    sweep: TextSweep,
    age_us: i64,
    limit: u32,
) -> Result<OldTexts> {
    let now_us = clock::now_us(db)?;
    let sweep = sweep.begin(now_us);
    let mut statement = db.prepare_cached(list)?;
    let rows = statement.query_map(params![sweep.after, ROWS], |row| TextRow::read(row))?;
    let rows: Vec<TextRow> = rows.collect::<Result<_>>()?;
    Ok(sweep.choose(&rows, now_us.saturating_sub(age_us), limit))
}
