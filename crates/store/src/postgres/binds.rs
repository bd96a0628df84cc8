//! The port for binds and route pools.

use std::collections::HashMap;

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::ids::{NodeId, PoolId};
use domain::ports::{BindDemand, BindShare, BindStore, PoolCursor, RoutePool, Shared, StoreError};
use tokio_postgres::Row;

use super::fault::Fault;
use super::retry::Retryable;
use super::{PostgresStore, column, prune, retry};
use crate::rows::binds::{ShareColumns, cursor, pool_owner, route_pool, route_text};
use crate::rows::{Corrupt, micros};
use crate::sql::binds as sql;

/// While this row is locked, the node cannot be removed, so no bind is assigned to a dead node.
const LOCK_NODE: &str = "SELECT id FROM node WHERE id = $1 FOR SHARE";
/// Inserts only missing rows; nearly always there are none.
const STORE_DEMANDS: &str = "
    WITH given AS MATERIALIZED (
        SELECT * FROM UNNEST($2::text[], $3::int[]) AS g (carrier, total)
    ), forgotten AS (
        DELETE FROM bind_wish WHERE node = $1 AND carrier NOT IN (SELECT carrier FROM given WHERE total > 0)
    ), wished AS (
        INSERT INTO bind_wish (carrier, node) SELECT g.carrier, $1::bigint FROM given AS g
        WHERE g.total > 0
            AND NOT EXISTS (SELECT 1 FROM bind_wish AS w WHERE w.carrier = g.carrier AND w.node = $1)
        ORDER BY g.carrier ON CONFLICT DO NOTHING
    ), slots AS (
        INSERT INTO bind (carrier, slot, owner)
        SELECT g.carrier, s.slot, 0 FROM given AS g CROSS JOIN LATERAL generate_series(0, g.total - 1) AS s (slot)
        WHERE NOT EXISTS (SELECT 1 FROM bind AS b WHERE b.carrier = g.carrier AND b.slot = s.slot)
        ORDER BY g.carrier, s.slot ON CONFLICT DO NOTHING
    )
    INSERT INTO pool (carrier) SELECT g.carrier FROM given AS g
    WHERE NOT EXISTS (SELECT 1 FROM pool AS p WHERE p.carrier = g.carrier)
    ORDER BY g.carrier ON CONFLICT DO NOTHING";
const READ_SHARES: &str = concat!(
    "WITH living AS MATERIALIZED (
        SELECT id FROM node WHERE id = $1 OR alive_until_us >= ",
    now_us!(),
    ")
    SELECT g.carrier,
        (SELECT count(*) FROM bind_wish AS w JOIN living ON living.id = w.node WHERE w.carrier = g.carrier),
        (SELECT count(*) FROM bind_wish AS w JOIN living ON living.id = w.node
            WHERE w.carrier = g.carrier AND w.node < $1),
        (SELECT count(*) FROM bind AS b WHERE b.carrier = g.carrier AND b.owner = $1 AND b.slot < g.total),
        (SELECT count(*) FROM bind AS b WHERE b.carrier = g.carrier AND b.owner = $1 AND b.slot >= g.total),
        p.id,
        EXISTS (SELECT 1 FROM carrier AS c JOIN living ON living.id = c.node
            WHERE c.name = g.carrier AND c.node <> $1 AND c.health <> 'down')
    FROM UNNEST($2::text[], $3::int[]) AS g (carrier, total) JOIN pool AS p ON p.carrier = g.carrier"
);
/// Skips binds that another node is taking.
const TAKE_FREE: &str = "
    UPDATE bind AS b SET owner = $1 FROM (
        SELECT d.carrier, d.slot FROM UNNEST($2::text[], $3::int[], $4::bigint[]) AS g (carrier, total, most)
        CROSS JOIN LATERAL (
            SELECT f.carrier, f.slot FROM bind AS f WHERE f.carrier = g.carrier AND f.slot < g.total AND f.owner = 0
            ORDER BY f.slot LIMIT g.most FOR UPDATE SKIP LOCKED
        ) AS d
    ) AS free
    WHERE b.carrier = free.carrier AND b.slot = free.slot RETURNING b.carrier";
