//! The port for opt-outs and the block list.

use async_trait::async_trait;
use domain::block::{BlockRecord, BlockRule};
use domain::ids::AccountId;
use domain::opt_out::{OptOut, OptOutKey, Via};
use domain::ports::{ListVersions, OptOutChange, OptOutStore, StoreError};
use domain::{Msisdn, Timestamp};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::SqliteStore;
use crate::rows::micros;
use crate::rows::opt_outs::{
    after_change, after_columns, key_columns, read_block, read_change, read_opt_out, read_versions,
};
use crate::sql::opt_outs as sql;

/// Entries that are on the list stay as they are.
const ADD: &str = "
    INSERT INTO opt_out (account_id, recipient, sender, since_us, via, change) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (account_id, recipient, sender) DO UPDATE
        SET since_us = excluded.since_us, via = excluded.via, change = excluded.change, removed_us = NULL
        WHERE opt_out.removed_us IS NOT NULL";

fn next_change(db: &Connection) -> Result<i64> {
    let mut next = db.prepare_cached(sql::NEXT_CHANGE.sqlite)?;
    next.query_row([], |row| row.get(0))
}

fn add(
    db: &Connection,
    account: AccountId,
    keys: &[OptOutKey],
    via: Via,
    now_us: i64,
) -> Result<u64> {
    let change = next_change(db)?;
    let mut add = db.prepare_cached(ADD)?;
    let mut added = 0;
    for key in keys {
        let (recipient, sender) = key_columns(key);
        let values = params![
            account.as_i64(),
            recipient,
            sender,
            now_us,
            via.number(),
            change
        ];
        added += add.execute(values)?;
    }
    Ok(added as u64)
}

fn remove(db: &Connection, account: AccountId, key: &OptOutKey, now_us: i64) -> Result<bool> {
    let change = next_change(db)?;
    let (recipient, sender) = key_columns(key);
    let values = params![account.as_i64(), recipient, sender, now_us, change];
    let removed = db.prepare_cached(sql::REMOVE.sqlite)?.execute(values)?;
    Ok(removed > 0)
}

#[async_trait]
impl OptOutStore for SqliteStore {
    async fn add_opt_outs(
        &self,
        account: AccountId,
        keys: &[OptOutKey],
        via: Via,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let keys = keys.to_vec();
        self.write("add opt-outs", move |db| {
            add(db, account, &keys, via, micros(now))
        })
        .await
    }

    async fn remove_opt_out(
        &self,
        account: AccountId,
        key: &OptOutKey,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let key = key.clone();
        self.write("remove an opt-out", move |db| {
            remove(db, account, &key, micros(now))
        })
        .await
    }

    async fn find_opt_out(
        &self,
        account: AccountId,
        key: &OptOutKey,
    ) -> Result<Option<OptOut>, StoreError> {
        let key = key.clone();
        self.read("find an opt-out", move |db| {
            let (recipient, sender) = key_columns(&key);
            let values = params![account.as_i64(), recipient, sender];
            let mut find = db.prepare_cached(sql::FIND.sqlite)?;
            let found = find.query_row(values, |row| read_opt_out(row)).optional()?;
            Ok(found.map(|(_, opt_out)| opt_out))
        })
        .await
    }

    async fn list_opt_outs(
        &self,
        account: AccountId,
        after: Option<&OptOutKey>,
        limit: u32,
    ) -> Result<Vec<OptOut>, StoreError> {
        let after = after.cloned();
        self.read("list opt-outs", move |db| {
            let (recipient, sender) = after_columns(after.as_ref());
            let values = params![account.as_i64(), recipient, sender, limit];
            let mut list = db.prepare_cached(sql::LIST.sqlite)?;
            let listed = list.query_map(values, |row| read_opt_out(row))?;
            listed
                .map(|read| read.map(|(_, opt_out)| opt_out))
                .collect()
        })
        .await
    }

    async fn list_opt_outs_of(
        &self,
        recipient: &Msisdn,
        limit: u32,
    ) -> Result<Vec<(AccountId, OptOut)>, StoreError> {
        let recipient = recipient.as_i64();
        self.read("list the opt-outs of a recipient", move |db| {
            let mut list = db.prepare_cached(sql::LIST_OF_RECIPIENT.sqlite)?;
            list.query_map(params![recipient, limit], |row| read_opt_out(row))?
                .collect()
        })
        .await
    }

    async fn get_list_versions(&self) -> Result<ListVersions, StoreError> {
        self.read("read the versions of lists", |db| {
            let mut versions = db.prepare_cached(sql::VERSIONS.sqlite)?;
            versions.query_row([], |row| read_versions(row))
        })
        .await
    }

    async fn list_opt_out_changes(
        &self,
        after: Option<&OptOutChange>,
        limit: u32,
    ) -> Result<Vec<OptOutChange>, StoreError> {
        let after = after.cloned();
        self.read("list changes of opt-outs", move |db| {
            let (number, account, recipient, sender) = after_change(after.as_ref());
            let values = params![number, account, recipient, sender, limit];
            let mut list = db.prepare_cached(sql::LIST_CHANGES.sqlite)?;
            list.query_map(values, |row| read_change(row))?.collect()
        })
        .await
    }

    async fn prune_opt_outs(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune opt-outs", move |db| {
            let mut prune = db.prepare_cached(sql::PRUNE.sqlite)?;
            Ok(prune.execute(params![micros(before), limit])? as u64)
        })
        .await
    }

    async fn add_block_rule(&self, rule: &BlockRule, now: Timestamp) -> Result<bool, StoreError> {
        let rule = rule.clone();
        self.write("add a block rule", move |db| {
            let values = params![rule.kind().number(), rule.value(), micros(now)];
            count_block_change(db)?;
            Ok(db.prepare_cached(sql::ADD_BLOCK.sqlite)?.execute(values)? > 0)
        })
        .await
    }

    async fn remove_block_rule(&self, rule: &BlockRule) -> Result<bool, StoreError> {
        let rule = rule.clone();
        self.write("remove a block rule", move |db| {
            let values = params![rule.kind().number(), rule.value()];
            count_block_change(db)?;
            Ok(db
                .prepare_cached(sql::REMOVE_BLOCK.sqlite)?
                .execute(values)?
                > 0)
        })
        .await
    }

    async fn list_block_rules(&self) -> Result<Vec<BlockRecord>, StoreError> {
        self.read("list block rules", |db| {
            let mut list = db.prepare_cached(sql::LIST_BLOCKS.sqlite)?;
            list.query_map([], |row| read_block(row))?.collect()
        })
        .await
    }
}

fn count_block_change(db: &Connection) -> Result<()> {
    let mut count = db.prepare_cached(sql::COUNT_BLOCK_CHANGE.sqlite)?;
    count.execute([]).map(drop)
}
