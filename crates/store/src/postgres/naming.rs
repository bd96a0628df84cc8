//! The references that carriers give to the parts that they took.
//!
//! A part takes the current place of its reference, `former = 0`. In the common case that place is free and one insert
//! does it. Otherwise it holds a receipt that came first, or an earlier part of the same reference.

use std::collections::HashSet;
use std::ops::Range;

use deadpool_postgres::Transaction;
use domain::delivery::TakenParts;
use domain::receipt_match::other_forms;
use tokio_postgres::Row;

use super::column;
use super::ending::PartReport;
use super::fault::{Fault, Raced};
use crate::rows::dispatch::KEPT_USES;
use crate::rows::{self, Corrupt};

const NAME_PARTS: &str = "
    INSERT INTO transit (carrier, reference, id, part, parts, taken_us, tail)
    SELECT * FROM UNNEST($1::text[], $2::bytea[], $3::bigint[], $4::smallint[], $5::smallint[], $6::bigint[], $7::int[])
    ON CONFLICT (carrier, reference, former) DO NOTHING";
const FIND_UNNAMED: &str = "
    SELECT g.place FROM UNNEST($1::int[], $2::text[], $3::bytea[], $4::bigint[]) AS g (place, carrier, reference, id)
    WHERE NOT EXISTS (
        SELECT 1 FROM transit AS t WHERE t.carrier = g.carrier AND t.reference = g.reference AND t.id = g.id
    )
    ORDER BY g.place";
/// Whoever changes the uses of a reference locks its current one first.
const LOCK_CURRENT: &str = "
    SELECT alias_of IS NOT NULL FROM transit WHERE carrier = $1 AND reference = $2 AND former = 0 FOR UPDATE";
const HAS_CURRENT: &str = "
    SELECT EXISTS (SELECT 1 FROM transit WHERE carrier = $1 AND reference = $2 AND former = 0)";
/// A receipt that came first: in the same form, unless the recipient differs, or in another form for the same recipient.
const FIND_EARLY: &str = "
    SELECT coalesce(alias_of, reference), tail, status, error, taken_us, report FROM transit
    WHERE carrier = $1 AND reference = ANY($2::bytea[]) AND id IS NULL
        AND (tail = $4 OR (reference = $3 AND alias_of IS NULL AND tail IS NULL))
    ORDER BY reference <> $3, taken_us LIMIT 1";
const REMOVE_EARLY: &str = "
    DELETE FROM transit
    WHERE carrier = $1 AND reference = ANY($2::bytea[]) AND id IS NULL AND coalesce(alias_of, reference) = $3
        AND tail IS NOT DISTINCT FROM $4";
const REMOVE_ALIAS: &str = "
    DELETE FROM transit WHERE carrier = $1 AND reference = $2 AND former = 0 AND alias_of IS NOT NULL";
const NEXT_USE: &str = "
    SELECT coalesce(max(former), 0) + 1 FROM transit WHERE carrier = $1 AND reference = $2";
const SUPERSEDE: &str =
    "UPDATE transit SET former = $3 WHERE carrier = $1 AND reference = $2 AND former = 0";
const REMOVE_OLD_USES: &str = "
    DELETE FROM transit WHERE carrier = $1 AND reference = $2 AND former BETWEEN 1 AND $3";
const NAME_AGAIN: &str = "
    INSERT INTO transit (carrier, reference, id, part, parts, taken_us, tail, status, error)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (carrier, reference, former) DO NOTHING";

/// What carriers call the parts of one message.
pub(super) struct Names<'a> {
    pub(super) id: i64,
    pub(super) carrier: &'a str,
    pub(super) references: Vec<&'a str>,
    pub(super) at_us: i64,
    pub(super) tail: i32,
    /// Whether its first part is named along with the queue row.
    pub(super) is_moved: bool,
}

/// Parts as [`NAME_PARTS`] takes them.
#[derive(Default)]
pub(super) struct NameColumns<'a> {
    carrier: Vec<&'a str>,
    reference: Vec<&'a [u8]>,
    id: Vec<i64>,
    part: Vec<i16>,
    parts: Vec<i16>,
    at_us: Vec<i64>,
    tail: Vec<i32>,
    /// How many of them have their names already: those that come first.
    named: usize,
}

