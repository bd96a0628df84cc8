//! The port for binds and route pools. Only one service works on the file, so nearly all binds are its own, but nothing
//! here relies on that.

use std::collections::HashMap;

use async_trait::async_trait;
use domain::ids::{NodeId, PoolId};
use domain::ports::{BindDemand, BindShare, BindStore, PoolCursor, RoutePool, Shared, StoreError};
use rusqlite::{Connection, Result, Row, params};

use super::{SqliteStore, clock};
use crate::rows::binds::{ShareColumns, cursor, route_of, route_pool, route_text};
use crate::rows::micros;
use crate::sql::binds as sql;

const IS_ALIVE: &str = "SELECT EXISTS (SELECT 1 FROM node WHERE id = ?1)";
const INSERT_DEMAND: &str =
    "INSERT INTO bind_wish (carrier, node) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
const LIST_DEMANDS: &str = "SELECT carrier FROM bind_wish WHERE node = ?1 ORDER BY carrier";
const DELETE_DEMAND: &str = "DELETE FROM bind_wish WHERE node = ?1 AND carrier = ?2";
const ADD_SLOT: &str =
    "INSERT INTO bind (carrier, slot, owner) VALUES (?1, ?2, 0) ON CONFLICT DO NOTHING";
const ADD_POOL: &str =
    "INSERT INTO pool (carrier) SELECT ?1 WHERE ?1 NOT IN (SELECT carrier FROM pool)";
const READ_SHARE: &str = "
    SELECT (SELECT count(*) FROM bind_wish AS w JOIN node ON node.id = w.node
            WHERE w.carrier = ?1 AND (w.node = ?2 OR node.alive_until_us >= ?4)),
        (SELECT count(*) FROM bind_wish AS w JOIN node ON node.id = w.node
            WHERE w.carrier = ?1 AND w.node < ?2 AND node.alive_until_us >= ?4),
        (SELECT count(*) FROM bind WHERE carrier = ?1 AND owner = ?2 AND slot < ?3),
        (SELECT count(*) FROM bind WHERE carrier = ?1 AND owner = ?2 AND slot >= ?3),
        pool.id,
        EXISTS (SELECT 1 FROM carrier AS c JOIN node ON node.id = c.node
            WHERE c.name = ?1 AND c.node <> ?2 AND c.health <> 'down' AND node.alive_until_us >= ?4)
    FROM pool WHERE pool.carrier = ?1";
const TAKE_FREE: &str = "
    UPDATE bind SET owner = ?2 WHERE carrier = ?1 AND slot IN (
        SELECT slot FROM bind WHERE carrier = ?1 AND owner = 0 AND slot < ?3 ORDER BY slot LIMIT ?4
    )";
const LIST_HELD: &str = "SELECT DISTINCT carrier FROM bind WHERE owner = ?1 ORDER BY carrier";
const IS_ALONE: &str = "
    SELECT NOT EXISTS (SELECT 1 FROM carrier AS c JOIN node ON node.id = c.node
        WHERE c.node <> ?1 AND node.alive_until_us >= ?2)";
const LIST_POOLS: &str = "SELECT id, carrier FROM pool ORDER BY id";
/// The carriers of living nodes, and whether they are up on one of them.
const LIST_CARRIERS: &str = "
    SELECT c.name, max(c.health <> 'down') FROM carrier AS c JOIN node ON node.id = c.node
    WHERE node.alive_until_us >= ?1 GROUP BY c.name";
const RELEASE: &str = "
    UPDATE queue SET owner = 0 WHERE owner = -1 - ?1 AND (lane, due_us, id) IN (
        SELECT lane, due_us, id FROM queue WHERE owner = -1 - ?1 LIMIT ?2
    )";
const LIST_ROWS: &str = "
    SELECT lane, due_us, id FROM queue WHERE owner = -1 - ?1 AND (lane, due_us, id) > (?2, ?3, ?4)
    ORDER BY lane, due_us, id LIMIT ?5";
const RELEASE_ROW: &str =
    "UPDATE queue SET owner = 0 WHERE owner = -1 - ?1 AND lane = ?2 AND due_us = ?3 AND id = ?4";

#[async_trait]
impl BindStore for SqliteStore {
    async fn share_binds(
        &self,
        node: NodeId,
        demands: &[BindDemand],
    ) -> std::result::Result<Option<Shared>, StoreError> {
        let demands = demands.to_vec();
        self.write("share binds", move |db| share(db, node, &demands))
            .await
    }

    async fn release_binds(
        &self,
        node: NodeId,
        carrier: &str,
        keep: u16,
    ) -> std::result::Result<(), StoreError> {
        let carrier = carrier.to_owned();
        self.write("release binds", move |db| {
            let values = params![carrier, node.as_i64(), keep];
            db.prepare_cached(sql::RELEASE.sqlite)?
                .execute(values)
                .map(drop)
        })
        .await
    }

    async fn list_route_pools(
        &self,
        wanted: &[Vec<String>],
    ) -> std::result::Result<Vec<RoutePool>, StoreError> {
        if wanted.is_empty() {
            return self.read("list pools", route_pools).await;
        }
        let wanted: Vec<String> = wanted.iter().map(|route| route_text(route)).collect();
        self.write("create pools", move |db| {
            for text in &wanted {
                db.prepare_cached(ADD_POOL)?.execute([text])?;
            }
            route_pools(db)
        })
        .await
    }

    async fn release_pools(
        &self,
        node: NodeId,
        known: &[String],
        limit: u32,
    ) -> std::result::Result<u64, StoreError> {
        let known = known.to_vec();
        self.write("release pools", move |db| release(db, node, &known, limit))
            .await
    }

