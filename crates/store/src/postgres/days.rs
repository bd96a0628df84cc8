//! The days of history. A message ID contains the day on which it was reserved, and `message`, `callback` and
//! `callback_attempt` have a partition for each day, so that dropping three tables deletes a day.
//!
//! The bounds of a day follow from its date, so nodes need no agreement. The node that reserves IDs creates the
//! partitions of their day and of the next few; no row is stored without a partition. Lower IDs, from older schemas or
//! from another database, are in the partition "before".

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use deadpool_postgres::{Object, Transaction};
use domain::MessageId;
use domain::message::Submission;
use domain::ports::StoreError;
use jiff::ToSpan;
use jiff::civil::{Date, date};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::fault::Fault;
use super::retry::{self, Retryable};
use super::{PostgresStore, column};
use crate::rows;

/// The low bits of an ID, which count within a day. If a day has more IDs, they continue in the next day.
const DAY_BITS: u32 = 32;
/// Lower IDs are in the partition "before".
pub(super) const FIRST_ID: i64 = 1 << DAY_BITS;
/// Days are counted from this one. It has no IDs itself: those are in the partition "before".
const EPOCH: Date = date(2026, 1, 1);
/// [`EPOCH`], in days since 1970.
const EPOCH_DAYS: i64 = 20_454;
const DAY_US: i64 = 86_400_000_000;
/// How many days are created in advance, so that missing rights are noticed long before they matter.
const DAYS_AHEAD: i64 = 3;
/// Each row is changed once, when a message ends or its receipt arrives. With space on its page, the change needs no
/// new index entries (a heap-only tuple), and the table does not become larger than without.
pub(super) const HALF_FULL: &str = " WITH (fillfactor = 50)";
/// The partitioned tables, in the order in which they are locked.
pub(super) const TABLES: [&str; 3] = ["message", "callback", "callback_attempt"];

/// The column that a table is partitioned by.
pub(crate) fn partitioned_by(table: &str) -> Option<&'static str> {
    match table {
        "message" => Some("id"),
        _ => TABLES.contains(&table).then_some("message_id"),
    }
}

/// The next IDs: never used before, and not of an earlier day than `$2`; and the first ID of today. 20454 is [`EPOCH`]
/// in days since 1970.
const RESERVE: &str = concat!(
    "UPDATE id_block SET next = greatest(next, $2::bigint) + $1::bigint RETURNING next - $1::bigint, (",
    now_us!(),
    " / 86400000000 - 20454) << 32"
);
/// The node that creates days locks the only row of that table, so a second node finds the day.
pub(super) const LOCK_DAYS: &str = "SELECT next FROM id_block FOR UPDATE";
/// Reserving IDs must not wait long for a lock.
const SHORT_TIMEOUTS: &str = "SET LOCAL lock_timeout = '2s'";
pub(super) const TABLE_EXISTS: &str = "SELECT to_regclass($1::text) IS NOT NULL";

/// A day that has partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(i64);

impl Day {
    /// The day of an ID; `None` for IDs in the partition "before".
    pub(crate) fn from_id(id: i64) -> Option<Self> {
        (id >= FIRST_ID).then_some(Self(id >> DAY_BITS))
    }

    /// The first ID of this day.
    pub(super) fn first_id(self) -> i64 {
        self.0 << DAY_BITS
    }

    /// The first ID of the next day.
    pub(super) fn end_id(self) -> i64 {
        (self.0 + 1) << DAY_BITS
    }

    /// The day of a time in microseconds since 1970.
    pub(super) fn at(time_us: i64) -> Self {
        Self(time_us.div_euclid(DAY_US) - EPOCH_DAYS)
    }

    pub(super) fn after(self, days: i64) -> Self {
        Self(self.0 + days)
    }

    /// The start of this day, in microseconds since 1970.
    pub(super) fn start_us(self) -> i64 {
        (self.0 + EPOCH_DAYS) * DAY_US
    }

    /// The end of this day.
    pub(super) fn end_us(self) -> i64 {
        self.after(1).start_us()
    }

    /// The end of the partitions' names, such as `20261115`. The highest ID belongs to the year 7767.
    fn name(self) -> String {
        let date = EPOCH.checked_add(self.0.days()).unwrap_or(Date::MAX);
        date.strftime("%Y%m%d").to_string()
    }

