//! The carriers of a node, and which of them a parcel waits for.

use std::sync::Arc;

use domain::Priority;
use domain::ports::Health;

use super::lanes::{LANES, Reservation};
use super::line::{Line, Waiting};

/// The lines of a plan, in its order.
#[derive(Default)]
pub(crate) struct Fleet {
    pub(super) lines: Vec<Arc<Line>>,
}

/// A place that is kept for a parcel: where in its route, and the place itself.
pub(super) type Kept = (usize, Reservation<Waiting>);

impl Fleet {
    /// Keeps a place for a parcel with one of the carriers of its route, from a position on: with the first that works
    /// and has room; a strained one that has enough to do comes after those that do well. `None`: none has room.
    pub(super) fn reserve(&self, route: &[u8], from: usize, priority: Priority) -> Option<Kept> {
        let lines = || {
            let positions = route.iter().enumerate().skip(from);
            positions.map(|(position, line)| (position, &self.lines[usize::from(*line)]))
        };
        let keep =
            |(position, line): (usize, &Arc<Line>)| Some((position, line.lanes.reserve(priority)?));
        let well = lines().filter(|(_, line)| !line.is_busy()).find_map(keep);
        well.or_else(|| lines().filter(|(_, line)| !line.is_down()).find_map(keep))
    }

    /// As [`Self::reserve`] from the beginning, but where every carrier of the route is down, the first keeps it: it may
    /// come back sooner than the message would from the store. What has no route waits with any.
    pub(super) fn reserve_any(&self, route: &[u8], priority: Priority) -> Option<Kept> {
        if route.is_empty() {
            let any = self.lines.first()?;
            return Some((0, any.lanes.reserve(priority)?));
        }
        self.reserve(route, 0, priority).or_else(|| {
            let all_down = route
                .iter()
                .all(|line| self.lines[usize::from(*line)].is_down());
            let first = &self.lines[usize::from(route[0])];
            let place = all_down.then(|| first.lanes.reserve(priority)).flatten()?;
            Some((0, place))
        })
    }

    /// How many due messages of each lane could be taken: as many as the carrier with most room, of those that work, has
    /// places.
    pub(super) fn room(&self, most: usize) -> [u32; LANES] {
        let mut room = [0; LANES];
        for line in self.lines.iter().filter(|line| !line.is_down()) {
            let free = line.lanes.free();
            for (room, free) in room.iter_mut().zip(free) {
                *room = u32::try_from(free.min(most)).map_or(*room, |free| free.max(*room));
            }
        }
        room
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
