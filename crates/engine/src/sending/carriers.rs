//! The carriers of a node, and which of them a parcel waits for.

pub(in crate::sending) mod fair;
pub(in crate::sending) mod lanes;
pub(in crate::sending) mod parcels;
pub(in crate::sending) mod pools;
pub(in crate::sending) mod queue;

use std::sync::Arc;

use domain::ports::Health;
use domain::{AccountId, PoolId, Priority};

use lanes::{Admission, LANES, Reservation};
use pools::{Pools, RouteNames};
use queue::{CarrierQueue, Waiting};

/// The queues of a plan, in its order.
#[derive(Default)]
pub(crate) struct Carriers {
    pub(in crate::sending) queues: Vec<Arc<CarrierQueue>>,
}

/// The carriers that may take a message, by their places in the plan, in the order in which they are asked.
pub(crate) type Route = Arc<[u8]>;

/// Where a message may go.
pub(crate) struct Routed {
    /// The carriers that may take it; empty where there is no route.
    pub(crate) route: Route,
    /// Those carriers, where this process has them.
    pub(crate) carriers: Arc<Carriers>,
}

/// The share of a carrier's room that a pool gets in which messages are known to wait, and one in which none are.
const ACTIVE: u64 = 16;
const IDLE: u64 = 1;

/// How many messages of each lane may be claimed from a pool.
pub(in crate::sending) type PoolRoom = (PoolId, [u32; LANES]);

/// A message that needs a slot.
#[derive(Debug, Clone, Copy)]
pub(in crate::sending) struct Wanted {
    pub(in crate::sending) account: AccountId,
    pub(in crate::sending) priority: Priority,
    pub(in crate::sending) admission: Admission,
}

/// Where a parcel waits.
pub(in crate::sending) enum Kept {
    /// In the queue at this position of its route: the place that is kept for it.
    Here(usize, Reservation<Waiting>),
    /// In the pool of a carrier that only other nodes have a link to.
    Elsewhere(PoolId),
}

impl Carriers {
    /// Keeps a place for a parcel with one of the carriers of its route, from a position on: with the first that works
    /// and has room, here or on another node; a strained one that has enough to do comes after those that do well.
    /// `None`: none has room.
    pub(in crate::sending) fn reserve(
        &self,
        route: &[u8],
        from: usize,
        wanted: Wanted,
    ) -> Option<Kept> {
        let queues = || {
            let positions = route.iter().enumerate().skip(from);
            positions.map(|(position, queue)| (position, &self.queues[usize::from(*queue)]))
        };
        let keep = |(position, queue): (usize, &Arc<CarrierQueue>)| {
            let slot = queue.reserve(wanted)?;
            Some(Kept::Here(position, slot))
        };
        let well = queues().find_map(|(position, queue)| match queue.way_out() {
            Some(pool) => Some(Kept::Elsewhere(pool)),
            None if queue.is_busy() => None,
            None => keep((position, queue)),
        });
        well.or_else(|| {
            queues()
                .filter(|(_, queue)| !queue.is_down())
                .find_map(keep)
        })
    }

    /// As [`Self::reserve`] from the beginning, but where every carrier of the route is down, the first keeps it: it may
    /// come back sooner than the message would from the store. What has no route waits with any.
    pub(in crate::sending) fn reserve_any(&self, route: &[u8], wanted: Wanted) -> Option<Kept> {
        if route.is_empty() {
            let working = self.queues.iter().find(|queue| !queue.is_down());
            if working.is_none()
                && let Some(pool) = self.queues.iter().find_map(|queue| queue.way_out())
            {
                return Some(Kept::Elsewhere(pool));
            }
            let any = working.or_else(|| self.queues.first())?;
            return Some(Kept::Here(0, any.reserve(wanted)?));
        }
        self.reserve(route, 0, wanted).or_else(|| {
            let all_down = route
                .iter()
                .all(|queue| self.queues[usize::from(*queue)].is_down());
            let first = &self.queues[usize::from(route[0])];
            let slot = all_down.then(|| first.reserve(wanted)).flatten()?;
            Some(Kept::Here(0, slot))
        })
    }

