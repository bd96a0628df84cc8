//! The carrier queues of a node, and which of them a message waits in.

pub(in crate::sending) mod fair;
pub(in crate::sending) mod held_messages;
pub(in crate::sending) mod lanes;
pub(in crate::sending) mod pools;
pub(in crate::sending) mod queue;

use std::sync::Arc;

use domain::ports::Health;
use domain::{AccountId, PoolId, Priority};

use lanes::{Admission, LANES, Reservation};
use pools::{Pools, RouteNames};
use queue::{CarrierQueue, RoutedMessage};

/// The carrier queues of a plan, in its order.
#[derive(Default)]
pub(crate) struct Carriers {
    pub(in crate::sending) queues: Vec<Arc<CarrierQueue>>,
}

/// The carriers that may take a message, by their indices in the plan, in order of preference.
pub(crate) type Route = Arc<[u8]>;

pub(crate) struct Routed {
    /// Empty if there is no route.
    pub(crate) route: Route,
    /// The carriers that the route refers to, if this process has them.
    pub(crate) carriers: Arc<Carriers>,
}

/// The weight of a pool's share of a carrier's capacity, with and without messages that are known to wait in it.
const ACTIVE_WEIGHT: u64 = 16;
const IDLE_WEIGHT: u64 = 1;

/// How many messages of each lane may be claimed from a pool.
pub(in crate::sending) type PoolCapacity = (PoolId, [u32; LANES]);

/// A request for a slot in a lane.
#[derive(Debug, Clone, Copy)]
pub(in crate::sending) struct SlotRequest {
    pub(in crate::sending) account: AccountId,
    pub(in crate::sending) priority: Priority,
    pub(in crate::sending) admission: Admission,
}

/// Where a message will wait.
pub(in crate::sending) enum Reserved {
    /// In the queue at this position of its route, in a reserved slot.
    Slot(usize, Reservation<RoutedMessage>),
    /// In the pool of a carrier that only other nodes have a link to.
    Pool(PoolId),
}

impl Carriers {
    /// Reserves a slot with a carrier of the route, from position `from` on: the first that works and has capacity,
    /// here or on another node. Strained carriers with enough to do come after the others. `None` if no carrier has
    /// capacity.
    pub(in crate::sending) fn reserve(
        &self,
        route: &[u8],
        from: usize,
        request: SlotRequest,
    ) -> Option<Reserved> {
        let queues = || {
            let positions = route.iter().enumerate().skip(from);
            positions.map(|(position, queue)| (position, &self.queues[usize::from(*queue)]))
        };
        let reserve = |(position, queue): (usize, &Arc<CarrierQueue>)| {
            let slot = queue.reserve(request)?;
            Some(Reserved::Slot(position, slot))
        };
        let healthy = queues().find_map(|(position, queue)| match queue.pool_elsewhere() {
            Some(pool) => Some(Reserved::Pool(pool)),
            None if queue.is_busy() => None,
            None => reserve((position, queue)),
        });
        healthy.or_else(|| {
            queues()
                .filter(|(_, queue)| !queue.is_down())
                .find_map(reserve)
        })
    }

    /// Like [`Self::reserve`] from the beginning. If all carriers of the route are down, the message waits in the queue
    /// of the first, which may work again sooner than the message would return from the store. A message without a
    /// route may wait in any queue.
    pub(in crate::sending) fn reserve_any(
        &self,
        route: &[u8],
        request: SlotRequest,
    ) -> Option<Reserved> {
        if route.is_empty() {
            let working = self.queues.iter().find(|queue| !queue.is_down());
            if working.is_none()
                && let Some(pool) = self.queues.iter().find_map(|queue| queue.pool_elsewhere())
            {
                return Some(Reserved::Pool(pool));
            }
            let any = working.or_else(|| self.queues.first())?;
            return Some(Reserved::Slot(0, any.reserve(request)?));
        }
        self.reserve(route, 0, request).or_else(|| {
            let all_down = route
                .iter()
                .all(|queue| self.queues[usize::from(*queue)].is_down());
            let first = &self.queues[usize::from(route[0])];
            let slot = all_down.then(|| first.reserve(request)).flatten()?;
            Some(Reserved::Slot(0, slot))
        })
    }

