//! Binds and pools in the store in memory.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::delivery::sharing::fair_share;
use domain::ports::{
    BindDemand, BindShare, BindStore, CarrierStatus, Health, PoolCursor, RoutePool, Shared,
    StoreError,
};
use domain::{NodeId, PoolId, Timestamp};

use crate::calls::CallKind::Plain;
use crate::calls::{Calls, MemoryStore};
use crate::model::{Model, NOBODY, Owner, PoolKind};

impl Model {
    fn create_pool(&mut self, of: &PoolKind) -> PoolId {
        let found = self.pools.iter().find(|(_, other)| *other == of);
        let id = found.map_or(self.pools.len() as u64 + 1, |(id, _)| *id);
        self.pools.entry(id).or_insert_with(|| of.clone());
        PoolId::new(id).expect("counted from 1")
    }

    fn share(&mut self, node: NodeId, demands: &[BindDemand], now: Timestamp) -> Option<Shared> {
        if !self.is_known(node) {
            return None;
        }
        self.demands.retain(|(_, other)| *other != node.get());
        for demand in demands.iter().filter(|demand| demand.total > 0) {
            self.demands.insert((demand.carrier.clone(), node.get()));
            for slot in 0..demand.total {
                let bind = self.binds.entry((demand.carrier.clone(), slot));
                bind.or_insert(NOBODY);
            }
        }
        let shares = demands
            .iter()
            .map(|demand| self.share_of(node, demand, now));
        let shares = shares.collect();
        let mine = self.binds.iter().filter(|(_, owner)| **owner == node.get());
        let is_demanded = |name: &str| demands.iter().any(|demand| demand.carrier == name);
        let left: BTreeSet<String> = mine.map(|((name, _), _)| name.clone()).collect();
        Some(Shared {
            shares,
            left: left.into_iter().filter(|name| !is_demanded(name)).collect(),
            is_alone: self.others_statuses(node, now).next().is_none(),
        })
    }

    fn share_of(&mut self, node: NodeId, demand: &BindDemand, now: Timestamp) -> BindShare {
        let lives = |id: u64| id == node.get() || self.nodes.get(&id).is_some_and(|at| *at >= now);
        let demanding_nodes = self
            .demands
            .iter()
            .filter(|(name, _)| *name == demand.carrier);
        let demanding_nodes: Vec<u64> = demanding_nodes
            .map(|(_, id)| *id)
            .filter(|id| lives(*id))
            .collect();
        let before = demanding_nodes
            .iter()
            .filter(|id| **id < node.get())
            .count();
        let share = fair_share(demand.total, before, demanding_nodes.len());
        let of_carrier = self.binds.iter_mut();
        let of_carrier = of_carrier.filter(|((name, _), _)| *name == demand.carrier);
        let (mut held, mut surplus, mut free) = (0, 0, Vec::new());
        for ((_, slot), owner) in of_carrier {
            match (*owner == node.get(), *slot < demand.total) {
                (true, true) => held += 1,
                (true, false) => surplus += 1,
                (false, true) if *owner == NOBODY => free.push(owner),
                (false, _) => {}
            }
        }
        for owner in free {
            if held < share {
                *owner = node.get();
                held += 1;
            }
        }
        let mut others = self.others_statuses(node, now);
        let is_up_elsewhere = others.any(|(name, is_up)| name == demand.carrier && is_up);
        drop(others);
        BindShare {
            held,
            surplus,
            share,
            pool: self.create_pool(&PoolKind::Carrier(demand.carrier.clone())),
            is_up_elsewhere,
        }
    }

    /// What other living nodes reported about carriers.
    fn others_statuses(&self, node: NodeId, now: Timestamp) -> impl Iterator<Item = (&str, bool)> {
        let statuses = self.living_statuses(now);
        statuses.filter_map(move |(id, name, is_up)| (id != node.get()).then_some((name, is_up)))
    }

    fn living_statuses(&self, now: Timestamp) -> impl Iterator<Item = (u64, &str, bool)> {
        let lives = move |id: &u64| self.nodes.get(id).is_some_and(|until| *until >= now);
        let statuses = self.statuses.iter().filter(move |((id, _), _)| lives(id));
        statuses.map(|((id, name), is_up)| (*id, name.as_str(), *is_up))
    }

    pub(crate) fn replace_carrier_statuses(&mut self, node: NodeId, statuses: &[CarrierStatus]) {
        if self.is_known(node) {
            self.statuses.retain(|(id, _), _| *id != node.get());
            let states = statuses.iter().map(|one| {
                let key = (node.get(), one.name.clone());
                (key, one.state.health != Health::Down)
            });
            self.statuses.extend(states);
        }
    }

