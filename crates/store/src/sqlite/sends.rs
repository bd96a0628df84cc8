//! What comes of tries to send.

use domain::delivery::Settlement;
use domain::ids::NodeId;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::ending::{End, Endings, Progress};
use crate::rows::binds::SET_ASIDE;
use crate::rows::dispatch::{self, EndedColumns, Move, SettledColumns};
use crate::rows::{self, micros};

const MOVE: &str = "
    UPDATE queue SET owner = ?6, lane = ?7, due_us = ?8, tries = tries + ?9, account_id = ?10, expires_us = ?11
    WHERE owner = ?1 AND lane = ?2 AND due_us = ?3 AND id = ?4 AND attempt = ?5";
const REMOVE: &str = "
    DELETE FROM queue WHERE owner = ?1 AND lane = ?2 AND due_us = ?3 AND id = ?4 AND attempt = ?5";
const NAME_PART: &str = "
    INSERT INTO transit (carrier, reference, id, part, parts, taken_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO NOTHING";
/// The row that is there may be a receipt that came first, which stays.
const NAME_EARLY: &str = "
    UPDATE transit SET id = ?3, part = ?4, parts = ?5 WHERE carrier = ?1 AND reference = ?2 AND id IS NULL
    RETURNING status, error, taken_us, report";
/// Else it is an older part of the same name. The newest part wins, also over one that is not reported yet: a carrier
/// that uses a name again has forgotten what it meant before, and the older message ends when its time is over. It gets
/// a new number, because it is forgotten by its own age.
const RENAME_PART: &str = "
    INSERT OR REPLACE INTO transit (carrier, reference, id, part, parts, taken_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

const FIND_EXPIRED: &str = "
    SELECT due_us, id FROM queue WHERE owner = -1 AND lane = 0 AND due_us <= ?1 ORDER BY due_us, id LIMIT ?2";
const REMOVE_EXPIRED: &str =
    "DELETE FROM queue WHERE owner = -1 AND lane = 0 AND due_us = ?1 AND id = ?2";

const FIND_EXPIRED_POOLED: &str = "
    SELECT owner, lane, due_us, id FROM queue WHERE owner < -1 AND owner <> ?3 AND expires_us <= ?1
    ORDER BY expires_us LIMIT ?2";
const REMOVE_POOLED: &str =
    "DELETE FROM queue WHERE owner = ?1 AND lane = ?2 AND due_us = ?3 AND id = ?4";

/// Stores what came of tries, in order.
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
        name_part: db.prepare_cached(NAME_PART)?,
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
    name_part: CachedStatement<'db>,
    endings: Endings<'db>,
}

impl Sends<'_> {
    fn settle(&mut self, settlement: &Settlement) -> Result<SettledColumns> {
        let node = self.node.as_i64();
        let (lane, due_us) = (settlement.priority.lane(), micros(settlement.claim.due_at));
        let (id, attempt) = (settlement.id.as_i64(), dispatch::attempt(&settlement.claim));
        let (changed, moved) = match Move::of(settlement) {
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
                (self.move_row.execute(values)?, Moved::On(taken))
            }
            Move::Out(outcome, report) => {
                let values = params![node, lane, due_us, id, attempt];
                let mut remove = self.db.prepare_cached(REMOVE)?;
                (remove.execute(values)?, Moved::Out(outcome, report))
            }
        };
        if changed == 0 {
            return Ok(SettledColumns::Stale);
        }
        let ended = match moved {
            Moved::On(None) => None,
            Moved::On(Some((carrier, references))) => {
                self.name_parts(settlement, carrier, &references)?
            }
            Moved::Out(outcome, report) => {
                let at_us = micros(settlement.at);
                let end = End {
                    outcome,
                    // What nobody took has no answer, either.
                    taken: report.is_some(),
                    report,
                    at_us,
                };
                self.endings.end(id, end)?
            }
        };
        Ok(ended.map_or(SettledColumns::Stored, SettledColumns::Ended))
    }

    /// Stores a carrier's names for the parts, and applies receipts that came first.
    fn name_parts(
        &mut self,
        settlement: &Settlement,
        carrier: &str,
        references: &[&str],
    ) -> Result<Option<EndedColumns>> {
        let id = settlement.id.as_i64();
        let parts = i16::try_from(references.len()).unwrap_or(i16::MAX);
        let mut ended = None;
        for (reference, part) in references.iter().zip(1_i16..) {
            let (reference, taken_us) = (reference.as_bytes(), micros(settlement.at));
            let values = params![carrier, reference, id, part, parts, taken_us];
            if self.name_part.execute(values)? > 0 {
                continue;
            }
            let mut name = self.db.prepare_cached(NAME_EARLY)?;
            let early = name.query_row(&values[..5], EarlyReceipt::read);
            let Some(early) = early.optional()? else {
                self.db.prepare_cached(RENAME_PART)?.execute(values)?;
                continue;
            };
            let progress = self.endings.report_part(id, parts, early.end()?)?;
            if let Progress::Ended(columns) = progress {
                ended = Some(columns);
            }
        }
        Ok(ended)
    }
}

/// A receipt that came before the carrier's answer.
struct EarlyReceipt {
    status: Option<i16>,
    error: Option<i16>,
    at_us: i64,
    report: Option<String>,
}

impl EarlyReceipt {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            status: row.get(0)?,
            error: row.get(1)?,
            at_us: row.get(2)?,
            report: row.get(3)?,
        })
    }

    fn end(&self) -> Result<End<'_>> {
        Ok(End {
            outcome: rows::outcome(self.status, self.error)?,
            taken: true,
            report: self.report.as_deref(),
            at_us: self.at_us,
        })
    }
}

/// Ends what waits in pools and has no time left.
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
    for place in expired {
        db.prepare_cached(REMOVE_POOLED)?.execute(place)?;
        let end = End {
            outcome: dispatch::expired(false),
            taken: false,
            report: None,
            at_us: now_us,
        };
        ended.extend(endings.end(place[3], end)?);
    }
    endings.close()?;
    Ok(ended)
}

/// Where a row of the queue went.
enum Moved<'a> {
    On(Option<(&'a str, Vec<&'a str>)>),
    Out(domain::delivery::Outcome, Option<&'a str>),
}

/// Ends what a carrier took and never reported on.
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
        let end = End {
            outcome: dispatch::expired(true),
            taken: true,
            report: None,
            at_us: now_us,
        };
        ended.extend(endings.end(id, end)?);
    }
    endings.close()?;
    Ok(ended)
}
