//! The port for traffic counts.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::AccountId;
use domain::ports::{DeliveryCount, LatencyCount, Span, StoreError, TrafficCount, TrafficStore};
use rusqlite::{Connection, Result, Row, params};

use super::SqliteStore;
use crate::rows::traffic::{
    CountColumns, DeliveryColumns, LatencyColumns, Tally, first_begin, span_number,
};

const COUNT: &str = "
    INSERT INTO traffic (account_id, span, begins, channel, network, status, error, shard, messages, parts, cost_micros)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10)
    ON CONFLICT DO UPDATE SET messages = messages + excluded.messages, parts = parts + excluded.parts,
        cost_micros = cost_micros + excluded.cost_micros";
const LIST: &str = "
    SELECT begins, channel, network, status, error, sum(messages), sum(parts), sum(cost_micros) FROM traffic
    WHERE account_id = ?1 AND span = ?2 AND begins >= ?3 AND begins < ?4
    GROUP BY begins, channel, network, status, error ORDER BY begins, channel, network, status, error";
/// Joins by account, so that each account is read by the index.
const LIST_ALL: &str = "
    SELECT t.begins, t.channel, t.network, t.status, t.error, sum(t.messages), sum(t.parts), sum(t.cost_micros)
    FROM account AS a CROSS JOIN traffic AS t ON t.account_id = a.id
    WHERE t.span = ?1 AND t.begins >= ?2 AND t.begins < ?3
    GROUP BY t.begins, t.channel, t.network, t.status, t.error
    ORDER BY t.begins, t.channel, t.network, t.status, t.error";

/// Status 1 is delivered, 0 is cancelled.
const LIST_DELIVERIES: &str = "
    SELECT t.account_id, t.begins, sum(t.messages), sum(CASE t.status WHEN 1 THEN t.messages ELSE 0 END)
    FROM account AS a CROSS JOIN traffic AS t ON t.account_id = a.id
    WHERE t.span = 1 AND t.begins >= ?1 AND t.begins < ?2 AND t.status <> 0
    GROUP BY t.account_id, t.begins ORDER BY t.account_id, t.begins";
const COUNT_LATENCY: &str = "
    INSERT INTO latency_day (account_id, day, bucket, messages) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET messages = messages + excluded.messages";
const LIST_LATENCIES: &str = "
    SELECT day, bucket, messages FROM latency_day WHERE account_id = ?1 AND day >= ?2 AND day < ?3
    ORDER BY day, bucket";
/// Joins by account, so that each account is read by the index.
const LIST_ALL_LATENCIES: &str = "
    SELECT l.day, l.bucket, sum(l.messages) FROM account AS a CROSS JOIN latency_day AS l ON l.account_id = a.id
    WHERE l.day >= ?1 AND l.day < ?2
    GROUP BY l.day, l.bucket ORDER BY l.day, l.bucket";

#[async_trait]
impl TrafficStore for SqliteStore {
    async fn list_traffic(
        &self,
        account: Option<AccountId>,
        span: Span,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<TrafficCount>, StoreError> {
        let (first, end) = (first_begin(span, from), first_begin(span, until));
        self.read("list traffic", move |db| {
            list(db, account, span, first, end)
        })
        .await
    }

    async fn list_deliveries(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DeliveryCount>, StoreError> {
        let (first, end) = (first_begin(Span::Day, from), first_begin(Span::Day, until));
        self.read("list deliveries", move |db| {
            db.prepare_cached(LIST_DELIVERIES)?
                .query_map(params![first, end], |row: &Row<'_>| {
                    Ok(DeliveryColumns::read(row)?.count()?)
                })?
                .collect()
        })
        .await
    }

    async fn list_latencies(
        &self,
        account: Option<AccountId>,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<LatencyCount>, StoreError> {
        let (first, end) = (first_begin(Span::Day, from), first_begin(Span::Day, until));
        self.read("list latencies", move |db| {
            let read = |row: &Row<'_>| Ok(LatencyColumns::read(row)?.count()?);
            match account {
                Some(account) => db
                    .prepare_cached(LIST_LATENCIES)?
                    .query_map(params![account.as_i64(), first, end], read)?
                    .collect(),
                None => db
                    .prepare_cached(LIST_ALL_LATENCIES)?
                    .query_map(params![first, end], read)?
                    .collect(),
            }
        })
        .await
    }

    async fn add_up_traffic(&self, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// Adds the counts of a batch.
pub(super) fn count(db: &Connection, tally: &Tally) -> Result<()> {
    let mut count = db.prepare_cached(COUNT)?;
    for (key, sums) in tally.rows() {
        count.execute(params![
            key.account_id,
            key.span,
            key.begins,
            key.channel,
            key.network,
            key.status,
            key.error,
            sums.messages,
            sums.parts,
            sums.cost_micros,
        ])?;
    }
    let mut count = db.prepare_cached(COUNT_LATENCY)?;
    for (key, messages) in tally.latencies() {
        count.execute(params![key.account_id, key.day, key.bucket, messages])?;
    }
    Ok(())
}

/// The counts of an account, or of all together, between two times.
fn list(
    db: &Connection,
    account: Option<AccountId>,
    span: Span,
    first: i64,
    end: i64,
) -> Result<Vec<TrafficCount>> {
    let read = |row: &Row<'_>| Ok(CountColumns::read(row)?.count(span)?);
    let number = span_number(span);
    match account {
        Some(account) => db
            .prepare_cached(LIST)?
            .query_map(params![account.as_i64(), number, first, end], read)?
            .collect(),
        None => db
            .prepare_cached(LIST_ALL)?
            .query_map(params![number, first, end], read)?
            .collect(),
    }
}
