//! The days of history. A message ID contains the day on which it was reserved, and `message`, `callback` and
//! `callback_attempt` have a partition for each day, so that dropping three tables deletes a day.
//!
//! The bounds of a day follow from its date, so nodes need no agreement. The node that reserves IDs creates the
//! partitions of their day and of the next few; no row is stored without a partition. Lower IDs, from before there were
//! days or from another database, are in the partition "before".

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

use super::attempt::{self, Attempt};
use super::fault::Fault;
use super::{PostgresStore, column};
use crate::rows;

/// How many bits of an ID tell the place within its day. More IDs than that run on into the next day's.
const DAY_BITS: u32 = 32;
/// IDs below it stand in the partition "before".
pub(super) const FIRST_ID: i64 = 1 << DAY_BITS;
/// The day from which days are counted. It has no IDs of its own, so that no day does that has none before it.
const EPOCH: Date = date(2026, 1, 1);
/// That day, in days since 1970.
const EPOCH_DAYS: i64 = 20_454;
const DAY_US: i64 = 86_400_000_000;
/// How many days are made ahead, so that a database that refuses to make tables is known long before it matters.
const AHEAD: i64 = 3;
/// What is partitioned, in the order in which locks are taken.
pub(super) const TABLES: [&str; 3] = ["message", "callback", "callback_attempt"];

/// By which column of a table its rows are of a day.
pub(super) fn partitioned_by(table: &str) -> Option<&'static str> {
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
pub(super) const ONE_AT_A_TIME: &str = "SELECT next FROM id_block FOR UPDATE";
/// Reserving IDs must not wait long for a lock.
const BE_BRIEF: &str = "SET LOCAL lock_timeout = '2s'";
pub(super) const IS_THERE: &str = "SELECT to_regclass($1::text) IS NOT NULL";

/// A day that has partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(i64);

impl Day {
    /// The day of an ID; `None` before the first.
    pub(super) fn from_id(id: i64) -> Option<Self> {
        (id >= FIRST_ID).then_some(Self(id >> DAY_BITS))
    }

    /// The first ID of this day.
    pub(super) fn first_id(self) -> i64 {
        self.0 << DAY_BITS
    }

    /// The first ID that is of a later day.
    pub(super) fn end_id(self) -> i64 {
        (self.0 + 1) << DAY_BITS
    }

    /// The day of a time in microseconds since 1970.
    pub(super) fn at(time_us: i64) -> Self {
        Self(time_us.div_euclid(DAY_US) - EPOCH_DAYS)
    }

    /// So many days later.
    pub(super) fn after(self, days: i64) -> Self {
        Self(self.0 + days)
    }

    /// When this day begins, in microseconds since 1970.
    pub(super) fn start_us(self) -> i64 {
        (self.0 + EPOCH_DAYS) * DAY_US
    }

    /// The end of this day.
    pub(super) fn end_us(self) -> i64 {
        self.after(1).start_us()
    }

    /// Such as `20261115`: by it the names of the partitions end. The highest ID is of the year 7768.
    fn name(self) -> String {
        let date = EPOCH.checked_add(self.0.days()).unwrap_or(Date::MAX);
        date.strftime("%Y%m%d").to_string()
    }

    /// What the partition of a table is called.
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

    /// Attached, not created as partitions: that would wait for every statement under way, and all others for it.
    fn make(self) -> String {
        let make = |table: &&str| {
            let partition = self.partition(table);
            let (first, end) = (self.first_id(), self.end_id());
            format!(
                "CREATE TABLE {partition} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
                ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ({first}) TO ({end});"
            )
        };
        TABLES.iter().map(make).collect()
    }
}

/// The days that this process knows to have partitions.
#[derive(Default)]
pub(super) struct Made {
    days: Mutex<BTreeSet<Day>>,
    /// The first ID of the latest day that has begun: lower ones are not reserved any more.
    begun: AtomicI64,
    /// That of the latest day for which this role may make nothing.
    denied: AtomicI64,
}

