//! What clients spend, for grants with a cap.

use domain::billing::{GrantCap, NotPaid};
use domain::{GrantId, Money};
use rusqlite::{Connection, OptionalExtension, Result, params};

use crate::sql::oauth as sql;

pub(super) fn spend(
    db: &Connection,
    cap: GrantCap,
    cost: Money,
    day: i32,
) -> Result<std::result::Result<(), NotPaid>> {
    let values = params![cap.grant.as_i64(), day, cost.micros(), cap.daily.micros()];
    if db.prepare_cached(sql::SPEND.sqlite)?.execute(values)? > 0 {
        return Ok(Ok(()));
    }
    let left = cap.left(find_spending(db, cap.grant, day)?);
    Ok(Err(NotPaid::GrantCap { cost, left }))
}

pub(super) fn unspend(db: &Connection, grant: GrantId, cost: Money, day: i32) -> Result<()> {
    let values = params![grant.as_i64(), day, cost.micros()];
    db.prepare_cached(sql::UNSPEND.sqlite)?.execute(values)?;
    Ok(())
}

pub(super) fn find_spending(db: &Connection, grant: GrantId, day: i32) -> Result<Money> {
    let mut statement = db.prepare_cached(sql::FIND_SPENDING.sqlite)?;
    let found = statement.query_row(params![grant.as_i64(), day], |row| row.get(0));
    Ok(Money::from_micros(found.optional()?.unwrap_or_default()))
}
