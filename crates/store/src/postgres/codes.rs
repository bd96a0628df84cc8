//! Confirmation codes: counted, and their texts until the message has ended.

use deadpool_postgres::Transaction;
use domain::Msisdn;
use domain::Timestamp;
use domain::code_cap::{self, Capped, NUMBER_DAY};
use domain::ids::AccountId;
use tokio_postgres::Row;

use super::fault::Fault;
use super::senders::run;
use super::{Values, column};
use crate::rows::{Corrupt, micros, timestamp};

/// Whoever counts codes of the same account or number waits here, and then sees this one. The first number keeps these
/// locks apart from others.
const LOCK: &str = "
    SELECT pg_advisory_xact_lock(1668244580, hashint8($1)), pg_advisory_xact_lock(1668244581, hashint8($2))";
const SENT_TO: &str =
    "SELECT sent_us FROM code_sent WHERE number = $1 ORDER BY sent_us DESC LIMIT $2";
const SENT_BY: &str = "
    SELECT sent_us FROM code_sent WHERE account_id = $1 ORDER BY sent_us DESC
    LIMIT 1 OFFSET (SELECT codes_per_day - 1 FROM account WHERE id = $1)";
const COUNT: &str = "
    INSERT INTO code_sent (number, account_id, sent_us) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
pub(super) const PRUNE: &str = "
    WITH old AS MATERIALIZED (
        SELECT number, sent_us, account_id FROM code_sent WHERE sent_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM code_sent AS s USING old
        WHERE s.number = ANY(ARRAY[old.number]) AND s.sent_us = old.sent_us AND s.account_id = old.account_id
        RETURNING 1
    )
    SELECT count(*) FROM pruned";

/// Counts a code that is about to be sent, unless that is one too many.
pub(super) async fn count(
    transaction: &Transaction<'_>,
    number: Msisdn,
    account: AccountId,
    now: Timestamp,
) -> Result<Result<(), Capped>, Fault> {
    let (number, account) = (number.as_i64(), account.as_i64());
    run(transaction, LOCK, &[&account, &number]).await?;
    let sent_to = list(transaction, SENT_TO, &[&number, &i64::from(NUMBER_DAY)]).await?;
    let sent_by = list(transaction, SENT_BY, &[&account]).await?;
    let checked = code_cap::check_number(&sent_to, now)
        .and_then(|()| code_cap::check_account(sent_by.first().copied(), now));
    if checked.is_ok() {
        run(transaction, COUNT, &[&number, &account, &micros(now)]).await?;
    }
    Ok(checked)
}

async fn list(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Vec<Timestamp>, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    let found = transaction.query(&statement, values).await?;
    let read = |row: &Row| -> Result<Timestamp, Corrupt> { timestamp(column(row, 0)?) };
    Ok(found.iter().map(read).collect::<Result<_, _>>()?)
}
