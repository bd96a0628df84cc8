//! Claims from route pools: accounts share the claimed messages equally.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use domain::ids::{NodeId, PoolId};
use domain::message::Priority;
use domain::ports::PoolClaim;
use tokio_postgres::Row;

use super::claims::queued_message_columns;
use super::column;
use super::fault::Fault;
use crate::rows::Corrupt;
use crate::rows::dispatch::{ACCOUNTS, PoolRange, pool_ranges, priority};

/// The next account of a range, by a probe of the index: after `$after` and up to `$upto`.
macro_rules! next_account {
    ($wraps:literal, $range:literal, $after:literal, $upto:literal) => {
        concat!(
            "(SELECT ",
            $wraps,
            " AS wraps, q.account_id FROM queue AS q
            WHERE q.owner = ",
            $range,
            ".owner AND q.lane = ",
            $range,
            ".lane AND q.owner < -1 AND q.account_id > ",
            $after,
            " AND q.account_id <= ",
            $upto,
            " ORDER BY q.account_id LIMIT 1)"
        )
    };
}

/// Lists up to 64 accounts of each range, beginning after the one that was served last, and claims an equal share of
/// the limit from each (`first`). Accounts with more messages share what is left (`rest`).
///
/// Each account costs one probe of the index `queue_pool`, and each row is read once: the cost does not depend on the
/// length of the queue.
const CLAIM: &str = concat!(
    "WITH RECURSIVE given AS MATERIALIZED (
        SELECT g.* FROM UNNEST($2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[]) AS g (owner, lane, most, after)
    ), account (owner, lane, most, after, place, wraps, account_id) AS (
        SELECT g.owner, g.lane, g.most, g.after, 1, f.wraps, f.account_id FROM given AS g CROSS JOIN LATERAL (
            SELECT x.wraps, x.account_id FROM (",
    next_account!("FALSE", "g", "g.after", "9223372036854775807"),
    " UNION ALL ",
    next_account!("TRUE", "g", "-1", "g.after"),
    ") AS x ORDER BY x.wraps LIMIT 1
        ) AS f
        UNION ALL
        SELECT a.owner, a.lane, a.most, a.after, a.place + 1, f.wraps, f.account_id
        FROM account AS a CROSS JOIN LATERAL (
            SELECT x.wraps, x.account_id FROM (",
    next_account!(
        "a.wraps",
        "a",
        "a.account_id",
        "CASE WHEN a.wraps THEN a.after ELSE 9223372036854775807 END"
    ),
    " UNION ALL ",
    next_account!("TRUE", "a", "-1", "CASE WHEN a.wraps THEN -1 ELSE a.after END"),
    ") AS x ORDER BY x.wraps LIMIT 1
        ) AS f
        WHERE a.place < least($6::bigint, a.most)
    ), share AS MATERIALIZED (
        SELECT a.owner, a.lane, a.account_id, a.place, a.most, c.accounts,
            a.most / c.accounts + CASE WHEN a.place <= a.most % c.accounts THEN 1 ELSE 0 END AS share
        FROM account AS a JOIN (SELECT owner, lane, count(*) AS accounts FROM account GROUP BY owner, lane) AS c
            ON c.owner = a.owner AND c.lane = a.lane
    ), first AS MATERIALIZED (
        SELECT d.owner, d.lane, d.due_us, d.id, s.account_id, s.accounts FROM share AS s CROSS JOIN LATERAL (
            SELECT q.owner, q.lane, q.due_us, q.id FROM queue AS q
            WHERE q.owner = s.owner AND q.lane = s.lane AND q.owner < -1 AND q.account_id = s.account_id
            ORDER BY q.due_us, q.id LIMIT s.share FOR UPDATE SKIP LOCKED
        ) AS d
    ), got AS MATERIALIZED (
        SELECT owner, lane, account_id, count(*) AS rows FROM first GROUP BY owner, lane, account_id
    ), full_share AS MATERIALIZED (
        SELECT s.owner, s.lane, s.account_id, s.accounts, s.most - t.rows AS missing,
            count(*) OVER same AS full_ones, row_number() OVER (same ORDER BY s.place) AS place
        FROM share AS s
            JOIN got AS g ON g.owner = s.owner AND g.lane = s.lane AND g.account_id = s.account_id AND g.rows = s.share
            JOIN (SELECT owner, lane, sum(rows)::bigint AS rows FROM got GROUP BY owner, lane) AS t
                ON t.owner = s.owner AND t.lane = s.lane AND t.rows < s.most
        WINDOW same AS (PARTITION BY s.owner, s.lane)
    ), second_share AS MATERIALIZED (
        SELECT f.owner, f.lane, f.account_id, f.accounts,
            f.missing / f.full_ones + CASE WHEN f.place <= f.missing % f.full_ones THEN 1 ELSE 0 END AS share
        FROM full_share AS f
    ), rest AS MATERIALIZED (
        SELECT d.owner, d.lane, d.due_us, d.id, s.accounts, s.share FROM second_share AS s
        CROSS JOIN LATERAL (
            SELECT f.due_us, f.id FROM first AS f
            WHERE f.owner = s.owner AND f.lane = s.lane AND f.account_id = s.account_id
            ORDER BY f.due_us DESC, f.id DESC LIMIT 1
        ) AS last
        CROSS JOIN LATERAL (
            SELECT q.owner, q.lane, q.due_us, q.id FROM queue AS q
            WHERE q.owner = s.owner AND q.lane = s.lane AND q.owner < -1 AND q.account_id = s.account_id
                AND (q.due_us, q.id) > (last.due_us, last.id)
            ORDER BY q.due_us, q.id LIMIT s.share FOR UPDATE SKIP LOCKED
        ) AS d
    ), due AS MATERIALIZED (
        SELECT owner, lane, due_us, id, accounts, 0::bigint AS second FROM first
        UNION ALL SELECT owner, lane, due_us, id, accounts, share FROM rest
    ), taken AS (
        UPDATE queue AS q SET owner = $1, attempt = q.attempt + 1 FROM due
        WHERE q.owner = ANY(ARRAY[due.owner]) AND q.lane = due.lane AND q.due_us = due.due_us AND q.id = due.id
        RETURNING q.lane, q.due_us, q.id, q.attempt, q.tries, due.owner, due.second, due.accounts, q.account_id
    )
    SELECT ",
    queued_message_columns!(),
    ", taken.account_id, taken.second, taken.accounts
    FROM taken LEFT JOIN message AS m ON m.id = taken.id
    ORDER BY taken.lane, taken.due_us, taken.id"
);

/// Messages claimed from pools.
#[derive(Default)]
pub(super) struct Pooled {
    pub(super) rows: Vec<Row>,
    /// Pools and lanes in which more messages may wait.
    pub(super) more: Vec<(PoolId, Priority)>,
}

pub(super) async fn claim(
    transaction: &Transaction<'_>,
    node: NodeId,
    pools: &[PoolClaim],
) -> Result<Pooled, Fault> {
    let ranges = pool_ranges(pools);
    if ranges.is_empty() {
        return Ok(Pooled::default());
    }
    let owners: Vec<i64> = ranges.iter().map(|range| range.owner).collect();
    let lanes: Vec<i16> = ranges.iter().map(|range| range.lane).collect();
    let most: Vec<i64> = ranges.iter().map(|range| range.limit.into()).collect();
    let after: Vec<i64> = ranges.iter().map(|range| range.after).collect();
    let statement = transaction.prepare_cached(CLAIM).await?;
    let values: super::Values<'_> = &[
        &node.as_i64(),
        &owners,
        &lanes,
        &most,
        &after,
        &i64::from(ACCOUNTS),
    ];
    let rows = transaction.query(&statement, values).await?;
    let more = more(&ranges, &rows)?;
    Ok(Pooled { rows, more })
}

