//! The port for ported numbers.

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::number::ported::PortedNumber;
use domain::ports::{PortedChange, PortedStore, PortedVersions, StoreError};
use domain::{Msisdn, Timestamp};
use rusqlite::{Connection, OptionalExtension, Params, Result, params};

use super::SqliteStore;
use crate::rows::ported::{after_change, learned_columns, read_change, read_versions};
use crate::rows::{account_id, micros};
use crate::sql::ported as sql;

/// What was learned later stays.
const REMEMBER: &str = "
    INSERT INTO ported_number (number, network, learned_us, change) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (number) DO UPDATE
        SET network = excluded.network, learned_us = excluded.learned_us, change = excluded.change
        WHERE ported_number.learned_us <= excluded.learned_us";

fn remember(db: &Connection, learned: &[(i64, i32, i64)]) -> Result<()> {
    let mut next = db.prepare_cached(sql::NEXT_CHANGE.sqlite)?;
    let change: i64 = next.query_row([], |row| row.get(0))?;
    let mut remember = db.prepare_cached(REMEMBER)?;
    for (number, network, learned_us) in learned {
        remember.execute(params![number, network, learned_us, change])?;
    }
    Ok(())
}

/// Removes numbers, and tells other nodes if there were any.
fn remove(db: &Connection, statement: &str, values: impl Params) -> Result<u64> {
    let removed = db.prepare_cached(statement)?.execute(values)?;
    if removed > 0 {
        db.prepare_cached(sql::COUNT_REMOVAL.sqlite)?.execute([])?;
    }
    Ok(removed as u64)
}

#[async_trait]
impl PortedStore for SqliteStore {
    async fn remember_ported(&self, learned: &[PortedNumber]) -> Result<(), StoreError> {
        let learned = learned_columns(learned);
        self.write("remember ported numbers", move |db| remember(db, &learned))
            .await
    }

    async fn find_ported(&self, number: &Msisdn) -> Result<Option<PortedNumber>, StoreError> {
        let number = number.as_i64();
        self.read("find a ported number", move |db| {
            let mut find = db.prepare_cached(sql::FIND.sqlite)?;
            let found = find.query_row([number], |row| read_change(row));
            Ok(found.optional()?.map(|found| found.ported))
        })
        .await
    }

    async fn erase_ported(&self, number: &Msisdn) -> Result<bool, StoreError> {
        let number = number.as_i64();
        self.write("erase a ported number", move |db| {
            Ok(remove(db, sql::ERASE.sqlite, [number])? > 0)
        })
        .await
    }

    async fn get_ported_versions(&self) -> Result<PortedVersions, StoreError> {
        self.read("read the versions of ported numbers", |db| {
            let mut versions = db.prepare_cached(sql::VERSIONS.sqlite)?;
            versions.query_row([], |row| read_versions(row))
        })
        .await
    }

    async fn list_ported_changes(
        &self,
        after: Option<&PortedChange>,
        limit: u32,
    ) -> Result<Vec<PortedChange>, StoreError> {
        let (change, number) = after_change(after);
        self.read("list ported numbers", move |db| {
            let mut list = db.prepare_cached(sql::LIST_CHANGES.sqlite)?;
            list.query_map(params![change, number, limit], |row| read_change(row))?
                .collect()
        })
        .await
    }

    async fn list_ported_accounts(&self) -> Result<Vec<AccountId>, StoreError> {
        self.read("list accounts with ported numbers", |db| {
            let mut list = db.prepare_cached(sql::LIST_ACCOUNTS.sqlite)?;
            list.query_map([], |row| Ok(account_id(row.get(0)?)?))?
                .collect()
        })
        .await
    }

    async fn prune_ported(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune ported numbers", move |db| {
            let mut prune = db.prepare_cached(sql::PRUNE.sqlite)?;
            Ok(prune.execute(params![micros(before), limit])? as u64)
        })
        .await
    }

    async fn remove_oldest_ported(&self, limit: u32) -> Result<u64, StoreError> {
        self.write("remove the oldest ported numbers", move |db| {
            remove(db, sql::REMOVE_OLDEST.sqlite, [limit])
        })
        .await
    }
}
