//! Receipts.

use std::collections::HashMap;

use deadpool_postgres::{Object, Transaction};
use domain::delivery::{CarrierRef, Receipt, TakenParts};
use domain::ids::NodeId;
use domain::kill_point::{KillPoint, pass};
use domain::receipt_match::NumberTail;
use tokio_postgres::Row;

use super::attempt::Attempt;
use super::column;
use super::ending::{self, PartReport, Progress};
use super::fault::{Fault, Raced};
use super::naming::{self, Reference};
use crate::rows::dispatch::MatchedColumns;
use crate::rows::{Corrupt, micros, outcome_numbers};

/// Reports on parts that wait for one: by the reference as it is written, else by another form of it for the same
/// recipient; of several the newest. Without a recipient only the reference as it is written decides.
const REPORT: &str = "
    WITH given AS MATERIALIZED (
        SELECT * FROM UNNEST($1::int[], $2::text[], $3::bytea[], $4::smallint[], $5::int[], $6::smallint[], $7::smallint[])
            AS g (place, carrier, reference, form, tail, status, error)
    ), open AS MATERIALIZED (
        SELECT DISTINCT ON (g.place) g.place, g.status, g.error, t.carrier, t.reference, t.former
        FROM given AS g JOIN transit AS t ON t.carrier = g.carrier AND t.reference = g.reference
        WHERE t.id IS NOT NULL AND t.status IS NULL
            AND (t.tail = g.tail OR (g.form = 0 AND (t.tail IS NULL OR g.tail IS NULL)))
        ORDER BY g.place, g.form, t.former <> 0, t.former DESC
    )
    UPDATE transit AS t SET status = o.status, error = o.error FROM open AS o
    WHERE t.carrier = o.carrier AND t.reference = o.reference AND t.former = o.former AND t.status IS NULL
    RETURNING o.place, t.id, t.parts";
/// Waits for a transaction that is naming the same part at this moment.
const KEEP: &str = "
    INSERT INTO transit (carrier, reference, status, error, taken_us, report, tail, alias_of)
    SELECT * FROM UNNEST($1::text[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bigint[], $6::text[], $7::int[],
        $8::bytea[])
    ON CONFLICT (carrier, reference, former) DO NOTHING";
/// What is known under each reference: parts that the receipt fits, and the receipt itself.
const FIND: &str = "
    SELECT g.place, t.id IS NOT NULL, t.status IS NOT NULL
    FROM UNNEST($1::int[], $2::text[], $3::bytea[], $4::smallint[], $5::int[]) AS g (place, carrier, reference, form, tail)
    JOIN transit AS t ON t.carrier = g.carrier AND t.reference = g.reference
    WHERE CASE WHEN t.id IS NULL THEN g.form = 0 AND t.alias_of IS NULL AND t.tail IS NOT DISTINCT FROM g.tail
        ELSE t.tail = g.tail OR (g.form = 0 AND (t.tail IS NULL OR g.tail IS NULL)) END";
/// The current uses of the references that are not the receipt itself: whoever names a part by one of them locks it, too.
const LOCK_USES: &str = "
    SELECT 1 FROM transit AS t
    JOIN UNNEST($1::text[], $2::bytea[], $3::int[]) AS g (carrier, reference, tail)
        ON t.carrier = g.carrier AND t.reference = g.reference
    WHERE t.former = 0 AND (t.id IS NOT NULL OR t.tail IS DISTINCT FROM g.tail)
    ORDER BY t.carrier, t.reference FOR UPDATE OF t";
const COUNT_USES: &str = "
    SELECT count(*) FROM transit AS t
    JOIN UNNEST($1::text[], $2::bytea[], $3::int[]) AS g (carrier, reference, tail)
        ON t.carrier = g.carrier AND t.reference = g.reference
    WHERE t.former = 0 AND (t.id IS NOT NULL OR t.tail IS DISTINCT FROM g.tail)";
const KEEP_BESIDE: &str = "
    INSERT INTO transit (carrier, reference, former, status, error, taken_us, report, tail)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

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
        let holder = self.hold.then_some(self.node);
        // Once, unless two receipts of the batch fit the same part and one of them fits another, too.
        loop {
            let columns = Columns::of(answers.open());
            if columns.place.is_empty() {
                break;
            }
            let (places, reports) = columns.report(&transaction, self.batch).await?;
            if places.is_empty() {
                keep_unmatched(&transaction, &mut answers).await?;
                break;
            }
            let progress = ending::report(&transaction, holder, &reports).await?;
            answers.note(places, progress);
        }
        pass(KillPoint::ReceiptInside);
        transaction.commit().await?;
        Ok(answers.finish())
    }
}

