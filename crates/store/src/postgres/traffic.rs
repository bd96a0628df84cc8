//! The port for traffic counts. They are inserted where messages end, by `count_traffic!`, and added up here.
//!
//! If every batch updated the same row, each update would leave an old version of it, and all of them stay while a
//! transaction is open. So each batch inserts rows, which are added up every few seconds; lists show the sum of both.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::AccountId;
use domain::ports::{DeliveryCount, LatencyCount, Span, StoreError, TrafficCount, TrafficStore};
use tokio_postgres::Row;

use super::{PostgresStore, column};
use crate::rows::traffic::{
    CountColumns, DeliveryColumns, LatencyColumns, first_begin, span_number,
};

/// How many hours each span has. Only days, whose number is 1, have the network.
macro_rules! spans {
    () => {
        "(VALUES (0::smallint, 1), (1::smallint, 24)) AS s (span, hours)"
    };
}
macro_rules! sums {
    ($from:literal) => {
        concat!(
            "SELECT CAST(e.begins AS bigint), e.channel, e.network, e.status, e.error, CAST(sum(e.messages) AS bigint),
                CAST(sum(e.parts) AS bigint), CAST(sum(e.cost_micros) AS bigint)
            FROM (
                SELECT t.begins, t.channel, t.network, t.status, t.error, t.messages, t.parts, t.cost_micros
                FROM ",
            $from,
            " AND t.span = $2 AND t.begins >= $3::bigint AND t.begins < $4::bigint
                UNION ALL
                SELECT f.hour / s.hours, f.channel, f.network * s.span, f.status, f.error, f.messages, f.parts,
                    f.cost_micros
                FROM traffic_fresh AS f JOIN ",
            spans!(),
            " ON s.span = $2
                WHERE ($1::bigint IS NULL OR f.account_id = $1)
                    AND f.hour / s.hours >= $3::bigint AND f.hour / s.hours < $4::bigint
            ) AS e
            GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5"
        )
    };
}
const LIST: &str = sums!("traffic AS t WHERE t.account_id = $1");
/// Joins by account, so that each account is read by the index.
const LIST_ALL: &str =
    sums!("account AS a JOIN traffic AS t ON t.account_id = a.id WHERE $1::bigint IS NULL");
/// Status 1 is delivered, 0 is cancelled.
const LIST_DELIVERIES: &str = "
    SELECT e.account_id, CAST(e.day AS bigint), CAST(sum(e.messages) AS bigint),
        CAST(sum(CASE e.status WHEN 1 THEN e.messages ELSE 0 END) AS bigint)
    FROM (
        SELECT t.account_id, t.begins AS day, t.status, t.messages
        FROM account AS a JOIN traffic AS t ON t.account_id = a.id
        WHERE t.span = 1 AND t.begins >= $1::bigint AND t.begins < $2::bigint
        UNION ALL
        SELECT account_id, hour / 24, status, messages FROM traffic_fresh
        WHERE hour / 24 >= $1::bigint AND hour / 24 < $2::bigint
    ) AS e
    WHERE e.status <> 0 GROUP BY 1, 2 ORDER BY 1, 2";
