//! The references that carriers give to the parts that they took.
//!
//! A part takes the current place of its reference, `former = 0`. In the common case that place is free. Otherwise it
//! holds a receipt that came first, or an earlier part of the same reference.

use domain::delivery::TakenParts;
use domain::receipt_match::other_forms;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::ending::End;
use crate::rows;
use crate::rows::dispatch::KEPT_USES;

const NAME_PART: &str = "
    INSERT INTO transit (carrier, reference, id, part, parts, taken_us, tail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT DO NOTHING";
/// A receipt that came first: in the same form (`?4`), unless the recipient differs, or in another form for the same
/// recipient.
const FIND_EARLY: &str = "
    SELECT coalesce(alias_of, reference), tail, status, error, taken_us, report FROM transit
    WHERE carrier = ?1 AND reference = ?2 AND id IS NULL AND (tail = ?3 OR (?4 AND alias_of IS NULL AND tail IS NULL))
    ORDER BY taken_us LIMIT 1";
const REMOVE_EARLY: &str = "
    DELETE FROM transit
    WHERE carrier = ?1 AND reference = ?2 AND id IS NULL AND coalesce(alias_of, reference) = ?3 AND tail IS ?4";
const REMOVE_ALIAS: &str = "
    DELETE FROM transit WHERE carrier = ?1 AND reference = ?2 AND former = 0 AND alias_of IS NOT NULL";
const SUPERSEDE: &str = "
    UPDATE transit SET former = (SELECT max(former) + 1 FROM transit WHERE carrier = ?1 AND reference = ?2)
    WHERE carrier = ?1 AND reference = ?2 AND former = 0 RETURNING former";
const REMOVE_OLD_USES: &str = "
    DELETE FROM transit WHERE carrier = ?1 AND reference = ?2 AND former BETWEEN 1 AND ?3";
const SET_STATUS: &str = "
    UPDATE transit SET status = ?3, error = ?4 WHERE carrier = ?1 AND reference = ?2 AND former = 0";

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
}

/// Names parts; the statement of the hot path is prepared once for a batch.
pub(super) struct Naming<'db> {
    db: &'db Connection,
    name_part: CachedStatement<'db>,
}

impl<'db> Naming<'db> {
    pub(super) fn prepare(db: &'db Connection) -> Result<Self> {
        Ok(Self {
            db,
            name_part: db.prepare_cached(NAME_PART)?,
        })
    }

    /// Names a part, and returns the receipt for it that came first.
    pub(super) fn name(&mut self, part: &Part<'_>) -> Result<Option<EarlyReceipt>> {
        if self.insert(part)? {
            return Ok(None);
        }
        let early = self.take_early(part)?;
        self.supersede(part)?;
        self.insert(part)?;
        if let Some(early) = &early {
            let reference = part.reference.as_bytes();
            let values = params![part.carrier, reference, early.status, early.error];
            self.db.prepare_cached(SET_STATUS)?.execute(values)?;
        }
        Ok(early)
    }

    /// `false` when the reference is in use.
    fn insert(&mut self, part: &Part<'_>) -> Result<bool> {
        let values = params![
            part.carrier,
            part.reference.as_bytes(),
            part.id,
            part.number,
            part.parts,
            part.taken_us,
            part.tail
        ];
        Ok(self.name_part.execute(values)? > 0)
    }

    /// Takes the receipt out that came before the part, in all its forms.
    fn take_early(&self, part: &Part<'_>) -> Result<Option<EarlyReceipt>> {
        let mut find = self.db.prepare_cached(FIND_EARLY)?;
        let mut remove = self.db.prepare_cached(REMOVE_EARLY)?;
        let others = other_forms(part.reference);
        let own = std::iter::once((part.reference, true));
        for (reference, is_own) in own.chain(others.iter().map(|other| (other.as_str(), false))) {
            let values = params![part.carrier, reference.as_bytes(), part.tail, is_own];
            let Some(early) = find.query_row(values, EarlyReceipt::read).optional()? else {
                continue;
            };
            let written = String::from_utf8_lossy(&early.reference).into_owned();
            for form in std::iter::once(written.clone()).chain(other_forms(&written)) {
                let values = params![part.carrier, form.as_bytes(), early.reference, early.tail];
                remove.execute(values)?;
            }
            return Ok(Some(early));
        }
        Ok(None)
    }

    /// Frees the current place of a reference.
    fn supersede(&self, part: &Part<'_>) -> Result<()> {
        let (carrier, reference) = (part.carrier, part.reference.as_bytes());
        let values = params![carrier, reference];
        self.db.prepare_cached(REMOVE_ALIAS)?.execute(values)?;
        let mut supersede = self.db.prepare_cached(SUPERSEDE)?;
        let former: Option<i32> = supersede.query_row(values, |row| row.get(0)).optional()?;
        // What is too old to be told apart is forgotten.
        if let Some(oldest) = former
            .map(|former| former - KEPT_USES)
            .filter(|old| *old > 0)
        {
            let values = params![carrier, reference, oldest];
            self.db.prepare_cached(REMOVE_OLD_USES)?.execute(values)?;
        }
        Ok(())
    }
}

/// A receipt that came before the carrier's answer.
pub(super) struct EarlyReceipt {
    /// As the receipt has it.
    reference: Vec<u8>,
    tail: Option<i32>,
    status: Option<i16>,
    error: Option<i16>,
    at_us: i64,
    report: Option<String>,
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
        })
    }

    pub(super) fn end(&self) -> Result<End<'_>> {
        Ok(End {
            outcome: rows::outcome(self.status, self.error)?,
            taken: TakenParts::All,
            report: self.report.as_deref(),
            at_us: self.at_us,
        })
    }
}
