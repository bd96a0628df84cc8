//! Retention: deletes whole days of history by dropping their partitions.
//!
//! A day may be dropped when all its messages ended long enough ago and none of their callbacks waits. This is checked
//! row by row and remembered, because final states do not change. So the drop itself locks the tables only briefly.
//!
//! If something of a day still waits a week after the day should have been dropped, such as a message that is scheduled
//! for next year or a callback that no receiver accepts, the other rows of the day are deleted in steps.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use deadpool_postgres::Object;
use domain::ports::StoreError;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::days::{Day, TABLES};
use super::fault::Fault;
use super::retry::{self, Retryable};
use super::{PostgresStore, column};
use crate::rows::sweep::Sweep;

const LIST_DAYS: &str = "
    SELECT CAST(c.relname AS text) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'message'::regclass ORDER BY c.relname";
/// Every message that has not ended is in `queue`, and every waiting callback in `callback_queue`.
const LIST_WAITING: &str = "
    SELECT id >> 32 FROM queue WHERE id < $1 UNION SELECT message_id >> 32 FROM callback_queue WHERE message_id < $1";
const READ_PAGE: &str = "
    SELECT count(*), coalesce(max(m.id), 0), coalesce(max(m.final_us), 0), coalesce(bool_or(m.final_us IS NULL), FALSE)
    FROM (SELECT id, final_us FROM message WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3) AS m";
/// The number of rows that one statement reads.
const STEP: i64 = 20_000;
/// How many days one step drops at most.
const DAYS: usize = 8;
/// Time after which a day with unfinished messages is checked again.
const CHECK_AGAIN_US: i64 = 600_000_000;
/// How long the rows of a day wait for a drop. Nearly every day can be dropped within this time, because no message
/// that is sent at once lives longer than five days.
const WAIT_FOR_DROP_US: i64 = 7 * 86_400_000_000;

/// Others cannot use the tables while this lock is waited for or held. If a long read delays it, the drop is tried
/// again later.
const SHORT_TIMEOUTS: &str = "
    SET LOCAL lock_timeout = '200ms'; SET LOCAL statement_timeout = '500ms'; SET LOCAL enable_seqscan = on";
const LOCK: &str =
    "LOCK TABLE ONLY message, ONLY callback, ONLY callback_attempt IN ACCESS EXCLUSIVE MODE";
/// Someone may have replayed a callback of the day since it was checked.
const IS_NEEDED_AGAIN: &str = "
    SELECT EXISTS (SELECT 1 FROM callback_queue WHERE message_id >= $1 AND message_id < $2)
        OR EXISTS (SELECT 1 FROM queue WHERE id >= $1 AND id < $2)";

/// The results for days that were checked.
#[derive(Default)]
pub(super) struct CheckedDays(Mutex<BTreeMap<Day, Finding>>);

#[derive(Debug, Clone, Copy)]
enum Finding {
    /// It may be dropped; the value is its number of messages.
    Droppable(u64),
    /// It must stay at least until this time.
    KeepUntil(i64),
    /// Some messages are unfinished; the other rows are deleted one by one.
    Sweeping(Sweep),
}

impl CheckedDays {
    fn find(&self, day: Day) -> Option<Finding> {
        let checked_days = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checked_days.get(&day).copied()
    }

    fn set(&self, day: Day, finding: Option<Finding>) {
        let mut checked_days = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match finding {
            Some(finding) => checked_days.insert(day, finding),
            None => checked_days.remove(&day),
        };
    }
}

impl Day {
    /// Rows of a day wait for the drop of its partition, but not forever.
    fn sweep_when_overdue(self, before_us: i64, otherwise: Finding) -> Finding {
        if self.end_us().saturating_add(WAIT_FOR_DROP_US) <= before_us {
            Finding::Sweeping(Sweep::from(self.first_id() - 1))
        } else {
            otherwise
        }
    }
}

impl PostgresStore {
    /// Drops a few days whose messages all ended before a time, and returns the number of these messages. Deletes up to
    /// `limit` messages of days that cannot be dropped.
    pub(super) async fn drop_old_days(
        &self,
        now_us: i64,
        before_us: i64,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let old = self.list_old_days(now_us, before_us).await?;
        let mut deleted = 0;
        for day in old.into_iter().take(DAYS) {
            match self.check_day(day, now_us, before_us).await? {
                Finding::Droppable(messages) => {
                    if self.drop_day(day).await? {
                        tracing::info!(
                            partition = day.partition(TABLES[0]),
                            messages,
                            "a day of history was deleted"
                        );
                        deleted += messages.max(1);
                    }
                }
                stays @ Finding::KeepUntil(_) => self.checked_days.set(day, Some(stays)),
                Finding::Sweeping(sweep) => {
                    deleted += self
                        .sweep_day(day, sweep, (now_us, before_us), limit)
                        .await?;
                }
            }
        }
        Ok(deleted)
    }

    /// Continues to delete the rows of a day that are not needed.
    async fn sweep_day(
        &self,
        day: Day,
        mut sweep: Sweep,
        (now_us, before_us): (i64, i64),
        limit: u32,
    ) -> Result<u64, StoreError> {
        let found = self
            .find_old_messages(&mut sweep, day.end_id(), before_us, limit)
            .await?;
        let ids = day.first_id()..day.end_id();
        let pruned = self.prune_found(&found, before_us, ids).await?;
        let next = if !found.is_end {
            Some(Finding::Sweeping(sweep))
        } else if sweep.kept() > 0 {
            let pause_us = sweep.pause_us().max(CHECK_AGAIN_US);
            Some(Finding::KeepUntil(now_us.saturating_add(pause_us)))
        } else {
            None
        };
        self.checked_days.set(day, next);
        Ok(pruned)
    }

