//! Storing submissions: one round trip for a batch, a transaction where idempotency keys are to be claimed.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use deadpool_postgres::{Object, Transaction};
use domain::message::{IdempotencyClaim, Submission, SubmitReceipt, TestMode};
use domain::originator::Originator;
use domain::ports::{Accepted, KeptAnswer};
use domain::text::Udh;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::attempt::Attempt;
use super::column;
use super::fault::Fault;
use crate::rows::{self, AnswerColumns, Corrupt, SendColumns, micros};

/// The IDs of a submission are consecutive, so each text travels once, whatever the number of its recipients.
const INSERT: &str = "
    WITH stored AS (
        INSERT INTO message (id, recipient, account_id, originator, body, coding, coding_given, udh, parts, priority,
            dlr_url, test_mode, accepted_us, scheduled_us, expires_us, state)
        SELECT s.first_id + n, ($1::bigint[])[s.skipped + n + 1], s.account_id, s.originator, s.body, s.coding,
            s.coding_given, s.udh, s.parts, s.priority, s.dlr_url, s.test_mode, s.accepted_us, s.scheduled_us,
            s.expires_us, s.state
        FROM UNNEST($2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::text[], $7::bytea[], $8::smallint[],
            $9::boolean[], $10::bytea[], $11::smallint[], $12::smallint[], $13::bytea[], $14::smallint[],
            $15::bigint[], $16::bigint[], $17::bigint[], $18::smallint[])
            AS s (first_id, skipped, recipients, account_id, originator, body, coding, coding_given, udh, parts,
                priority, dlr_url, test_mode, accepted_us, scheduled_us, expires_us, state)
            CROSS JOIN LATERAL generate_series(0, s.recipients - 1) AS n
    )
    INSERT INTO queue (owner, lane, due_us, id, attempt)
    SELECT s.owner, s.priority, coalesce(s.scheduled_us, s.accepted_us), s.first_id + n, s.attempt
    FROM UNNEST($2::bigint[], $4::int[], $12::smallint[], $15::bigint[], $16::bigint[], $19::bigint[], $20::int[])
        AS s (first_id, recipients, priority, accepted_us, scheduled_us, owner, attempt)
        CROSS JOIN LATERAL generate_series(0, s.recipients - 1) AS n";
/// A conflict locks the row that is there, so it cannot be pruned before [`FIND_ANSWERS`] reads it.
const CLAIM_KEYS: &str = "
    INSERT INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
    SELECT * FROM UNNEST($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    ON CONFLICT (account_id, key) DO UPDATE SET body = excluded.body, first_id = excluded.first_id,
        messages = excluded.messages, parts = excluded.parts, expires_us = excluded.expires_us
        WHERE idempotency.expires_us <= $8::bigint
    RETURNING account_id, key";
const FIND_ANSWERS: &str = "
    SELECT account_id, key, body, first_id, messages, parts FROM idempotency
    WHERE (account_id, key) IN (SELECT * FROM UNNEST($1::bigint[], $2::bytea[]))";

/// A batch of which no submission has a key: one statement, atomic by itself.
pub(super) struct PlainBatch<'a>(pub(super) &'a [Submission]);

impl Attempt for PlainBatch<'_> {
    type Output = Vec<Accepted>;

    async fn run(&self, client: &mut Object) -> Result<Vec<Accepted>, Fault> {
        let statement = client.prepare_cached(INSERT).await?;
        let columns = MessageColumns::of(self.0.iter());
        client.execute(&statement, &columns.values()).await?;
        Ok(vec![Accepted::Stored; self.0.len()])
    }
}

/// A batch of which some submissions have keys.
pub(super) struct KeyedBatch<'a>(pub(super) &'a [Submission]);

impl Attempt for KeyedBatch<'_> {
    type Output = Vec<Accepted>;

    async fn run(&self, client: &mut Object) -> Result<Vec<Accepted>, Fault> {
        let transaction = client.transaction().await?;
        let keys = Keys::of(self.0);
        let kept = claim(&transaction, &keys).await?;
        let outcomes = keys.outcomes(self.0, &kept);
        let stored = self
            .0
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| **outcome == Accepted::Stored);
        let columns = MessageColumns::of(stored.map(|(submission, _)| submission));
        let statement = transaction.prepare_cached(INSERT).await?;
        transaction.execute(&statement, &columns.values()).await?;
        transaction.commit().await?;
        Ok(outcomes)
    }
}

type Key = (i64, [u8; 32]);

/// The first use of each key within a batch. Sorted, so that two nodes lock the same keys in the same order.
struct Keys<'a> {
    first: BTreeMap<Key, (&'a IdempotencyClaim, SubmitReceipt)>,
    now_us: i64,
}

