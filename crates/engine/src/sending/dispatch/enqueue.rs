//! Decides where a message waits: in this node's memory, or in a route pool in the database.

use std::sync::Arc;

use domain::delivery::SendResult;
use domain::{AccountId, Holder, PoolId, Priority};
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::results::expired;
use super::{Dispatch, Reservations};
use crate::sending::carriers::Routed;
use crate::sending::carriers::held_messages::HeldMessage;
use crate::sending::carriers::lanes::Admission;
use crate::sending::carriers::pools::RouteNames;
use crate::sending::carriers::queue::RoutedMessage;
use crate::sending::carriers::{Reserved, SlotRequest};

/// The pause of a message that has neither a slot nor a pool.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// Maximum number of results that are stored at once.
const MAX_STORES: usize = 500;

/// A message that got no slot in memory.
pub(super) enum Unqueued {
    /// With what to store about it.
    Sent(HeldMessage, SendResult),
    /// Its route has no pool yet.
    NoPool(HeldMessage, RouteNames),
}

impl Dispatch {
    /// Decides who holds the messages of a submission that is due now; there is one route for each. If it is this node,
    /// slots are reserved for them.
    pub(crate) fn reserve(
        &self,
        account: AccountId,
        priority: Priority,
        routes: Vec<Routed>,
    ) -> (Holder, Option<Reservations>) {
        let mut reserved = Vec::with_capacity(routes.len());
        let mut pool = None;
        let request = SlotRequest {
            account,
            priority,
            admission: Admission::Shared,
        };
        for routed in routes {
            let route_pool = match self.slot(&routed, request) {
                Some(slot @ Reserved::Slot(..)) => {
                    reserved.push((routed, slot));
                    continue;
                }
                Some(Reserved::Pool(pool)) => Some(pool),
                None => self.pool_of(&routed, request),
            };
            // The recipients of a submission share a holder, so these are routed separately when they are claimed.
            if route_pool.is_none() || pool.is_some_and(|pool| Some(pool) != route_pool) {
                return (Holder::Nobody, None);
            }
            pool = route_pool;
        }
        let Some(pool) = pool else {
            let holder = Holder::Node(self.node.id());
            return (holder, Some(Reservations(reserved)));
        };
        let mut rest = reserved.iter();
        if rest.all(|(routed, _)| self.pool_of(routed, request) == Some(pool)) {
            (Holder::Pool(pool), None)
        } else {
            (Holder::Nobody, None)
        }
    }

    /// A slot for a new message, unless older messages of its account wait in the pool of its route.
    fn slot(&self, routed: &Routed, request: SlotRequest) -> Option<Reserved> {
        if self.pools.has_any_backlog() && !routed.route.is_empty() {
            let names = routed.carriers.names(&routed.route);
            if let Some(pool) = self.pools.find(&names)
                && self
                    .pools
                    .has_backlog(pool, request.priority, request.account)
            {
                return None;
            }
        }
        routed.carriers.reserve_any(&routed.route, request)
    }

    /// The pool of a route. Records that a message of this account waits there.
    fn pool_of(&self, routed: &Routed, request: SlotRequest) -> Option<PoolId> {
        if routed.route.is_empty() {
            return None;
        }
        let found = self.pools.find(&routed.carriers.names(&routed.route));
        if let Some(pool) = found {
            self.pools
                .add_backlog(pool, request.priority, request.account);
        }
        found
    }

    /// Queues a claimed message with a carrier of its route. Returns it if there is no slot.
    pub(super) fn enqueue(self: &Arc<Self>, held: HeldMessage) -> Option<Unqueued> {
        let admission = if held.item.pool.is_some() {
            Admission::Any
        } else {
            Admission::Shared
        };
        self.enqueue_as(held, admission)
    }

    /// Routes a message again that waited in memory. If there is no slot, it returns to the store.
    pub(super) fn reroute(self: &Arc<Self>, held: HeldMessage) {
        match self.enqueue_as(held, Admission::Any) {
            None => {}
            Some(Unqueued::Sent(held, sent)) => self.settle_later(held, sent),
            Some(Unqueued::NoPool(held, _)) => self.requeue(held, SignedDuration::ZERO),
        }
    }

