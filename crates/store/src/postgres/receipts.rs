//! Matches receipts with parts.
//!
//! A receipt without a known part is stored in `early_receipt` until the part has a reference (`early_receipts.rs`).

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{GenericClient, Object, Transaction};
use domain::Network;
use domain::delivery::receipt_match::{NumberTail, other_forms};
use domain::delivery::{CarrierRef, Receipt};
use domain::ids::NodeId;
use domain::kill_point::{KillPoint, pass};
use domain::message::outcome::TakenParts;
use tokio_postgres::Row;

use super::column;
use super::day_statements::DayStatements;
use super::ending::{self, PartReport, Progress};
use super::fault::{Fault, SerializationConflict};
use super::retry::Retryable;
use super::transaction::commit;
use crate::rows::dispatch::{MAX_USES, NO_TAIL};
use crate::rows::ended::MatchedColumns;
use crate::rows::records::SentColumns;
use crate::rows::{Corrupt, micros, outcome_numbers};

/// The newest parts with the reference `g.reference` since a time.
macro_rules! newest_uses {
    ($since:literal, $limit:literal) => {
        concat!(
            "SELECT id, taken_us, status, tail FROM transit
            WHERE carrier = g.carrier AND reference = g.reference AND taken_us >= ",
            $since,
            " ORDER BY taken_us DESC, id DESC LIMIT ",
            $limit
        )
    };
}

/// Whether a receipt `g` may belong to a part `t`: another form of the reference counts only for the same recipient.
macro_rules! same_recipient {
    () => {
        "(t.tail = g.tail OR (g.form = 0 AND (t.tail IS NULL OR g.tail IS NULL)))"
    };
}

/// Stores receipts of parts that wait for one: found by the reference as received, or by another form of it; the newest
/// part wins.
const REPORT: &str = concat!(
    "WITH given AS MATERIALIZED (
        SELECT * FROM UNNEST($1::int[], $2::text[], $3::bytea[], $4::smallint[], $5::int[], $6::smallint[], $7::smallint[])
            AS g (place, carrier, reference, form, tail, status, error)
    ), open AS MATERIALIZED (
        SELECT DISTINCT ON (g.place) g.place, g.status, g.error, g.carrier, g.reference, t.taken_us, t.id
        FROM given AS g CROSS JOIN LATERAL (
            SELECT t.taken_us, t.id FROM (",
    newest_uses!("$8::bigint", "$9"),
    ") AS t WHERE t.status IS NULL AND ",
    same_recipient!(),
    " ORDER BY t.taken_us DESC, t.id DESC LIMIT 1
        ) AS t
        ORDER BY g.place, g.form
    )
    UPDATE transit AS t SET status = o.status, error = o.error FROM open AS o
    WHERE t.carrier = ANY(ARRAY[o.carrier]) AND t.reference = o.reference AND t.taken_us = ANY(ARRAY[o.taken_us])
        AND t.id = ANY(ARRAY[o.id]) AND t.status IS NULL
    RETURNING o.place, t.id, t.parts, t.taken_us, t.cost_micros"
);
/// The receipts whose parts are known, and whether one of these parts still waits.
const FIND: &str = concat!(
    "SELECT g.place, bool_or(t.status IS NULL)
    FROM UNNEST($1::int[], $2::text[], $3::bytea[], $4::smallint[], $5::int[]) AS g (place, carrier, reference, form, tail)
    CROSS JOIN LATERAL (",
    newest_uses!("-9223372036854775807", "$6"),
    ") AS t WHERE ",
    same_recipient!(),
    " GROUP BY g.place"
);
const INSERT_EARLY: &str = "
    INSERT INTO early_receipt (carrier, reference, tail, status, error, taken_us, report, network)
    SELECT * FROM UNNEST($1::text[], $2::bytea[], $3::int[], $4::smallint[], $5::smallint[], $6::bigint[], $7::text[],
        $8::int[])
    ON CONFLICT (carrier, reference, tail) DO NOTHING";

/// Most receipts arrive within this time after the carrier took the part.
const RECENT_US: i64 = 86_400_000_000;

/// A batch of receipts.
pub(super) struct Receipts<'a> {
    pub(super) batch: &'a [Receipt],
    pub(super) holder: Holder<'a>,
    pub(super) days: &'a DayStatements,
}

/// The node that holds the delivery reports of messages that receipts end.
#[derive(Clone, Copy)]
pub(super) struct Holder<'a> {
    node: Option<NodeId>,
    /// The caller gets the delivery reports of these messages only, so it must not hold any others.
    only: Option<&'a HashSet<i64>>,
}

impl<'a> Holder<'a> {
    pub(super) fn new(node: NodeId, hold: bool) -> Self {
        Self {
            node: hold.then_some(node),
            only: None,
        }
    }

    pub(super) fn only(self, messages: &'a HashSet<i64>) -> Self {
        Self {
            only: Some(messages),
            ..self
        }
    }

    fn node_for(&self, reports: &[PartReport]) -> Option<NodeId> {
        let is_known = |report: &PartReport| self.only.is_none_or(|only| only.contains(&report.id));
        self.node.filter(|_| reports.iter().all(is_known))
    }
}

