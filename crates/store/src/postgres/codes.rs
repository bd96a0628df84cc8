//! The port for confirmation codes: their number is limited, and their texts are stored until the message has ended.

use std::collections::HashMap;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use domain::code_cap::{self, CodeCapReached, NUMBER_DAY};
use domain::delivery::QueuedMessage;
use domain::encryption::KEY_BYTES;
use domain::ids::AccountId;
use domain::message::code_text::{self, SHOWN};
use domain::message::{Recipient, Submission};
use domain::ports::{CodeStore, KeyStore, StoreError};
use domain::{KeyRing, MessageId, Msisdn, Timestamp};
use jiff::SignedDuration;
use tokio_postgres::Row;

use super::fault::Fault;
use super::transaction::execute;
use super::{PostgresStore, Values, column};
use crate::rows::encrypted::salt;
use crate::rows::{self, Corrupt, duration_us, micros, timestamp};
use crate::sql::codes as sql;

/// Codes of the same account or number are counted one after another, because of this lock. The first number separates
/// these locks from others.
const LOCK: &str = "
    SELECT pg_advisory_xact_lock(1668244580, hashint8($1)), pg_advisory_xact_lock(1668244581, hashint8($2))";
const PRUNE: &str = "
    WITH old AS MATERIALIZED (
        SELECT number, sent_us, account_id FROM code_sent WHERE sent_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM code_sent AS s USING old
        WHERE s.number = ANY(ARRAY[old.number]) AND s.sent_us = old.sent_us AND s.account_id = old.account_id
        RETURNING 1
    )
    SELECT count(*) FROM pruned";

const INSERT_TEXTS: &str = "
    INSERT INTO code_text (message_id, text) SELECT * FROM UNNEST($1::bigint[], $2::bytea[])";
const FIND_TEXTS: &str =
    "SELECT message_id, text FROM code_text WHERE message_id = ANY($1::bigint[])";
const PRUNE_TEXTS: &str = concat!(
    "WITH pruned AS (
        DELETE FROM code_text WHERE message_id = ANY(ARRAY(
            SELECT c.message_id FROM code_text AS c LEFT JOIN message AS m ON m.id = c.message_id
            WHERE m.id IS NULL OR m.final_us <= ",
    now_us!(),
    " - $2 OR m.final_us IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM transit AS t WHERE t.id = c.message_id AND t.carrier = $1)
            LIMIT $3))
        RETURNING 1
    )
    SELECT count(*) FROM pruned"
);

#[async_trait]
impl CodeStore for PostgresStore {
    async fn prune_codes(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values: Values<'_> = &[&micros(before), &i64::from(limit)];
        self.get("prune codes", PRUNE, values, read_count).await
    }

    async fn prune_code_texts(
        &self,
        inbox: &str,
        age: SignedDuration,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let values: Values<'_> = &[&inbox, &duration_us(age), &i64::from(limit)];
        self.get("prune the texts of codes", PRUNE_TEXTS, values, read_count)
            .await
    }
}

impl KeyStore for PostgresStore {
    fn derived_keys(&self, purpose: &str) -> Vec<[u8; KEY_BYTES]> {
        self.keys.derived_keys(purpose)
    }
}

fn read_count(row: &Row) -> Result<u64, Corrupt> {
    u64::try_from(column::<i64>(row, 0)?).map_err(|_| Corrupt("count"))
}

/// Stores the texts of submissions that carry a code, encrypted.
pub(super) async fn store_texts<'a>(
    transaction: &Transaction<'_>,
    keys: &KeyRing,
    submissions: impl Iterator<Item = &'a Submission>,
) -> Result<(), Fault> {
    let (mut messages, mut texts) = (Vec::new(), Vec::new());
    for submission in submissions {
        if submission.carries_code {
            for Recipient { id, to, .. } in &submission.recipients {
                messages.push(id.as_i64());
                texts.push(code_text::encrypt(keys, to, &submission.text, salt()));
            }
        }
    }
    if messages.is_empty() {
        return Ok(());
    }
    execute(transaction, INSERT_TEXTS, &[&messages, &texts])
        .await
        .map(drop)
}

/// The encrypted texts of these messages, if they have one.
pub(super) async fn find_texts(
    transaction: &Transaction<'_>,
    messages: &[QueuedMessage],
) -> Result<HashMap<MessageId, Vec<u8>>, Fault> {
    let hidden = messages.iter().filter(|queued| queued.text == SHOWN);
    let ids: Vec<i64> = hidden.map(|queued| queued.id.as_i64()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let statement = transaction.prepare_cached(FIND_TEXTS).await?;
    let found = transaction.query(&statement, &[&ids]).await?;
    let read = |row: &Row| -> Result<_, Corrupt> {
        Ok((rows::message_id(column(row, 0)?)?, column(row, 1)?))
    };
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}

/// Waits for other codes of the same account or number.
pub(super) async fn lock(
    transaction: &Transaction<'_>,
    number: Msisdn,
    account: AccountId,
) -> Result<(), Fault> {
    let (number, account) = (number.as_i64(), account.as_i64());
    execute(transaction, LOCK, &[&account, &number])
        .await
        .map(drop)
}

/// Counts a code that is about to be sent, unless the limit is reached.
pub(super) async fn count(
    transaction: &Transaction<'_>,
    number: Msisdn,
    account: AccountId,
    now: Timestamp,
) -> Result<Result<(), CodeCapReached>, Fault> {
    lock(transaction, number, account).await?;
    let (number, account) = (number.as_i64(), account.as_i64());
    let sent_to = list(
        transaction,
        sql::SENT_TO.postgres,
        &[&number, &i64::from(NUMBER_DAY)],
    )
    .await?;
    let sent_by = list(transaction, sql::SENT_BY.postgres, &[&account]).await?;
    let checked = code_cap::check_number(&sent_to, now)
        .and_then(|()| code_cap::check_account(sent_by.first().copied(), now));
    if checked.is_ok() {
        execute(
            transaction,
            sql::COUNT.postgres,
            &[&number, &account, &micros(now)],
        )
        .await?;
    }
    Ok(checked)
}

async fn list(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Vec<Timestamp>, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    let found = transaction.query(&statement, values).await?;
    let read = |row: &Row| -> Result<Timestamp, Corrupt> { timestamp(column(row, 0)?) };
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}