macro_rules! latencies {
    ($from:literal) => {
        concat!(
            "SELECT CAST(e.day AS bigint), e.bucket, CAST(sum(e.messages) AS bigint)
            FROM (
                SELECT l.day, l.bucket, l.messages FROM ",
            $from,
            " AND l.day >= $2::bigint AND l.day < $3::bigint
                UNION ALL
                SELECT hour / 24, bucket, messages FROM traffic_fresh
                WHERE ($1::bigint IS NULL OR account_id = $1) AND bucket IS NOT NULL
                    AND hour / 24 >= $2::bigint AND hour / 24 < $3::bigint
            ) AS e
            GROUP BY 1, 2 ORDER BY 1, 2"
        )
    };
}
const LIST_LATENCIES: &str = latencies!("latency_day AS l WHERE l.account_id = $1");
/// Joins by account, so that each account is read by the index.
const LIST_ALL_LATENCIES: &str = latencies!(
    "account AS a JOIN latency_day AS l ON l.account_id = a.id WHERE $1::bigint IS NULL"
);
/// Skips rows that another node is adding up. Rows are locked in the order of the key, so that two nodes cannot
/// deadlock.
const ADD_UP: &str = concat!(
    "WITH taken AS (
        DELETE FROM traffic_fresh WHERE id = ANY(ARRAY(
            SELECT id FROM traffic_fresh WHERE id > $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
        )) RETURNING *
    ), folded AS (
        INSERT INTO traffic AS t (account_id, span, begins, channel, network, status, error, shard, messages, parts,
            cost_micros)
        SELECT f.account_id, s.span, f.hour / s.hours, f.channel, f.network * s.span, f.status, f.error, 0,
            sum(f.messages), sum(f.parts), sum(f.cost_micros)
        FROM taken AS f CROSS JOIN ",
    spans!(),
    " GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
        ON CONFLICT (account_id, span, begins, channel, network, status, error, shard) DO UPDATE
        SET messages = t.messages + excluded.messages, parts = t.parts + excluded.parts,
            cost_micros = t.cost_micros + excluded.cost_micros
    ), latencies AS (
        INSERT INTO latency_day AS l (account_id, day, bucket, messages)
        SELECT account_id, hour / 24, bucket, sum(messages) FROM taken WHERE bucket IS NOT NULL
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (account_id, day, bucket) DO UPDATE SET messages = l.messages + excluded.messages
    )
    SELECT count(*), max(id) FROM taken"
);

/// Every twelfth run starts at the beginning, because transactions may commit in another order than their row IDs.
const RESTART_EVERY: u32 = 12;

/// Where the next run starts: all rows up to `floor` were added up.
#[derive(Default)]
pub(super) struct AddUpProgress {
    count: AtomicU32,
    floor: AtomicI64,
}

impl AddUpProgress {
    fn begin(&self) -> i64 {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(RESTART_EVERY) {
            return 0;
        }
        self.floor.load(Ordering::Relaxed)
    }

    fn end(&self, last: Option<i64>) {
        if let Some(last) = last {
            self.floor.fetch_max(last, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl TrafficStore for PostgresStore {
    async fn list_traffic(
        &self,
        account: Option<AccountId>,
        span: Span,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<TrafficCount>, StoreError> {
        let sql = if account.is_some() { LIST } else { LIST_ALL };
        let (first, end) = (first_begin(span, from), first_begin(span, until));
        let account = account.map(AccountId::as_i64);
        let values: super::Values<'_> = &[&account, &span_number(span), &first, &end];
        self.list("list traffic", sql, values, |row| {
            CountColumns::read(row)?.count(span)
        })
        .await
    }

    async fn list_deliveries(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DeliveryCount>, StoreError> {
        let (first, end) = (first_begin(Span::Day, from), first_begin(Span::Day, until));
        let values: super::Values<'_> = &[&first, &end];
        self.list("list deliveries", LIST_DELIVERIES, values, |row| {
            DeliveryColumns::read(row)?.count()
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
        let sql = if account.is_some() {
            LIST_LATENCIES
        } else {
            LIST_ALL_LATENCIES
        };
        let account = account.map(AccountId::as_i64);
        let values: super::Values<'_> = &[&account, &first, &end];
        self.list("list latencies", sql, values, |row| {
            LatencyColumns::read(row)?.count()
        })
        .await
    }

    async fn add_up_traffic(&self, limit: u32) -> Result<u64, StoreError> {
        let values: super::Values<'_> = &[&self.add_up_progress.begin(), &i64::from(limit)];
        let read = |row: &Row| Ok((column::<i64>(row, 0)?, column(row, 1)?));
        let (taken, last) = self.get("add up traffic", ADD_UP, values, read).await?;
        self.add_up_progress.end(last);
        Ok(taken.cast_unsigned())
    }
}
