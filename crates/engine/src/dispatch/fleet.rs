//! The carriers of a node, and which of them a parcel waits for.

use std::sync::Arc;

use domain::ports::Health;
use domain::{PoolId, Priority};

use super::lanes::{LANES, Reservation};
use super::line::{Line, Waiting};

/// The lines of a plan, in its order.
#[derive(Default)]
pub(crate) struct Fleet {
    pub(super) lines: Vec<Arc<Line>>,
}

/// How many due messages of each lane could be taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Of those that are nobody's.
    pub(super) limits: [u32; LANES],
    /// Of those in the pools of carriers that work here.
    pub(super) pools: Vec<(PoolId, [u32; LANES])>,
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
    pub(super) fn reserve(&self, route: &[u8], from: usize, priority: Priority) -> Option<Kept> {
        let lines = || {
            let positions = route.iter().enumerate().skip(from);
            positions.map(|(position, line)| (position, &self.lines[usize::from(*line)]))
        };
        let keep = |(position, line): (usize, &Arc<Line>)| {
            let place = line.lanes.reserve(priority)?;
            Some(Kept::Here(position, place))
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
    pub(super) fn reserve_any(&self, route: &[u8], priority: Priority) -> Option<Kept> {
        if route.is_empty() {
            let working = self.lines.iter().find(|line| !line.is_down());
            if working.is_none()
                && let Some(pool) = self.lines.iter().find_map(|line| line.way_out())
            {
                return Some(Kept::Elsewhere(pool));
            }
            let any = working.or_else(|| self.lines.first())?;
            return Some(Kept::Here(0, any.lanes.reserve(priority)?));
        }
        self.reserve(route, 0, priority).or_else(|| {
            let all_down = route
                .iter()
                .all(|line| self.lines[usize::from(*line)].is_down());
            let first = &self.lines[usize::from(route[0])];
            let place = all_down.then(|| first.lanes.reserve(priority)).flatten()?;
            Some(Kept::Here(0, place))
        })
    }

    /// How many due messages of each lane could be taken: as many as the carrier with most room, of those that work, has
    /// places. With pools, half of a carrier's places are for what waits in its own.
    pub(super) fn room(&self, most: usize, with_pools: bool) -> Room {
        let mut room = Room {
            limits: [0; LANES],
            pools: Vec::new(),
        };
        for line in self.lines.iter().filter(|line| !line.is_down()) {
            let count = |places: usize| u32::try_from(places.min(most)).unwrap_or(u32::MAX);
            let mut free = line.lanes.free();
            if let Some(pool) = line.pool().filter(|_| with_pools) {
                room.pools
                    .push((pool, free.map(|free| count(free.div_ceil(2)))));
                free = free.map(|free| free / 2);
            }
            for (room, free) in room.limits.iter_mut().zip(free) {
                *room = count(free).max(*room);
            }
        }
        room
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
