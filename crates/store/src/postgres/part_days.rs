//! The days of `transit`: a partition for each day on which carriers took parts (UTC), so that dropping a table deletes
//! a day.
//!
//! Days are created in advance. Rows of a day without a partition are stored in the default partition, so nothing
//! fails. Rows of that partition, of "before", and of days that this role may not drop are deleted in steps.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use deadpool_postgres::Object;
use domain::ports::StoreError;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::days::{self, Day};
use super::fault::Fault;
use super::retry::{self, Retryable};
use super::{PostgresStore, column};

const TABLE: &str = "transit";
/// Partitions that do not belong to a day.
const OTHER_PARTITIONS: [&str; 2] = ["transit_before", "transit_default"];
/// How many days are created in advance.
const DAYS_AHEAD: i64 = 3;
/// Time after which deleting rows of a table starts again at the oldest.
const RESTART_AFTER_US: i64 = 600_000_000;
/// Time after which a day that could not be dropped is checked again.
const CHECK_AGAIN_US: i64 = 600_000_000;

const NOW: &str = concat!("SELECT ", now_us!());
const LIST_DAYS: &str = "
    SELECT CAST(c.relname AS text) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'transit'::regclass ORDER BY c.relname";
const FIND_END_OF_BEFORE: &str = "
    SELECT CAST(substring(pg_get_expr(relpartbound, oid) FROM 'TO \\(''?(\\d+)') AS BIGINT)
    FROM pg_class WHERE oid = to_regclass('transit_before')";
/// The lock blocks all others while it is waited for and while it is held.
const SHORT_TIMEOUTS: &str = "
    SET LOCAL lock_timeout = '200ms'; SET LOCAL statement_timeout = '500ms'; SET LOCAL enable_seqscan = on";
const LOCK: &str = "LOCK TABLE ONLY transit IN ACCESS EXCLUSIVE MODE";
const PRUNE_EARLY: &str = "
    WITH old AS MATERIALIZED (
        SELECT carrier, reference, tail FROM early_receipt WHERE taken_us <= $1
        ORDER BY taken_us LIMIT $2 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM early_receipt AS e USING old
        WHERE e.carrier = ANY(ARRAY[old.carrier]) AND e.reference = old.reference AND e.tail = old.tail RETURNING 1
    )
    SELECT count(*) FROM pruned";

/// What this process knows about the days.
#[derive(Default)]
pub(super) struct PartDays {
    /// Days that have a partition, or cannot get one.
    created: Mutex<BTreeSet<Day>>,
    /// Days that could not be dropped, with the time of the next check.
    waiting: Mutex<BTreeMap<Day, i64>>,
    /// Days that this role may not drop.
    denied: Mutex<BTreeSet<Day>>,
    /// Where deleting rows continues, and when it starts again. Deleted rows stay in the index until the next vacuum,
    /// so not every step starts at the oldest.
    floors: Mutex<HashMap<String, (i64, i64)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PostgresStore {
    /// Creates the missing partitions of the day of a time and of the next few. Without them, rows go to the default
    /// partition.
    pub(super) async fn create_part_days(&self, now_us: i64) {
        let today = Day::at(now_us);
        let created = {
            let mut created = lock(&self.parts.created);
            created.retain(|day| *day >= today);
            created.clone()
        };
        let days = (0..=DAYS_AHEAD).map(|ahead| today.after(ahead));
        for day in days.filter(|day| !created.contains(day)) {
            match retry::run(&self.pool, "create a partition of parts", &CreateDay(day)).await {
                Ok(CreateResult::Exists) => {}
                Ok(CreateResult::Busy) => return,
                Ok(CreateResult::Impossible) => {
                    tracing::warn!(
                        partition = day.partition(TABLE),
                        "no partition could be made: this database user may not create it, or parts of that day are \
                         stored already; they are deleted row by row"
                    );
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "partitions of parts are created later");
                    return;
                }
            }
            lock(&self.parts.created).insert(day);
        }
    }