impl<'a> NameColumns<'a> {
    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.id.len()
    }

    /// All parts of what was settled: the ones that are named already come first.
    pub(super) fn of(names: &'a [Names<'_>], settled: &HashSet<i64>) -> Self {
        let mut parts = Self::default();
        let settled = || names.iter().filter(|names| settled.contains(&names.id));
        for names in settled().filter(|names| names.is_moved) {
            parts.push(names, 0..1);
        }
        parts.named = parts.id.len();
        for names in settled() {
            parts.push(names, usize::from(names.is_moved)..names.references.len());
        }
        parts
    }

    fn push(&mut self, names: &'a Names<'_>, range: Range<usize>) {
        let parts = count(&names.references);
        for (reference, part) in names
            .references
            .iter()
            .zip(1..)
            .take(range.end)
            .skip(range.start)
        {
            self.carrier.push(names.carrier);
            self.reference.push(reference.as_bytes());
            self.id.push(names.id);
            self.part.push(part);
            self.parts.push(parts);
            self.at_us.push(names.at_us);
            self.tail.push(names.tail);
        }
    }

    /// Names the parts that have no name yet, and returns how many.
    pub(super) async fn name_rest(&self, transaction: &Transaction<'_>) -> Result<u64, Fault> {
        let rest = self.named;
        if rest == self.id.len() {
            return Ok(0);
        }
        let statement = transaction.prepare_cached(NAME_PARTS).await?;
        let values: super::Values<'_> = &[
            &&self.carrier[rest..],
            &&self.reference[rest..],
            &&self.id[rest..],
            &&self.part[rest..],
            &&self.parts[rest..],
            &&self.at_us[rest..],
            &&self.tail[rest..],
        ];
        Ok(transaction.execute(&statement, values).await?)
    }

    /// Names the parts whose references were in use, with the receipts that came first.
    pub(super) async fn name_again(
        &self,
        transaction: &Transaction<'_>,
        reports: &mut Vec<PartReport>,
    ) -> Result<(), Fault> {
        let places: Vec<i32> = (0..).take(self.id.len()).collect();
        let statement = transaction.prepare_cached(FIND_UNNAMED).await?;
        let values: super::Values<'_> = &[&places, &self.carrier, &self.reference, &self.id];
        for row in transaction.query(&statement, values).await? {
            let place = usize::try_from(column::<i32>(&row, 0)?).map_err(|_| Corrupt("place"))?;
            reports.extend(self.name_one(transaction, place).await?);
        }
        Ok(())
    }

    async fn name_one(
        &self,
        transaction: &Transaction<'_>,
        place: usize,
    ) -> Result<Option<PartReport>, Fault> {
        let used = Reference {
            carrier: self.carrier[place],
            reference: self.reference[place],
        };
        let is_alias = used.lock(transaction).await?;
        let early = used.take_early(transaction, self.tail[place]).await?;
        if is_alias == Some(true) {
            let statement = transaction.prepare_cached(REMOVE_ALIAS).await?;
            transaction
                .execute(&statement, &[&used.carrier, &used.reference])
                .await?;
        } else {
            used.supersede(transaction).await?;
        }
        let (status, error) = early.as_ref().map_or((None, None), Early::numbers);
        let statement = transaction.prepare_cached(NAME_AGAIN).await?;
        let values: super::Values<'_> = &[
            &used.carrier,
            &used.reference,
            &self.id[place],
            &self.part[place],
            &self.parts[place],
            &self.at_us[place],
            &self.tail[place],
            &status,
            &error,
        ];
        if transaction.execute(&statement, values).await? == 0 {
            return Err(Raced.into());
        }
        let (id, parts) = (self.id[place], self.parts[place]);
        early.map(|early| early.report(id, parts)).transpose()
    }
}

/// A reference of a carrier, whatever it is used for.
#[derive(Clone, Copy)]
pub(super) struct Reference<'a> {
    pub(super) carrier: &'a str,
    pub(super) reference: &'a [u8],
}