impl Retryable for Receipts<'_> {
    type Output = Vec<MatchedColumns>;

    async fn run(&self, client: &mut Object) -> Result<Vec<MatchedColumns>, Fault> {
        let transaction = client.transaction().await?;
        let matched = settle(&transaction, self.days, self.holder, self.batch).await?;
        pass(KillPoint::ReceiptInside);
        commit(transaction).await?;
        Ok(matched)
    }
}

/// Stores the outcomes of parts, and stores receipts whose parts are not known yet.
pub(super) async fn settle(
    transaction: &Transaction<'_>,
    days: &DayStatements,
    holder: Holder<'_>,
    batch: &[Receipt],
) -> Result<Vec<MatchedColumns>, Fault> {
    let mut results = Results::from_batch(batch, days);
    let recent = Columns::from_batch(results.open(), Forms::Own);
    if recent.index.is_empty() {
        return Ok(results.finish());
    }
    let earliest_us = recent.at_us.iter().copied().min().unwrap_or_default();
    let since_us = earliest_us.saturating_sub(RECENT_US);
    results
        .report(transaction, holder, &recent, since_us)
        .await?;
    // One pass is enough, unless two receipts of the batch match the same part and one of them also matches another.
    loop {
        let rest = Columns::from_batch(results.open(), Forms::All);
        if rest.index.is_empty() {
            break;
        }
        if !results.report(transaction, holder, &rest, i64::MIN).await? {
            store_unmatched(transaction, &mut results, &rest).await?;
            break;
        }
    }
    Ok(results.finish())
}

/// The results of a batch of receipts so far.
struct Results<'a> {
    batch: &'a [Receipt],
    days: &'a DayStatements,
    /// The index of the first receipt for the same reference and recipient.
    first: Vec<usize>,
    known: Vec<Option<MatchedColumns>>,
}

impl<'a> Results<'a> {
    fn from_batch(batch: &'a [Receipt], days: &'a DayStatements) -> Self {
        let mut seen: HashMap<(&CarrierRef, Option<NumberTail>), usize> =
            HashMap::with_capacity(batch.len());
        let first = batch
            .iter()
            .enumerate()
            .map(|(index, receipt)| *seen.entry((&receipt.of, receipt.to)).or_insert(index));
        Self {
            first: first.collect(),
            batch,
            days,
            known: batch.iter().map(|_| None).collect(),
        }
    }

    /// The first receipt for each part without a result.
    fn open(&self) -> impl Iterator<Item = (usize, &'a Receipt)> {
        let batch = self.batch.iter().enumerate();
        batch.filter(|(index, _)| self.first[*index] == *index && self.known[*index].is_none())
    }

    /// Stores the outcomes of parts taken since a time; returns whether any was found.
    async fn report(
        &mut self,
        transaction: &Transaction<'_>,
        holder: Holder<'_>,
        columns: &Columns<'_>,
        since_us: i64,
    ) -> Result<bool, Fault> {
        let (indexes, reports) = columns.report(transaction, self.batch, since_us).await?;
        if indexes.is_empty() {
            return Ok(false);
        }
        let holder = holder.node_for(&reports);
        let progress = ending::report(transaction, self.days, holder, &reports).await?;
        self.set_results(indexes, progress);
        Ok(true)
    }

    fn set_results(&mut self, indexes: Vec<usize>, progress: Vec<Progress>) {
        for (index, progress) in indexes.into_iter().zip(progress) {
            self.known[index] = Some(match progress {
                Progress::Ended(columns) => MatchedColumns::Ended(columns),
                Progress::Open => MatchedColumns::Noted,
                Progress::AlreadyEnded => MatchedColumns::Repeated,
            });
        }
    }

    /// The results in the order of the batch. A duplicate receipt is a repetition, or stored like the first one.
    fn finish(self) -> Vec<MatchedColumns> {
        let stored: Vec<bool> = self
            .known
            .iter()
            .map(|known| matches!(known, Some(MatchedColumns::Kept)))
            .collect();
        let first = self.first;
        let answer = |(index, known): (usize, Option<MatchedColumns>)| match known {
            Some(known) => known,
            None if stored[first[index]] => MatchedColumns::Kept,
            None => MatchedColumns::Repeated,
        };
        self.known.into_iter().enumerate().map(answer).collect()
    }
}

/// The forms of a receipt's reference to search for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Forms {
    Own,
    All,
}

/// The parameters of the statements: one row for each form of a reference.
#[derive(Default)]
pub(super) struct Columns<'a> {
    index: Vec<i32>,
    carrier: Vec<&'a str>,
    reference: Vec<Vec<u8>>,
    /// 0 for the form that the receipt has.
    form: Vec<i16>,
    tail: Vec<Option<i32>>,
    status: Vec<i16>,
    error: Vec<i16>,
    at_us: Vec<i64>,
    report: Vec<Option<&'a str>>,
    network: Vec<Option<i32>>,
}

