//! The port for counted attempts and known browsers.

use async_trait::async_trait;
use deadpool_postgres::Object;
use domain::access::attempts::{Attempts, FORGOTTEN_AFTER};
use domain::ids::PersonId;
use domain::ports::{AttemptKey, AttemptStore, StoreError};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::fault::Fault;
use super::people::bytes;
use super::retry::{self, Retryable};
use super::transaction::query;
use super::{PostgresStore, Values, column};
use crate::rows::people::{person_id, tries};
use crate::rows::{Corrupt, micros};
use crate::sql::attempts as sql;

/// Creates the row, so that the next caller waits for this transaction and then reads it.
const LOCK: &str = "
    INSERT INTO sign_in_try AS t (key, count, since_us) VALUES ($1, 0, $2)
    ON CONFLICT (key) DO UPDATE SET count = t.count RETURNING count, since_us";
const SET: &str = "UPDATE sign_in_try SET count = $2, since_us = $3 WHERE key = $1";
const LOCK_EXISTING: &str = "SELECT count, since_us FROM sign_in_try WHERE key = $1 FOR UPDATE";
const PRUNE_ATTEMPTS: &str = "
    DELETE FROM sign_in_try WHERE key = ANY(ARRAY(
        SELECT key FROM sign_in_try WHERE since_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1";
const PRUNE_BROWSERS: &str = "
    WITH old AS MATERIALIZED (
        SELECT hash, person_id FROM known_browser WHERE expires_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM known_browser AS b USING old WHERE b.hash = ANY(ARRAY[old.hash]) AND b.person_id = old.person_id
    RETURNING 1";

/// Sorted, so that two transactions that lock the same keys do not deadlock.
fn in_order(keys: &[AttemptKey]) -> Vec<AttemptKey> {
    let mut keys = keys.to_vec();
    keys.sort_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
    keys
}

struct CountAttempt {
    keys: Vec<AttemptKey>,
    now: Timestamp,
}

impl Retryable for CountAttempt {
    type Output = Result<(), u32>;

    async fn run(&self, client: &mut Object) -> Result<Self::Output, Fault> {
        let transaction = client.transaction().await?;
        let lock = transaction.prepare_cached(LOCK).await?;
        for (key, limit) in &self.keys {
            let values: Values<'_> = &[&bytes(key), &micros(self.now)];
            let row = transaction.query_one(&lock, values).await?;
            let counted = tries(column(&row, 0)?, column(&row, 1)?)?;
            match counted.begin(*limit, self.now) {
                // Dropping the transaction undoes what was counted so far.
                Err(wait_s) => return Ok(Err(wait_s)),
                Ok(Attempts { count, since }) => {
                    let values: Values<'_> = &[&bytes(key), &i64::from(count), &micros(since)];
                    query(&transaction, SET, values).await?;
                }
            }
        }
        transaction.commit().await?;
        Ok(Ok(()))
    }
}

struct UncountAttempt {
    keys: Vec<AttemptKey>,
}

impl Retryable for UncountAttempt {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let transaction = client.transaction().await?;
        let lock = transaction.prepare_cached(LOCK_EXISTING).await?;
        for (key, limit) in &self.keys {
            let Some(row) = transaction.query_opt(&lock, &[&bytes(key)]).await? else {
                continue;
            };
            match tries(column(&row, 0)?, column(&row, 1)?)?.forgive(*limit) {
                None => query(&transaction, sql::DELETE.postgres, &[&bytes(key)]).await?,
                Some(Attempts { count, since }) => {
                    let values: Values<'_> = &[&bytes(key), &i64::from(count), &micros(since)];
                    query(&transaction, SET, values).await?
                }
            };
        }
        transaction.commit().await?;
        Ok(())
    }
}

#[async_trait]
impl AttemptStore for PostgresStore {
    async fn count_attempt(
        &self,
        keys: &[AttemptKey],
        now: Timestamp,
    ) -> Result<Result<(), u32>, StoreError> {
        let keys = in_order(keys);
        retry::run(&self.pool, "count an attempt", &CountAttempt { keys, now }).await
    }

    async fn uncount_attempt(&self, keys: &[AttemptKey]) -> Result<(), StoreError> {
        let keys = in_order(keys);
        retry::run(&self.pool, "uncount an attempt", &UncountAttempt { keys }).await
    }

    async fn list_people_of_browser(
        &self,
        browser: &TokenHash,
        now: Timestamp,
    ) -> Result<Vec<PersonId>, StoreError> {
        let values: Values<'_> = &[&bytes(browser), &micros(now)];
        let read = |row: &Row| -> Result<PersonId, Corrupt> { person_id(column(row, 0)?) };
        self.list(
            "list the people of a browser",
            sql::LIST_PEOPLE_OF_BROWSER.postgres,
            values,
            read,
        )
        .await
    }

    async fn remember_browser(
        &self,
        browser: &TokenHash,
        person: PersonId,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let values: Values<'_> = &[&bytes(browser), &person.as_i64(), &micros(expires)];
        let remembered = self.query("remember a browser", sql::REMEMBER.postgres, values);
        remembered.await.map(drop)
    }

    async fn prune_attempts(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut pruned = 0;
        for (sql, before) in [
            (PRUNE_ATTEMPTS, now - FORGOTTEN_AFTER),
            (PRUNE_BROWSERS, now),
        ] {
            let values: Values<'_> = &[&micros(before), &i64::from(limit)];
            pruned += self.query("prune attempts", sql, values).await?.len();
        }
        Ok(pruned as u64)
    }
}