impl Made {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Day>> {
        self.days.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self, days: impl Iterator<Item = Day>) -> Vec<Day> {
        let made = self.lock();
        let mut missing: Vec<Day> = days.filter(|day| !made.contains(day)).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn note(&self, days: Vec<Day>) {
        self.lock().extend(days);
    }

    pub(super) fn forget(&self, days: &[Day]) {
        self.lock().retain(|day| !days.contains(day));
    }

    fn begun(&self) -> i64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether nothing was tried yet for the day of a first ID.
    fn is_new(&self, first_id: i64) -> bool {
        first_id > self.begun().max(self.denied.load(Ordering::Relaxed))
    }
}

/// Creates missing days.
struct Make<'a>(&'a [Day]);

impl Attempt for Make<'_> {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let transaction = client.transaction().await?;
        transaction.batch_execute(BE_BRIEF).await?;
        transaction.query_one(ONE_AT_A_TIME, &[]).await?;
        make_missing(&transaction, self.0).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Makes those of some days that are not there, while nobody else does.
pub(super) async fn make_missing(
    transaction: &Transaction<'_>,
    days: impl IntoIterator<Item = &Day>,
) -> Result<(), tokio_postgres::Error> {
    for day in days {
        let name = day.partition(TABLES[0]);
        let is_there: bool = transaction
            .query_one(IS_THERE, &[&name])
            .await?
            .try_get(0)?;
        if !is_there {
            transaction.batch_execute(&day.make()).await?;
            tracing::debug!(partition = name, "a day of history begins");
        }
    }
    Ok(())
}

impl PostgresStore {
    /// Reserves IDs of today. If the partitions of today are missing and cannot be created, IDs continue in an earlier
    /// day, because no message may be refused for that.
    pub(super) async fn reserve(&self, count: i64) -> Result<MessageId, StoreError> {
        let (mut first, today) = self.reserve_from(count, self.made.begun()).await?;
        let is_begun = self.made.is_new(today) && self.begin(today).await;
        if is_begun && first.as_i64() < today {
            (first, _) = self.reserve_from(count, today).await?;
        }
        let last = first.as_i64().saturating_add(count - 1);
        let days = (first.as_i64() >> DAY_BITS).max(1)..=last >> DAY_BITS;
        self.make_days(self.made.missing(days.map(Day))).await?;
        Ok(first)
    }

    async fn reserve_from(&self, count: i64, from: i64) -> Result<(MessageId, i64), StoreError> {
        let read = |row: &Row| Ok((rows::message_id(column(row, 0)?)?, column(row, 1)?));
        let values: super::Values<'_> = &[&count, &from];
        self.get("reserve message IDs", RESERVE, values, read).await
    }

    /// Makes the day of a first ID and the next few; says whether it has begun.
    async fn begin(&self, first_id: i64) -> bool {
        let Some(today) = Day::from_id(first_id) else {
            return false;
        };
        if let Err(error) = self.make_days(self.made.missing([today].into_iter())).await {
            if is(&error, &SqlState::INSUFFICIENT_PRIVILEGE) {
                self.made.denied.fetch_max(first_id, Ordering::Relaxed);
            }
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                partition = today.partition(TABLES[0]),
                "no partitions could be made for today; messages are stored with those of an earlier day"
            );
            return false;
        }
        self.made.begun.fetch_max(first_id, Ordering::Relaxed);
        let ahead = (1..=AHEAD).map(|days| Day(today.0 + days));
        if let Err(error) = self.make_days(self.made.missing(ahead)).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "no partitions could be made for the next days"
            );
        }
        self.make_part_days(today.start_us()).await;
        true
    }

    async fn make_days(&self, days: Vec<Day>) -> Result<(), StoreError> {
        if !days.is_empty() {
            attempt::run(&self.pool, "make partitions", &Make(&days)).await?;
            self.made.note(days);
        }
        Ok(())
    }

    /// Stores submissions. Their days nearly always exist, because this node reserved the IDs. But IDs may be of
    /// another database, or so old that their day was dropped.
    pub(super) async fn store_by<A: Attempt>(
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
        self.make_days(self.made.missing(days())).await?;
        match attempt::run(&self.pool, operation, attempt).await {
            // A row without a partition: the only check that rows of a submission can fail.
            Err(error) if is(&error, &SqlState::CHECK_VIOLATION) => {
                let days: Vec<Day> = days().collect();
                self.made.forget(&days);
                self.make_days(self.made.missing(days.into_iter())).await?;
                attempt::run(&self.pool, operation, attempt).await
            }
            outcome => outcome,
        }
    }
}

/// Whether the database refused with this code.
fn is(error: &StoreError, code: &SqlState) -> bool {
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
