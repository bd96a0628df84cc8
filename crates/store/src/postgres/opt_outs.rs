//! The port for opt-outs and the block list.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::block::{BlockRecord, BlockRule};
use domain::ids::AccountId;
use domain::opt_out::{OptOut, OptOutKey, Via};
use domain::ports::{ListVersions, OptOutChange, OptOutStore, StoreError};
use domain::{Msisdn, Timestamp};

use super::fault::Fault;
use super::retry::{self, Retryable};
use super::transaction::{execute, find};
use super::{PostgresStore, Values, column};
use crate::rows::opt_outs::{
    after_change, after_columns, key_columns, read_block, read_change, read_opt_out, read_versions,
};
use crate::rows::{Corrupt, micros};
use crate::sql::opt_outs as sql;

/// Entries that are on the list stay as they are.
const ADD: &str = "
    INSERT INTO opt_out (account_id, recipient, sender, since_us, via, change)
    SELECT DISTINCT $1::bigint, g.recipient, g.sender, $4::bigint, $5::smallint, $6::bigint
    FROM UNNEST($2::bigint[], $3::text[]) AS g (recipient, sender)
    ON CONFLICT (account_id, recipient, sender) DO UPDATE
        SET since_us = excluded.since_us, via = excluded.via, change = excluded.change, removed_us = NULL
        WHERE opt_out.removed_us IS NOT NULL";

async fn next_change(transaction: &Transaction<'_>) -> Result<i64, Fault> {
    let next = find(transaction, sql::NEXT_CHANGE.postgres, &[]).await?;
    Ok(column(&next.ok_or(Corrupt("number of changes"))?, 0)?)
}

struct AddOptOuts<'a> {
    account: i64,
    keys: &'a [OptOutKey],
    via: Via,
    now_us: i64,
}

impl Retryable for AddOptOuts<'_> {
    type Output = u64;

    async fn run(&self, client: &mut Object) -> Result<u64, Fault> {
        let transaction = client.transaction().await?;
        let change = next_change(&transaction).await?;
        let (recipients, senders): (Vec<_>, Vec<_>) = self.keys.iter().map(key_columns).unzip();
        let values: Values<'_> = &[
            &self.account,
            &recipients,
            &senders,
            &self.now_us,
            &self.via.number(),
            &change,
        ];
        let added = execute(&transaction, ADD, values).await?;
        transaction.commit().await?;
        Ok(added)
    }
}

struct RemoveOptOut<'a> {
    account: i64,
    key: &'a OptOutKey,
    now_us: i64,
}

impl Retryable for RemoveOptOut<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let change = next_change(&transaction).await?;
        let (recipient, sender) = key_columns(self.key);
        let values: Values<'_> = &[&self.account, &recipient, &sender, &self.now_us, &change];
        let removed = execute(&transaction, sql::REMOVE.postgres, values).await?;
        transaction.commit().await?;
        Ok(removed > 0)
    }
}

struct ChangeBlocks<'a> {
    sql: &'static str,
    values: Values<'a>,
}

impl Retryable for ChangeBlocks<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        execute(&transaction, sql::COUNT_BLOCK_CHANGE.postgres, &[]).await?;
        let changed = execute(&transaction, self.sql, self.values).await?;
        transaction.commit().await?;
        Ok(changed > 0)
    }
}

#[async_trait]
impl OptOutStore for PostgresStore {
    async fn add_opt_outs(
        &self,
        account: AccountId,
        keys: &[OptOutKey],
        via: Via,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let add = AddOptOuts {
            account: account.as_i64(),
            keys,
            via,
            now_us: micros(now),
        };
        retry::run(&self.pool, "add opt-outs", &add).await
    }

    async fn remove_opt_out(
        &self,
        account: AccountId,
        key: &OptOutKey,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let remove = RemoveOptOut {
            account: account.as_i64(),
            key,
            now_us: micros(now),
        };
        retry::run(&self.pool, "remove an opt-out", &remove).await
    }

    async fn find_opt_out(
        &self,
        account: AccountId,
        key: &OptOutKey,
    ) -> Result<Option<OptOut>, StoreError> {
        let (recipient, sender) = key_columns(key);
        let values: Values<'_> = &[&account.as_i64(), &recipient, &sender];
        let found = self
            .find("find an opt-out", sql::FIND.postgres, values, read_opt_out)
            .await?;
        Ok(found.map(|(_, opt_out)| opt_out))
    }

    async fn list_opt_outs(
        &self,
        account: AccountId,
        after: Option<&OptOutKey>,
        limit: u32,
    ) -> Result<Vec<OptOut>, StoreError> {
        let (recipient, sender) = after_columns(after);
        let values: Values<'_> = &[&account.as_i64(), &recipient, &sender, &i64::from(limit)];
        let listed = self
            .list("list opt-outs", sql::LIST.postgres, values, read_opt_out)
            .await?;
        Ok(listed.into_iter().map(|(_, opt_out)| opt_out).collect())
    }

    async fn list_opt_outs_of(
        &self,
        recipient: &Msisdn,
        limit: u32,
    ) -> Result<Vec<(AccountId, OptOut)>, StoreError> {
        let values: Values<'_> = &[&recipient.as_i64(), &i64::from(limit)];
        self.list(
            "list the opt-outs of a recipient",
            sql::LIST_OF_RECIPIENT.postgres,
            values,
            read_opt_out,
        )
        .await
    }

    async fn get_list_versions(&self) -> Result<ListVersions, StoreError> {
        self.get(
            "read the versions of lists",
            sql::VERSIONS.postgres,
            &[],
            read_versions,
        )
        .await
    }

    async fn list_opt_out_changes(
        &self,
        after: Option<&OptOutChange>,
        limit: u32,
    ) -> Result<Vec<OptOutChange>, StoreError> {
        let (number, account, recipient, sender) = after_change(after);
        let values: Values<'_> = &[&number, &account, &recipient, &sender, &i64::from(limit)];
        self.list(
            "list changes of opt-outs",
            sql::LIST_CHANGES.postgres,
            values,
            read_change,
        )
        .await
    }

    async fn prune_opt_outs(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values: Values<'_> = &[&micros(before), &i64::from(limit)];
        self.execute("prune opt-outs", sql::PRUNE.postgres, values)
            .await
    }

    async fn add_block_rule(&self, rule: &BlockRule, now: Timestamp) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&rule.kind().number(), &rule.value(), &micros(now)];
        let add = ChangeBlocks {
            sql: sql::ADD_BLOCK.postgres,
            values,
        };
        retry::run(&self.pool, "add a block rule", &add).await
    }

    async fn remove_block_rule(&self, rule: &BlockRule) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&rule.kind().number(), &rule.value()];
        let remove = ChangeBlocks {
            sql: sql::REMOVE_BLOCK.postgres,
            values,
        };
        retry::run(&self.pool, "remove a block rule", &remove).await
    }

    async fn list_block_rules(&self) -> Result<Vec<BlockRecord>, StoreError> {
        self.list(
            "list block rules",
            sql::LIST_BLOCKS.postgres,
            &[],
            read_block,
        )
        .await
    }
}
