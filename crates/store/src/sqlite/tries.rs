//! The port for counted attempts and known browsers.

use async_trait::async_trait;
use domain::access::tries::{FORGOTTEN_AFTER, Tries};
use domain::ids::PersonId;
use domain::ports::{AttemptKey, AttemptStore, StoreError};
use domain::{Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::SqliteStore;
use crate::rows::micros;
use crate::rows::people::{person_id, tries};
use crate::sql::tries as sql;

const FIND: &str = "SELECT count, since_us FROM sign_in_try WHERE key = ?1";
const SET: &str = "
    INSERT INTO sign_in_try (key, count, since_us) VALUES (?1, ?2, ?3)
    ON CONFLICT (key) DO UPDATE SET count = ?2, since_us = ?3";
const PRUNE_TRIES: &str = "
    DELETE FROM sign_in_try WHERE key IN (SELECT key FROM sign_in_try WHERE since_us <= ?1 LIMIT ?2)";
const PRUNE_BROWSERS: &str = "
    DELETE FROM known_browser WHERE (hash, person_id) IN
        (SELECT hash, person_id FROM known_browser WHERE expires_us <= ?1 LIMIT ?2)";

fn find(db: &Connection, key: &TokenHash) -> Result<Option<Tries>> {
    db.prepare_cached(FIND)?
        .query_row([key.as_bytes()], |row| Ok(tries(row.get(0)?, row.get(1)?)?))
        .optional()
}

fn set(db: &Connection, key: &TokenHash, tries: Tries) -> Result<()> {
    let values = params![key.as_bytes(), tries.count, micros(tries.since)];
    db.prepare_cached(SET)?.execute(values).map(drop)
}

fn begin(db: &Connection, keys: &[AttemptKey], now: Timestamp) -> Result<Result<(), u32>> {
    let mut begun = Vec::with_capacity(keys.len());
    for (key, limit) in keys {
        let counted = find(db, key)?.unwrap_or(Tries::none(now));
        match counted.begin(*limit, now) {
            Ok(tries) => begun.push((key, tries)),
            Err(wait_s) => return Ok(Err(wait_s)),
        }
    }
    for (key, tries) in begun {
        set(db, key, tries)?;
    }
    Ok(Ok(()))
}

fn forgive(db: &Connection, keys: &[AttemptKey]) -> Result<()> {
    for (key, limit) in keys {
        let Some(counted) = find(db, key)? else {
            continue;
        };
        match counted.forgive(*limit) {
            Some(tries) => set(db, key, tries)?,
            None => {
                db.prepare_cached(sql::FORGET.sqlite)?
                    .execute([key.as_bytes()])?;
            }
        }
    }
    Ok(())
}

#[async_trait]
impl AttemptStore for SqliteStore {
    async fn begin_try(
        &self,
        keys: &[AttemptKey],
        now: Timestamp,
    ) -> Result<Result<(), u32>, StoreError> {
        let keys = keys.to_vec();
        self.write("count a try", move |db| begin(db, &keys, now))
            .await
    }

    async fn forgive_try(&self, keys: &[AttemptKey]) -> Result<(), StoreError> {
        let keys = keys.to_vec();
        self.write("take a try back", move |db| forgive(db, &keys))
            .await
    }

    async fn list_known(
        &self,
        browser: &TokenHash,
        now: Timestamp,
    ) -> Result<Vec<PersonId>, StoreError> {
        let browser = *browser;
        self.read("find a browser", move |db| {
            db.prepare_cached(sql::LIST_KNOWN.sqlite)?
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

    async fn prune_tries(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune tries", move |db| {
            let forgotten = params![micros(now - FORGOTTEN_AFTER), limit];
            let tries = db.prepare_cached(PRUNE_TRIES)?.execute(forgotten)?;
            let expired = params![micros(now), limit];
            let browsers = db.prepare_cached(PRUNE_BROWSERS)?.execute(expired)?;
            Ok((tries + browsers) as u64)
        })
        .await
    }
}