impl<'a> Keys<'a> {
    fn of(batch: &'a [Submission]) -> Self {
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

    /// What becomes of each submission: only the first of a key that was not kept before is stored.
    fn outcomes(&self, batch: &[Submission], kept: &HashMap<Key, KeptAnswer>) -> Vec<Accepted> {
        let outcome = |submission: &Submission| {
            let Some(claim) = &submission.idempotency else {
                return Accepted::Stored;
            };
            let key = (submission.account.as_i64(), claim.key);
            if let Some(kept) = kept.get(&key) {
                return rows::repeated(kept, &claim.body);
            }
            let (first, receipt) = self.first[&key];
            if receipt.first == submission.recipients[0].id {
                return Accepted::Stored;
            }
            rows::repeated(
                &KeptAnswer {
                    body: first.body,
                    receipt,
                },
                &claim.body,
            )
        };
        batch.iter().map(outcome).collect()
    }
}

/// Claims keys and returns what those that were taken are kept for.
async fn claim(
    transaction: &Transaction<'_>,
    keys: &Keys<'_>,
) -> Result<HashMap<Key, KeptAnswer>, Fault> {
    let columns = KeyColumns::of(keys);
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
    let kept = transaction.query(&statement, &[&accounts, &taken]).await?;
    let kept = kept
        .iter()
        .map(|row| Ok((read_key(row)?, read_answer(row, 2)?)))
        .collect::<Result<HashMap<_, _>, Corrupt>>()?;
    if kept.len() == taken.len() {
        Ok(kept)
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

/// Reads an answer from the columns that start here.
pub(super) fn read_answer(row: &Row, at: usize) -> Result<KeptAnswer, Corrupt> {
    let columns = AnswerColumns {
        body: column(row, at)?,
        first_id: column(row, at + 1)?,
        messages: column(row, at + 2)?,
        parts: column(row, at + 3)?,
    };
    columns.answer()
}

/// Keys as [`CLAIM_KEYS`] takes them.
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
    fn of(keys: &Keys<'a>) -> Self {
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

/// Submissions as [`INSERT`] takes them: the recipients of all of them in one array, the rest in an array for each
/// column.
#[derive(Default)]
struct MessageColumns<'a> {
    recipient: Vec<i64>,
    first_id: Vec<i64>,
    skipped: Vec<i32>,
    recipients: Vec<i32>,
    account: Vec<i64>,
    originator: Vec<Cow<'a, str>>,
    body: Vec<&'a [u8]>,
    coding: Vec<i16>,
    coding_given: Vec<bool>,
    udh: Vec<Option<&'a [u8]>>,
    parts: Vec<i16>,
    priority: Vec<i16>,
    dlr_url: Vec<Option<&'a [u8]>>,
    test_mode: Vec<Option<i16>>,
    accepted_us: Vec<i64>,
    scheduled_us: Vec<Option<i64>>,
    expires_us: Vec<i64>,
    state: Vec<i16>,
    owner: Vec<i64>,
    attempt: Vec<i32>,
}

impl<'a> MessageColumns<'a> {
    fn of(submissions: impl Iterator<Item = &'a Submission>) -> Self {
        let mut columns = Self::default();
        submissions.for_each(|submission| columns.push(submission));
        columns
    }

    fn push(&mut self, submission: &'a Submission) {
        let count = |number: usize| i32::try_from(number).expect("a batch is bounded far below");
        self.first_id.push(submission.recipients[0].id.as_i64());
        self.skipped.push(count(self.recipient.len()));
        self.recipients.push(count(submission.recipients.len()));
        self.recipient.extend(
            submission
                .recipients
                .iter()
                .map(|recipient| recipient.to.as_i64()),
        );
        self.account.push(submission.account.as_i64());
        self.originator.push(match &submission.from {
            Originator::Name(name) => Cow::Borrowed(name),
            Originator::Msisdn(number) => Cow::Owned(number.to_string()),
        });
        self.body.push(submission.text.as_bytes());
        self.coding.push(submission.shape.coding.number().into());
        self.coding_given.push(submission.coding_given);
        self.udh.push(submission.udh.as_ref().map(Udh::as_bytes));
        self.parts.push(submission.shape.parts.into());
        self.priority.push(submission.priority.lane());
        self.dlr_url.push(
            submission
                .dlr_url
                .as_ref()
                .map(|url| url.as_str().as_bytes()),
        );
        self.test_mode
            .push(submission.test_mode.map(TestMode::number));
        self.push_times(submission);
    }

    fn push_times(&mut self, submission: &Submission) {
        let SendColumns {
            scheduled_us,
            state,
            owner,
            attempt,
        } = SendColumns::of(submission);
        self.accepted_us.push(micros(submission.accepted_at));
        self.scheduled_us.push(scheduled_us);
        self.expires_us.push(micros(submission.expires_at));
        self.state.push(state);
        self.owner.push(owner);
        self.attempt.push(attempt);
    }

    fn values(&self) -> [&(dyn ToSql + Sync); 20] {
        [
            &self.recipient,
            &self.first_id,
            &self.skipped,
            &self.recipients,
            &self.account,
            &self.originator,
            &self.body,
            &self.coding,
            &self.coding_given,
            &self.udh,
            &self.parts,
            &self.priority,
            &self.dlr_url,
            &self.test_mode,
            &self.accepted_us,
            &self.scheduled_us,
            &self.expires_us,
            &self.state,
            &self.owner,
            &self.attempt,
        ]
    }
}
