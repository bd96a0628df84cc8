//! Receipts.

use std::collections::HashMap;

use deadpool_postgres::{Object, Transaction};
use domain::delivery::{CarrierRef, Receipt};
use domain::ids::NodeId;
use tokio_postgres::Row;

use super::attempt::Attempt;
use super::column;
use super::ending::{self, PartReport, Progress};
use super::fault::{Fault, Raced};
use crate::rows::dispatch::MatchedColumns;
use crate::rows::{Corrupt, micros, outcome_numbers};

const REPORT: &str = "
    UPDATE transit AS t SET status = g.status, error = g.error
    FROM UNNEST($1::int[], $2::text[], $3::bytea[], $4::smallint[], $5::smallint[])
        AS g (place, carrier, reference, status, error)
    WHERE t.carrier = g.carrier AND t.reference = g.reference AND t.status IS NULL
    RETURNING g.place, t.id, t.parts";
/// Waits for a transaction that is naming the same part at this moment.
const KEEP: &str = "
    INSERT INTO transit (carrier, reference, status, error, taken_us, report)
    SELECT * FROM UNNEST($1::text[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bigint[], $6::text[])
    ON CONFLICT (carrier, reference) DO NOTHING";
const FIND: &str = "
    SELECT g.place, t.id, t.status FROM UNNEST($1::int[], $2::text[], $3::bytea[]) AS g (place, carrier, reference)
    JOIN transit AS t ON t.carrier = g.carrier AND t.reference = g.reference";

/// A batch of receipts.
pub(super) struct Receipts<'a> {
    pub(super) node: NodeId,
    pub(super) batch: &'a [Receipt],
    pub(super) hold: bool,
}

impl Attempt for Receipts<'_> {
    type Output = Vec<MatchedColumns>;

    async fn run(&self, client: &mut Object) -> Result<Vec<MatchedColumns>, Fault> {
        let mut answers = Answers::of(self.batch);
        let transaction = client.transaction().await?;
        let columns = Columns::of(answers.open());
        let (places, reports) = columns.report(&transaction, self.batch).await?;
        let holder = self.hold.then_some(self.node);
        let progress = ending::report(&transaction, holder, &reports).await?;
        answers.note(places, progress);
        let unmatched = Columns::of(answers.open());
        if !unmatched.place.is_empty() {
            unmatched.keep(&transaction, &mut answers).await?;
        }
        transaction.commit().await?;
        Ok(answers.finish())
    }
}

/// What is known so far of each receipt of a batch.
struct Answers<'a> {
    batch: &'a [Receipt],
    /// The first receipt for the same part, which may be itself.
    first: Vec<usize>,
    known: Vec<Option<MatchedColumns>>,
}

impl<'a> Answers<'a> {
    fn of(batch: &'a [Receipt]) -> Self {
        let mut seen: HashMap<&CarrierRef, usize> = HashMap::with_capacity(batch.len());
        let first = batch
            .iter()
            .enumerate()
            .map(|(place, receipt)| *seen.entry(&receipt.of).or_insert(place));
        Self {
            first: first.collect(),
            batch,
            known: batch.iter().map(|_| None).collect(),
        }
    }

    /// The first receipt for each part that has no answer yet.
    fn open(&self) -> impl Iterator<Item = (usize, &'a Receipt)> {
        let batch = self.batch.iter().enumerate();
        batch.filter(|(place, _)| self.first[*place] == *place && self.known[*place].is_none())
    }

    fn note(&mut self, places: Vec<usize>, progress: Vec<Progress>) {
        for (place, progress) in places.into_iter().zip(progress) {
            self.known[place] = Some(match progress {
                Progress::Ended(columns) => MatchedColumns::Ended(columns),
                Progress::GoesOn => MatchedColumns::Noted,
                Progress::WasOver => MatchedColumns::Repeated,
            });
        }
    }

