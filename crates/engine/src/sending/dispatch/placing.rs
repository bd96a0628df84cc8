//! Where a message waits: in the memory of this node, or in a pool in the database.

use std::sync::Arc;

use domain::delivery::Sent;
use domain::{AccountId, Holder, PoolId, Priority};
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::results::expired;
use super::{Dispatch, Reservations};
use crate::sending::carriers::Routed;
use crate::sending::carriers::lanes::Admission;
use crate::sending::carriers::parcels::HeldParcel;
use crate::sending::carriers::pools::RouteNames;
use crate::sending::carriers::queue::Waiting;
use crate::sending::carriers::{Kept, Wanted};

/// The pause of a message that has no slot and no pool.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// The most results that are handed to the writer at once.
const MOST_AT_ONCE: usize = 500;

/// A message that found no slot in memory.
pub(super) enum Unplaced {
    /// This is to be stored about it.
    Sent(HeldParcel, Sent),
    /// Its route has no pool yet.
    NoPool(HeldParcel, RouteNames),
}

impl Dispatch {
    /// Says who holds the messages of a submission that is due now, one for each route. Where that is this node, room is
    /// reserved for them.
    pub(crate) fn reserve(
        &self,
        account: AccountId,
        priority: Priority,
        routes: Vec<Routed>,
    ) -> (Holder, Option<Reservations>) {
        let mut reserved = Vec::with_capacity(routes.len());
        let mut pool = None;
        let wanted = Wanted {
            account,
            priority,
            admission: Admission::Shared,
        };
        for routed in routes {
            let its_pool = match self.slot(&routed, wanted) {
                Some(kept @ Kept::Here(..)) => {
                    reserved.push((routed, kept));
                    continue;
                }
                Some(Kept::Elsewhere(pool)) => Some(pool),
                None => self.pool_of(&routed, wanted),
            };
            // The recipients of a submission share a holder, so these are routed one by one when they are claimed.
            if its_pool.is_none() || pool.is_some_and(|pool| Some(pool) != its_pool) {
                return (Holder::Nobody, None);
            }
            pool = its_pool;
        }
        let Some(pool) = pool else {
            let holder = Holder::Node(self.node.id());
            return (holder, Some(Reservations(reserved)));
        };
        let mut others = reserved.iter();
        if others.all(|(routed, _)| self.pool_of(routed, wanted) == Some(pool)) {
            (Holder::Pool(pool), None)
        } else {
            (Holder::Nobody, None)
        }
    }

    /// A slot for a new message, unless older ones of its account wait in the pool of its route.
    fn slot(&self, routed: &Routed, wanted: Wanted) -> Option<Kept> {
        if self.pools.has_any_backlog() && !routed.route.is_empty() {
            let names = routed.carriers.names(&routed.route);
            if let Some(pool) = self.pools.find(&names)
                && self
                    .pools
                    .has_backlog(pool, wanted.priority, wanted.account)
            {
                return None;
            }
        }
        routed.carriers.reserve_any(&routed.route, wanted)
    }

    /// The pool of a route, in which a message of this account waits from now on.
    fn pool_of(&self, routed: &Routed, wanted: Wanted) -> Option<PoolId> {
        if routed.route.is_empty() {
            return None;
        }
        let found = self.pools.find(&routed.carriers.names(&routed.route));
        if let Some(pool) = found {
            self.pools
                .note_backlog(pool, wanted.priority, wanted.account);
        }
        found
    }

    /// Puts a parcel that was claimed into the lanes of a carrier of its route; gives it back where there is no slot.
    pub(super) fn place(self: &Arc<Self>, parcel: HeldParcel) -> Option<Unplaced> {
        let admission = if parcel.it.pool.is_some() {
            Admission::Any
        } else {
            Admission::Shared
        };
        self.place_as(parcel, admission)
    }

    /// Puts a parcel that waited in memory elsewhere, and stores that where there is no slot.
    pub(super) fn move_on(self: &Arc<Self>, parcel: HeldParcel) {
        match self.place_as(parcel, Admission::Any) {
            None => {}
            Some(Unplaced::Sent(parcel, sent)) => self.settle_later(parcel, sent),
            Some(Unplaced::NoPool(parcel, _)) => self.put_back(parcel, SignedDuration::ZERO),
        }
    }