/// Whether no other living node has carriers, and the carriers whose binds this node no longer wants.
const READ_UNWANTED: &str = concat!(
    "SELECT NOT EXISTS (SELECT 1 FROM carrier AS c JOIN node ON node.id = c.node
            WHERE c.node <> $1 AND node.alive_until_us >= ",
    now_us!(),
    "), ARRAY(SELECT DISTINCT carrier FROM bind WHERE owner = $1 AND carrier <> ALL ($2::text[]) ORDER BY carrier)"
);
const RELEASE: &str = concat!(
    "WITH noted AS MATERIALIZED (
        SELECT c.node, c.name, c.health FROM carrier AS c JOIN node ON node.id = c.node
        WHERE node.alive_until_us >= ",
    now_us!(),
    "), stuck AS MATERIALIZED (
        SELECT d.owner, d.lane, d.due_us, d.id FROM pool AS p CROSS JOIN LATERAL (
            SELECT q.owner, q.lane, q.due_us, q.id FROM queue AS q WHERE q.owner = -1 - p.id
            ORDER BY q.lane, q.due_us, q.id LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS d
        WHERE CASE WHEN p.carrier LIKE '=%'
            THEN EXISTS (SELECT 1 FROM unnest(string_to_array(substr(p.carrier, 2), ',')) AS r (name)
                WHERE r.name <> ALL ($3::text[]) AND NOT EXISTS (SELECT 1 FROM noted WHERE noted.name = r.name))
            ELSE NOT EXISTS (SELECT 1 FROM noted WHERE noted.node <> $1)
                OR NOT EXISTS (SELECT 1 FROM noted WHERE noted.name = p.carrier AND noted.health <> 'down')
            END
    ), released AS (
        UPDATE queue AS q SET owner = 0 FROM stuck AS s
        WHERE q.owner = ANY(ARRAY[s.owner]) AND q.lane = s.lane AND q.due_us = s.due_us AND q.id = s.id RETURNING 1
    )
    SELECT count(*) FROM released"
);

/// The second caller waits for the first and then finds the pool.
const ADD_POOLS: &str = "
    INSERT INTO pool (carrier) SELECT g.carrier FROM UNNEST($1::text[]) AS g (carrier)
    WHERE NOT EXISTS (SELECT 1 FROM pool AS p WHERE p.carrier = g.carrier)
    ORDER BY g.carrier ON CONFLICT DO NOTHING";
const LIST_ROUTE_POOLS: &str = "SELECT id, carrier FROM pool WHERE carrier LIKE '=%' ORDER BY id";
const RELEASE_AFTER: &str = "
    WITH listed AS MATERIALIZED (
        SELECT q.owner, q.lane, q.due_us, q.id FROM queue AS q
        WHERE q.owner = $1 AND (q.lane, q.due_us, q.id) > ($2::smallint, $3::bigint, $4::bigint)
        ORDER BY q.lane, q.due_us, q.id LIMIT $5 FOR UPDATE SKIP LOCKED
    ), released AS (
        UPDATE queue AS q SET owner = 0 FROM listed AS l
        WHERE q.owner = ANY(ARRAY[l.owner]) AND q.lane = l.lane AND q.due_us = l.due_us AND q.id = l.id
    )
    SELECT lane, due_us, id FROM listed ORDER BY lane DESC, due_us DESC, id DESC LIMIT 1";

#[async_trait]
impl BindStore for PostgresStore {
    async fn share_binds(
        &self,
        node: NodeId,
        demands: &[BindDemand],
    ) -> Result<Option<Shared>, StoreError> {
        retry::run(&self.pool, "share binds", &ShareBinds { node, demands }).await
    }

    async fn release_binds(
        &self,
        node: NodeId,
        carrier: &str,
        keep: u16,
    ) -> Result<(), StoreError> {
        let values: super::Values<'_> = &[&carrier, &node.as_i64(), &i64::from(keep)];
        let released = self
            .query("release binds", sql::RELEASE.postgres, values)
            .await;
        released.map(drop)
    }

    async fn list_route_pools(&self, wanted: &[Vec<String>]) -> Result<Vec<RoutePool>, StoreError> {
        if !wanted.is_empty() {
            let texts: Vec<String> = wanted.iter().map(|route| route_text(route)).collect();
            self.query("create pools", ADD_POOLS, &[&texts]).await?;
        }
        let read = |row: &Row| {
            let pool = route_pool(column(row, 0)?, column(row, 1)?)?;
            pool.ok_or(Corrupt("pool"))
        };
        self.list("list pools", LIST_ROUTE_POOLS, &[], read).await
    }

    async fn release_pools(
        &self,
        node: NodeId,
        known: &[String],
        limit: u32,
    ) -> Result<u64, StoreError> {
        let values: super::Values<'_> = &[&node.as_i64(), &i64::from(limit), &known];
        self.get("release pools", RELEASE, values, prune::count)
            .await
    }

