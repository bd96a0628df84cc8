//! Retention: deletes old messages and receipts row by row.

use std::ops::Range;
use std::sync::PoisonError;

use domain::ports::StoreError;
use tokio_postgres::Row;

use super::days::FIRST_ID;
use super::{PostgresStore, column};
use crate::rows::Corrupt;
use crate::rows::dispatch::PruneColumns;
use crate::rows::sweep::Sweep;

const NOW: &str = concat!("SELECT ", now_us!());
const CANDIDATES: &str = "
    SELECT m.id, m.accepted_us, m.final_us,
        EXISTS (SELECT 1 FROM callback AS c WHERE c.message_id = m.id AND c.kind <> 2 AND c.state = 0)
    FROM message AS m WHERE m.id > $1 AND m.id < $3 ORDER BY m.id LIMIT $2";
/// The conditions are checked again: a callback may have been replayed between the two statements. The bounds select
/// the partitions: those of one day, or those before the first.
const PRUNE_MESSAGES: &str = "
    WITH pruned AS (
        DELETE FROM message AS m WHERE m.id = ANY($1::bigint[]) AND m.id >= $3 AND m.id < $4 AND m.final_us <= $2
            AND NOT EXISTS (SELECT 1 FROM callback AS c WHERE c.message_id = m.id AND c.kind <> 2 AND c.state = 0)
        RETURNING m.id
    ), reports AS (
        DELETE FROM callback USING pruned WHERE callback.message_id = pruned.id AND callback.kind <> 2
            AND callback.message_id >= $3 AND callback.message_id < $4
        RETURNING callback.id, callback.message_id
    ), tries AS (
        DELETE FROM callback_attempt USING reports WHERE callback_attempt.callback_id = reports.id
            AND callback_attempt.message_id = reports.message_id
            AND callback_attempt.message_id >= $3 AND callback_attempt.message_id < $4
    )
    SELECT count(*) FROM pruned";
/// The number of messages that one statement reads.
const STEP: i64 = 1_000;
/// How many such statements one step has.
const PAGES: usize = 20;
/// Messages that may be deleted.
pub(super) struct OldMessages {
    pub(super) ids: Vec<i64>,
    /// Whether the sweep has reached the end.
    pub(super) is_end: bool,
}

impl PostgresStore {
    /// Deletes rows of the partition "before"; if there are none, drops days.
    pub(super) async fn prune_old_messages(
        &self,
        age_us: i64,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let read = |row: &Row| column(row, 0);
        let now_us: i64 = self.get("prune messages", NOW, &[], read).await?;
        let before_us = now_us.saturating_sub(age_us);
        let mut sweep = *self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pruned = 0;
        if !sweep.is_paused(now_us) {
            let found = self
                .find_old_messages(&mut sweep, FIRST_ID, before_us, limit)
                .await?;
            if found.is_end {
                sweep = sweep.next(now_us);
            }
            pruned = self.prune_found(&found, before_us, 0..FIRST_ID).await?;
            *self.sweep.lock().unwrap_or_else(PoisonError::into_inner) = sweep;
        }
        if pruned == 0 {
            pruned = self.drop_old_days(now_us, before_us, limit).await?;
        }
        Ok(pruned)
    }

    /// Continues a sweep over IDs up to an end, until enough messages are found, all others are too young, or enough
    /// rows were read for one step.
    pub(super) async fn find_old_messages(
        &self,
        sweep: &mut Sweep,
        end: i64,
        before_us: i64,
        limit: u32,
    ) -> Result<OldMessages, StoreError> {
        let mut ids = Vec::new();
        for _ in 0..PAGES {
            let values: super::Values<'_> = &[&sweep.after, &STEP, &end];
            let messages = self
                .list("find old messages", CANDIDATES, values, PruneColumns::read)
                .await?;
            let is_last = messages.len() < usize::try_from(STEP).expect("small");
            for message in messages {
                if ids.len() == limit as usize {
                    return Ok(OldMessages { ids, is_end: false });
                }
                if message.is_too_young(before_us) {
                    sweep.pass(message.id, true);
                    return Ok(OldMessages { ids, is_end: true });
                }
                let is_over = message.is_over(before_us);
                sweep.pass(message.id, !is_over);
                ids.extend(is_over.then_some(message.id));
            }
            if is_last {
                return Ok(OldMessages { ids, is_end: true });
            }
        }
        Ok(OldMessages { ids, is_end: false })
    }

    /// Deletes messages with their callbacks. `within` selects the partitions.
    pub(super) async fn prune_found(
        &self,
        found: &OldMessages,
        before_us: i64,
        within: Range<i64>,
    ) -> Result<u64, StoreError> {
        if found.ids.is_empty() {
            return Ok(0);
        }
        let values: super::Values<'_> = &[&found.ids, &before_us, &within.start, &within.end];
        self.get("prune messages", PRUNE_MESSAGES, values, count)
            .await
    }
}

/// Reads a count.
pub(super) fn count(row: &Row) -> Result<u64, Corrupt> {
    u64::try_from(column::<i64>(row, 0)?).map_err(|_| Corrupt("count"))
}