    /// How many messages may be claimed from each pool, at most `most` of each lane: the room of its carriers that work
    /// here, which several pools may share. Pools without room are left out.
    pub(in crate::sending) fn pool_room(
        &self,
        most: usize,
        with_carriers: bool,
        pools: &Pools,
    ) -> Vec<PoolRoom> {
        let routes = pools.list();
        let mut named: Vec<(PoolId, Vec<usize>)> = Vec::with_capacity(routes.len());
        for route in routes.iter() {
            let queues = route.carriers.iter().filter_map(|name| self.find(name));
            let queues = queues.filter(|queue| !self.queues[*queue].is_down());
            named.push((route.id, queues.collect()));
        }
        if with_carriers {
            let working = self.queues.iter().enumerate();
            let working = working.filter(|(_, queue)| !queue.is_down());
            named.extend(working.filter_map(|(at, queue)| Some((queue.pool()?, vec![at]))));
        }
        let room: Vec<_> = self.queues.iter().map(|queue| queue.lanes.room()).collect();
        let mut limits = vec![[0_u32; LANES]; named.len()];
        for lane in 0..LANES {
            let weight = |pool: PoolId| {
                if pools.is_active(pool, lane) {
                    ACTIVE
                } else {
                    IDLE
                }
            };
            let mut weights = vec![0; self.queues.len()];
            for (pool, queues) in &named {
                for queue in queues {
                    weights[*queue] += weight(*pool);
                }
            }
            for ((pool, queues), limits) in named.iter().zip(&mut limits) {
                let share = |queue: &usize| {
                    (room[*queue][lane] as u64 * weight(*pool)).div_ceil(weights[*queue].max(1))
                };
                let share: u64 = queues.iter().map(share).sum();
                limits[lane] = u32::try_from(share.min(most as u64)).unwrap_or(u32::MAX);
            }
        }
        let rooms = named.into_iter().map(|(pool, _)| pool).zip(limits);
        rooms.filter(|(_, limits)| *limits != [0; LANES]).collect()
    }

    /// The place of a carrier.
    fn find(&self, name: &str) -> Option<usize> {
        self.queues
            .iter()
            .position(|queue| queue.carrier.name() == name)
    }

    /// The names of the carriers of a route.
    pub(in crate::sending) fn names(&self, route: &[u8]) -> RouteNames {
        let name = |queue: &u8| self.queues[usize::from(*queue)].carrier.name().to_owned();
        route.iter().map(name).collect()
    }

    /// The names of all carriers.
    pub(in crate::sending) fn all_names(&self) -> Vec<String> {
        let names = self
            .queues
            .iter()
            .map(|queue| queue.carrier.name().to_owned());
        names.collect()
    }

    /// Whether a carrier of this name works here.
    pub(in crate::sending) fn works(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|queue| !self.queues[queue].is_down())
    }

    /// The pool of the carrier at a position of a route, where only other nodes can send by it.
    pub(in crate::sending) fn way_out(&self, route: &[u8], position: usize) -> Option<PoolId> {
        let queue = &self.queues[usize::from(*route.get(position)?)];
        queue.way_out()
    }

    /// The position of a pool's carrier in a route, if it works here.
    pub(in crate::sending) fn position_of(&self, route: &[u8], pool: PoolId) -> Option<usize> {
        let is_it = |queue: &CarrierQueue| queue.pool() == Some(pool) && !queue.is_down();
        let mut route = route.iter();
        route.position(|queue| is_it(&self.queues[usize::from(*queue)]))
    }

    /// Whether this queue is one of them.
    pub(in crate::sending) fn has(&self, queue: &Arc<CarrierQueue>) -> bool {
        self.queues.iter().any(|other| Arc::ptr_eq(other, queue))
    }

    /// How the carrier at a place of the plan does; `None` where this process does not send.
    pub(crate) fn health(&self, place: usize) -> Option<Health> {
        self.queues.get(place).map(|queue| queue.carrier.health())
    }

    /// How many parcels wait in memory.
    pub(in crate::sending) fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.lanes.waiting()).sum()
    }
}
