//! Claiming due messages.

use domain::KeyRing;
use domain::delivery::QueuedMessage;
use domain::ids::NodeId;
use domain::message::Priority;
use domain::ports::{Claimed, PoolClaim, SetAside};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::{clock, codes};
use crate::rows::binds::SET_ASIDE;
use crate::rows::dispatch::{ACCOUNTS, PoolRange, QueuedMessageColumns, pool_ranges, priority};
use crate::rows::{Corrupt, NOBODY};

const FIND_DUE: &str = "
    SELECT due_us, id FROM queue WHERE owner = 0 AND lane = ?1 AND due_us <= ?2 ORDER BY due_us, id LIMIT ?3";
const NEXT_ACCOUNT: &str = "
    SELECT account_id FROM queue
    WHERE owner = ?1 AND lane = ?2 AND owner < -1 AND account_id > ?3 AND account_id <= ?4
    ORDER BY account_id LIMIT 1";
const FIND_OF_ACCOUNT: &str = "
    SELECT due_us, id FROM queue
    WHERE owner = ?1 AND lane = ?2 AND owner < -1 AND account_id = ?3 AND (due_us, id) > (?4, ?5)
    ORDER BY due_us, id LIMIT ?6";
const CLAIM: &str = "
    UPDATE queue SET owner = ?1, attempt = attempt + 1 WHERE owner = ?5 AND lane = ?2 AND due_us = ?3 AND id = ?4
    RETURNING attempt, tries";
const SET_QUEUED: &str = "UPDATE message SET state = 0 WHERE id = ?1 AND state = 1";
const READ_MESSAGE: &str = "
    SELECT account_id, recipient, originator, body, coding, udh, parts, priority, test_mode, expires_us, channel,
        interactive, unknown_tries, trace, notice, carrier FROM message
    WHERE id = ?1";
const SET_ROW_ASIDE: &str = "
    UPDATE queue SET owner = ?1 WHERE owner = ?2 AND lane = ?3 AND due_us = ?4 AND id = ?5";

/// Claims messages that are due and that no node holds, and messages from route pools.
pub(super) fn claim_due(
    db: &Connection,
    keys: &KeyRing,
    node: NodeId,
    limits: [u32; 3],
    pools: &[PoolClaim],
) -> Result<Claimed> {
    let now_us = clock::now_us(db)?;
    let mut claims = Claims {
        db,
        keys,
        node,
        claimed: Claimed::default(),
    };
    for (lane, limit) in Priority::ALL.map(Priority::lane).into_iter().zip(limits) {
        let mut find = db.prepare_cached(FIND_DUE)?;
        let due = find.query_map(params![lane, now_us, limit], queue_key)?;
        for (due_us, id) in due.collect::<Result<Vec<_>>>()? {
            claims.claim(NOBODY, lane, due_us, id)?;
        }
    }
    for range in pool_ranges(pools) {
        if claims.claim_range(&range)? {
            let more = (range.pool, priority(range.lane)?);
            claims.claimed.more.push(more);
        }
    }
    let mut claimed = claims.claimed;
    claimed
        .messages
        .sort_by_key(|queued| queued.priority.lane());
    Ok(claimed)
}

/// The position of a row in the queue: its due time and its ID.
type QueueKey = (i64, i64);

/// Before all rows.
const BEGINNING: QueueKey = (i64::MIN, i64::MIN);

fn queue_key(row: &Row<'_>) -> Result<QueueKey> {
    Ok((row.get(0)?, row.get(1)?))
}

struct Claims<'db> {
    db: &'db Connection,
    keys: &'db KeyRing,
    node: NodeId,
    claimed: Claimed,
}