    async fn release_pool(
        &self,
        pool: PoolId,
        after: Option<PoolCursor>,
        limit: u32,
    ) -> std::result::Result<Option<PoolCursor>, StoreError> {
        self.write("release a pool", move |db| {
            release_after(db, pool, after, limit)
        })
        .await
    }
}

fn route_pools(db: &Connection) -> Result<Vec<RoutePool>> {
    let pools = pools(db)?.into_iter();
    let pools = pools.filter_map(|(id, text)| route_pool(id, &text).transpose());
    Ok(pools.collect::<std::result::Result<_, _>>()?)
}

fn pools(db: &Connection) -> Result<Vec<(i64, String)>> {
    let mut list = db.prepare_cached(LIST_POOLS)?;
    list.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn share(db: &Connection, node: NodeId, demands: &[BindDemand]) -> Result<Option<Shared>> {
    let id = node.as_i64();
    let is_alive: bool = db
        .prepare_cached(IS_ALIVE)?
        .query_row([id], |row| row.get(0))?;
    if !is_alive {
        return Ok(None);
    }
    for gone in list_except(db, LIST_DEMANDS, id, demands, |demand| demand.total > 0)? {
        db.prepare_cached(DELETE_DEMAND)?
            .execute(params![id, gone])?;
    }
    for demand in demands {
        store_demand(db, id, demand)?;
    }
    let shares = demands.iter().map(|demand| take_free_binds(db, id, demand));
    let shares = shares.collect::<Result<_>>()?;
    Ok(Some(Shared {
        shares,
        left: list_except(db, LIST_HELD, id, demands, |_| true)?,
        is_alone: is_alone(db, id)?,
    }))
}

/// The carriers that a statement lists for a node, except for those in its demands.
fn list_except(
    db: &Connection,
    sql: &str,
    node: i64,
    demands: &[BindDemand],
    counts: impl Fn(&BindDemand) -> bool,
) -> Result<Vec<String>> {
    let mut list = db.prepare_cached(sql)?;
    let listed = list.query_map([node], |row| row.get(0))?;
    let mut listed: Vec<String> = listed.collect::<Result<_>>()?;
    let is_demanded = |name: &str| {
        let mut demands = demands.iter();
        demands.any(|demand| demand.carrier == name && counts(demand))
    };
    listed.retain(|name| !is_demanded(name));
    Ok(listed)
}

fn is_alone(db: &Connection, node: i64) -> Result<bool> {
    let now_us = clock::now_us(db)?;
    let mut is_alone = db.prepare_cached(IS_ALONE)?;
    is_alone.query_row([node, now_us], |row| row.get(0))
}

/// Stores a demand, and creates its missing binds and pool.
fn store_demand(db: &Connection, node: i64, demand: &BindDemand) -> Result<()> {
    if demand.total > 0 {
        db.prepare_cached(INSERT_DEMAND)?
            .execute(params![demand.carrier, node])?;
    }
    let mut add = db.prepare_cached(ADD_SLOT)?;
    for slot in 0..demand.total {
        add.execute(params![demand.carrier, slot])?;
    }
    db.prepare_cached(ADD_POOL)?.execute([&demand.carrier])?;
    Ok(())
}

/// Takes free binds, up to the share.
fn take_free_binds(db: &Connection, node: i64, demand: &BindDemand) -> Result<BindShare> {
    let now_us = clock::now_us(db)?;
    let read = |row: &Row<'_>| ShareColumns::read(row, 0);
    let values = params![demand.carrier, node, demand.total, now_us];
    let columns = db.prepare_cached(READ_SHARE)?.query_row(values, read)?;
    let mut share = columns.share(demand.total)?;
    let wanted = share.share.saturating_sub(share.held);
    if wanted > 0 {
        let values = params![demand.carrier, node, demand.total, wanted];
        let taken = db.prepare_cached(TAKE_FREE)?.execute(values)?;
        share.held += u16::try_from(taken).unwrap_or(wanted);
    }
    Ok(share)
}

fn release(db: &Connection, node: NodeId, known: &[String], limit: u32) -> Result<u64> {
    let is_alone = is_alone(db, node.as_i64())?;
    let mut list = db.prepare_cached(LIST_CARRIERS)?;
    let statuses = list.query_map([clock::now_us(db)?], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let statuses: HashMap<String, bool> = statuses.collect::<Result<_>>()?;
    let mut released = 0;
    for (pool, text) in pools(db)? {
        let is_idle = match route_of(&text) {
            Some(carriers) => carriers
                .iter()
                .any(|name| !known.contains(name) && !statuses.contains_key(name)),
            None => is_alone || !statuses.get(&text).copied().unwrap_or_default(),
        };
        if is_idle {
            released += db.prepare_cached(RELEASE)?.execute(params![pool, limit])? as u64;
        }
    }
    Ok(released)
}

fn release_after(
    db: &Connection,
    pool: PoolId,
    after: Option<PoolCursor>,
    limit: u32,
) -> Result<Option<PoolCursor>> {
    let (lane, due_us, id) = after.map_or((-1, i64::MIN, 0), |(lane, due_at, id)| {
        (lane, micros(due_at), id.as_i64())
    });
    let mut find = db.prepare_cached(LIST_ROWS)?;
    let values = params![pool.as_i64(), lane, due_us, id, limit];
    let rows = find.query_map(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let rows: Vec<(i16, i64, i64)> = rows.collect::<Result<_>>()?;
    for (lane, due_us, id) in &rows {
        let values = params![pool.as_i64(), lane, due_us, id];
        db.prepare_cached(RELEASE_ROW)?.execute(values)?;
    }
    let last = rows
        .last()
        .map(|(lane, due_us, id)| cursor(*lane, *due_us, *id));
    Ok(last.transpose()?)
}
