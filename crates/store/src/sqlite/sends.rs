//! Settles attempts to send messages.

use domain::Money;
use domain::delivery::receipt_match::NumberTail;
use domain::delivery::{SendResult, Settlement};
use domain::ids::NodeId;
use domain::message::outcome::TakenParts;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, params};

use super::carrier_refs::{CarrierRefWriter, Part};
use super::ending::{End, Endings, Progress};
use crate::rows::binds::SET_ASIDE;
use crate::rows::dispatch::{self, Ending, Move};
use crate::rows::ended::{EndedColumns, SettledColumns};
use crate::rows::micros;
use crate::rows::records::{Sent, SentColumns};

/// Until the message ends, its carrier is the one that did not answer.
const COUNT_UNKNOWN: &str =
    "UPDATE message SET unknown_tries = unknown_tries + 1, carrier = ?2 WHERE id = ?1";
const MOVE: &str = "
    UPDATE queue SET owner = ?6, lane = ?7, due_us = ?8, tries = tries + ?9, account_id = ?10, expires_us = ?11
    WHERE owner = ?1 AND lane = ?2 AND due_us = ?3 AND id = ?4 AND attempt = ?5";
const REMOVE: &str = "
    DELETE FROM queue WHERE owner = ?1 AND lane = ?2 AND due_us = ?3 AND id = ?4 AND attempt = ?5";
const FIND_EXPIRED: &str = "
    SELECT due_us, id FROM queue WHERE owner = -1 AND lane = 0 AND due_us <= ?1 ORDER BY due_us, id LIMIT ?2";
const REMOVE_EXPIRED: &str =
    "DELETE FROM queue WHERE owner = -1 AND lane = 0 AND due_us = ?1 AND id = ?2";

const FIND_EXPIRED_POOLED: &str = "
    SELECT owner, lane, due_us, id FROM queue WHERE owner < -1 AND owner <> ?3 AND expires_us <= ?1
    ORDER BY expires_us LIMIT ?2";
/// The carrier that took a message.
const FIND_SENT: &str =
    "SELECT carrier, taken_us, cost_micros FROM transit WHERE id = ?1 ORDER BY number DESC LIMIT 1";
const IS_UNKNOWN: &str =
    "SELECT coalesce((SELECT unknown_tries > 0 FROM message WHERE id = ?1), 0)";
const REMOVE_POOLED: &str =
    "DELETE FROM queue WHERE owner = ?1 AND lane = ?2 AND due_us = ?3 AND id = ?4";

/// Stores the results of attempts, in order.
pub(super) fn settle(
    db: &Connection,
    node: NodeId,
    batch: &[Settlement],
    hold: bool,
) -> Result<Vec<SettledColumns>> {
    let mut sends = Sends {
        db,
        node,
        move_row: db.prepare_cached(MOVE)?,
        carrier_refs: CarrierRefWriter::prepare(db)?,
        endings: Endings::prepare(db, hold.then_some(node))?,
    };
    let settled = batch
        .iter()
        .map(|settlement| sends.settle(settlement))
        .collect::<Result<_>>()?;
    sends.endings.close()?;
    Ok(settled)
}

/// The statements of the hot path, prepared once for a batch.
struct Sends<'db> {
    db: &'db Connection,
    node: NodeId,
    move_row: CachedStatement<'db>,
    carrier_refs: CarrierRefWriter<'db>,
    endings: Endings<'db>,
}