/// What is known so far of each receipt of a batch.
struct Answers<'a> {
    batch: &'a [Receipt],
    /// The first receipt for the same reference and recipient, which may be itself.
    first: Vec<usize>,
    known: Vec<Option<MatchedColumns>>,
}

impl<'a> Answers<'a> {
    fn of(batch: &'a [Receipt]) -> Self {
        let mut seen: HashMap<(&CarrierRef, Option<NumberTail>), usize> =
            HashMap::with_capacity(batch.len());
        let first = batch
            .iter()
            .enumerate()
            .map(|(place, receipt)| *seen.entry((&receipt.of, receipt.to)).or_insert(place));
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

/// Receipts as the statements take them: one row for each form of the reference.
#[derive(Default)]
struct Columns<'a> {
    place: Vec<i32>,
    carrier: Vec<&'a str>,
    reference: Vec<Vec<u8>>,
    /// 0 for the reference as the receipt has it.
    form: Vec<i16>,
    tail: Vec<Option<i32>>,
    status: Vec<i16>,
    error: Vec<i16>,
    at_us: Vec<i64>,
    report: Vec<Option<&'a str>>,
    alias_of: Vec<Option<&'a [u8]>>,
}

impl<'a> Columns<'a> {
    fn of(receipts: impl Iterator<Item = (usize, &'a Receipt)>) -> Self {
        let mut columns = Self::default();
        for (place, receipt) in receipts {
            let own = receipt.of.reference.as_bytes();
            // Another form counts only for the same recipient.
            let forms = match receipt.to {
                Some(_) => naming::forms(own),
                None => vec![own.to_vec()],
            };
            for (form, reference) in (0..).zip(forms) {
                columns.push(place, receipt, form, reference);
            }
        }
        columns
    }

    fn push(&mut self, place: usize, receipt: &'a Receipt, form: i16, reference: Vec<u8>) {
        let (status, error) = outcome_numbers(receipt.outcome);
        let place = i32::try_from(place).expect("a batch is bounded far below");
        let own = receipt.of.reference.as_bytes();
        self.place.push(place);
        self.carrier.push(&receipt.of.carrier);
        self.reference.push(reference);
        self.form.push(form);
        self.tail.push(receipt.to.map(NumberTail::as_i32));
        self.status.push(status);
        self.error.push(error);
        self.at_us.push(micros(receipt.at));
        self.report.push(receipt.report.as_deref());
        self.alias_of.push((form > 0).then_some(own));
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
            &self.form,
            &self.tail,
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
                taken: TakenParts::All,
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

    /// Stores receipts under each form of their reference that is free.
    async fn keep(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let statement = transaction.prepare_cached(KEEP).await?;
        let values: super::Values<'_> = &[
            &self.carrier,
            &self.reference,
            &self.status,
            &self.error,
            &self.at_us,
            &self.report,
            &self.tail,
            &self.alias_of,
        ];
        transaction.execute(&statement, values).await?;
        Ok(())
    }

    /// Locks what else uses the references, so that nobody names a part by one of them until this is committed.
    async fn lock(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let lock = transaction.prepare_cached(LOCK_USES).await?;
        let count = transaction.prepare_cached(COUNT_USES).await?;
        let values: super::Values<'_> = &[&self.carrier, &self.reference, &self.tail];
        loop {
            let locked = transaction.query(&lock, values).await?.len();
            let there: i64 = column(&transaction.query_one(&count, values).await?, 0)?;
            // Whoever held a lock may have put another use in its place, which the wait did not see.
            if usize::try_from(there).is_ok_and(|there| there <= locked) {
                return Ok(());
            }
        }
    }

    /// What is known under the references, by place.
    async fn find(&self, transaction: &Transaction<'_>) -> Result<HashMap<usize, Known>, Fault> {
        let statement = transaction.prepare_cached(FIND).await?;
        let values: super::Values<'_> = &[
            &self.place,
            &self.carrier,
            &self.reference,
            &self.form,
            &self.tail,
        ];
        let mut found: HashMap<usize, Known> = HashMap::new();
        for row in transaction.query(&statement, values).await? {
            let known = found.entry(read_place(&row)?).or_default();
            match (column(&row, 1)?, column(&row, 2)?) {
                (true, true) => known.is_reported = true,
                (true, false) => known.is_open = true,
                (false, _) => known.is_kept = true,
            }
        }
        Ok(found)
    }
}

/// What is known of the part that a receipt is about.
#[derive(Default, Clone, Copy)]
struct Known {
    is_reported: bool,
    is_open: bool,
    /// The receipt, or the same one before it, is kept.
    is_kept: bool,
}

/// Keeps receipts for which no part is known, the first for each reference and recipient.
async fn keep_unmatched(
    transaction: &Transaction<'_>,
    answers: &mut Answers<'_>,
) -> Result<(), Fault> {
    let unmatched = Columns::of(answers.open());
    if unmatched.place.is_empty() {
        return Ok(());
    }
    let known = unmatched.find(transaction).await?;
    for (place, known) in known {
        match known {
            // It was named since we looked for it: the next try reports on it.
            Known { is_open: true, .. } => return Err(Raced.into()),
            Known {
                is_reported: true, ..
            } => answers.known[place] = Some(MatchedColumns::Repeated),
            Known { is_kept, .. } => {
                answers.known[place] = is_kept.then_some(MatchedColumns::Kept);
            }
        }
    }
    let new = Columns::of(answers.open());
    if new.place.is_empty() {
        return Ok(());
    }
    new.keep(transaction).await?;
    new.lock(transaction).await?;
    let known = new.find(transaction).await?;
    let open: Vec<_> = answers.open().collect();
    for (place, receipt) in open {
        let known = known.get(&place).copied().unwrap_or_default();
        if known.is_open || known.is_reported {
            return Err(Raced.into());
        }
        if !known.is_kept {
            keep_beside(transaction, receipt).await?;
        }
        answers.known[place] = Some(MatchedColumns::Kept);
    }
    Ok(())
}

/// Keeps a receipt whose reference is in use for another recipient.
async fn keep_beside(transaction: &Transaction<'_>, receipt: &Receipt) -> Result<(), Fault> {
    let used = Reference {
        carrier: &receipt.of.carrier,
        reference: receipt.of.reference.as_bytes(),
    };
    used.lock(transaction).await?;
    // Only now nobody else can name a part by that reference.
    let known = Columns::of(std::iter::once((0, receipt)))
        .find(transaction)
        .await?;
    if !known.is_empty() {
        return Err(Raced.into());
    }
    let former = used.next_use(transaction).await?;
    let (status, error) = outcome_numbers(receipt.outcome);
    let statement = transaction.prepare_cached(KEEP_BESIDE).await?;
    let values: super::Values<'_> = &[
        &used.carrier,
        &used.reference,
        &former,
        &status,
        &error,
        &micros(receipt.at),
        &receipt.report,
        &receipt.to.map(NumberTail::as_i32),
    ];
    transaction.execute(&statement, values).await?;
    Ok(())
}

fn read_place(row: &Row) -> Result<usize, Corrupt> {
    usize::try_from(column::<i32>(row, 0)?).map_err(|_| Corrupt("place"))
}
