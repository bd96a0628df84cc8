//! The carriers of a node, and which of them a parcel waits for.

use std::sync::Arc;

use domain::ports::Health;
use domain::{AccountId, PoolId, Priority};

use super::lanes::{Admission, LANES, Reservation};
use super::line::{Line, Waiting};
use super::pools::{Pools, RouteNames};

/// The lines of a plan, in its order.
#[derive(Default)]
pub(crate) struct Fleet {
    pub(super) lines: Vec<Arc<Line>>,
}

/// The share of a carrier's room that a pool gets in which messages are known to wait, and one in which none are.
const ACTIVE: u64 = 16;
const IDLE: u64 = 1;

/// How many messages of each lane may be claimed from a pool.
pub(super) type PoolRoom = (PoolId, [u32; LANES]);

/// A message that needs a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) account: AccountId,
    pub(super) priority: Priority,
    pub(super) admission: Admission,
}

/// Where a parcel waits.
pub(super) enum Kept {
    /// In the line at this position of its route: the place that is kept for it.
    Here(usize, Reservation<Waiting>),
    /// In the pool of a carrier that only other nodes have a link to.
    Elsewhere(PoolId),
}

impl Fleet {
    /// Keeps a place for a parcel with one of the carriers of its route, from a position on: with the first that works
    /// and has room, here or on another node; a strained one that has enough to do comes after those that do well.
    /// `None`: none has room.
    pub(super) fn reserve(&self, route: &[u8], from: usize, wanted: Wanted) -> Option<Kept> {
        let lines = || {
            let positions = route.iter().enumerate().skip(from);
            positions.map(|(position, line)| (position, &self.lines[usize::from(*line)]))
        };
        let keep = |(position, line): (usize, &Arc<Line>)| {
            let slot = line.reserve(wanted)?;
            Some(Kept::Here(position, slot))
        };
        let well = lines().find_map(|(position, line)| match line.way_out() {
            Some(pool) => Some(Kept::Elsewhere(pool)),
            None if line.is_busy() => None,
            None => keep((position, line)),
        });
        well.or_else(|| lines().filter(|(_, line)| !line.is_down()).find_map(keep))
    }

    /// As [`Self::reserve`] from the beginning, but where every carrier of the route is down, the first keeps it: it may
    /// come back sooner than the message would from the store. What has no route waits with any.
    pub(super) fn reserve_any(&self, route: &[u8], wanted: Wanted) -> Option<Kept> {
        if route.is_empty() {
            let working = self.lines.iter().find(|line| !line.is_down());
            if working.is_none()
                && let Some(pool) = self.lines.iter().find_map(|line| line.way_out())
            {
                return Some(Kept::Elsewhere(pool));
            }
            let any = working.or_else(|| self.lines.first())?;
            return Some(Kept::Here(0, any.reserve(wanted)?));
        }
        self.reserve(route, 0, wanted).or_else(|| {
            let all_down = route
                .iter()
                .all(|line| self.lines[usize::from(*line)].is_down());
            let first = &self.lines[usize::from(route[0])];
            let slot = all_down.then(|| first.reserve(wanted)).flatten()?;
            Some(Kept::Here(0, slot))
        })
    }

    /// How many messages may be claimed from each pool, at most `most` of each lane: the room of its carriers that work
    /// here, which several pools may share. Pools without room are left out.
    pub(super) fn pool_room(
        &self,
        most: usize,
        with_carriers: bool,
        pools: &Pools,
    ) -> Vec<PoolRoom> {
        let routes = pools.list();
        let mut named: Vec<(PoolId, Vec<usize>)> = Vec::with_capacity(routes.len());
        for route in routes.iter() {
            let lines = route.carriers.iter().filter_map(|name| self.find(name));
            let lines = lines.filter(|line| !self.lines[*line].is_down());
            named.push((route.id, lines.collect()));
        }
        if with_carriers {
            let working = self.lines.iter().enumerate();
            let working = working.filter(|(_, line)| !line.is_down());
            named.extend(working.filter_map(|(at, line)| Some((line.pool()?, vec![at]))));
        }
        let room: Vec<_> = self.lines.iter().map(|line| line.lanes.room()).collect();
        let mut limits = vec![[0_u32; LANES]; named.len()];
        for lane in 0..LANES {
            let weight = |pool: PoolId| {
                if pools.is_active(pool, lane) {
                    ACTIVE
                } else {
                    IDLE
                }
            };
            let mut weights = vec![0; self.lines.len()];
            for (pool, lines) in &named {
                for line in lines {
                    weights[*line] += weight(*pool);
                }
            }
            for ((pool, lines), limits) in named.iter().zip(&mut limits) {
                let share = |line: &usize| {
                    (room[*line][lane] as u64 * weight(*pool)).div_ceil(weights[*line].max(1))
                };
                let share: u64 = lines.iter().map(share).sum();
                limits[lane] = u32::try_from(share.min(most as u64)).unwrap_or(u32::MAX);
            }
        }
        let rooms = named.into_iter().map(|(pool, _)| pool).zip(limits);
        rooms.filter(|(_, limits)| *limits != [0; LANES]).collect()
    }

    /// The place of a carrier.
    fn find(&self, name: &str) -> Option<usize> {
        self.lines
            .iter()
            .position(|line| line.carrier.name() == name)
    }

    /// The names of the carriers of a route.
    pub(super) fn names(&self, route: &[u8]) -> RouteNames {
        let name = |line: &u8| self.lines[usize::from(*line)].carrier.name().to_owned();
        route.iter().map(name).collect()
    }

    /// The names of all carriers.
    pub(super) fn all_names(&self) -> Vec<String> {
        let names = self.lines.iter().map(|line| line.carrier.name().to_owned());
        names.collect()
    }

    /// Whether a carrier of this name works here.
    pub(super) fn works(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|line| !self.lines[line].is_down())
    }

    /// The pool of the carrier at a position of a route, where only other nodes can send by it.
    pub(super) fn way_out(&self, route: &[u8], position: usize) -> Option<PoolId> {
        let line = &self.lines[usize::from(*route.get(position)?)];
        line.way_out()
    }

    /// The position of a pool's carrier in a route, if it works here.
    pub(super) fn position_of(&self, route: &[u8], pool: PoolId) -> Option<usize> {
        let is_it = |line: &Line| line.pool() == Some(pool) && !line.is_down();
        let mut route = route.iter();
        route.position(|line| is_it(&self.lines[usize::from(*line)]))
    }

    /// Whether this line is one of them.
    pub(super) fn has(&self, line: &Arc<Line>) -> bool {
        self.lines.iter().any(|other| Arc::ptr_eq(other, line))
    }

    /// How the carrier at a place of the plan does; `None` where this process does not send.
    pub(crate) fn health(&self, place: usize) -> Option<Health> {
        self.lines.get(place).map(|line| line.carrier.health())
    }

    /// How many parcels wait in memory.
    pub(super) fn waiting(&self) -> usize {
        self.lines.iter().map(|line| line.lanes.waiting()).sum()
    }
}
