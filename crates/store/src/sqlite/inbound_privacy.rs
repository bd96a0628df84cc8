//! Messages from handsets that are about one number, and forgetting their texts.

use domain::ids::MessageId;
use domain::ports::{InboundDetail, PartSet, SubjectMessage, SubjectPage};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::{inbound, message_detail};
use crate::rows::inbound::{InboundColumns, message, set_key};
use crate::rows::message_id;
use crate::rows::privacy::{InboundChange, NumberColumns, ROWS};
use crate::sql::{inbound as sql, replies};

const LIST: &str = "
    SELECT id, sender = ?2 OR number = ?2 FROM inbound WHERE id > ?1 ORDER BY id LIMIT ?3";
const CHANGE: &str = "
    UPDATE inbound SET sender = ?2, number = ?3, body = ?4, udh = ?5, keyword = ?6 WHERE id = ?1";
const CHANGE_CALLBACKS: &str = "
    UPDATE callback SET payload = ?2, url = CASE WHEN instr(url, ?3) > 0 THEN x'' ELSE url END
    WHERE message_id = ?1 AND kind = 3";
const ERASE_ANSWERS: &str = "
    UPDATE callback_attempt SET body = x'' WHERE id IN (
        SELECT a.id FROM callback AS c CROSS JOIN callback_attempt AS a
            ON a.id BETWEEN c.id * 1048576 AND c.id * 1048576 + 1048575
        WHERE c.message_id = ?1 AND c.kind = 3)";

/// Messages from and to a number.
pub(super) fn list(db: &Connection, number: &NumberColumns, after: i64) -> Result<SubjectPage> {
    let mut statement = db.prepare_cached(LIST)?;
    let mut rows = statement.query(params![after, number.originator, ROWS])?;
    let (mut messages, mut read, mut last) = (Vec::new(), 0, 0);
    while let Some(row) = rows.next()? {
        read += 1;
        last = row.get(0)?;
        if row.get(1)? {
            messages.push(SubjectMessage {
                id: message_id(last)?,
                is_over: !is_waiting(db, last)?,
            });
        }
    }
    let next = (read == ROWS).then(|| message_id(last)).transpose()?;
    Ok(SubjectPage { messages, next })
}

/// Whether a callback about a message waits.
fn is_waiting(db: &Connection, id: i64) -> Result<bool> {
    db.prepare_cached(sql::IS_WAITING.sqlite)?
        .query_row([id], |row| row.get(0))
}

pub(super) fn find_detail(db: &Connection, id: MessageId) -> Result<Option<InboundDetail>> {
    let values = params![id.as_i64(), None::<i64>];
    let mut find = db.prepare_cached(sql::FIND.sqlite)?;
    let found = find.query_row(values, |row| message(row)).optional()?;
    let Some(message) = found else {
        return Ok(None);
    };
    Ok(Some(InboundDetail {
        message,
        callbacks: message_detail::list_callbacks(db, id)?,
    }))
}

/// Texts from and to a number that wait for parts.
pub(super) fn list_sets(
    db: &Connection,
    number: &NumberColumns,
    limit: u32,
) -> Result<Vec<PartSet>> {
    let read = |row: &Row<'_>| set_key(row);
    let keys = db
        .prepare_cached(sql::LIST_SETS_OF.sqlite)?
        .query_map(params![number.originator, limit], read)?
        .collect::<Result<Vec<_>>>()?;
    let mut listed = Vec::new();
    for (key, set_number) in keys {
        let sets = inbound::find_sets(db, &key)?.into_iter();
        listed.extend(sets.filter(|set| set.set == set_number));
    }
    Ok(listed)
}

/// Changes messages that are over, and returns how many.
pub(super) fn change(db: &Connection, ids: &[i64], change: &InboundChange) -> Result<u64> {
    let mut changed = 0;
    for &id in ids {
        changed += u64::from(change_one(db, id, change)?);
    }
    Ok(changed)
}

fn change_one(db: &Connection, id: i64, change: &InboundChange) -> Result<bool> {
    if is_waiting(db, id)? {
        return Ok(false);
    }
    let mut find = db.prepare_cached(sql::FIND.sqlite)?;
    let values = params![id, None::<i64>];
    let found = find.query_row(values, |row| message(row)).optional()?;
    let Some(left) = found.and_then(|message| change.apply(message)) else {
        return Ok(false);
    };
    let columns = InboundColumns::from_message(&left);
    db.prepare_cached(CHANGE)?.execute(params![
        columns.id,
        columns.sender,
        columns.number,
        columns.body,
        columns.udh,
        columns.keyword,
    ])?;
    let values = params![id, left.payload(), change.digits()];
    db.prepare_cached(CHANGE_CALLBACKS)?.execute(values)?;
    if change.digits().is_some() {
        db.prepare_cached(ERASE_ANSWERS)?.execute([id])?;
        let mut remove = db.prepare_cached(replies::REMOVE_DUE.sqlite)?;
        remove.execute([id])?;
    }
    Ok(true)
}