    /// Deletes unmatched receipts and finished parts, at most `limit`, and whole days of parts.
    pub(super) async fn prune_old_receipts(
        &self,
        age_us: i64,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let read = |row: &Row| column(row, 0);
        let now_us: i64 = self.get("prune receipts", NOW, &[], read).await?;
        self.create_part_days(now_us).await;
        let before_us = now_us.saturating_sub(age_us);
        let limit = i64::from(limit);
        let values: super::Values<'_> = &[&before_us, &limit];
        let mut pruned: i64 = self
            .get("prune receipts", PRUNE_EARLY, values, read)
            .await?;
        for table in OTHER_PARTITIONS {
            let rows = Rows::from_table(table, before_us);
            pruned += self.prune_rows(rows, limit - pruned, now_us).await?;
        }
        for day in self.list_old_part_days(now_us, before_us).await? {
            if lock(&self.parts.denied).contains(&day) {
                pruned += self
                    .prune_rows(Rows::from_day(day), limit - pruned, now_us)
                    .await?;
                continue;
            }
            match retry::run(&self.pool, "drop a day of parts", &DropDay(day)).await? {
                DropResult::Dropped => {
                    let partition = day.partition(TABLE);
                    tracing::info!(partition, "a day of parts was deleted");
                    pruned += 1;
                }
                DropResult::StillNeeded => {
                    let again_us = now_us.saturating_add(CHECK_AGAIN_US);
                    lock(&self.parts.waiting).insert(day, again_us);
                }
                DropResult::Busy => {}
                DropResult::Denied => {
                    let partition = day.partition(TABLE);
                    tracing::warn!(
                        partition,
                        "this database user may not drop it; its rows are deleted one by one"
                    );
                    lock(&self.parts.denied).insert(day);
                }
            }
        }
        Ok(pruned.cast_unsigned())
    }

    /// The days that ended before a time and may be dropped, as far as is known.
    async fn list_old_part_days(
        &self,
        now_us: i64,
        before_us: i64,
    ) -> Result<Vec<Day>, StoreError> {
        let read = |row: &Row| Ok(Day::from_partition(TABLE, &column::<String>(row, 0)?));
        let days = self
            .list("list days of parts", LIST_DAYS, &[], read)
            .await?;
        let mut waiting = lock(&self.parts.waiting);
        waiting.retain(|_, again_us| *again_us > now_us);
        let is_old = |day: &Day| day.end_us() <= before_us && !waiting.contains_key(day);
        Ok(days.into_iter().flatten().filter(is_old).collect())
    }

    async fn prune_rows(&self, rows: Rows, limit: i64, now_us: i64) -> Result<i64, StoreError> {
        if limit <= 0 {
            return Ok(0);
        }
        let (floor, again_us) = *lock(&self.parts.floors)
            .entry(rows.name.clone())
            .or_insert((i64::MIN, now_us.saturating_add(RESTART_AFTER_US)));
        let prune = PruneRows { rows, floor, limit };
        let (pruned, last) = retry::run(&self.pool, "prune parts", &prune).await?;
        // Restarts at the oldest row from time to time, because parts may have been reported on since.
        let next = if now_us >= again_us {
            (i64::MIN, now_us.saturating_add(RESTART_AFTER_US))
        } else {
            (last.unwrap_or(floor), again_us)
        };
        lock(&self.parts.floors).insert(prune.rows.name, next);
        Ok(pruned)
    }
}

struct CreateDay(Day);

enum CreateResult {
    Exists,
    /// Other transactions use the table now.
    Busy,
    Impossible,
}

impl Retryable for CreateDay {
    type Output = CreateResult;

    async fn run(&self, client: &mut Object) -> Result<CreateResult, Fault> {
        match create(client, self.0).await {
            Err(Fault::Database(error)) if is_busy(error.code()) => Ok(CreateResult::Busy),
            // A check violation means that the default partition has rows of that day.
            Err(Fault::Database(error))
                if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
                    || error.code() == Some(&SqlState::CHECK_VIOLATION) =>
            {
                Ok(CreateResult::Impossible)
            }
            Err(fault) => Err(fault),
            Ok(()) => Ok(CreateResult::Exists),
        }
    }
}

/// The table is created and then attached. `CREATE TABLE … PARTITION OF` would wait for all running statements, also on
/// other partitions.
async fn create(client: &mut Object, day: Day) -> Result<(), Fault> {
    let name = day.partition(TABLE);
    let exists = client.query_one(days::TABLE_EXISTS, &[&name]).await?;
    let before_ends = client.query_opt(FIND_END_OF_BEFORE, &[]).await?;
    let before_ends: Option<i64> = before_ends.map(|row| column(&row, 0)).transpose()?;
    if column(&exists, 0)? || before_ends.is_some_and(|end_us| day.start_us() < end_us) {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(SHORT_TIMEOUTS).await?;
    transaction.query_one(days::LOCK_DAYS, &[]).await?;
    let exists = transaction.query_one(days::TABLE_EXISTS, &[&name]).await?;
    if column(&exists, 0)? {
        return Ok(());
    }
    let (first, end) = (day.start_us(), day.end_us());
    let create = format!(
        "CREATE TABLE {name} (LIKE {TABLE} INCLUDING DEFAULTS INCLUDING CONSTRAINTS){};
        ALTER TABLE {TABLE} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({end})",
        days::HALF_FULL
    );
    transaction.batch_execute(&create).await?;
    transaction.commit().await?;
    tracing::debug!(partition = name, "a day of parts begins");
    Ok(())
}

struct DropDay(Day);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DropResult {
    Dropped,
    StillNeeded,
    Busy,
    Denied,
}

impl Retryable for DropDay {
    type Output = DropResult;

    async fn run(&self, client: &mut Object) -> Result<DropResult, Fault> {
        match drop_partition(client, self.0).await {
            Err(Fault::Database(error)) if is_busy(error.code()) => Ok(DropResult::Busy),
            Err(Fault::Database(error))
                if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) =>
            {
                Ok(DropResult::Denied)
            }
            outcome => outcome,
        }
    }
}

