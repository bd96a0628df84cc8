//! The port for counted attempts and known browsers.

use async_trait::async_trait;
use domain::access::attempts::{Attempts, FORGOTTEN_AFTER};
use domain::ids::PersonId;
use domain::ports::{AttemptKey, AttemptStore, StoreError};
use domain::{Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::SqliteStore;
use crate::rows::micros;
use crate::rows::people::{person_id, tries};
use crate::sql::attempts as sql;

const FIND: &str = "SELECT count, since_us FROM sign_in_try WHERE key = ?1";
const SET: &str = "
    INSERT INTO sign_in_try (key, count, since_us) VALUES (?1, ?2, ?3)
    ON CONFLICT (key) DO UPDATE SET count = ?2, since_us = ?3";
const PRUNE_ATTEMPTS: &str = "
    DELETE FROM sign_in_try WHERE key IN (SELECT key FROM sign_in_try WHERE since_us <= ?1 LIMIT ?2)";
const PRUNE_BROWSERS: &str = "
    DELETE FROM known_browser WHERE (hash, person_id) IN
        (SELECT hash, person_id FROM known_browser WHERE expires_us <= ?1 LIMIT ?2)";

fn find(db: &Connection, key: &TokenHash) -> Result<Option<Attempts>> {
    db.prepare_cached(FIND)?
        .query_row([key.as_bytes()], |row| Ok(tries(row.get(0)?, row.get(1)?)?))
        .optional()
}

fn set(db: &Connection, key: &TokenHash, tries: Attempts) -> Result<()> {
    let values = params![key.as_bytes(), tries.count, micros(tries.since)];
    db.prepare_cached(SET)?.execute(values).map(drop)
}

fn count_attempt(db: &Connection, keys: &[AttemptKey], now: Timestamp) -> Result<Result<(), u32>> {
    let mut counted_keys = Vec::with_capacity(keys.len());
    for (key, limit) in keys {
        let counted = find(db, key)?.unwrap_or(Attempts::none(now));
        match counted.begin(*limit, now) {
            Ok(tries) => counted_keys.push((key, tries)),
            Err(wait_s) => return Ok(Err(wait_s)),
        }
    }
    for (key, tries) in counted_keys {
        set(db, key, tries)?;
    }
    Ok(Ok(()))
}

fn uncount_attempt(db: &Connection, keys: &[AttemptKey]) -> Result<()> {
    for (key, limit) in keys {
        let Some(counted) = find(db, key)? else {
            continue;
        };
        match counted.forgive(*limit) {
            Some(tries) => set(db, key, tries)?,
            None => {
                db.prepare_cached(sql::DELETE.sqlite)?
                    .execute([key.as_bytes()])?;
            }
        }
    }
    Ok(())
}

#[async_trait]
impl AttemptStore for SqliteStore {
    async fn count_attempt(
        &self,
        keys: &[AttemptKey],
        now: Timestamp,
    ) -> Result<Result<(), u32>, StoreError> {
        let keys = keys.to_vec();
        self.write("count an attempt", move |db| count_attempt(db, &keys, now))
            .await
    }

    async fn uncount_attempt(&self, keys: &[AttemptKey]) -> Result<(), StoreError> {
        let keys = keys.to_vec();
        self.write("uncount an attempt", move |db| uncount_attempt(db, &keys))
            .await
    }

    async fn list_people_of_browser(
        &self,
        browser: &TokenHash,
        now: Timestamp,
    ) -> Result<Vec<PersonId>, StoreError> {
        let browser = *browser;
        self.read("list the people of a browser", move |db| {
            db.prepare_cached(sql::LIST_PEOPLE_OF_BROWSER.sqlite)?
                .query_map(params![browser.as_bytes(), micros(now)], |row| {
                    Ok(person_id(row.get(0)?)?)
                })?
                .collect()
        })
        .await
    }

    async fn remember_browser(
        &self,
        browser: &TokenHash,
        person: PersonId,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let browser = *browser;
        self.write("remember a browser", move |db| {
            let values = params![browser.as_bytes(), person.as_i64(), micros(expires)];
            db.prepare_cached(sql::REMEMBER.sqlite)?
                .execute(values)
                .map(drop)
        })
        .await
    }

    async fn prune_attempts(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune attempts", move |db| {
            let forgotten = params![micros(now - FORGOTTEN_AFTER), limit];
            let tries = db.prepare_cached(PRUNE_ATTEMPTS)?.execute(forgotten)?;
            let expired = params![micros(now), limit];
            let browsers = db.prepare_cached(PRUNE_BROWSERS)?.execute(expired)?;
            Ok((tries + browsers) as u64)
        })
        .await
    }
}
