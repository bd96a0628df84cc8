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

use super::attempt::{self, Attempt};
use super::days::{Day, TABLES};
use super::fault::Fault;
use super::{PostgresStore, column};
use crate::rows::sweep::Sweep;

const LIST_DAYS: &str = "
    SELECT CAST(c.relname AS text) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'message'::regclass ORDER BY c.relname";
/// Every message that has not ended has a row in the one queue, every report that waits in the other.
const LIST_WAITING: &str = "
    SELECT id >> 32 FROM queue WHERE id < $1 UNION SELECT message_id >> 32 FROM callback_queue WHERE message_id < $1";
const WALK: &str = "
    SELECT count(*), coalesce(max(m.id), 0), coalesce(max(m.final_us), 0), coalesce(bool_or(m.final_us IS NULL), FALSE)
    FROM (SELECT id, final_us FROM message WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3) AS m";
/// The number of rows that one statement reads.
const STEP: i64 = 20_000;
/// How many days are dropped in one go.
const DAYS: usize = 8;
/// Time after which a day with unfinished messages is checked again.
const LOOK_AGAIN_US: i64 = 600_000_000;
/// How long the rows of a day wait for a drop. Nearly every day can be dropped within this time, because no message
/// that is sent at once lives longer than five days.
const WAIT_FOR_DROP_US: i64 = 7 * 86_400_000_000;

/// Others cannot use the tables while this lock is waited for or held. If a long read delays it, the drop is tried
/// again later.
const BE_BRIEF: &str = "
    SET LOCAL lock_timeout = '200ms'; SET LOCAL statement_timeout = '500ms'; SET LOCAL enable_seqscan = on";
const LOCK: &str =
    "LOCK TABLE ONLY message, ONLY callback, ONLY callback_attempt IN ACCESS EXCLUSIVE MODE";
/// Someone may have replayed a callback of the day since it was checked.
const WAITS_AGAIN: &str = "
    SELECT EXISTS (SELECT 1 FROM callback_queue WHERE message_id >= $1 AND message_id < $2)
        OR EXISTS (SELECT 1 FROM queue WHERE id >= $1 AND id < $2)";

/// The results for days that were checked.
#[derive(Default)]
pub(super) struct CheckedDays(Mutex<BTreeMap<Day, Finding>>);

#[derive(Debug, Clone, Copy)]
enum Finding {
    /// It may be dropped; the number is that of its messages.
    Over(u64),
    /// It must stay at least until this time.
    StaysUntil(i64),
    /// Some messages are unfinished; the other rows are deleted one by one.
    Sweeping(Sweep),
}

impl CheckedDays {
    fn find(&self, day: Day) -> Option<Finding> {
        let looked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looked.get(&day).copied()
    }

    fn note(&self, day: Day, finding: Option<Finding>) {
        let mut looked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match finding {
            Some(finding) => looked.insert(day, finding),
            None => looked.remove(&day),
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
    /// Drops a few days of which everything ended before a time, and returns how many messages they had. Deletes up to
    /// `limit` messages of days that cannot be dropped.
    pub(super) async fn forget_days(
        &self,
        now_us: i64,
        before_us: i64,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let old = self.list_old_days(now_us, before_us).await?;
        let mut forgotten = 0;
        for day in old.into_iter().take(DAYS) {
            match self.look_at_day(day, now_us, before_us).await? {
                Finding::Over(messages) => {
                    if self.drop_day(day).await? {
                        tracing::info!(
                            partition = day.partition(TABLES[0]),
                            messages,
                            "a day of history was forgotten"
                        );
                        forgotten += messages.max(1);
                    }
                }
                stays @ Finding::StaysUntil(_) => self.looked.note(day, Some(stays)),
                Finding::Sweeping(sweep) => {
                    forgotten += self
                        .sweep_day(day, sweep, (now_us, before_us), limit)
                        .await?;
                }
            }
        }
        Ok(forgotten)
    }

    /// Goes on deleting the rows of a day that nothing waits for.
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
            let pause_us = sweep.pause_us().max(LOOK_AGAIN_US);
            Some(Finding::StaysUntil(now_us.saturating_add(pause_us)))
        } else {
            None
        };
        self.looked.note(day, next);
        Ok(pruned)
    }