    /// The name of a table's partition.
    pub(super) fn partition(self, table: &str) -> String {
        format!("{table}_{}", self.name())
    }

    /// The day of a partition of a table.
    pub(super) fn from_partition(table: &str, name: &str) -> Option<Self> {
        let name = name.strip_prefix(table)?.strip_prefix('_')?;
        let date = Date::strptime("%Y%m%d", name).ok()?;
        let days = EPOCH.until(date).ok()?.get_days();
        (days > 0).then_some(Self(days.into()))
    }

    /// Tables are created and then attached. `CREATE TABLE … PARTITION OF` would wait for all running statements, and
    /// block new ones meanwhile.
    fn create_sql(self) -> String {
        let create_sql = |table: &&str| {
            let partition = self.partition(table);
            let (first, end) = (self.first_id(), self.end_id());
            format!(
                "CREATE TABLE {partition} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS){};
                ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ({first}) TO ({end});",
                if *table == "message" { HALF_FULL } else { "" }
            )
        };
        TABLES.iter().map(create_sql).collect()
    }
}

/// The days that this process knows to have partitions.
#[derive(Default)]
pub(super) struct KnownDays {
    days: Mutex<BTreeSet<Day>>,
    /// The first ID of the latest day that has begun. Lower IDs are no longer reserved.
    begun: AtomicI64,
    /// The first ID of the latest day whose partitions this database user may not create.
    denied: AtomicI64,
}

impl KnownDays {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Day>> {
        self.days.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self, days: impl Iterator<Item = Day>) -> Vec<Day> {
        let known_days = self.lock();
        let mut missing: Vec<Day> = days.filter(|day| !known_days.contains(day)).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn add(&self, days: Vec<Day>) {
        self.lock().extend(days);
    }

    pub(super) fn forget(&self, days: &[Day]) {
        self.lock().retain(|day| !days.contains(day));
    }

    fn begun(&self) -> i64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether creating the day with this first ID was not tried yet.
    fn is_new(&self, first_id: i64) -> bool {
        first_id > self.begun().max(self.denied.load(Ordering::Relaxed))
    }
}

/// Creates missing days.
struct CreateDays<'a>(&'a [Day]);

impl Retryable for CreateDays<'_> {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let transaction = client.transaction().await?;
        transaction.batch_execute(SHORT_TIMEOUTS).await?;
        transaction.query_one(LOCK_DAYS, &[]).await?;
        create_missing(&transaction, self.0).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Creates the missing ones of these days. The caller holds the lock that keeps others from doing the same.
pub(crate) async fn create_missing(
    transaction: &Transaction<'_>,
    days: impl IntoIterator<Item = &Day>,
) -> Result<(), tokio_postgres::Error> {
    for day in days {
        let name = day.partition(TABLES[0]);
        let exists: bool = transaction
            .query_one(TABLE_EXISTS, &[&name])
            .await?
            .try_get(0)?;
        if !exists {
            transaction.batch_execute(&day.create_sql()).await?;
            tracing::debug!(partition = name, "a day of history begins");
        }
    }
    Ok(())
}

impl PostgresStore {
    /// Reserves IDs of today. If the partitions of today are missing and cannot be created, IDs continue in an earlier
    /// day, because no message may be refused for that.
    pub(super) async fn reserve(&self, count: i64) -> Result<MessageId, StoreError> {
        let (mut first, today) = self.reserve_from(count, self.known_days.begun()).await?;
        let is_begun = self.known_days.is_new(today) && self.begin_day(today).await;
        if is_begun && first.as_i64() < today {
            (first, _) = self.reserve_from(count, today).await?;
        }
        let last = first.as_i64().saturating_add(count - 1);
        let days = (first.as_i64() >> DAY_BITS).max(1)..=last >> DAY_BITS;
        self.create_days(self.known_days.missing(days.map(Day)))
            .await?;
        Ok(first)
    }

    async fn reserve_from(&self, count: i64, from: i64) -> Result<(MessageId, i64), StoreError> {
        let read = |row: &Row| Ok((rows::message_id(column(row, 0)?)?, column(row, 1)?));
        let values: super::Values<'_> = &[&count, &from];
        self.get("reserve message IDs", RESERVE, values, read).await
    }