    fn enqueue_as(self: &Arc<Self>, held: HeldMessage, admission: Admission) -> Option<Unqueued> {
        let queued = &held.item;
        if queued.expires_at <= self.clock.now() {
            let sent = expired(queued);
            return Some(Unqueued::Sent(held, sent));
        }
        let routed = match self.route(queued) {
            Ok(routed) => routed,
            Err(sent) => return Some(Unqueued::Sent(held, sent)),
        };
        let request = SlotRequest {
            account: queued.account,
            priority: queued.priority,
            admission,
        };
        // The carriers before the pool's one were tried already, or must not be tried here.
        let from = queued
            .pool
            .and_then(|pool| routed.carriers.position_of(&routed.route, pool));
        let slot = from.and_then(|from| routed.carriers.reserve(&routed.route, from, request));
        let slot = slot.or_else(|| match admission {
            Admission::Shared => self.slot(&routed, request),
            Admission::Any => routed.carriers.reserve_any(&routed.route, request),
        });
        let Some(slot) = slot else {
            return Some(self.no_slot(held, &routed, request));
        };
        let mut message = RoutedMessage::new(held, routed);
        // The answers of earlier carriers are not known here.
        message.may_work_later = from.is_some_and(|from| from > 0);
        self.fill(slot, message)
            .map(|(held, sent)| Unqueued::Sent(held, sent))
    }

    fn no_slot(&self, held: HeldMessage, routed: &Routed, request: SlotRequest) -> Unqueued {
        if routed.route.is_empty() {
            let again = self.clock.now() + RETRY_AFTER;
            let sent = SendResult::Later(again.min(held.item.expires_at));
            return Unqueued::Sent(held, sent);
        }
        match self.pool_of(routed, request) {
            Some(pool) => {
                let sent = pooled(&held, pool);
                Unqueued::Sent(held, sent)
            }
            None => Unqueued::NoPool(held, routed.carriers.names(&routed.route)),
        }
    }

    /// Stores messages that got no slot, and creates missing pools first. Returns when they are stored, so that the
    /// node does not claim more than it can write.
    pub(super) async fn store_unqueued(self: &Arc<Self>, unqueued: Vec<Unqueued>) {
        let is_missing = |one: &Unqueued| matches!(one, Unqueued::NoPool(..));
        if unqueued.iter().any(is_missing)
            && let Err(error) = self.refresh_pools().await
        {
            tracing::warn!(%error, "pools cannot be created; trying again");
        }
        let at_once = (self.held / 4).clamp(1, MAX_STORES);
        let mut stores = JoinSet::new();
        for one in unqueued {
            let (held, sent) = self.to_store(one);
            if matches!(sent, SendResult::Pooled { .. }) {
                metrics::counter!("switchboard_messages_pooled_total").increment(1);
            }
            let dispatch = self.clone();
            stores.spawn(async move { dispatch.results.store(&held, sent, None, None).await });
            if stores.len() >= at_once {
                stores.join_next().await;
            }
        }
        while stores.join_next().await.is_some() {}
    }

    fn to_store(&self, unqueued: Unqueued) -> (HeldMessage, SendResult) {
        match unqueued {
            Unqueued::Sent(held, sent) => (held, sent),
            Unqueued::NoPool(held, route) => {
                let again = self.clock.now() + RETRY_AFTER;
                let sent = self.pools.find(&route).map_or_else(
                    || SendResult::Later(again.min(held.item.expires_at)),
                    |pool| {
                        let queued = &held.item;
                        self.pools
                            .add_backlog(pool, queued.priority, queued.account);
                        pooled(&held, pool)
                    },
                );
                (held, sent)
            }
        }
    }
}

/// What to store about a message that waits in a pool.
pub(super) fn pooled(held: &HeldMessage, pool: PoolId) -> SendResult {
    SendResult::Pooled {
        pool,
        account: held.item.account,
    }
}
