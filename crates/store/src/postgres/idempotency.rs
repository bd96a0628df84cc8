//! Idempotency keys: claimed in the transaction that stores a batch, or found to be used already.

use std::collections::{BTreeMap, HashMap};

use deadpool_postgres::Transaction;
use domain::message::{AcceptedMessages, IdempotencyClaim, Submission};
use domain::ports::{Accepted, StoredAnswer};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::column;
use super::fault::Fault;
use crate::rows::{self, AnswerColumns, Corrupt, micros};

/// A conflict locks the existing row, so that it is not deleted before [`FIND_ANSWERS`] reads it.
const CLAIM_KEYS: &str = "
    INSERT INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
    SELECT * FROM UNNEST($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    ON CONFLICT (account_id, key) DO UPDATE SET body = excluded.body, first_id = excluded.first_id,
        messages = excluded.messages, parts = excluded.parts, expires_us = excluded.expires_us
        WHERE idempotency.expires_us <= $8::bigint
    RETURNING account_id, key";
const RELEASE_KEYS: &str = "
    DELETE FROM idempotency AS i USING UNNEST($1::bigint[], $2::bytea[]) AS g (account_id, key)
    WHERE i.account_id = ANY(ARRAY[g.account_id]) AND i.key = g.key";
const FIND_ANSWERS: &str = "
    SELECT i.account_id, i.key, i.body, i.first_id, i.messages, i.parts
    FROM UNNEST($1::bigint[], $2::bytea[]) AS g (account_id, key)
    JOIN idempotency AS i ON i.account_id = ANY(ARRAY[g.account_id]) AND i.key = g.key";

type Key = (i64, [u8; 32]);

/// The first use of each key within a batch. Sorted, so that two nodes lock the same keys in the same order.
pub(super) struct Keys<'a> {
    first: BTreeMap<Key, (&'a IdempotencyClaim, AcceptedMessages)>,
    now_us: i64,
}

impl<'a> Keys<'a> {
    pub(super) fn from_batch(batch: &[&'a Submission]) -> Self {
        let mut first = BTreeMap::new();
        for (submission, claim) in batch
            .iter()
            .filter_map(|s| s.idempotency.as_ref().map(|claim| (s, claim)))
        {
            let key = (submission.account.as_i64(), claim.key);
            first
                .entry(key)
                .or_insert_with(|| (claim, submission.receipt()));
        }
        let now_us = batch
            .iter()
            .map(|submission| micros(submission.accepted_at))
            .max()
            .unwrap_or_default();
        Self { first, now_us }
    }

    /// The result of each submission: only the first one with an unused key is stored.
    fn outcomes(
        &self,
        batch: &[&Submission],
        stored: &HashMap<Key, StoredAnswer>,
    ) -> Vec<Accepted> {
        let outcome = |submission: &&Submission| {
            let Some(claim) = &submission.idempotency else {
                return Accepted::Stored;
            };
            let key = (submission.account.as_i64(), claim.key);
            if let Some(stored) = stored.get(&key) {
                return rows::repeated(stored, &claim.body);
            }
            let (first, receipt) = self.first[&key];
            if receipt.first == submission.recipients[0].id {
                return Accepted::Stored;
            }
            rows::repeated(
                &StoredAnswer {
                    body: first.body,
                    receipt,
                },
                &claim.body,
            )
        };
        batch.iter().map(outcome).collect()
    }
}

/// Claims the keys of a batch, and returns which submissions to store.
pub(super) async fn claim(
    transaction: &Transaction<'_>,
    keys: &Keys<'_>,
    batch: &[&Submission],
) -> Result<Vec<Accepted>, Fault> {
    let stored = if keys.first.is_empty() {
        HashMap::new()
    } else {
        claim_first(transaction, keys).await?
    };
    Ok(keys.outcomes(batch, &stored))
}

/// Releases the keys of submissions that were not paid, so that the caller can retry. Repetitions of such a submission
/// in the same batch get the same result.
pub(super) async fn release_unpaid(
    transaction: &Transaction<'_>,
    batch: &[&Submission],
    outcomes: &mut [Accepted],
) -> Result<(), Fault> {
    let unpaid: HashMap<i64, Accepted> = batch
        .iter()
        .zip(&*outcomes)
        .filter(|(submission, outcome)| {
            submission.idempotency.is_some() && matches!(outcome, Accepted::NotPaid(_))
        })
        .map(|(submission, outcome)| (submission.recipients[0].id.as_i64(), *outcome))
        .collect();
    if unpaid.is_empty() {
        return Ok(());
    }
    for outcome in &mut *outcomes {
        if let Accepted::Replayed(earlier) = outcome
            && let Some(first) = unpaid.get(&earlier.first.as_i64())
        {
            *outcome = *first;
        }
    }
    let keys = batch.iter().filter_map(|submission| {
        let claim = submission.idempotency.as_ref()?;
        unpaid.get(&submission.recipients[0].id.as_i64())?;
        Some((submission.account.as_i64(), claim.key.as_slice()))
    });
    let (accounts, keys): (Vec<i64>, Vec<&[u8]>) = keys.unzip();
    let statement = transaction.prepare_cached(RELEASE_KEYS).await?;
    transaction.execute(&statement, &[&accounts, &keys]).await?;
    Ok(())
}

/// Claims keys, and returns the stored answers of those that were used before.
async fn claim_first(
    transaction: &Transaction<'_>,
    keys: &Keys<'_>,
) -> Result<HashMap<Key, StoredAnswer>, Fault> {
    let columns = KeyColumns::from_keys(keys);
    let statement = transaction.prepare_cached(CLAIM_KEYS).await?;
    let claimed = transaction
        .query(&statement, &columns.values(&keys.now_us))
        .await?;
    if claimed.len() == keys.first.len() {
        return Ok(HashMap::new());
    }
    let claimed = claimed
        .iter()
        .map(read_key)
        .collect::<Result<Vec<_>, _>>()?;
    let taken = keys.first.keys().filter(|key| !claimed.contains(key));
    let (accounts, taken): (Vec<i64>, Vec<&[u8]>) = taken
        .map(|(account, key)| (*account, key.as_slice()))
        .unzip();
    let statement = transaction.prepare_cached(FIND_ANSWERS).await?;
    let stored = transaction.query(&statement, &[&accounts, &taken]).await?;
    let stored = stored
        .iter()
        .map(|row| Ok((read_key(row)?, read_answer(row, 2)?)))
        .collect::<Result<HashMap<_, _>, Corrupt>>()?;
    if stored.len() == taken.len() {
        Ok(stored)
    } else {
        Err(Corrupt("idempotency key").into())
    }
}

fn read_key(row: &Row) -> Result<Key, Corrupt> {
    let key: &[u8] = column(row, 1)?;
    Ok((
        column(row, 0)?,
        key.try_into().map_err(|_| Corrupt("idempotency key"))?,
    ))
}

/// Reads an answer from the columns from `at` on.
pub(super) fn read_answer(row: &Row, at: usize) -> Result<StoredAnswer, Corrupt> {
    AnswerColumns::read(row, at)?.answer()
}

/// The parameters of [`CLAIM_KEYS`].
#[derive(Default)]
struct KeyColumns<'a> {
    account: Vec<i64>,
    key: Vec<&'a [u8]>,
    body: Vec<&'a [u8]>,
    first_id: Vec<i64>,
    messages: Vec<i64>,
    parts: Vec<i64>,
    expires_us: Vec<i64>,
}

impl<'a> KeyColumns<'a> {
    fn from_keys(keys: &Keys<'a>) -> Self {
        let mut columns = Self::default();
        for ((account, _), (claim, receipt)) in &keys.first {
            columns.account.push(*account);
            columns.key.push(&claim.key);
            columns.body.push(&claim.body);
            columns.first_id.push(receipt.first.as_i64());
            columns.messages.push(receipt.messages.into());
            columns.parts.push(receipt.parts.into());
            columns.expires_us.push(micros(claim.expires_at));
        }
        columns
    }

    fn values<'s>(&'s self, now_us: &'s i64) -> [&'s (dyn ToSql + Sync); 8] {
        [
            &self.account,
            &self.key,
            &self.body,
            &self.first_id,
            &self.messages,
            &self.parts,
            &self.expires_us,
            now_us,
        ]
    }
}