/// What was claimed from one range.
#[derive(Default)]
struct RangeClaim {
    rows: i64,
    accounts: i64,
    /// For each account with a second share: the share, and the number of messages claimed from it.
    second: HashMap<i64, (i64, i64)>,
}

impl RangeClaim {
    /// Whether more messages may wait.
    fn may_have_more(&self, range: &PoolRange) -> bool {
        self.rows >= range.limit.into()
            || self.accounts >= ACCOUNTS.into()
            || self.second.values().any(|(share, found)| found >= share)
    }
}

fn more(ranges: &[PoolRange], rows: &[Row]) -> Result<Vec<(PoolId, Priority)>, Corrupt> {
    let mut taken: HashMap<(i64, i16), RangeClaim> = HashMap::new();
    for row in rows {
        let taken = taken
            .entry((column(row, 15)?, column(row, 17)?))
            .or_default();
        taken.rows += 1;
        taken.accounts = column(row, 24)?;
        let second: i64 = column(row, 23)?;
        if second > 0 {
            let of_account = taken.second.entry(column(row, 22)?).or_default();
            *of_account = (second, of_account.1 + 1);
        }
    }
    let mut more = Vec::new();
    for range in ranges {
        let taken = taken.get(&(range.owner, range.lane));
        if taken.is_some_and(|taken| taken.may_have_more(range)) {
            more.push((range.pool, priority(range.lane)?));
        }
    }
    Ok(more)
}
