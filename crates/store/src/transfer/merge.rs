//! One table's rows, held against those that are there already.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::plan::{Batch, End, Plan, Target};
use super::side::{Side, Stream};
use super::tables::{Kept, TABLES};
use super::value::Value;
use super::{Row, TransferError, Watch};

/// Copies tables from a source that is held to a target that nobody works on.
pub(super) struct Copier<'a> {
    pub(super) source: &'a mut Side,
    pub(super) target: &'a mut Side,
    /// A second connection to the target, which reads what is there; `None` when nothing is.
    pub(super) known: Option<&'a mut Side>,
    pub(super) watch: &'a mut dyn Watch,
}

/// A table with all that is needed to copy it.
pub(super) struct Way {
    pub(super) plan: Plan,
    target: Target,
}

impl Copier<'_> {
    /// Every table, before the first is copied: what cannot be is known at once.
    pub(super) async fn plans(&mut self) -> Result<Vec<Way>, TransferError> {
        let mut ways = Vec::new();
        for table in TABLES {
            let here = self.source.columns(table.name).await?;
            let there = self.target.columns(table.name).await?;
            let from = End {
                engine: self.source.engine(),
                columns: &here,
            };
            let to = End {
                engine: self.target.engine(),
                columns: &there,
            };
            let plan = Plan::new(table, &from, &to)?;
            let target = plan.target(&to);
            ways.push(Way { plan, target });
        }
        Ok(ways)
    }

    /// Copies a table, or only what is settled of it.
    pub(super) async fn copy(
        &mut self,
        way: &Way,
        only_settled: bool,
    ) -> Result<(), TransferError> {
        let Way { plan, target } = way;
        self.watch.table(plan.table.name);
        let whole = plan.whole(self.source.engine(), only_settled);
        let mut rows = Stream::new(whole);
        let mut there = There::new(plan, self.target);
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
        // What the target has behind the source's last row.
        while let Some(row) = there.take(self.known.as_deref_mut()).await? {
            batch.gone.push(plan.key(&row).to_vec());
            if batch.is_full() {
                self.target
                    .apply(target, std::mem::take(&mut batch))
                    .await?;
            }
        }
        self.target.apply(target, batch).await
    }
}

/// Decides what a row of the source means for the target.
async fn compare(
    plan: &Plan,
    row: Row,
    there: &mut There,
    mut known: Option<&mut Side>,
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
                batch.gone.push(plan.key(other).to_vec());
                there.skip();
            }
            Ordering::Equal => {
                let rest = &other[plan.key(other).len()..];
                let same = settled && rest[0] == Value::Int(1) && rest[1..] == watched[..];
                if same {
                    there.skip();
                    return Ok(());
                }
                batch.gone.push(plan.key(other).to_vec());
                there.skip();
                break;
            }
        }
    }
    batch.add(row);
    Ok(())
}

/// What the target has of a table, in the order of its key.
struct There {
    /// `None` for a table that was emptied before.
    rows: Option<Stream>,
    page: VecDeque<Row>,
}

impl There {
    fn new(plan: &Plan, target: &Side) -> Self {
        let rows = match plan.table.kept {
            Kept::Growing { .. } => Some(Stream::new(plan.narrow(target.engine()))),
            Kept::Changing => None,
        };
        Self {
            rows,
            page: VecDeque::new(),
        }
    }

    async fn peek(&mut self, known: Option<&mut Side>) -> Result<Option<&Row>, TransferError> {
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

    async fn take(&mut self, known: Option<&mut Side>) -> Result<Option<Row>, TransferError> {
        self.peek(known).await?;
        Ok(self.page.pop_front())
    }
}