    /// How many messages may be claimed from each pool, at most `most` of each lane: the capacity of its carriers that
    /// work here, shared with other pools. Pools without capacity are left out.
    pub(in crate::sending) fn pool_capacity(
        &self,
        most: usize,
        with_carriers: bool,
        pools: &Pools,
    ) -> Vec<PoolCapacity> {
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
            named.extend(working.filter_map(|(index, queue)| Some((queue.pool()?, vec![index]))));
        }
        let capacity = self.queues.iter().map(|queue| queue.lanes.claimable());
        let capacity: Vec<_> = capacity.collect();
        let mut limits = vec![[0_u32; LANES]; named.len()];
        for lane in 0..LANES {
            let weight = |pool: PoolId| {
                if pools.is_active(pool, lane) {
                    ACTIVE_WEIGHT
                } else {
                    IDLE_WEIGHT
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
                    (capacity[*queue][lane] as u64 * weight(*pool)).div_ceil(weights[*queue].max(1))
                };
                let share: u64 = queues.iter().map(share).sum();
                limits[lane] = u32::try_from(share.min(most as u64)).unwrap_or(u32::MAX);
            }
        }
        let capacities = named.into_iter().map(|(pool, _)| pool).zip(limits);
        capacities
            .filter(|(_, limits)| *limits != [0; LANES])
            .collect()
    }

    /// The index of a carrier.
    fn find(&self, name: &str) -> Option<usize> {
        self.queues
            .iter()
            .position(|queue| queue.carrier.name() == name)
    }

    /// The route that has only this carrier, if it is in the plan.
    pub(in crate::sending) fn route_to(&self, name: &str) -> Option<Route> {
        let index = u8::try_from(self.find(name)?).ok()?;
        Some(Arc::new([index]))
    }

    pub(in crate::sending) fn names(&self, route: &[u8]) -> RouteNames {
        let name = |queue: &u8| self.queues[usize::from(*queue)].carrier.name().to_owned();
        route.iter().map(name).collect()
    }

    pub(in crate::sending) fn all_names(&self) -> Vec<String> {
        let names = self
            .queues
            .iter()
            .map(|queue| queue.carrier.name().to_owned());
        names.collect()
    }

    pub(in crate::sending) fn works(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|queue| !self.queues[queue].is_down())
    }

    /// The pool of the carrier at a position of a route, if only other nodes have a link to it.
    pub(in crate::sending) fn pool_elsewhere(
        &self,
        route: &[u8],
        position: usize,
    ) -> Option<PoolId> {
        let queue = &self.queues[usize::from(*route.get(position)?)];
        queue.pool_elsewhere()
    }

    /// The position of a pool's carrier in a route, if it works here.
    pub(in crate::sending) fn position_of(&self, route: &[u8], pool: PoolId) -> Option<usize> {
        let is_it = |queue: &CarrierQueue| queue.pool() == Some(pool) && !queue.is_down();
        let mut route = route.iter();
        route.position(|queue| is_it(&self.queues[usize::from(*queue)]))
    }

    pub(in crate::sending) fn has(&self, queue: &Arc<CarrierQueue>) -> bool {
        self.queues.iter().any(|other| Arc::ptr_eq(other, queue))
    }

    /// The health of the carrier at an index of the plan; `None` if this process does not send.
    pub(crate) fn health(&self, index: usize) -> Option<Health> {
        self.queues.get(index).map(|queue| queue.carrier.health())
    }

    /// How many messages wait in memory.
    pub(in crate::sending) fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.lanes.waiting()).sum()
    }
}
