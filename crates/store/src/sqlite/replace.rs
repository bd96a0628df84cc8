//! Replacing a scheduled message.

use std::cmp::Ordering;

use domain::billing::NotPaid;
use domain::message::Submission;
use domain::{Money, Network};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::billing;
use crate::rows::{micros, traffic};
use crate::sql::messages as sql;

/// The price of a message that is scheduled and that no node has claimed.
const FIND_PRICE: &str = "
    SELECT m.price_micros FROM message AS m JOIN queue AS q
        ON q.owner = 0 AND q.lane = m.priority AND q.due_us = m.scheduled_us AND q.id = m.id
    WHERE m.id = ?1 AND m.account_id = ?2 AND m.state = 1 AND m.channel = 0";
const MOVE_IN_QUEUE: &str = "
    UPDATE queue SET due_us = ?2
    WHERE owner = 0 AND (lane, due_us, id) = (SELECT priority, scheduled_us, id FROM message WHERE id = ?1)";

/// Replaces a scheduled message that is still in the queue, and returns whether it was. It is charged first, so that
/// nothing has changed if the account cannot pay.
pub(super) fn replace(
    db: &Connection,
    by: &Submission,
) -> Result<std::result::Result<bool, NotPaid>> {
    let recipient = &by.recipients[0];
    let (id, account_id) = (recipient.id.as_i64(), by.account.as_i64());
    let mut find = db.prepare_cached(FIND_PRICE)?;
    let before = find.query_row([id, account_id], |row| row.get::<_, i64>(0));
    let Some(before) = before.optional()? else {
        return Ok(Ok(false));
    };
    let more = recipient.price.micros() - before;
    match more.cmp(&0) {
        Ordering::Greater => {
            let charged =
                billing::charge_more(db, account_id, Money::from_micros(more), by.accepted_at)?;
            if let Err(not_paid) = charged {
                return Ok(Err(not_paid));
            }
        }
        Ordering::Less => billing::give_back(db, account_id, -more, 0, micros(by.accepted_at))?,
        Ordering::Equal => {}
    }
    let due_us = micros(by.due_at());
    db.prepare_cached(MOVE_IN_QUEUE)?.execute([id, due_us])?;
    let url = by.dlr_url.as_ref().map(|url| url.as_str().as_bytes());
    db.prepare_cached(sql::REPLACE.sqlite)?.execute(params![
        id,
        by.text.as_bytes(),
        by.shape.coding.number(),
        by.coding_given,
        by.shape.parts,
        url,
        due_us,
        micros(by.expires_at),
        recipient.price.micros(),
        recipient.network.map(Network::code),
        traffic::country_column(recipient),
    ])?;
    Ok(Ok(true))
}