    /// The answers in the order of the batch. Whatever comes twice is repeated, or kept once.
    fn finish(self) -> Vec<MatchedColumns> {
        let kept: Vec<bool> = self
            .known
            .iter()
            .map(|known| matches!(known, Some(MatchedColumns::Kept)))
            .collect();
        let first = self.first;
        let answer = |(place, known): (usize, Option<MatchedColumns>)| match known {
            Some(known) => known,
            None if kept[first[place]] => MatchedColumns::Kept,
            None => MatchedColumns::Repeated,
        };
        self.known.into_iter().enumerate().map(answer).collect()
    }
}

/// Receipts as the statements take them.
#[derive(Default)]
struct Columns<'a> {
    place: Vec<i32>,
    carrier: Vec<&'a str>,
    reference: Vec<&'a [u8]>,
    status: Vec<i16>,
    error: Vec<i16>,
    at_us: Vec<i64>,
    report: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(receipts: impl Iterator<Item = (usize, &'a Receipt)>) -> Self {
        let mut columns = Self::default();
        for (place, receipt) in receipts {
            let (status, error) = outcome_numbers(receipt.outcome);
            let place = i32::try_from(place).expect("a batch is bounded far below");
            columns.place.push(place);
            columns.carrier.push(&receipt.of.carrier);
            columns.reference.push(receipt.of.reference.as_bytes());
            columns.status.push(status);
            columns.error.push(error);
            columns.at_us.push(micros(receipt.at));
            columns.report.push(receipt.report.as_deref());
        }
        columns
    }

    /// Stores reports on parts that wait for one, and returns them in the order of the batch, with their places.
    async fn report(
        &self,
        transaction: &Transaction<'_>,
        batch: &[Receipt],
    ) -> Result<(Vec<usize>, Vec<PartReport>), Fault> {
        let statement = transaction.prepare_cached(REPORT).await?;
        let values: super::Values<'_> = &[
            &self.place,
            &self.carrier,
            &self.reference,
            &self.status,
            &self.error,
        ];
        let reported = transaction.query(&statement, values).await?;
        let read = |row: &Row| {
            let place = read_place(row)?;
            let report = PartReport {
                id: column(row, 1)?,
                parts: column(row, 2)?,
                outcome: batch[place].outcome,
                taken: true,
                at_us: micros(batch[place].at),
                report: batch[place].report.clone(),
            };
            Ok((place, report))
        };
        let reports: Result<Vec<_>, Corrupt> = reported.iter().map(read).collect();
        let mut reports = reports?;
        reports.sort_unstable_by_key(|(place, _)| *place);
        Ok(reports.into_iter().unzip())
    }

    /// Keeps receipts for which no part is known, the first for each.
    async fn keep(
        &self,
        transaction: &Transaction<'_>,
        answers: &mut Answers<'_>,
    ) -> Result<(), Fault> {
        let statement = transaction.prepare_cached(KEEP).await?;
        let values: super::Values<'_> = &[
            &self.carrier,
            &self.reference,
            &self.status,
            &self.error,
            &self.at_us,
            &self.report,
        ];
        transaction.execute(&statement, values).await?;
        let statement = transaction.prepare_cached(FIND).await?;
        let values: super::Values<'_> = &[&self.place, &self.carrier, &self.reference];
        for row in transaction.query(&statement, values).await? {
            let (id, status): (Option<i64>, Option<i16>) = (column(&row, 1)?, column(&row, 2)?);
            let answer = match (id, status) {
                (None, _) => MatchedColumns::Kept,
                (Some(_), Some(_)) => MatchedColumns::Repeated,
                // It was named since we looked for it: the next try reports on it.
                (Some(_), None) => return Err(Raced.into()),
            };
            answers.known[read_place(&row)?] = Some(answer);
        }
        Ok(())
    }
}

fn read_place(row: &Row) -> Result<usize, Corrupt> {
    usize::try_from(column::<i32>(row, 0)?).map_err(|_| Corrupt("place"))
}