impl Reference<'_> {
    /// Locks its current use; says whether that is another form of a receipt.
    pub(super) async fn lock(&self, transaction: &Transaction<'_>) -> Result<Option<bool>, Fault> {
        let lock = transaction.prepare_cached(LOCK_CURRENT).await?;
        let exists = transaction.prepare_cached(HAS_CURRENT).await?;
        let values: super::Values<'_> = &[&self.carrier, &self.reference];
        loop {
            if let Some(row) = transaction.query_opt(&lock, values).await? {
                return Ok(Some(column(&row, 0)?));
            }
            // Whoever held the lock may have put another use in its place, which the wait did not see.
            if !column::<bool>(&transaction.query_one(&exists, values).await?, 0)? {
                return Ok(None);
            }
        }
    }

    /// The number of its next former use. What is too old to be told apart is forgotten.
    pub(super) async fn next_use(&self, transaction: &Transaction<'_>) -> Result<i32, Fault> {
        let values: super::Values<'_> = &[&self.carrier, &self.reference];
        let statement = transaction.prepare_cached(NEXT_USE).await?;
        let next: i32 = column(&transaction.query_one(&statement, values).await?, 0)?;
        if next > KEPT_USES {
            let statement = transaction.prepare_cached(REMOVE_OLD_USES).await?;
            let oldest = next - KEPT_USES;
            let values: super::Values<'_> = &[&self.carrier, &self.reference, &oldest];
            transaction.execute(&statement, values).await?;
        }
        Ok(next)
    }

    /// Makes its current use a former one.
    async fn supersede(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let next = self.next_use(transaction).await?;
        let statement = transaction.prepare_cached(SUPERSEDE).await?;
        let values: super::Values<'_> = &[&self.carrier, &self.reference, &next];
        transaction.execute(&statement, values).await?;
        Ok(())
    }

    /// Takes the receipt out that came before the part, in all its forms.
    async fn take_early(
        &self,
        transaction: &Transaction<'_>,
        tail: i32,
    ) -> Result<Option<Early>, Fault> {
        let forms = forms(self.reference);
        let statement = transaction.prepare_cached(FIND_EARLY).await?;
        let values: super::Values<'_> = &[&self.carrier, &forms, &self.reference, &tail];
        let Some(row) = transaction.query_opt(&statement, values).await? else {
            return Ok(None);
        };
        let (reference, tail): (Vec<u8>, Option<i32>) = (column(&row, 0)?, column(&row, 1)?);
        let statement = transaction.prepare_cached(REMOVE_EARLY).await?;
        let written = self::forms(&reference);
        let values: super::Values<'_> = &[&self.carrier, &written, &reference, &tail];
        transaction.execute(&statement, values).await?;
        Ok(Some(Early::read(&row)?))
    }
}

/// A reference with the other forms that it may be written in.
pub(super) fn forms(reference: &[u8]) -> Vec<Vec<u8>> {
    let others = str::from_utf8(reference).map(other_forms);
    let others = others.unwrap_or_default().into_iter();
    std::iter::once(reference.to_vec())
        .chain(others.map(String::into_bytes))
        .collect()
}

/// A receipt that came before the carrier's answer.
struct Early {
    status: Option<i16>,
    error: Option<i16>,
    at_us: i64,
    report: Option<String>,
}

impl Early {
    fn read(row: &Row) -> Result<Self, Corrupt> {
        Ok(Self {
            status: column(row, 2)?,
            error: column(row, 3)?,
            at_us: column(row, 4)?,
            report: column(row, 5)?,
        })
    }

    fn numbers(&self) -> (Option<i16>, Option<i16>) {
        (self.status, self.error)
    }

    fn report(self, id: i64, parts: i16) -> Result<PartReport, Fault> {
        Ok(PartReport {
            id,
            parts,
            outcome: rows::outcome(self.status, self.error)?,
            taken: TakenParts::All,
            at_us: self.at_us,
            report: self.report,
        })
    }
}

pub(super) fn count(references: &[&str]) -> i16 {
    i16::try_from(references.len()).unwrap_or(i16::MAX)
}