impl Claims<'_> {
    /// Claims from a lane of a route pool: an equal share from each account, and the rest of the limit from accounts
    /// with more messages. Returns whether more messages may wait.
    fn claim_range(&mut self, range: &PoolRange) -> Result<bool> {
        let accounts = self.accounts(range)?;
        let mut missing = range.limit;
        let mut open: Vec<(i64, QueueKey)> = accounts.iter().map(|id| (*id, BEGINNING)).collect();
        for _ in 0..2 {
            let mut still_open = Vec::with_capacity(open.len());
            let shares = shares(missing, open.len());
            for ((account, after), share) in open.into_iter().zip(shares) {
                let found = self.claim_of(range, account, after, share)?;
                missing -= u32::try_from(found.len()).unwrap_or(missing);
                if let Some(last) = found.last().filter(|_| found.len() >= share as usize) {
                    still_open.push((account, *last));
                }
            }
            open = still_open;
            if missing == 0 {
                break;
            }
        }
        let more = missing == 0 || !open.is_empty() || accounts.len() >= ACCOUNTS as usize;
        Ok(more && !accounts.is_empty())
    }

    /// The accounts in turn, starting after the one that was served last.
    fn accounts(&self, range: &PoolRange) -> Result<Vec<i64>> {
        let most = ACCOUNTS.min(range.limit) as usize;
        let mut find = self.db.prepare_cached(NEXT_ACCOUNT)?;
        let mut accounts = Vec::new();
        for (mut after, upto) in [(range.after, i64::MAX), (-1, range.after)] {
            while accounts.len() < most {
                let values = params![range.owner, range.lane, after, upto];
                let next: Option<i64> = find.query_row(values, |row| row.get(0)).optional()?;
                let Some(next) = next else { break };
                accounts.push(next);
                after = next;
            }
        }
        Ok(accounts)
    }

    fn claim_of(
        &mut self,
        range: &PoolRange,
        account: i64,
        after: QueueKey,
        share: u32,
    ) -> Result<Vec<QueueKey>> {
        let mut find = self.db.prepare_cached(FIND_OF_ACCOUNT)?;
        let values = params![range.owner, range.lane, account, after.0, after.1, share];
        let found = find
            .query_map(values, queue_key)?
            .collect::<Result<Vec<_>>>()?;
        for &(due_us, id) in &found {
            self.claim(range.owner, range.lane, due_us, id)?;
        }
        Ok(found)
    }

    fn claim(&mut self, owner: i64, lane: i16, due_us: i64, id: i64) -> Result<()> {
        let node = self.node.as_i64();
        let mut claim = self.db.prepare_cached(CLAIM)?;
        let values = [node, lane.into(), due_us, id, owner];
        let (attempt, tries) = claim.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.db.prepare_cached(SET_QUEUED)?.execute([id])?;
        match self.read(owner, due_us, id, attempt, tries) {
            Ok(queued) => self.claimed.messages.push(queued),
            Err(error) => {
                let what = unreadable(error)?;
                let mut set_aside = self.db.prepare_cached(SET_ROW_ASIDE)?;
                set_aside.execute(params![SET_ASIDE, node, lane, due_us, id])?;
                self.claimed.set_aside.push(SetAside { id, what });
            }
        }
        Ok(())
    }

    fn read(
        &self,
        owner: i64,
        due_us: i64,
        id: i64,
        attempt: i32,
        tries: i32,
    ) -> Result<QueuedMessage> {
        let read = |row: &Row<'_>| {
            Ok(QueuedMessageColumns {
                id,
                account_id: row.get(0)?,
                recipient: row.get(1)?,
                originator: row.get(2)?,
                body: row.get(3)?,
                coding: row.get(4)?,
                udh: row.get(5)?,
                parts: row.get(6)?,
                priority: row.get(7)?,
                test_mode: row.get(8)?,
                expires_us: row.get(9)?,
                channel: row.get(10)?,
                interactive: row.get(11)?,
                unknown_tries: row.get(12)?,
                trace: row.get(13)?,
                notice: row.get(14)?,
                carrier: row.get(15)?,
                due_us,
                attempt,
                tries,
                owner,
            })
        };
        let columns = self
            .db
            .prepare_cached(READ_MESSAGE)?
            .query_row([id], read)?;
        let mut queued = columns.queued()?;
        codes::reveal(self.db, self.keys, &mut queued)?;
        Ok(queued)
    }
}

/// Splits a limit into equal shares; the first ones get one more where it does not divide.
fn shares(limit: u32, among: usize) -> impl Iterator<Item = u32> {
    let count = u32::try_from(among).unwrap_or(u32::MAX).max(1);
    (0..count).map(move |index| limit / count + u32::from(index < limit % count))
}

/// What cannot be read in a row. Other errors are returned.
fn unreadable(error: rusqlite::Error) -> Result<String> {
    match error {
        rusqlite::Error::FromSqlConversionFailure(_, _, cause) => Ok(cause.to_string()),
        rusqlite::Error::QueryReturnedNoRows => Ok(Corrupt("message").to_string()),
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => Ok(Corrupt("column").to_string()),
        other => Err(other),
    }
}