    async fn release_pool(
        &self,
        pool: PoolId,
        after: Option<PoolCursor>,
        limit: u32,
    ) -> Result<Option<PoolCursor>, StoreError> {
        let (lane, due_us, id) = after.map_or((-1_i16, i64::MIN, 0), |(lane, due_at, id)| {
            (lane, micros(due_at), id.as_i64())
        });
        let owner = pool_owner(pool);
        let values: super::Values<'_> = &[&owner, &lane, &due_us, &id, &i64::from(limit)];
        let read = |row: &Row| cursor(column(row, 0)?, column(row, 1)?, column(row, 2)?);
        let last = self
            .list("release a pool", RELEASE_AFTER, values, read)
            .await?;
        Ok(last.into_iter().next())
    }
}

/// Stores the demands of a node, and takes free binds up to its shares.
struct ShareBinds<'a> {
    node: NodeId,
    demands: &'a [BindDemand],
}

impl Retryable for ShareBinds<'_> {
    type Output = Option<Shared>;

    async fn run(&self, client: &mut Object) -> Result<Option<Shared>, Fault> {
        let node = self.node.as_i64();
        let names: Vec<&str> = self.demands.iter().map(|demand| &*demand.carrier).collect();
        let totals: Vec<i32> = self
            .demands
            .iter()
            .map(|demand| demand.total.into())
            .collect();
        let transaction = client.transaction().await?;
        let lock = transaction.prepare_cached(LOCK_NODE).await?;
        if transaction.query_opt(&lock, &[&node]).await?.is_none() {
            return Ok(None);
        }
        let store_demands = transaction.prepare_cached(STORE_DEMANDS).await?;
        transaction
            .execute(&store_demands, &[&node, &names, &totals])
            .await?;
        let mut shares = read_shares(&transaction, node, self.demands).await?;
        self.take_free_binds(&transaction, &mut shares).await?;
        let unwanted = transaction.prepare_cached(READ_UNWANTED).await?;
        let unwanted = transaction.query_one(&unwanted, &[&node, &names]).await?;
        let (is_alone, left) = (column(&unwanted, 0)?, column(&unwanted, 1)?);
        transaction.commit().await?;
        Ok(Some(Shared {
            shares,
            left,
            is_alone,
        }))
    }
}

impl ShareBinds<'_> {
    /// Takes free binds, up to the shares.
    async fn take_free_binds(
        &self,
        transaction: &Transaction<'_>,
        shares: &mut [BindShare],
    ) -> Result<(), Fault> {
        let most = |share: &BindShare| i64::from(share.share.saturating_sub(share.held));
        let mut short: Vec<(&str, i32, i64)> = self
            .demands
            .iter()
            .zip(&*shares)
            .map(|(demand, share)| (&*demand.carrier, demand.total.into(), most(share)))
            .filter(|(_, _, most)| *most > 0)
            .collect();
        if short.is_empty() {
            return Ok(());
        }
        short.sort_unstable();
        let names: Vec<&str> = short.iter().map(|short| short.0).collect();
        let totals: Vec<i32> = short.iter().map(|short| short.1).collect();
        let most: Vec<i64> = short.iter().map(|short| short.2).collect();
        let take = transaction.prepare_cached(TAKE_FREE).await?;
        let values: super::Values<'_> = &[&self.node.as_i64(), &names, &totals, &most];
        for row in transaction.query(&take, values).await? {
            let name: &str = column(&row, 0)?;
            let taken = self.demands.iter().zip(shares.iter_mut());
            for (_, share) in taken.filter(|(demand, _)| demand.carrier == name) {
                share.held += 1;
            }
        }
        Ok(())
    }
}

/// The shares of a node, in the order of its demands.
async fn read_shares(
    transaction: &Transaction<'_>,
    node: i64,
    demands: &[BindDemand],
) -> Result<Vec<BindShare>, Fault> {
    let names: Vec<&str> = demands.iter().map(|demand| &*demand.carrier).collect();
    let totals: Vec<i32> = demands.iter().map(|demand| demand.total.into()).collect();
    let statement = transaction.prepare_cached(READ_SHARES).await?;
    let rows = transaction
        .query(&statement, &[&node, &names, &totals])
        .await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let name: &str = column(row, 0)?;
        found.insert(name, ShareColumns::read(row, 1)?);
    }
    let share = |demand: &BindDemand| {
        let columns = found.get(&*demand.carrier).ok_or(Corrupt("pool"))?;
        columns.share(demand.total)
    };
    let shares: Result<Vec<_>, Corrupt> = demands.iter().map(share).collect();
    Ok(shares?)
}
