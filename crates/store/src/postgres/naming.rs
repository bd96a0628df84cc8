//! The names that carriers give to the parts that they took.

use std::collections::HashSet;
use std::ops::Range;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::column;
use super::ending::PartReport;
use super::fault::Fault;
use crate::rows::{self, Corrupt};

const NAME_PARTS: &str = "
    INSERT INTO transit (carrier, reference, id, part, parts, taken_us)
    SELECT * FROM UNNEST($1::text[], $2::bytea[], $3::bigint[], $4::smallint[], $5::smallint[], $6::bigint[])
    ON CONFLICT (carrier, reference) DO NOTHING";
/// The row that is there is either a receipt that came first, which stays, or an older part of the same name. The newest
/// part wins, also over one that is not reported yet: a carrier that uses a name again has forgotten what it meant
/// before, and the older message ends when its time is over.
const RENAME_PARTS: &str = "
    UPDATE transit AS t SET id = g.id, part = g.part, parts = g.parts,
        taken_us = CASE WHEN t.id IS NULL THEN t.taken_us ELSE g.at_us END,
        status = CASE WHEN t.id IS NULL THEN t.status END, error = CASE WHEN t.id IS NULL THEN t.error END,
        report = CASE WHEN t.id IS NULL THEN t.report END
    FROM UNNEST($1::text[], $2::bytea[], $3::bigint[], $4::smallint[], $5::smallint[], $6::bigint[])
        AS g (carrier, reference, id, part, parts, at_us)
    WHERE t.carrier = g.carrier AND t.reference = g.reference AND t.id IS DISTINCT FROM g.id
    RETURNING t.id, t.parts, t.status, t.error, t.taken_us, t.report";

/// What carriers call the parts of one message.
pub(super) struct Names<'a> {
    pub(super) id: i64,
    pub(super) carrier: &'a str,
    pub(super) references: Vec<&'a str>,
    pub(super) at_us: i64,
}

/// Parts as [`NAME_PARTS`] and [`RENAME_PARTS`] take them.
#[derive(Default)]
pub(super) struct NameColumns<'a> {
    carrier: Vec<&'a str>,
    reference: Vec<&'a [u8]>,
    id: Vec<i64>,
    part: Vec<i16>,
    parts: Vec<i16>,
    at_us: Vec<i64>,
}

impl<'a> NameColumns<'a> {
    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.id.len()
    }

    /// All parts of what was moved: the first ones, which have their names already, come first.
    pub(super) fn of(names: &'a [Names<'_>], settled: &HashSet<i64>) -> Self {
        let mut parts = Self::default();
        let settled = || names.iter().filter(|names| settled.contains(&names.id));
        for names in settled() {
            parts.push(names, 0..1);
        }
        for names in settled() {
            parts.push(names, 1..names.references.len());
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
        }
    }

    /// Names all but the first parts, and returns how many.
    pub(super) async fn name_rest(&self, transaction: &Transaction<'_>) -> Result<u64, Fault> {
        let rest = self.part.iter().take_while(|part| **part == 1).count();
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
        ];
        Ok(transaction.execute(&statement, values).await?)
    }

    /// Takes over names that were in the table, with the receipts that came first.
    pub(super) async fn rename(
        &self,
        transaction: &Transaction<'_>,
        reports: &mut Vec<PartReport>,
    ) -> Result<(), Fault> {
        let statement = transaction.prepare_cached(RENAME_PARTS).await?;
        let values: super::Values<'_> = &[
            &self.carrier,
            &self.reference,
            &self.id,
            &self.part,
            &self.parts,
            &self.at_us,
        ];
        for row in transaction.query(&statement, values).await? {
            let status: Option<i16> = column(&row, 2)?;
            if status.is_some() {
                reports.push(read_report(&row, status)?);
            }
        }
        Ok(())
    }
}

fn read_report(row: &Row, status: Option<i16>) -> Result<PartReport, Corrupt> {
    Ok(PartReport {
        id: column(row, 0)?,
        parts: column(row, 1)?,
        outcome: rows::outcome(status, column(row, 3)?)?,
        taken: true,
        at_us: column(row, 4)?,
        report: column(row, 5)?,
    })
}

pub(super) fn count(references: &[&str]) -> i16 {
    i16::try_from(references.len()).unwrap_or(i16::MAX)
}
