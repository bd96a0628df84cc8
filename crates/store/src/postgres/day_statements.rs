//! Statements that name the partitions of one day.
//!
//! A statement that changes a partitioned table prepares all of its partitions, however few rows it changes: with
//! months of history, that costs more than the change. Nearly all messages in progress are of the last two days, so
//! their partitions are named in the statement.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::Values;
use super::days::{Day, TABLES};
use super::fault::{Fault, SerializationConflict};

/// Which days are named.
#[derive(Default)]
pub(super) struct DayStatements {
    /// The latest day of any message so far. It and the day before are named, so that a connection has few statements.
    latest: AtomicI64,
    /// Days whose partitions do not exist, or may be used only through the partitioned table.
    unnamed: Mutex<BTreeSet<Day>>,
}

impl DayStatements {
    fn unnamed(&self) -> MutexGuard<'_, BTreeSet<Day>> {
        self.unnamed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The day to name in a statement about a message; `None` for the partitioned tables.
    pub(super) fn day(&self, message_id: i64) -> Option<Day> {
        let day = Day::from_id(message_id)?;
        let latest = self.latest.fetch_max(day.first_id(), Ordering::Relaxed);
        (day.after(1).first_id() >= latest && self.is_named(day)).then_some(day)
    }

    /// Whether the partitions of a day can be named.
    pub(super) fn is_named(&self, day: Day) -> bool {
        !self.unnamed().contains(&day)
    }

    /// Runs a statement in which `{message}`, `{callback}` and `{callback_attempt}` stand for the tables.
    pub(super) async fn query(
        &self,
        client: &impl GenericClient,
        sql: &str,
        day: Option<Day>,
        values: Values<'_>,
    ) -> Result<Vec<Row>, Fault> {
        let sql = name_tables(sql, day);
        let queried = async {
            let statement = client.prepare_cached(&sql).await?;
            client.query(&statement, values).await
        };
        queried.await.map_err(|error| match day {
            Some(day) if is_missing_or_denied(error.code()) => {
                self.unnamed().insert(day);
                SerializationConflict.into()
            }
            _ => error.into(),
        })
    }
}

fn name_tables(sql: &str, day: Option<Day>) -> Cow<'_, str> {
    let mut named = Cow::Borrowed(sql);
    for table in TABLES {
        let name = day.map_or_else(|| table.to_owned(), |day| day.partition(table));
        named = named.replace(&format!("{{{table}}}"), &name).into();
    }
    named
}

fn is_missing_or_denied(code: Option<&SqlState>) -> bool {
    code == Some(&SqlState::UNDEFINED_TABLE) || code == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 1 << 32;

    #[test]
    fn the_last_two_days_are_named() {
        let statements = DayStatements::default();
        assert_eq!(statements.day(7), None, "the partition \"before\"");
        for day in [300, 299, 301] {
            assert_eq!(statements.day(day * DAY + 5), Day::from_id(day * DAY));
        }
        assert_eq!(statements.day(299 * DAY), None, "it is older now");
        statements.unnamed().extend(Day::from_id(301 * DAY));
        assert_eq!(statements.day(301 * DAY), None);
    }

    #[test]
    fn each_table_gets_its_name() {
        let sql = "UPDATE {message}; INSERT INTO {callback} SELECT; {callback_attempt}";
        let parent = "UPDATE message; INSERT INTO callback SELECT; callback_attempt";
        assert_eq!(name_tables(sql, None), parent);
        let named = "UPDATE message_20260102; INSERT INTO callback_20260102 SELECT; callback_attempt_20260102";
        assert_eq!(name_tables(sql, Day::from_id(DAY)), named);
    }
}
