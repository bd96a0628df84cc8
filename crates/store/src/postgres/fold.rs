//! Folding the ledger.

use deadpool_postgres::Object;
use domain::ports::StoreError;
use tokio_postgres::Row;

use super::fault::{Fault, SerializationConflict};
use super::retry::{self, Retryable};
use super::{PostgresStore, column};
use crate::rows::Corrupt;
use crate::rows::fold::{self, ACCOUNTS, FoldCursor, FoldEntry, Folded};
use crate::sql::fold as sql;

const NOW: &str = concat!("SELECT ", now_us!());
/// Two nodes that fold the same entries do so one after the other: the second one reads the result of the first.
const READ: &str = "
    SELECT id, at_us, kind, amount_micros, balance_micros, messages, note IS NOT NULL, spent_day, spent_micros
    FROM ledger
    WHERE account_id = $1 AND id > $2 AND id < (SELECT max(id) FROM ledger WHERE account_id = $1)
    ORDER BY id LIMIT $3 FOR UPDATE";
const REMOVE: &str = "DELETE FROM ledger WHERE account_id = $1 AND id = ANY($2::bigint[])";
const CHANGE: &str = "
    UPDATE ledger AS l SET at_us = g.at_us, kind = g.kind, amount_micros = g.amount, balance_micros = g.balance,
        messages = g.messages, spent_day = g.spent_day, spent_micros = g.spent
    FROM UNNEST($2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::int[],
        $9::bigint[]) AS g (id, at_us, kind, amount, balance, messages, spent_day, spent)
    WHERE l.account_id = $1 AND l.id = g.id";

impl PostgresStore {
    /// Folds entries of the next account that has some; `false` after the last account.
    pub(super) async fn fold_next(&self, age_us: i64, limit: u32) -> Result<bool, StoreError> {
        const OPERATION: &str = "fold the ledger";
        let now_us: i64 = self.get(OPERATION, NOW, &[], |row| column(row, 0)).await?;
        let before_us = fold::day_start_us(now_us.saturating_sub(age_us));
        let values: super::Values<'_> = &[&self.folding.next(), &i64::from(ACCOUNTS)];
        let read = |row: &Row| column::<i64>(row, 0);
        let accounts = self
            .list(OPERATION, sql::LIST_ACCOUNTS.postgres, values, read)
            .await?;
        for &account in &accounts {
            let cursor = self.folding.cursor(account);
            let values: super::Values<'_> = &[&account, &cursor.done, &before_us];
            if self
                .get(OPERATION, sql::IS_DUE.postgres, values, |row| {
                    column(row, 0)
                })
                .await?
            {
                let step = Fold {
                    account,
                    cursor,
                    before_us,
                    limit: i64::from(limit),
                };
                let cursor = retry::run(&self.pool, OPERATION, &step).await?;
                self.folding.set_cursor(account, cursor);
                return Ok(true);
            }
        }
        Ok(self.folding.skip(&accounts))
    }
}

/// Folds the next entries of an account.
struct Fold {
    account: i64,
    cursor: FoldCursor,
    before_us: i64,
    limit: i64,
}

impl Retryable for Fold {
    type Output = FoldCursor;

    async fn run(&self, client: &mut Object) -> Result<FoldCursor, Fault> {
        let transaction = client.transaction().await?;
        let statement = transaction.prepare_cached(READ).await?;
        let values: super::Values<'_> = &[&self.account, &self.cursor.after, &self.limit];
        let rows = transaction.query(&statement, values).await?;
        let entries: Vec<FoldEntry> = rows.iter().map(entry).collect::<Result<_, _>>()?;
        let folded = fold::fold(&entries, self.before_us, self.cursor);
        if !folded.removed.is_empty() {
            let statement = transaction.prepare_cached(REMOVE).await?;
            let values: super::Values<'_> = &[&self.account, &folded.removed];
            let removed = transaction.execute(&statement, values).await?;
            let changed = self.change(&transaction, &folded).await?;
            if (removed, changed) != (folded.removed.len() as u64, folded.changed.len() as u64) {
                return Err(SerializationConflict.into());
            }
        }
        transaction.commit().await?;
        Ok(folded.cursor)
    }
}

impl Fold {
    async fn change(
        &self,
        transaction: &deadpool_postgres::Transaction<'_>,
        folded: &Folded,
    ) -> Result<u64, Fault> {
        let entries = || folded.changed.iter();
        let statement = transaction.prepare_cached(CHANGE).await?;
        let values: super::Values<'_> = &[
            &self.account,
            &entries().map(|entry| entry.id).collect::<Vec<_>>(),
            &entries().map(|entry| entry.at_us).collect::<Vec<_>>(),
            &entries().map(|entry| entry.kind).collect::<Vec<_>>(),
            &entries()
                .map(|entry| entry.amount_micros)
                .collect::<Vec<_>>(),
            &entries()
                .map(|entry| entry.balance_micros)
                .collect::<Vec<_>>(),
            &entries().map(|entry| entry.messages).collect::<Vec<_>>(),
            &entries().map(|entry| entry.spent_day).collect::<Vec<_>>(),
            &entries()
                .map(|entry| entry.spent_micros)
                .collect::<Vec<_>>(),
        ];
        Ok(transaction.execute(&statement, values).await?)
    }
}

fn entry(row: &Row) -> Result<FoldEntry, Corrupt> {
    FoldEntry::read(row)
}