    /// Creates the day with this first ID and the next few. Returns whether the day has begun.
    async fn begin_day(&self, first_id: i64) -> bool {
        let Some(today) = Day::from_id(first_id) else {
            return false;
        };
        if let Err(error) = self
            .create_days(self.known_days.missing([today].into_iter()))
            .await
        {
            if has_code(&error, &SqlState::INSUFFICIENT_PRIVILEGE) {
                self.known_days
                    .denied
                    .fetch_max(first_id, Ordering::Relaxed);
            }
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                partition = today.partition(TABLES[0]),
                "no partitions could be made for today; messages are stored with those of an earlier day"
            );
            return false;
        }
        self.known_days.begun.fetch_max(first_id, Ordering::Relaxed);
        let ahead = (1..=DAYS_AHEAD).map(|days| Day(today.0 + days));
        if let Err(error) = self.create_days(self.known_days.missing(ahead)).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "no partitions could be made for the next days"
            );
        }
        self.create_part_days(today.start_us()).await;
        true
    }

    async fn create_days(&self, days: Vec<Day>) -> Result<(), StoreError> {
        if !days.is_empty() {
            retry::run(&self.pool, "create partitions", &CreateDays(&days)).await?;
            self.known_days.add(days);
        }
        Ok(())
    }

    /// Stores submissions. Their days nearly always exist, because this node reserved the IDs. But the IDs may come
    /// from another database, or be so old that their day was dropped.
    pub(super) async fn store_batch<A: Retryable>(
        &self,
        operation: &'static str,
        batch: &[Submission],
        attempt: &A,
    ) -> Result<A::Output, StoreError> {
        let ids = batch.iter().flat_map(|submission| {
            let recipients = &submission.recipients;
            [recipients.first(), recipients.last()]
        });
        let days = || {
            ids.clone()
                .flatten()
                .filter_map(|to| Day::from_id(to.id.as_i64()))
        };
        self.create_days(self.known_days.missing(days())).await?;
        match retry::run(&self.pool, operation, attempt).await {
            // A row has no partition: submissions cannot violate any other check.
            Err(error) if has_code(&error, &SqlState::CHECK_VIOLATION) => {
                let days: Vec<Day> = days().collect();
                self.known_days.forget(&days);
                self.create_days(self.known_days.missing(days.into_iter()))
                    .await?;
                retry::run(&self.pool, operation, attempt).await
            }
            outcome => outcome,
        }
    }
}

/// Whether the database returned this code.
fn has_code(error: &StoreError, code: &SqlState) -> bool {
    let StoreError::Unexpected { source, .. } = error else {
        return false;
    };
    let Some(Fault::Database(error)) = source.downcast_ref::<Fault>() else {
        return false;
    };
    error.code() == Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_ids_names_and_times() {
        for (name, id, day) in [
            ("the last ID before", FIRST_ID - 1, None),
            ("the first day", FIRST_ID, Some(("20260102", 1_767_398_400))),
            (
                "its end",
                2 * FIRST_ID - 1,
                Some(("20260102", 1_767_398_400)),
            ),
            (
                "the day after",
                2 * FIRST_ID,
                Some(("20260103", 1_767_484_800)),
            ),
            (
                "a year later",
                366 * FIRST_ID,
                Some(("20270102", 1_798_934_400)),
            ),
            (
                "the highest ID",
                (1 << 53) - 1,
                Some(("77671022", 182_961_158_400)),
            ),
        ] {
            let found = Day::from_id(id).map(|day| (day.name(), day.end_us() / 1_000_000));
            assert_eq!(
                found,
                day.map(|(date, end)| (date.to_owned(), end)),
                "{name}"
            );
        }
    }

    #[test]
    fn partitions_name_their_day() {
        for (name, expected) in [
            ("message_20260102", Some(1)),
            ("message_20261115", Some(318)),
            ("message_20260101", None),
            ("message_before", None),
            ("callback_20261115", None),
            ("message_20261301", None),
        ] {
            assert_eq!(
                Day::from_partition("message", name),
                expected.map(Day),
                "{name}"
            );
        }
        for day in [1, 59, 365, 366, 100_000].map(Day) {
            let name = day.partition("transit");
            assert_eq!(Day::from_partition("transit", &name), Some(day));
            assert_eq!(
                (Day::at(day.start_us()), Day::at(day.end_us() - 1)),
                (day, day)
            );
            assert_eq!(Day::from_id(day.first_id()), Some(day));
            assert_eq!(Day::from_id(day.end_id() - 1), Some(day));
        }
    }
}
