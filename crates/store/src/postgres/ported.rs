//! The port for ported numbers.

use async_trait::async_trait;
use deadpool_postgres::Object;
use domain::ids::AccountId;
use domain::number::ported::PortedNumber;
use domain::ports::{PortedChange, PortedStore, PortedVersions, StoreError};
use domain::{Msisdn, Timestamp};
use tokio_postgres::Row;

use super::fault::Fault;
use super::retry::{self, Retryable};
use super::transaction::{execute, find};
use super::{PostgresStore, Values, column};
use crate::rows::ported::{after_change, learned_columns, read_change, read_versions};
use crate::rows::{Corrupt, account_id, micros};
use crate::sql::ported as sql;

/// What was learned later stays.
const REMEMBER: &str = "
    INSERT INTO ported_number (number, network, learned_us, change)
    SELECT g.number, g.network, g.learned_us, $4::bigint
    FROM UNNEST($1::bigint[], $2::int[], $3::bigint[]) AS g (number, network, learned_us)
    ON CONFLICT (number) DO UPDATE
        SET network = excluded.network, learned_us = excluded.learned_us, change = excluded.change
        WHERE ported_number.learned_us <= excluded.learned_us";

struct Remember {
    numbers: Vec<i64>,
    networks: Vec<i32>,
    learned_us: Vec<i64>,
}

impl Remember {
    fn new(learned: &[PortedNumber]) -> Self {
        let columns = learned_columns(learned);
        Self {
            numbers: columns.iter().map(|columns| columns.0).collect(),
            networks: columns.iter().map(|columns| columns.1).collect(),
            learned_us: columns.iter().map(|columns| columns.2).collect(),
        }
    }
}

impl Retryable for Remember {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let transaction = client.transaction().await?;
        let next = find(&transaction, sql::NEXT_CHANGE.postgres, &[]).await?;
        let change: i64 = column(&next.ok_or(Corrupt("number of changes"))?, 0)?;
        let values: Values<'_> = &[&self.numbers, &self.networks, &self.learned_us, &change];
        execute(&transaction, REMEMBER, values).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Removes numbers, and tells other nodes if there were any.
struct Remove<'a> {
    sql: &'static str,
    values: Values<'a>,
}

impl Retryable for Remove<'_> {
    type Output = u64;

    async fn run(&self, client: &mut Object) -> Result<u64, Fault> {
        let transaction = client.transaction().await?;
        // The counter is locked before the numbers, as by those who remember them.
        execute(&transaction, sql::COUNT_REMOVAL.postgres, &[]).await?;
        let removed = execute(&transaction, self.sql, self.values).await?;
        if removed > 0 {
            transaction.commit().await?;
        }
        Ok(removed)
    }
}

#[async_trait]
impl PortedStore for PostgresStore {
    async fn remember_ported(&self, learned: &[PortedNumber]) -> Result<(), StoreError> {
        let remember = Remember::new(learned);
        retry::run(&self.pool, "remember ported numbers", &remember).await
    }

    async fn find_ported(&self, number: &Msisdn) -> Result<Option<PortedNumber>, StoreError> {
        let values: Values<'_> = &[&number.as_i64()];
        let found = self
            .find(
                "find a ported number",
                sql::FIND.postgres,
                values,
                read_change,
            )
            .await?;
        Ok(found.map(|found: PortedChange| found.ported))
    }

    async fn erase_ported(&self, number: &Msisdn) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&number.as_i64()];
        let erase = Remove {
            sql: sql::ERASE.postgres,
            values,
        };
        let erased = retry::run(&self.pool, "erase a ported number", &erase).await?;
        Ok(erased > 0)
    }

    async fn get_ported_versions(&self) -> Result<PortedVersions, StoreError> {
        self.get(
            "read the versions of ported numbers",
            sql::VERSIONS.postgres,
            &[],
            read_versions,
        )
        .await
    }

    async fn list_ported_changes(
        &self,
        after: Option<&PortedChange>,
        limit: u32,
    ) -> Result<Vec<PortedChange>, StoreError> {
        let (change, number) = after_change(after);
        let values: Values<'_> = &[&change, &number, &i64::from(limit)];
        self.list(
            "list ported numbers",
            sql::LIST_CHANGES.postgres,
            values,
            read_change,
        )
        .await
    }

    async fn list_ported_accounts(&self) -> Result<Vec<AccountId>, StoreError> {
        let read = |row: &Row| account_id(column(row, 0)?);
        self.list(
            "list accounts with ported numbers",
            sql::LIST_ACCOUNTS.postgres,
            &[],
            read,
        )
        .await
    }

    async fn prune_ported(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values: Values<'_> = &[&micros(before), &i64::from(limit)];
        self.execute("prune ported numbers", sql::PRUNE.postgres, values)
            .await
    }

    async fn remove_oldest_ported(&self, limit: u32) -> Result<u64, StoreError> {
        let values: Values<'_> = &[&i64::from(limit)];
        let remove = Remove {
            sql: sql::REMOVE_OLDEST.postgres,
            values,
        };
        retry::run(&self.pool, "remove the oldest ported numbers", &remove).await
    }
}
