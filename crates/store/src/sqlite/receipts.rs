//! Receipts, and the parts that they are about.

use domain::Msisdn;
use domain::delivery::Receipt;
use domain::ids::NodeId;
use domain::ports::{InTransit, Inbox};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::ending::{End, Endings, Progress};
use crate::rows::dispatch::{InboxColumns, MatchedColumns, TransitColumns};
use crate::rows::{micros, outcome_numbers};

const REPORT: &str = "
    UPDATE transit SET status = ?3, error = ?4 WHERE carrier = ?1 AND reference = ?2 AND status IS NULL
    RETURNING id, parts";
const FIND_PART: &str = "SELECT id FROM transit WHERE carrier = ?1 AND reference = ?2";
const KEEP: &str = "
    INSERT INTO transit (carrier, reference, taken_us, status, error, report) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const LIST: &str = "
    SELECT transit.reference, message.recipient, transit.taken_us
    FROM transit JOIN message ON message.id = transit.id
    WHERE transit.carrier = ?1 AND transit.reference > ?2 AND transit.status IS NULL
    ORDER BY transit.reference LIMIT ?3";
/// Read from the newest part back. Without an index of its own: only people who try things out ask.
const LIST_INBOX: &str = "
    SELECT message.originator, message.body, message.final_us
    FROM transit NOT INDEXED CROSS JOIN message ON message.id = transit.id
    WHERE transit.carrier = ?1 AND transit.part = 1 AND message.recipient = ?2 AND message.status = 1
    ORDER BY transit.number DESC LIMIT ?3";

/// Stores receipts, in order.
pub(super) fn settle(
    db: &Connection,
    node: NodeId,
    batch: &[Receipt],
    hold: bool,
) -> Result<Vec<MatchedColumns>> {
    let mut receipts = Receipts {
        db,
        report: db.prepare_cached(REPORT)?,
        endings: Endings::prepare(db, hold.then_some(node))?,
    };
    let matched = batch
        .iter()
        .map(|receipt| receipts.settle(receipt))
        .collect::<Result<_>>()?;
    receipts.endings.close()?;
    Ok(matched)
}

/// The statements of the hot path, prepared once for a batch.
struct Receipts<'db> {
    db: &'db Connection,
    report: CachedStatement<'db>,
    endings: Endings<'db>,
}

impl Receipts<'_> {
    fn settle(&mut self, receipt: &Receipt) -> Result<MatchedColumns> {
        let (carrier, reference) = (&receipt.of.carrier, receipt.of.reference.as_bytes());
        let (status, error) = outcome_numbers(receipt.outcome);
        let values = params![carrier, reference, status, error];
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let Some((id, parts)) = self.report.query_row(values, read).optional()? else {
            return self.keep_or_repeat(receipt);
        };
        let end = End {
            outcome: receipt.outcome,
            taken: true,
            report: receipt.report.as_deref(),
            at_us: micros(receipt.at),
        };
        let progress = self.endings.report_part(id, parts, end)?;
        Ok(match progress {
            Progress::Ended(columns) => MatchedColumns::Ended(columns),
            Progress::GoesOn => MatchedColumns::Noted,
            Progress::WasOver => MatchedColumns::Repeated,
        })
    }

    /// No part of that name waits for a report: it has one already, or is not known yet. Of several that come too early
    /// the first is kept.
    fn keep_or_repeat(&self, receipt: &Receipt) -> Result<MatchedColumns> {
        let (carrier, reference) = (&receipt.of.carrier, receipt.of.reference.as_bytes());
        let mut find = self.db.prepare_cached(FIND_PART)?;
        let found: Option<Option<i64>> = find
            .query_row(params![carrier, reference], |row| row.get(0))
            .optional()?;
        if let Some(Some(_)) = found {
            return Ok(MatchedColumns::Repeated);
        }
        if found.is_none() {
            let (status, error) = outcome_numbers(receipt.outcome);
            let (at_us, report) = (micros(receipt.at), &receipt.report);
            let values = params![carrier, reference, at_us, status, error, report];
            self.db.prepare_cached(KEEP)?.execute(values)?;
        }
        Ok(MatchedColumns::Kept)
    }
}

/// Parts that a carrier has, in the order of their names.
pub(super) fn list_in_transit(
    db: &Connection,
    carrier: &str,
    after: &str,
    limit: u32,
) -> Result<Vec<InTransit>> {
    let read = |row: &Row<'_>| {
        let columns = TransitColumns {
            reference: row.get(0)?,
            recipient: row.get(1)?,
            taken_us: row.get(2)?,
        };
        Ok(columns.in_transit()?)
    };
    db.prepare_cached(LIST)?
        .query_map(params![carrier, after.as_bytes(), limit], read)?
        .collect()
}

/// What reached a handset by a carrier.
pub(super) fn list_inbox(
    db: &Connection,
    carrier: &str,
    to: Msisdn,
    limit: u32,
) -> Result<Vec<Inbox>> {
    let read = |row: &Row<'_>| {
        let columns = InboxColumns {
            originator: row.get(0)?,
            body: row.get(1)?,
            final_us: row.get(2)?,
        };
        Ok(columns.inbox()?)
    };
    db.prepare_cached(LIST_INBOX)?
        .query_map(params![carrier, to.as_i64(), limit], read)?
        .collect()
}