    fn place_as(self: &Arc<Self>, parcel: HeldParcel, admission: Admission) -> Option<Unplaced> {
        let it = &parcel.it;
        if it.expires_at <= self.clock.now() {
            let sent = expired(it);
            return Some(Unplaced::Sent(parcel, sent));
        }
        let routed = self
            .routing
            .route(it.channel, it.account, &it.to, it.id.get());
        let wanted = Wanted {
            account: it.account,
            priority: it.priority,
            admission,
        };
        // The carriers before that of its pool have been asked, or are not to be asked here.
        let from = it
            .pool
            .and_then(|pool| routed.carriers.position_of(&routed.route, pool));
        let kept = from.and_then(|from| routed.carriers.reserve(&routed.route, from, wanted));
        let kept = kept.or_else(|| match admission {
            Admission::Shared => self.slot(&routed, wanted),
            Admission::Any => routed.carriers.reserve_any(&routed.route, wanted),
        });
        let Some(kept) = kept else {
            return Some(self.no_slot(parcel, &routed, wanted));
        };
        let mut waiting = Waiting::new(parcel, routed);
        // What those said is not known here.
        waiting.may_work_later = from.is_some_and(|from| from > 0);
        self.fill(kept, waiting)
            .map(|(parcel, sent)| Unplaced::Sent(parcel, sent))
    }

    fn no_slot(&self, parcel: HeldParcel, routed: &Routed, wanted: Wanted) -> Unplaced {
        if routed.route.is_empty() {
            let again = self.clock.now() + AGAIN_AFTER;
            let sent = Sent::Later(again.min(parcel.it.expires_at));
            return Unplaced::Sent(parcel, sent);
        }
        match self.pool_of(routed, wanted) {
            Some(pool) => {
                let sent = pooled(&parcel, pool);
                Unplaced::Sent(parcel, sent)
            }
            None => Unplaced::NoPool(parcel, routed.carriers.names(&routed.route)),
        }
    }

    /// Stores what found no slot, creating the pools that are missing. Returns when it is stored, so that no more is
    /// claimed than can be written.
    pub(super) async fn store_unplaced(self: &Arc<Self>, unplaced: Vec<Unplaced>) {
        let is_missing = |one: &Unplaced| matches!(one, Unplaced::NoPool(..));
        if unplaced.iter().any(is_missing)
            && let Err(error) = self.refresh_pools().await
        {
            tracing::warn!(%error, "pools cannot be created; trying again");
        }
        let at_once = (self.held / 4).clamp(1, MOST_AT_ONCE);
        let mut stores = JoinSet::new();
        for one in unplaced {
            let (parcel, sent) = self.what_to_store(one);
            if matches!(sent, Sent::Pooled { .. }) {
                metrics::counter!("switchboard_messages_pooled_total").increment(1);
            }
            let dispatch = self.clone();
            stores.spawn(async move { dispatch.results.store(&parcel, sent).await });
            if stores.len() >= at_once {
                stores.join_next().await;
            }
        }
        while stores.join_next().await.is_some() {}
    }

    fn what_to_store(&self, unplaced: Unplaced) -> (HeldParcel, Sent) {
        match unplaced {
            Unplaced::Sent(parcel, sent) => (parcel, sent),
            Unplaced::NoPool(parcel, route) => {
                let again = self.clock.now() + AGAIN_AFTER;
                let sent = self.pools.find(&route).map_or_else(
                    || Sent::Later(again.min(parcel.it.expires_at)),
                    |pool| {
                        let it = &parcel.it;
                        self.pools.note_backlog(pool, it.priority, it.account);
                        pooled(&parcel, pool)
                    },
                );
                (parcel, sent)
            }
        }
    }
}

/// What is stored about a parcel that waits in a pool.
pub(super) fn pooled(parcel: &HeldParcel, pool: PoolId) -> Sent {
    Sent::Pooled {
        pool,
        account: parcel.it.account,
    }
}