impl<'a> Columns<'a> {
    pub(super) fn from_batch(
        receipts: impl Iterator<Item = (usize, &'a Receipt)>,
        wanted: Forms,
    ) -> Self {
        let mut columns = Self::default();
        for (index, receipt) in receipts {
            let own = receipt.of.reference.as_str();
            columns.push(index, receipt, 0, own.as_bytes().to_vec());
            // Another form counts only for the same recipient.
            if wanted == Forms::All && receipt.to.is_some() {
                for (form, other) in (1..).zip(other_forms(own)) {
                    columns.push(index, receipt, form, other.into_bytes());
                }
            }
        }
        columns
    }

    fn push(&mut self, index: usize, receipt: &'a Receipt, form: i16, reference: Vec<u8>) {
        let (status, error) = outcome_numbers(receipt.outcome);
        let index = i32::try_from(index).expect("a batch is bounded far below");
        self.index.push(index);
        self.carrier.push(&receipt.of.carrier);
        self.reference.push(reference);
        self.form.push(form);
        self.tail.push(receipt.to.map(NumberTail::as_i32));
        self.status.push(status);
        self.error.push(error);
        self.at_us.push(micros(receipt.at));
        self.report.push(receipt.report.as_deref());
        self.network.push(receipt.network.map(Network::code));
    }

    /// Stores outcomes of parts that wait for one, and returns their indexes and reports in the order of the batch.
    async fn report(
        &self,
        transaction: &Transaction<'_>,
        batch: &[Receipt],
        since_us: i64,
    ) -> Result<(Vec<usize>, Vec<PartReport>), Fault> {
        let statement = transaction.prepare_cached(REPORT).await?;
        let values: super::Values<'_> = &[
            &self.index,
            &self.carrier,
            &self.reference,
            &self.form,
            &self.tail,
            &self.status,
            &self.error,
            &since_us,
            &i64::from(MAX_USES),
        ];
        let reported = transaction.query(&statement, values).await?;
        let read = |row: &Row| {
            let index = read_index(row)?;
            let report = PartReport {
                id: column(row, 1)?,
                parts: column(row, 2)?,
                outcome: batch[index].outcome,
                taken: TakenParts::All,
                at_us: micros(batch[index].at),
                report: batch[index].report.clone(),
                network: batch[index].network.map(Network::code),
                sent: Some(SentColumns {
                    carrier: batch[index].of.carrier.clone(),
                    at_us: column(row, 3)?,
                    cost_micros: column(row, 4)?,
                }),
            };
            Ok((index, report))
        };
        let reports: Result<Vec<_>, Corrupt> = reported.iter().map(read).collect();
        let mut reports = reports?;
        reports.sort_unstable_by_key(|(index, _)| *index);
        Ok(reports.into_iter().unzip())
    }

    /// Stores receipts until their parts are known.
    async fn store(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let tail: Vec<i32> = self
            .tail
            .iter()
            .map(|tail| tail.unwrap_or(NO_TAIL))
            .collect();
        let statement = transaction.prepare_cached(INSERT_EARLY).await?;
        let values: super::Values<'_> = &[
            &self.carrier,
            &self.reference,
            &tail,
            &self.status,
            &self.error,
            &self.at_us,
            &self.report,
            &self.network,
        ];
        transaction.execute(&statement, values).await?;
        Ok(())
    }

    /// The indexes of receipts whose parts are known, and whether one of these parts still waits.
    pub(super) async fn find(
        &self,
        client: &impl GenericClient,
    ) -> Result<HashMap<usize, bool>, Fault> {
        let statement = client.prepare_cached(FIND).await?;
        let values: super::Values<'_> = &[
            &self.index,
            &self.carrier,
            &self.reference,
            &self.form,
            &self.tail,
            &i64::from(MAX_USES),
        ];
        let found = client.query(&statement, values).await?;
        let read = |row: &Row| Ok((read_index(row)?, column(row, 1)?));
        let found: Result<_, Corrupt> = found.iter().map(read).collect();
        Ok(found?)
    }
}

/// Stores receipts whose parts are not known: the first one for each reference and recipient.
async fn store_unmatched(
    transaction: &Transaction<'_>,
    results: &mut Results<'_>,
    unmatched: &Columns<'_>,
) -> Result<(), Fault> {
    for (index, waits) in unmatched.find(transaction).await? {
        if waits {
            // Its reference was stored meanwhile: the next attempt finds the part.
            return Err(SerializationConflict.into());
        }
        results.known[index] = Some(MatchedColumns::Repeated);
    }
    let new = Columns::from_batch(results.open(), Forms::Own);
    if new.index.is_empty() {
        return Ok(());
    }
    new.store(transaction).await?;
    let indexes: Vec<usize> = results.open().map(|(index, _)| index).collect();
    for index in indexes {
        results.known[index] = Some(MatchedColumns::Kept);
    }
    Ok(())
}

fn read_index(row: &Row) -> Result<usize, Corrupt> {
    usize::try_from(column::<i32>(row, 0)?).map_err(|_| Corrupt("index"))
}
