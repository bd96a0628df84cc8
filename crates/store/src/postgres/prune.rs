//! Forgetting what is old.

use domain::ports::StoreError;
use tokio_postgres::Row;

use super::days::FIRST_ID;
use super::{PostgresStore, column};
use crate::rows::Corrupt;
use crate::rows::dispatch::PruneColumns;

const NOW: &str = concat!("SELECT ", now_us!());
/// A part whose report never came is kept as long as its message waits for it.
const PRUNE_RECEIPTS: &str = concat!(
    "WITH pruned AS (
        DELETE FROM transit WHERE (carrier, reference, former) IN (
            SELECT t.carrier, t.reference, t.former FROM transit AS t
            WHERE t.taken_us <= ",
    now_us!(),
    " - $1::bigint AND (t.status IS NOT NULL
                OR NOT EXISTS (SELECT 1 FROM message WHERE message.id = t.id AND message.final_us IS NULL))
            ORDER BY t.taken_us LIMIT $2 FOR UPDATE OF t SKIP LOCKED
        ) RETURNING 1
    )
    SELECT count(*) FROM pruned"
);
const CANDIDATES: &str = "
    SELECT m.id, m.accepted_us, m.final_us,
        EXISTS (SELECT 1 FROM callback AS c WHERE c.message_id = m.id AND c.kind <> 2 AND c.state = 0)
    FROM message AS m WHERE m.id > $1 AND m.id < $3 ORDER BY m.id LIMIT $2";
/// What may go is asked again: between the two statements a report may have been replayed.
const PRUNE_MESSAGES: &str = "
    WITH pruned AS (
        DELETE FROM message AS m WHERE m.id = ANY($1::bigint[]) AND m.id < $3 AND m.final_us <= $2
            AND NOT EXISTS (SELECT 1 FROM callback AS c WHERE c.message_id = m.id AND c.kind <> 2 AND c.state = 0)
        RETURNING m.id
    ), reports AS (
        DELETE FROM callback USING pruned WHERE callback.message_id = pruned.id AND callback.kind <> 2
        RETURNING callback.id, callback.message_id
    ), tries AS (
        DELETE FROM callback_attempt USING reports WHERE callback_attempt.callback_id = reports.id
            AND callback_attempt.message_id = reports.message_id
    )
    SELECT count(*) FROM pruned";
/// How many messages are looked at with one statement.
const STEP: i64 = 1_000;

impl PostgresStore {
    pub(super) async fn prune_old_receipts(
        &self,
        age_us: i64,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let limit = i64::from(limit);
        let values: super::Values<'_> = &[&age_us, &limit];
        self.get("prune receipts", PRUNE_RECEIPTS, values, count)
            .await
    }

    /// Rows of the partition "before" one by one; when there are none, whole days.
    pub(super) async fn prune_old_messages(
        &self,
        age_us: i64,
        limit: u32,
    ) -> Result<u64, StoreError> {
        const OPERATION: &str = "prune messages";
        let now_us: i64 = self.get(OPERATION, NOW, &[], |row| column(row, 0)).await?;
        let before_us = now_us.saturating_sub(age_us);
        let ids = self.find_old_messages(before_us, limit as usize).await?;
        if ids.is_empty() {
            return self.forget_days(now_us, before_us).await;
        }
        let values: super::Values<'_> = &[&ids, &before_us, &FIRST_ID];
        self.get(OPERATION, PRUNE_MESSAGES, values, count).await
    }

    /// Walks from the lowest ID until enough are found or all that follow are too young.
    async fn find_old_messages(
        &self,
        before_us: i64,
        limit: usize,
    ) -> Result<Vec<i64>, StoreError> {
        let mut found = Vec::new();
        let mut after = 0_i64;
        loop {
            let values: super::Values<'_> = &[&after, &STEP, &FIRST_ID];
            let messages = self
                .list("find old messages", CANDIDATES, values, candidate)
                .await?;
            let is_last = messages.len() < usize::try_from(STEP).expect("small");
            for message in messages {
                if found.len() == limit || message.is_too_young(before_us) {
                    return Ok(found);
                }
                after = message.id;
                if message.is_over(before_us) {
                    found.push(message.id);
                }
            }
            if is_last {
                return Ok(found);
            }
        }
    }
}

fn candidate(row: &Row) -> Result<PruneColumns, Corrupt> {
    Ok(PruneColumns {
        id: column(row, 0)?,
        accepted_us: column(row, 1)?,
        final_us: column(row, 2)?,
        has_waiting_report: column(row, 3)?,
    })
}

/// Reads how many rows a statement changed.
pub(super) fn count(row: &Row) -> Result<u64, Corrupt> {
    u64::try_from(column::<i64>(row, 0)?).map_err(|_| Corrupt("count"))
}
