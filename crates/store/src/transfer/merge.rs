//! Compares the rows of a table with the rows that the target has already.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::endpoint::{Endpoint, Stream};
use super::plan::{Batch, EndpointColumns, Plan, Target};
use super::tables::{CopyTime, TABLES};
use super::value::Value;
use super::{Row, TransferError, Watch};

/// Copies tables from a source that does not change to a target that is not in use.
pub(super) struct Copier<'a> {
    pub(super) source: &'a mut Endpoint,
    pub(super) target: &'a mut Endpoint,
    /// A second connection that reads the rows of the target; `None` when it is empty.
    pub(super) known: Option<&'a mut Endpoint>,
    pub(super) watch: &'a mut dyn Watch,
}

/// How one table is copied.
pub(super) struct TablePlan {
    pub(super) plan: Plan,
    target: Target,
}

impl Copier<'_> {
    /// Plans all tables before the first one is copied, so that problems are found early.
    pub(super) async fn plans(&mut self) -> Result<Vec<TablePlan>, TransferError> {
        let mut plans = Vec::new();
        for table in TABLES {
            let here = self.source.columns(table.name).await?;
            let there = self.target.columns(table.name).await?;
            let from = EndpointColumns {
                engine: self.source.engine(),
                columns: &here,
            };
            let to = EndpointColumns {
                engine: self.target.engine(),
                columns: &there,
            };
            let plan = Plan::new(table, &from, &to)?;
            let target = plan.target(&to);
            plans.push(TablePlan { plan, target });
        }
        Ok(plans)
    }

    /// Copies a table, or only its rows that do not change any more.
    pub(super) async fn copy(
        &mut self,
        table: &TablePlan,
        only_settled: bool,
    ) -> Result<(), TransferError> {
        let TablePlan { plan, target } = table;
        self.watch.table(plan.table.name);
        let whole = plan.whole(self.source.engine(), only_settled);
        let mut rows = Stream::new(whole);
        let mut there = TargetRows::new(plan, self.target);
        let mut batch = Batch::default();
        let mut page = self.source.next(&mut rows).await?;
        while !page.is_empty() {
            let read = page.len() as u64;
            for row in page {
                let known = self.known.as_deref_mut();
                compare(plan, row, &mut there, known, &mut batch).await?;
            }
            if batch.is_full() {
                let full = std::mem::take(&mut batch);
                let (next, applied) =
                    tokio::join!(self.source.next(&mut rows), self.target.apply(target, full));
                applied?;
                page = next?;
            } else {
                page = self.source.next(&mut rows).await?;
            }
            self.watch.advances(read);
        }
        // Rows of the target after the last row of the source are deleted.
        while let Some(row) = there.take(self.known.as_deref_mut()).await? {
            batch.deleted.push(plan.key(&row).to_vec());
            if batch.is_full() {
                self.target
                    .apply(target, std::mem::take(&mut batch))
                    .await?;
            }
        }
        self.target.apply(target, batch).await
    }
}

/// Compares a row of the source with the rows of the target.
async fn compare(
    plan: &Plan,
    row: Row,
    there: &mut TargetRows,
    mut known: Option<&mut Endpoint>,
    batch: &mut Batch,
) -> Result<(), TransferError> {
    let (row, settled, watched) = plan.split(row);
    loop {
        let known = known.as_deref_mut();
        let Some(other) = there.peek(known).await? else {
            break;
        };
        match plan.key(other).cmp(plan.key(&row)) {
            Ordering::Greater => break,
            Ordering::Less => {
                batch.deleted.push(plan.key(other).to_vec());
                there.skip();
            }
            Ordering::Equal => {
                let rest = &other[plan.key(other).len()..];
                let same = settled && rest[0] == Value::Int(1) && rest[1..] == watched[..];
                if same {
                    there.skip();
                    return Ok(());
                }
                batch.deleted.push(plan.key(other).to_vec());
                there.skip();
                break;
            }
        }
    }
    batch.add(row);
    Ok(())
}

/// The rows of the target, in the order of the key.
struct TargetRows {
    /// `None` for a table that was emptied before the copy.
    rows: Option<Stream>,
    page: VecDeque<Row>,
}

impl TargetRows {
    fn new(plan: &Plan, target: &Endpoint) -> Self {
        let rows = match plan.table.copy_time {
            CopyTime::Growing { .. } => Some(Stream::new(plan.narrow(target.engine()))),
            CopyTime::Changing => None,
        };
        Self {
            rows,
            page: VecDeque::new(),
        }
    }

    async fn peek(&mut self, known: Option<&mut Endpoint>) -> Result<Option<&Row>, TransferError> {
        if self.page.is_empty()
            && let (Some(rows), Some(known)) = (&mut self.rows, known)
        {
            self.page = known.next(rows).await?.into();
        }
        Ok(self.page.front())
    }

    fn skip(&mut self) {
        self.page.pop_front();
    }

    async fn take(&mut self, known: Option<&mut Endpoint>) -> Result<Option<Row>, TransferError> {
        self.peek(known).await?;
        Ok(self.page.pop_front())
    }
}