    /// The days that may be over, the oldest first.
    async fn list_old_days(&self, now_us: i64, before_us: i64) -> Result<Vec<Day>, StoreError> {
        const OPERATION: &str = "list days of history";
        let read = |row: &Row| Ok(Day::from_partition(TABLES[0], &column::<String>(row, 0)?));
        let days = self.list(OPERATION, LIST_DAYS, &[], read).await?;
        let is_old = |day: &Day| {
            let stays = self.looked.find(*day);
            let stays = matches!(stays, Some(Finding::StaysUntil(until)) if until > now_us);
            day.end_us() <= before_us && !stays
        };
        let mut old: Vec<Day> = days.into_iter().flatten().filter(is_old).collect();
        let Some(end) = old.last().map(|day| day.end_id()) else {
            return Ok(old);
        };
        let read = |row: &Row| Ok(Day::from_id(column::<i64>(row, 0)? << 32));
        let waiting = self.list(OPERATION, LIST_WAITING, &[&end], read).await?;
        for day in waiting.into_iter().flatten() {
            let finding = self.looked.find(day);
            if matches!(finding, Some(Finding::Sweeping(_))) || !old.contains(&day) {
                continue;
            }
            let again = Finding::StaysUntil(now_us.saturating_add(LOOK_AGAIN_US));
            let finding = day.sweep_when_overdue(before_us, again);
            self.looked.note(day, Some(finding));
            if matches!(finding, Finding::StaysUntil(_)) {
                old.retain(|old| *old != day);
            }
        }
        Ok(old)
    }

    /// Whether all messages of a day ended before a time, or what else is to be done with it.
    async fn look_at_day(
        &self,
        day: Day,
        now_us: i64,
        before_us: i64,
    ) -> Result<Finding, StoreError> {
        if let Some(known @ (Finding::Over(_) | Finding::Sweeping(_))) = self.looked.find(day) {
            return Ok(known);
        }
        let read = |row: &Row| {
            let walked: (i64, i64) = (column(row, 0)?, column(row, 1)?);
            let ends: (i64, bool) = (column(row, 2)?, column(row, 3)?);
            Ok((walked, ends))
        };
        let (mut after, end) = (day.first_id() - 1, day.end_id());
        let mut messages: u64 = 0;
        loop {
            let values: super::Values<'_> = &[&after, &end, &STEP];
            let ((count, last), (latest_us, is_open)) = self
                .get("look at a day of history", WALK, values, read)
                .await?;
            if is_open {
                let again = Finding::StaysUntil(now_us.saturating_add(LOOK_AGAIN_US));
                return Ok(day.sweep_when_overdue(before_us, again));
            }
            if latest_us > before_us {
                let missing_us = latest_us.saturating_sub(before_us);
                let then = Finding::StaysUntil(now_us.saturating_add(missing_us));
                return Ok(day.sweep_when_overdue(before_us, then));
            }
            messages += count.cast_unsigned();
            if count < STEP {
                let over = Finding::Over(messages);
                self.looked.note(day, Some(over));
                return Ok(over);
            }
            after = last;
        }
    }

    /// Whether the day is gone: not when somebody else needs its tables now, or waits for a report again.
    async fn drop_day(&self, day: Day) -> Result<bool, StoreError> {
        let dropped = attempt::run(&self.pool, "drop a day of history", &Drop(day)).await?;
        match dropped {
            Dropped::Gone => {
                self.made.forget(&[day]);
                self.looked.note(day, None);
            }
            Dropped::WaitsAgain => self.looked.note(day, None),
            Dropped::NotNow => {
                tracing::debug!(
                    partition = day.partition(TABLES[0]),
                    "its tables are in use; it goes later"
                );
            }
        }
        Ok(dropped == Dropped::Gone)
    }
}

/// The end of a day's partitions.
struct Drop(Day);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dropped {
    Gone,
    WaitsAgain,
    NotNow,
}

impl Attempt for Drop {
    type Output = Dropped;

    async fn run(&self, client: &mut Object) -> Result<Dropped, Fault> {
        match drop_partitions(client, self.0).await {
            Err(Fault::Database(error)) if is_busy(error.code()) => Ok(Dropped::NotNow),
            outcome => outcome,
        }
    }
}

async fn drop_partitions(client: &mut Object, day: Day) -> Result<Dropped, Fault> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(BE_BRIEF).await?;
    transaction.batch_execute(LOCK).await?;
    let bounds = (day.first_id(), day.end_id());
    let waits_again = transaction
        .query_one(WAITS_AGAIN, &[&bounds.0, &bounds.1])
        .await?;
    if column(&waits_again, 0)? {
        return Ok(Dropped::WaitsAgain);
    }
    let partitions = TABLES.map(|table| day.partition(table)).join(", ");
    transaction
        .batch_execute(&format!("DROP TABLE IF EXISTS {partitions}"))
        .await?;
    transaction.commit().await?;
    Ok(Dropped::Gone)
}

/// Whether a lock was not to be had in time, or what it was for took too long.
fn is_busy(code: Option<&SqlState>) -> bool {
    code == Some(&SqlState::LOCK_NOT_AVAILABLE) || code == Some(&SqlState::QUERY_CANCELED)
}