    fn release_binds(&mut self, node: NodeId, carrier: &str, keep: u16) {
        let mine = self.binds.iter_mut();
        let mine = mine.filter(|((name, _), owner)| name == carrier && **owner == node.get());
        for (_, owner) in mine.skip(usize::from(keep)) {
            *owner = NOBODY;
        }
    }

    fn release_pools(&mut self, node: NodeId, known: &[String], limit: u32, now: Timestamp) -> u64 {
        let is_alone = self.others_statuses(node, now).next().is_none();
        let is_known = |carrier: &str| {
            let mut reported = self.living_statuses(now);
            reported.any(|(_, name, _)| name == carrier)
        };
        let is_up = |carrier: &str| {
            let mut statuses = self.living_statuses(now);
            statuses.any(|(_, name, is_up)| name == carrier && is_up)
        };
        let is_idle = |of: &PoolKind| match of {
            PoolKind::Carrier(carrier) => is_alone || !is_up(carrier),
            PoolKind::Route(carriers) => carriers
                .iter()
                .any(|name| !known.contains(name) && !is_known(name)),
        };
        let idle = self.pools.iter().filter(|(_, of)| is_idle(of));
        let idle: Vec<u64> = idle.map(|(id, _)| *id).collect();
        let mut released = 0;
        for pool in idle {
            let waiting = self.queue.values_mut();
            let waiting = waiting.filter(|entry| entry.owner == Owner::Pool(pool));
            for entry in waiting.take(limit as usize) {
                entry.owner = Owner::Node(NOBODY);
                released += 1;
            }
        }
        released
    }

    fn list_route_pools(&mut self, wanted: &[Vec<String>]) -> Vec<RoutePool> {
        for route in wanted {
            self.create_pool(&PoolKind::Route(route.clone()));
        }
        let route = |(id, of): (&u64, &PoolKind)| match of {
            PoolKind::Route(carriers) => Some(RoutePool {
                id: PoolId::new(*id).expect("counted from 1"),
                carriers: carriers.clone(),
            }),
            PoolKind::Carrier(_) => None,
        };
        self.pools.iter().filter_map(route).collect()
    }

    fn release_pool(
        &mut self,
        pool: PoolId,
        after: Option<PoolCursor>,
        limit: u32,
    ) -> Option<PoolCursor> {
        let is_in = |owner: Owner| owner == Owner::Pool(pool.get());
        let waiting = self.queue.iter().filter(|(_, entry)| is_in(entry.owner));
        let mut waiting: Vec<PoolCursor> = waiting
            .map(|(id, entry)| {
                let queued = &self.messages[id].queued;
                (queued.priority.lane(), entry.due_at, queued.id)
            })
            .filter(|cursor| Some(*cursor) > after)
            .collect();
        waiting.sort_unstable();
        waiting.truncate(limit as usize);
        for (_, _, id) in &waiting {
            self.queue.get_mut(&id.get()).expect("queued").owner = Owner::Node(NOBODY);
        }
        waiting.last().copied()
    }
}

#[async_trait]
impl<C: Calls> BindStore for MemoryStore<C> {
    async fn share_binds(
        &self,
        node: NodeId,
        demands: &[BindDemand],
    ) -> Result<Option<Shared>, StoreError> {
        let demands = demands.to_vec();
        let share = move |model: &mut Model, now| model.share(node, &demands, now);
        self.0.call(Plain, "share", share).await
    }

    async fn release_binds(
        &self,
        node: NodeId,
        carrier: &str,
        keep: u16,
    ) -> Result<(), StoreError> {
        let carrier = carrier.to_owned();
        let give_up = move |model: &mut Model, _| model.release_binds(node, &carrier, keep);
        self.0.call(Plain, "give up binds", give_up).await
    }

    async fn list_route_pools(&self, wanted: &[Vec<String>]) -> Result<Vec<RoutePool>, StoreError> {
        let wanted = wanted.to_vec();
        let list = move |model: &mut Model, _| model.list_route_pools(&wanted);
        self.0.call(Plain, "list pools", list).await
    }

    async fn release_pools(
        &self,
        node: NodeId,
        known: &[String],
        limit: u32,
    ) -> Result<u64, StoreError> {
        let known = known.to_vec();
        let release = move |model: &mut Model, now| model.release_pools(node, &known, limit, now);
        self.0.call(Plain, "release pools", release).await
    }

    async fn release_pool(
        &self,
        pool: PoolId,
        after: Option<PoolCursor>,
        limit: u32,
    ) -> Result<Option<PoolCursor>, StoreError> {
        let release = move |model: &mut Model, _| model.release_pool(pool, after, limit);
        self.0.call(Plain, "release a pool", release).await
    }
}
