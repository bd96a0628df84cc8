//! Adding up the ledger of an account over a period.

use domain::Timestamp;
use domain::ids::AccountId;
use domain::ports::{LedgerTotals, StoreError};
use tokio_postgres::Row;

use super::{PostgresStore, column, fault};
use crate::rows::history::TimeSearch;
use crate::rows::ledger_totals::{ATTEMPTS, KeepsChanging, STEP, SumColumns, Sums, searches};
use crate::rows::micros;
use crate::sql::ledger_totals as sql;

const OPERATION: &str = "add up a ledger";

impl PostgresStore {
    pub(super) async fn add_up_ledger(
        &self,
        account: AccountId,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<LedgerTotals, StoreError> {
        let (account, since_us, until_us) = (account.as_i64(), micros(since), micros(until));
        for _ in 0..ATTEMPTS {
            let Some(mut sums) = self.begin_sums(account, since_us, until_us).await? else {
                return Ok(LedgerTotals::default());
            };
            loop {
                let (after, end, step) = (sums.after, sums.end, i64::from(STEP));
                let values: super::Values<'_> =
                    &[&account, &after, &end, &since_us, &until_us, &step];
                let read = SumColumns::read;
                let next = self
                    .get(OPERATION, sql::SUMS.postgres, values, read)
                    .await?;
                let has_more = sums.add(&next);
                if !has_more.map_err(|corrupt| fault::corrupt(OPERATION, corrupt))? {
                    break;
                }
            }
            let end = self.balance_after(account, sums.end - 1).await?;
            if let Some(totals) = sums.totals(end) {
                return Ok(totals);
            }
        }
        Err(StoreError::Unexpected {
            operation: OPERATION,
            source: Box::new(KeepsChanging),
        })
    }

    /// Finds the entries of the period; `None` if there are no entries at all.
    async fn begin_sums(
        &self,
        account: i64,
        since_us: i64,
        until_us: i64,
    ) -> Result<Option<Sums>, StoreError> {
        let read = |row: &Row| Ok((column(row, 0)?, column(row, 1)?));
        let values: super::Values<'_> = &[&account];
        let first_and_last = self.get(OPERATION, sql::FIRST_AND_LAST.postgres, values, read);
        let (Some(first), Some(last)) = first_and_last.await? else {
            return Ok(None);
        };
        let [since, until] = searches(since_us, until_us, first, last);
        let since = self.search_ledger(account, since).await?;
        let until = self.search_ledger(account, until).await?;
        let opening = self.balance_after(account, since.low).await?;
        Ok(Some(Sums::new(since.low, until.high, opening)))
    }

    async fn search_ledger(
        &self,
        account: i64,
        mut search: TimeSearch,
    ) -> Result<TimeSearch, StoreError> {
        let read = |row: &Row| Ok((column(row, 0)?, column(row, 1)?));
        while let [id] = search.probes(1)[..] {
            let values: super::Values<'_> = &[&account, &id];
            let found = self
                .find(OPERATION, sql::PROBE.postgres, values, read)
                .await?;
            search.narrow(id, found);
        }
        Ok(search)
    }

    /// The balance after the last entry up to an ID.
    async fn balance_after(&self, account: i64, id: i64) -> Result<i64, StoreError> {
        let values: super::Values<'_> = &[&account, &id];
        let read = |row: &Row| column(row, 0);
        let found = self.find(OPERATION, sql::BALANCE.postgres, values, read);
        Ok(found.await?.unwrap_or_default())
    }
}
