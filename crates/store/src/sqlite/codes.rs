//! Confirmation codes: counted, and their texts until the message has ended.

use domain::Msisdn;
use domain::Timestamp;
use domain::code_cap::{self, Capped, NUMBER_DAY};
use domain::ids::AccountId;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use crate::rows::{micros, timestamp};

const SENT_TO: &str =
    "SELECT sent_us FROM code_sent WHERE number = ?1 ORDER BY sent_us DESC LIMIT ?2";
const SENT_BY: &str = "
    SELECT sent_us FROM code_sent WHERE account_id = ?1 ORDER BY sent_us DESC
    LIMIT 1 OFFSET (SELECT codes_per_day - 1 FROM account WHERE id = ?1)";
const COUNT: &str = "
    INSERT INTO code_sent (number, account_id, sent_us) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const PRUNE: &str = "
    DELETE FROM code_sent WHERE (number, sent_us, account_id) IN
        (SELECT number, sent_us, account_id FROM code_sent WHERE sent_us <= ?1 LIMIT ?2)";

/// Counts a code that is about to be sent, unless that is one too many.
pub(super) fn count(
    db: &Connection,
    number: Msisdn,
    account: AccountId,
    now: Timestamp,
) -> Result<std::result::Result<(), Capped>> {
    let sent_to = db
        .prepare_cached(SENT_TO)?
        .query_map(params![number.as_i64(), NUMBER_DAY], sent_at)?
        .collect::<Result<Vec<_>>>()?;
    let sent_by = db
        .prepare_cached(SENT_BY)?
        .query_row([account.as_i64()], sent_at)
        .optional()?;
    let checked =
        code_cap::check_number(&sent_to, now).and_then(|()| code_cap::check_account(sent_by, now));
    if checked.is_ok() {
        let values = params![number.as_i64(), account.as_i64(), micros(now)];
        db.prepare_cached(COUNT)?.execute(values)?;
    }
    Ok(checked)
}

fn sent_at(row: &Row<'_>) -> Result<Timestamp> {
    Ok(timestamp(row.get(0)?)?)
}

/// Forgets codes that no longer count.
pub(super) fn prune(db: &Connection, before: Timestamp, limit: u32) -> Result<u64> {
    let values = params![micros(before), limit];
    let pruned = db.prepare_cached(PRUNE)?.execute(values)?;
    Ok(pruned as u64)
}