    /// The days that may be dropped, the oldest first.
    async fn list_old_days(&self, now_us: i64, before_us: i64) -> Result<Vec<Day>, StoreError> {
        const OPERATION: &str = "list days of history";
        let read = |row: &Row| Ok(Day::from_partition(TABLES[0], &column::<String>(row, 0)?));
        let days = self.list(OPERATION, LIST_DAYS, &[], read).await?;
        let is_old = |day: &Day| {
            let stays = self.checked_days.find(*day);
            let stays = matches!(stays, Some(Finding::KeepUntil(until)) if until > now_us);
            day.end_us() <= before_us && !stays
        };
        let mut old: Vec<Day> = days.into_iter().flatten().filter(is_old).collect();
        let Some(end) = old.last().map(|day| day.end_id()) else {
            return Ok(old);
        };
        let read = |row: &Row| Ok(Day::from_id(column::<i64>(row, 0)? << 32));
        let waiting = self.list(OPERATION, LIST_WAITING, &[&end], read).await?;
        for day in waiting.into_iter().flatten() {
            let finding = self.checked_days.find(day);
            if matches!(finding, Some(Finding::Sweeping(_))) || !old.contains(&day) {
                continue;
            }
            let again = Finding::KeepUntil(now_us.saturating_add(CHECK_AGAIN_US));
            let finding = day.sweep_when_overdue(before_us, again);
            self.checked_days.set(day, Some(finding));
            if matches!(finding, Finding::KeepUntil(_)) {
                old.retain(|old| *old != day);
            }
        }
        Ok(old)
    }

    /// Checks whether all messages of a day ended before a time, and what to do with the day.
    async fn check_day(
        &self,
        day: Day,
        now_us: i64,
        before_us: i64,
    ) -> Result<Finding, StoreError> {
        if let Some(known @ (Finding::Droppable(_) | Finding::Sweeping(_))) =
            self.checked_days.find(day)
        {
            return Ok(known);
        }
        let read = |row: &Row| {
            let read_rows: (i64, i64) = (column(row, 0)?, column(row, 1)?);
            let ends: (i64, bool) = (column(row, 2)?, column(row, 3)?);
            Ok((read_rows, ends))
        };
        let (mut after, end) = (day.first_id() - 1, day.end_id());
        let mut messages: u64 = 0;
        loop {
            let values: super::Values<'_> = &[&after, &end, &STEP];
            let ((count, last), (latest_us, is_open)) = self
                .get("check a day of history", READ_PAGE, values, read)
                .await?;
            if is_open {
                let again = Finding::KeepUntil(now_us.saturating_add(CHECK_AGAIN_US));
                return Ok(day.sweep_when_overdue(before_us, again));
            }
            if latest_us > before_us {
                let missing_us = latest_us.saturating_sub(before_us);
                let then = Finding::KeepUntil(now_us.saturating_add(missing_us));
                return Ok(day.sweep_when_overdue(before_us, then));
            }
            messages += count.cast_unsigned();
            if count < STEP {
                let over = Finding::Droppable(messages);
                self.checked_days.set(day, Some(over));
                return Ok(over);
            }
            after = last;
        }
    }

    /// Drops a day. `false` if its tables are in use, or a callback of the day waits again.
    async fn drop_day(&self, day: Day) -> Result<bool, StoreError> {
        let dropped = retry::run(&self.pool, "drop a day of history", &DropDay(day)).await?;
        match dropped {
            DropResult::Dropped => {
                self.known_days.forget(&[day]);
                self.checked_days.set(day, None);
            }
            DropResult::StillNeeded => self.checked_days.set(day, None),
            DropResult::Busy => {
                tracing::debug!(
                    partition = day.partition(TABLES[0]),
                    "its tables are in use; it is dropped later"
                );
            }
        }
        Ok(dropped == DropResult::Dropped)
    }
}

struct DropDay(Day);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DropResult {
    Dropped,
    StillNeeded,
    Busy,
}

impl Retryable for DropDay {
    type Output = DropResult;

    async fn run(&self, client: &mut Object) -> Result<DropResult, Fault> {
        match drop_partitions(client, self.0).await {
            Err(Fault::Database(error)) if is_busy(error.code()) => Ok(DropResult::Busy),
            outcome => outcome,
        }
    }
}

async fn drop_partitions(client: &mut Object, day: Day) -> Result<DropResult, Fault> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(SHORT_TIMEOUTS).await?;
    transaction.batch_execute(LOCK).await?;
    let bounds = (day.first_id(), day.end_id());
    let is_needed_again = transaction
        .query_one(IS_NEEDED_AGAIN, &[&bounds.0, &bounds.1])
        .await?;
    if column(&is_needed_again, 0)? {
        return Ok(DropResult::StillNeeded);
    }
    let partitions = TABLES.map(|table| day.partition(table)).join(", ");
    transaction
        .batch_execute(&format!("DROP TABLE IF EXISTS {partitions}"))
        .await?;
    transaction.commit().await?;
    Ok(DropResult::Dropped)
}

/// Whether a lock or a statement timed out.
fn is_busy(code: Option<&SqlState>) -> bool {
    code == Some(&SqlState::LOCK_NOT_AVAILABLE) || code == Some(&SqlState::QUERY_CANCELED)
}
