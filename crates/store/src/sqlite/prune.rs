//! Retention: deletes old messages and receipts row by row.

use rusqlite::{Connection, Result, params};

use super::clock;
use crate::rows::dispatch::PruneColumns;
use crate::rows::sweep::Sweep;

/// A part without a receipt stays as long as its message waits for one.
const RECEIPTS: &str = "
    SELECT t.number, t.taken_us, t.status IS NOT NULL
        OR NOT EXISTS (SELECT 1 FROM message WHERE message.id = t.id AND message.final_us IS NULL)
    FROM transit AS t ORDER BY t.number";
const PRUNE_RECEIPT: &str = "DELETE FROM transit WHERE number = ?1";
const PRUNE_EARLY: &str = "
    DELETE FROM early_receipt WHERE (carrier, reference, tail) IN (
        SELECT carrier, reference, tail FROM early_receipt WHERE taken_us <= ?1 ORDER BY taken_us LIMIT ?2)";
const CANDIDATES: &str = "
    SELECT m.id, m.accepted_us, m.final_us,
        EXISTS (SELECT 1 FROM callback AS c WHERE c.message_id = m.id AND c.kind <> 2 AND c.state = 0)
    FROM message AS m WHERE m.id > ?1 ORDER BY m.id LIMIT ?2";
const PRUNE_ATTEMPTS: &str = "
    DELETE FROM callback_attempt WHERE id IN (
        SELECT a.id FROM callback AS c CROSS JOIN callback_attempt AS a
            ON a.id BETWEEN c.id * 1048576 AND c.id * 1048576 + 1048575
        WHERE c.message_id = ?1 AND c.kind <> 2)";
const PRUNE_CALLBACKS: &str = "DELETE FROM callback WHERE message_id = ?1 AND kind <> 2";
/// The conditions are checked again, because a callback may have been replayed since they were read.
const PRUNE_MESSAGE: &str = "
    DELETE FROM message WHERE id = ?1 AND final_us <= ?2
        AND NOT EXISTS (SELECT 1 FROM callback WHERE message_id = ?1 AND kind <> 2 AND state = 0)";

/// Deletes reported parts and unmatched receipts.
pub(super) fn prune_receipts(db: &Connection, age_us: i64, limit: u32) -> Result<u64> {
    let before_us = clock::now_us(db)?.saturating_sub(age_us);
    let early = db
        .prepare_cached(PRUNE_EARLY)?
        .execute(params![before_us, limit])?;
    let left = limit.saturating_sub(u32::try_from(early).unwrap_or(u32::MAX));
    let old = find_old_receipts(db, before_us, left)?;
    let mut prune = db.prepare_cached(PRUNE_RECEIPT)?;
    for number in &old {
        prune.execute([number])?;
    }
    Ok((early + old.len()) as u64)
}

/// Rows are numbered in the order of insertion, so no old row follows the first one that is too young.
fn find_old_receipts(db: &Connection, before_us: i64, limit: u32) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    let mut receipts = db.prepare_cached(RECEIPTS)?;
    let mut rows = receipts.query([])?;
    while found.len() < limit as usize
        && let Some(row) = rows.next()?
    {
        let (number, taken_us, is_over): (i64, i64, bool) = row.try_into()?;
        if taken_us > before_us {
            break;
        }
        if is_over {
            found.push(number);
        }
    }
    Ok(found)
}

/// How many messages one step reads at most.
const ROWS: u32 = 20_000;

/// Messages that may be deleted, the time before which they ended, and where the sweep continues.
pub(super) struct OldMessages {
    pub(super) before_us: i64,
    pub(super) ids: Vec<i64>,
    pub(super) sweep: Sweep,
}

/// Continues the sweep over the messages, on a read-only connection.
pub(super) fn find_old_messages(
    db: &Connection,
    mut sweep: Sweep,
    age_us: i64,
    limit: u32,
) -> Result<OldMessages> {
    let now_us = clock::now_us(db)?;
    let before_us = now_us.saturating_sub(age_us);
    let mut ids = Vec::new();
    if sweep.is_paused(now_us) {
        return Ok(OldMessages {
            before_us,
            ids,
            sweep,
        });
    }
    let mut candidates = db.prepare_cached(CANDIDATES)?;
    let mut rows = candidates.query(params![sweep.after, ROWS])?;
    let (mut read, mut is_end) = (0, false);
    while ids.len() < limit as usize && !is_end {
        let Some(row) = rows.next()? else {
            is_end = read < ROWS;
            break;
        };
        read += 1;
        let message = PruneColumns::read(row)?;
        is_end = message.is_too_young(before_us);
        if !is_end {
            let is_over = message.is_over(before_us);
            sweep.pass(message.id, !is_over);
            ids.extend(is_over.then_some(message.id));
        }
    }
    if is_end {
        sweep = sweep.next(now_us);
    }
    Ok(OldMessages {
        before_us,
        ids,
        sweep,
    })
}

/// Deletes messages and everything that belongs to them.
pub(super) fn prune_messages(db: &Connection, before_us: i64, ids: &[i64]) -> Result<u64> {
    let mut pruned = 0;
    for &id in ids {
        if db.prepare_cached(PRUNE_MESSAGE)?.execute([id, before_us])? > 0 {
            db.prepare_cached(PRUNE_ATTEMPTS)?.execute([id])?;
            db.prepare_cached(PRUNE_CALLBACKS)?.execute([id])?;
            pruned += 1;
        }
    }
    Ok(pruned)
}
