//! Matches receipts with parts.

use domain::delivery::receipt_match::{NumberTail, other_forms};
use domain::delivery::{CarrierRef, Receipt};
use domain::ids::NodeId;
use domain::message::outcome::TakenParts;
use domain::ports::{InTransit, Inbox};
use domain::{KeyRing, Msisdn, Network};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::ending::{End, Endings, Progress};
use crate::rows::dispatch::{InboxColumns, MAX_USES, NO_TAIL, TransitColumns};
use crate::rows::ended::MatchedColumns;
use crate::rows::records::Sent;
use crate::rows::{micros, outcome_numbers};

/// Stores a receipt for the newest matching part that waits for one under a reference: a part of the same recipient,
/// or, if the reference has the form of the receipt (`?4`), a part where either recipient is unknown. At most `?7`
/// parts with the same reference are checked, the newest ones.
const REPORT: &str = "
    UPDATE transit SET status = ?5, error = ?6 WHERE number = (
        SELECT number FROM (
            SELECT number, status, tail FROM transit WHERE carrier = ?1 AND reference = ?2
            ORDER BY number DESC LIMIT ?7
        )
        WHERE status IS NULL AND (tail = ?3 OR (?4 AND (tail IS NULL OR ?3 IS NULL)))
        ORDER BY number DESC LIMIT 1
    )
    RETURNING id, parts, taken_us, cost_micros";
const FIND_PART: &str = "
    SELECT 1 FROM (
        SELECT tail FROM transit WHERE carrier = ?1 AND reference = ?2 ORDER BY number DESC LIMIT ?5
    )
    WHERE tail = ?3 OR (?4 AND (tail IS NULL OR ?3 IS NULL))";
const INSERT_EARLY: &str = "
    INSERT INTO early_receipt (carrier, reference, tail, taken_us, status, error, report, network)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
const HAS_EARLY: &str = "SELECT 1 FROM early_receipt WHERE carrier = ?1 AND reference = ?2";
const LIST: &str = "
    SELECT transit.reference, message.recipient, transit.taken_us
    FROM transit JOIN message ON message.id = transit.id
    WHERE transit.carrier = ?1 AND transit.reference > ?2 AND transit.status IS NULL
    ORDER BY transit.reference LIMIT ?3";
/// Reads from the newest part back, without an index: only people who try the simulator use this.
const LIST_INBOX: &str = "
    SELECT message.originator, message.body, message.final_us, code_text.text
    FROM transit NOT INDEXED CROSS JOIN message ON message.id = transit.id
        LEFT JOIN code_text ON code_text.message_id = message.id
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
        let others = others(receipt);
        let (carrier, tail) = (&receipt.of.carrier, tail(receipt));
        let (status, error) = outcome_numbers(receipt.outcome);
        let read = |row: &Row<'_>| {
            let sent = Sent {
                carrier,
                at_us: row.get(2)?,
                cost_micros: row.get(3)?,
            };
            Ok((row.get(0)?, row.get(1)?, sent))
        };
        for (reference, is_own) in forms(receipt, &others) {
            let values = params![carrier, reference, tail, is_own, status, error, MAX_USES];
            if let Some((id, parts, sent)) = self.report.query_row(values, read).optional()? {
                return self.report_part(receipt, id, parts, sent);
            }
        }
        self.store_or_repeat(receipt, &others)
    }

    fn report_part(
        &mut self,
        receipt: &Receipt,
        id: i64,
        parts: i16,
        sent: Sent<'_>,
    ) -> Result<MatchedColumns> {
        let end = End {
            outcome: receipt.outcome,
            taken: TakenParts::All,
            report: receipt.report.as_deref(),
            network: receipt.network.map(Network::code),
            at_us: micros(receipt.at),
            sent: Some(sent),
        };
        let progress = self.endings.report_part(id, parts, end)?;
        Ok(match progress {
            Progress::Ended(columns) => MatchedColumns::Ended(columns),
            Progress::Open => MatchedColumns::Noted,
            Progress::AlreadyEnded => MatchedColumns::Repeated,
        })
    }

    /// No matching part waits for a receipt: it has one already, or is not known yet. Of several early receipts the
    /// first is stored.
    fn store_or_repeat(&self, receipt: &Receipt, others: &[String]) -> Result<MatchedColumns> {
        let (carrier, tail) = (&receipt.of.carrier, tail(receipt));
        let mut find = self.db.prepare_cached(FIND_PART)?;
        for (reference, is_own) in forms(receipt, others) {
            if find.exists(params![carrier, reference, tail, is_own, MAX_USES])? {
                return Ok(MatchedColumns::Repeated);
            }
        }
        let reference = receipt.of.reference.as_bytes();
        let (status, error) = outcome_numbers(receipt.outcome);
        let (at_us, report) = (micros(receipt.at), &receipt.report);
        let tail = tail.unwrap_or(NO_TAIL);
        let network = receipt.network.map(Network::code);
        let values = params![
            carrier, reference, tail, at_us, status, error, report, network
        ];
        self.db.prepare_cached(INSERT_EARLY)?.execute(values)?;
        Ok(MatchedColumns::Kept)
    }
}

fn tail(receipt: &Receipt) -> Option<i32> {
    receipt.to.map(NumberTail::as_i32)
}

/// The other forms of a receipt's reference. They count only for the same recipient.
fn others(receipt: &Receipt) -> Vec<String> {
    match receipt.to {
        Some(_) => other_forms(&receipt.of.reference),
        None => Vec::new(),
    }
}

/// The forms of the reference of a receipt, the received form first.
fn forms<'a>(receipt: &'a Receipt, others: &'a [String]) -> impl Iterator<Item = (&'a [u8], bool)> {
    let others = others.iter().map(|other| (other.as_bytes(), false));
    std::iter::once((receipt.of.reference.as_bytes(), true)).chain(others)
}

/// Whether a receipt with this reference waits for its part.
pub(super) fn has_early(db: &Connection, of: &CarrierRef) -> Result<bool> {
    let mut find = db.prepare_cached(HAS_EARLY)?;
    find.exists(params![of.carrier, of.reference.as_bytes()])
}

/// Parts that a carrier has, sorted by reference.
pub(super) fn list_in_transit(
    db: &Connection,
    carrier: &str,
    after: &str,
    limit: u32,
) -> Result<Vec<InTransit>> {
    let read = |row: &Row<'_>| Ok(TransitColumns::read(row)?.in_transit()?);
    db.prepare_cached(LIST)?
        .query_map(params![carrier, after.as_bytes(), limit], read)?
        .collect()
}

/// The messages on a simulated handset.
pub(super) fn list_inbox(
    db: &Connection,
    keys: &KeyRing,
    carrier: &str,
    to: Msisdn,
    limit: u32,
) -> Result<Vec<Inbox>> {
    let read = |row: &Row<'_>| Ok(InboxColumns::read(row)?.inbox(keys, &to)?);
    db.prepare_cached(LIST_INBOX)?
        .query_map(params![carrier, to.as_i64(), limit], read)?
        .collect()
}