impl Sends<'_> {
    fn settle(&mut self, settlement: &Settlement) -> Result<SettledColumns> {
        let node = self.node.as_i64();
        let (lane, due_us) = (settlement.priority.lane(), micros(settlement.claim.due_at));
        let (id, attempt) = (settlement.id.as_i64(), dispatch::attempt(&settlement.claim));
        let (changed, moved) = match Move::from_settlement(settlement) {
            Move::To {
                owner,
                lane: to_lane,
                due_us: to_us,
                tries,
                pool_account,
                pool_expires_us,
                taken,
            } => {
                let values = params![
                    node,
                    lane,
                    due_us,
                    id,
                    attempt,
                    owner,
                    to_lane,
                    to_us,
                    tries,
                    pool_account,
                    pool_expires_us
                ];
                (self.move_row.execute(values)?, Moved::Requeued(taken))
            }
            Move::Remove(over) => {
                let values = params![node, lane, due_us, id, attempt];
                let mut remove = self.db.prepare_cached(REMOVE)?;
                (remove.execute(values)?, Moved::Removed(over))
            }
        };
        if changed == 0 {
            return Ok(SettledColumns::Stale);
        }
        let ended = match moved {
            Moved::Requeued(None) => {
                if let SendResult::Unknown { carrier, .. } = &settlement.sent {
                    let mut count = self.db.prepare_cached(COUNT_UNKNOWN)?;
                    count.execute(params![id, carrier])?;
                }
                None
            }
            Moved::Requeued(Some((carrier, references))) => {
                self.store_references(settlement, carrier, &references)?
            }
            Moved::Removed(over) => {
                let end = End {
                    outcome: over.outcome,
                    taken: over.taken_parts(),
                    report: over.report,
                    network: None,
                    at_us: micros(settlement.at),
                    sent: over.carrier().map(|carrier| Sent {
                        carrier,
                        at_us: micros(settlement.at),
                        cost_micros: settlement.cost.map(Money::micros),
                    }),
                };
                let ended = self.endings.end(id, end)?;
                // The message has ended, so early receipts change nothing.
                if let Some((carrier, references)) = over.taken {
                    self.store_references(settlement, carrier, &references)?;
                }
                ended
            }
        };
        Ok(ended.map_or(SettledColumns::Stored, SettledColumns::Ended))
    }

    /// Stores the carrier's references for the parts, and applies receipts that arrived before them.
    fn store_references(
        &mut self,
        settlement: &Settlement,
        carrier: &str,
        references: &[&str],
    ) -> Result<Option<EndedColumns>> {
        let id = settlement.id.as_i64();
        let parts = i16::try_from(references.len()).unwrap_or(i16::MAX);
        let mut ended = None;
        for (reference, number) in references.iter().zip(1_i16..) {
            let part = Part {
                carrier,
                reference,
                id,
                number,
                parts,
                taken_us: micros(settlement.at),
                tail: NumberTail::from_number(&settlement.to).as_i32(),
                cost_micros: settlement.cost.map(Money::micros),
            };
            let Some(early) = self.carrier_refs.store(&part)? else {
                continue;
            };
            let progress = self.endings.report_part(id, parts, early.end(&part)?)?;
            if let Progress::Ended(columns) = progress {
                ended = Some(columns);
            }
        }
        Ok(ended)
    }
}

/// Ends expired messages in pools.
pub(super) fn expire_pooled(
    db: &Connection,
    node: NodeId,
    limit: u32,
    hold: bool,
) -> Result<Vec<EndedColumns>> {
    let mut endings = Endings::prepare(db, hold.then_some(node))?;
    let now_us = endings.now_us();
    let mut find = db.prepare_cached(FIND_EXPIRED_POOLED)?;
    let expired: Vec<[i64; 4]> = find
        .query_map(params![now_us, limit, SET_ASIDE], |row| {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
        })?
        .collect::<Result<_>>()?;
    let mut ended = Vec::with_capacity(expired.len());
    for row in expired {
        db.prepare_cached(REMOVE_POOLED)?.execute(row)?;
        // A carrier that did not answer may have the message: then it counts as handed over.
        let is_taken: bool = db
            .prepare_cached(IS_UNKNOWN)?
            .query_row([row[3]], |row| row.get(0))?;
        let taken = if is_taken {
            TakenParts::All
        } else {
            TakenParts::Only(0)
        };
        let end = End {
            outcome: dispatch::expired(is_taken),
            taken,
            report: None,
            network: None,
            at_us: now_us,
            sent: None,
        };
        ended.extend(endings.end(row[3], end)?);
    }
    endings.close()?;
    Ok(ended)
}

/// Where a queue row moved.
enum Moved<'a> {
    Requeued(Option<(&'a str, Vec<&'a str>)>),
    Removed(Ending<'a>),
}

/// Ends expired messages that a carrier took and never reported on.
pub(super) fn expire(
    db: &Connection,
    node: NodeId,
    limit: u32,
    hold: bool,
) -> Result<Vec<EndedColumns>> {
    let mut endings = Endings::prepare(db, hold.then_some(node))?;
    let now_us = endings.now_us();
    let mut find = db.prepare_cached(FIND_EXPIRED)?;
    let expired: Vec<(i64, i64)> = find
        .query_map(params![now_us, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_>>()?;
    let mut ended = Vec::with_capacity(expired.len());
    for (due_us, id) in expired {
        db.prepare_cached(REMOVE_EXPIRED)?.execute([due_us, id])?;
        let part = db
            .prepare_cached(FIND_SENT)?
            .query_row([id], |row| SentColumns::read(row))
            .optional()?;
        let end = End {
            outcome: dispatch::expired(true),
            taken: TakenParts::All,
            report: None,
            network: None,
            at_us: now_us,
            sent: part.as_ref().map(SentColumns::sent),
        };
        ended.extend(endings.end(id, end)?);
    }
    endings.close()?;
    Ok(ended)
}
