//! Carrier references: the IDs that carriers gave to parts.

use domain::delivery::receipt_match::other_forms;
use domain::message::outcome::TakenParts;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::ending::End;
use crate::rows;
use crate::rows::records::Sent;

const INSERT_PART_REF: &str = "
    INSERT INTO transit (carrier, reference, id, part, parts, taken_us, tail, status, error, cost_micros)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
const HAS_EARLY: &str = "SELECT EXISTS (SELECT 1 FROM early_receipt)";
/// An early receipt: in the same form (`?4`), unless the recipient differs, or in another form for the same recipient.
const FIND_EARLY: &str = "
    SELECT reference, tail, status, error, taken_us, report, network FROM early_receipt
    WHERE carrier = ?1 AND reference = ?2 AND (tail = ?3 OR (?4 AND tail = -1)) ORDER BY taken_us LIMIT 1";
const REMOVE_EARLY: &str =
    "DELETE FROM early_receipt WHERE carrier = ?1 AND reference = ?2 AND tail = ?3";

/// A part that a carrier took.
pub(super) struct Part<'a> {
    pub(super) carrier: &'a str,
    pub(super) reference: &'a str,
    pub(super) id: i64,
    pub(super) number: i16,
    pub(super) parts: i16,
    pub(super) taken_us: i64,
    /// The last digits of the recipient's number.
    pub(super) tail: i32,
    /// What the carrier charges for all parts of the message.
    pub(super) cost_micros: Option<i64>,
}

impl<'a> Part<'a> {
    fn sent(&self) -> Sent<'a> {
        Sent {
            carrier: self.carrier,
            at_us: self.taken_us,
            cost_micros: self.cost_micros,
        }
    }
}

/// Stores carrier references; the statement is prepared once for a batch.
pub(super) struct CarrierRefWriter<'db> {
    db: &'db Connection,
    name_part: CachedStatement<'db>,
    /// Whether there is any early receipt. There is one writer, so this holds for the whole batch.
    has_early: bool,
}

impl<'db> CarrierRefWriter<'db> {
    pub(super) fn prepare(db: &'db Connection) -> Result<Self> {
        Ok(Self {
            db,
            name_part: db.prepare_cached(INSERT_PART_REF)?,
            has_early: db
                .prepare_cached(HAS_EARLY)?
                .query_row([], |row| row.get(0))?,
        })
    }

    /// Stores the reference of a part, and returns its early receipt, if any.
    pub(super) fn store(&mut self, part: &Part<'_>) -> Result<Option<EarlyReceipt>> {
        let early = if self.has_early {
            self.take_early(part)?
        } else {
            None
        };
        let values = params![
            part.carrier,
            part.reference.as_bytes(),
            part.id,
            part.number,
            part.parts,
            part.taken_us,
            part.tail,
            early.as_ref().map(|early| early.status),
            early.as_ref().map(|early| early.error),
            part.cost_micros
        ];
        self.name_part.execute(values)?;
        Ok(early)
    }

    /// Removes and returns the early receipt of a part.
    fn take_early(&self, part: &Part<'_>) -> Result<Option<EarlyReceipt>> {
        let mut find = self.db.prepare_cached(FIND_EARLY)?;
        let others = other_forms(part.reference);
        let own = std::iter::once((part.reference, true));
        for (reference, is_own) in own.chain(others.iter().map(|other| (other.as_str(), false))) {
            let values = params![part.carrier, reference.as_bytes(), part.tail, is_own];
            if let Some(early) = find.query_row(values, EarlyReceipt::read).optional()? {
                let values = params![part.carrier, early.reference, early.tail];
                self.db.prepare_cached(REMOVE_EARLY)?.execute(values)?;
                return Ok(Some(early));
            }
        }
        Ok(None)
    }
}

/// A receipt that arrived before the carrier's answer.
pub(super) struct EarlyReceipt {
    /// The reference in the form that the receipt had.
    reference: Vec<u8>,
    tail: i32,
    status: i16,
    error: i16,
    at_us: i64,
    report: Option<String>,
    network: Option<i32>,
}

impl EarlyReceipt {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            reference: row.get(0)?,
            tail: row.get(1)?,
            status: row.get(2)?,
            error: row.get(3)?,
            at_us: row.get(4)?,
            report: row.get(5)?,
            network: row.get(6)?,
        })
    }

    /// How it ends this part.
    pub(super) fn end<'a>(&'a self, part: &Part<'a>) -> Result<End<'a>> {
        Ok(End {
            outcome: rows::outcome(Some(self.status), Some(self.error))?,
            taken: TakenParts::All,
            report: self.report.as_deref(),
            network: self.network,
            at_us: self.at_us,
            sent: Some(part.sent()),
        })
    }
}