async fn drop_partition(client: &mut Object, day: Day) -> Result<DropResult, Fault> {
    let partition = day.partition(TABLE);
    // Every message that waits for a receipt has a row in the queue; the IDs of a day are between its lowest and
    // highest. Nothing is added to a past day, so this is not checked again under the lock.
    let is_needed = format!(
        "SELECT EXISTS (
            SELECT 1 FROM (SELECT min(id) AS lowest, max(id) AS highest FROM {partition}) AS b
            JOIN queue AS q ON q.owner = -1 AND q.lane = 0 AND q.id BETWEEN b.lowest AND b.highest
            WHERE EXISTS (SELECT 1 FROM {partition} AS t WHERE t.id = q.id AND t.status IS NULL))"
    );
    let is_needed = client.query_one(&is_needed, &[]).await?;
    if column(&is_needed, 0)? {
        return Ok(DropResult::StillNeeded);
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(SHORT_TIMEOUTS).await?;
    transaction.batch_execute(LOCK).await?;
    let drop = format!("DROP TABLE IF EXISTS {partition}");
    transaction.batch_execute(&drop).await?;
    transaction.commit().await?;
    Ok(DropResult::Dropped)
}

/// Whether a lock or a statement timed out.
fn is_busy(code: Option<&SqlState>) -> bool {
    code == Some(&SqlState::LOCK_NOT_AVAILABLE) || code == Some(&SqlState::QUERY_CANCELED)
}

/// Rows that are deleted in steps.
struct Rows {
    name: String,
    table: &'static str,
    /// An indexed column that orders the rows.
    order: &'static str,
    from_us: i64,
    before_us: i64,
}

impl Rows {
    /// The rows of a partition that does not belong to a day.
    fn from_table(table: &'static str, before_us: i64) -> Self {
        Self {
            name: table.to_owned(),
            table,
            order: "taken_us",
            from_us: i64::MIN,
            before_us,
        }
    }

    fn from_day(day: Day) -> Self {
        Self {
            name: day.partition(TABLE),
            table: TABLE,
            order: "id",
            from_us: day.start_us(),
            before_us: day.end_us() - 1,
        }
    }
}

/// Deletes some rows. A part without a receipt stays as long as its message waits for one.
struct PruneRows {
    rows: Rows,
    floor: i64,
    limit: i64,
}

impl Retryable for PruneRows {
    /// The number of deleted rows, and where the next step continues.
    type Output = (i64, Option<i64>);

    async fn run(&self, client: &mut Object) -> Result<Self::Output, Fault> {
        let Rows { table, order, .. } = self.rows;
        let sql = format!(
            "WITH pruned AS (
                DELETE FROM {table} AS d USING (
                    SELECT t.carrier, t.reference, t.taken_us, t.id FROM {table} AS t
                    WHERE t.taken_us >= $1 AND t.taken_us <= $2 AND t.{order} >= $3 AND (t.status IS NOT NULL
                        OR NOT EXISTS (SELECT 1 FROM message WHERE message.id = t.id AND message.final_us IS NULL))
                    ORDER BY t.{order} LIMIT $4 FOR UPDATE OF t SKIP LOCKED
                ) AS o
                WHERE d.carrier = ANY(ARRAY[o.carrier]) AND d.reference = o.reference
                    AND d.taken_us = ANY(ARRAY[o.taken_us]) AND d.id = ANY(ARRAY[o.id])
                RETURNING d.{order} AS place
            )
            SELECT count(*), max(place) FROM pruned"
        );
        let statement = client.prepare_cached(&sql).await?;
        let (from_us, before_us) = (self.rows.from_us, self.rows.before_us);
        let values: super::Values<'_> = &[&from_us, &before_us, &self.floor, &self.limit];
        let row = client.query_one(&statement, values).await?;
        Ok((column(&row, 0)?, column(&row, 1)?))
    }
}
