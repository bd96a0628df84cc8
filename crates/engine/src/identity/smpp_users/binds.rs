//! The sessions of SMPP users, counted over all nodes, and how the nodes share a user's rate limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use domain::ports::{SmppBinds, StoreError};
use domain::smpp_user::{BindKind, SmppUser};
use domain::{NodeId, SmppUserId};
use tokio::sync::OwnedMutexGuard;

use super::SmppUsers;

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindRefused {
    #[error("the user has as many sessions as it may have")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An open session, which counts against the limit of its user until it is dropped.
pub struct SmppBind {
    users: Weak<SmppUsers>,
    user: SmppUserId,
    kind: BindKind,
}

impl Drop for SmppBind {
    fn drop(&mut self) {
        if let Some(users) = self.users.upgrade() {
            users.binds.close(self.user, self.kind);
            users.wake.notify_one();
        }
    }
}

/// Sessions of each user.
type Counts = HashMap<SmppUserId, SmppBinds>;

/// The sessions of this node.
pub(super) struct Binds {
    /// As stored. Locked while a count is stored, so that counts are stored in their order.
    open: Arc<tokio::sync::Mutex<Counts>>,
    /// The node that all of them are stored for.
    stored_for: Mutex<NodeId>,
    /// Sessions that were closed since.
    closed: Mutex<Counts>,
    /// Users that have sessions here that submit.
    senders: Mutex<HashMap<SmppUserId, Senders>>,
}

/// Sessions of a user that submit.
#[derive(Debug, Clone, Copy, Default)]
struct Senders {
    here: u32,
    /// On the other nodes, as of the last look.
    elsewhere: u32,
}

impl Senders {
    /// The part of a rate limit that this node may use. Every node may send something.
    fn share_of(self, per_second: u32) -> u32 {
        let here = u64::from(self.here.max(1));
        let share = u64::from(per_second) * here / (here + u64::from(self.elsewhere));
        u32::try_from(share).unwrap_or(per_second).max(1)
    }
}

/// One session of this kind.
fn one(kind: BindKind) -> SmppBinds {
    SmppBinds {
        all: 1,
        senders: kind.sends().into(),
    }
}

const fn add(one: SmppBinds, other: SmppBinds) -> SmppBinds {
    SmppBinds {
        all: one.all + other.all,
        senders: one.senders + other.senders,
    }
}

const fn subtract(from: SmppBinds, closed: SmppBinds) -> SmppBinds {
    SmppBinds {
        all: from.all.saturating_sub(closed.all),
        senders: from.senders.saturating_sub(closed.senders),
    }
}

impl Binds {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            open: Arc::default(),
            stored_for: Mutex::new(node),
            closed: Mutex::default(),
            senders: Mutex::default(),
        }
    }

    fn close(&self, user: SmppUserId, kind: BindKind) {
        self.put_back(user, one(kind));
        if kind.sends() {
            let mut senders = self.senders.lock().expect("no holder panics");
            if let Some(counted) = senders.get_mut(&user) {
                counted.here = counted.here.saturating_sub(1);
                if counted.here == 0 {
                    senders.remove(&user);
                }
            }
        }
    }

    fn take_closed(&self, user: SmppUserId) -> SmppBinds {
        let mut closed = self.closed.lock().expect("no holder panics");
        closed.remove(&user).unwrap_or_default()
    }

    /// Sessions whose end is not stored yet; a count that could not be stored is stored later.
    fn put_back(&self, user: SmppUserId, binds: SmppBinds) {
        if binds == SmppBinds::default() {
            return;
        }
        let mut closed = self.closed.lock().expect("no holder panics");
        let counted = closed.entry(user).or_default();
        *counted = add(*counted, binds);
    }

    fn count_sender(&self, user: SmppUserId) {
        let mut senders = self.senders.lock().expect("no holder panics");
        senders.entry(user).or_default().here += 1;
    }
}

impl SmppUsers {
    /// Counts a session of a user, unless the user has as many as it may have, over all nodes.
    pub async fn bind(
        self: &Arc<Self>,
        user: &SmppUser,
        kind: BindKind,
    ) -> Result<SmppBind, BindRefused> {
        let open = self.binds.open.clone().lock_owned().await;
        let counting = self
            .clone()
            .count(open, user.id, kind, user.limits.max_binds);
        // A client that gives up must not stop it halfway: the counts here would differ from those that are stored.
        let counted = tokio::spawn(counting).await;
        counted.expect("counting does not panic")
    }

    async fn count(
        self: Arc<Self>,
        mut open: OwnedMutexGuard<Counts>,
        user: SmppUserId,
        kind: BindKind,
        most: Option<u32>,
    ) -> Result<SmppBind, BindRefused> {
        let closed = self.binds.take_closed(user);
        let stored = open.get(&user).copied().unwrap_or_default();
        let count = add(subtract(stored, closed), one(kind));
        let node = self.node.id();
        let stored = self.store.set_smpp_binds(user, node, count, most).await;
        match stored {
            Ok(true) => {}
            refused => {
                self.binds.put_back(user, closed);
                refused?;
                return Err(BindRefused::TooMany);
            }
        }
        open.insert(user, count);
        if kind.sends() {
            self.binds.count_sender(user);
        }
        Ok(SmppBind {
            users: Arc::downgrade(&self),
            user,
            kind,
        })
    }

    /// Stores all counts again if this node was taken for dead: those of its old ID do not count any more.
    pub async fn store_after_rejoin(&self) -> Result<(), StoreError> {
        let node = self.node.id();
        if *self.binds.stored_for.lock().expect("no holder panics") == node {
            return Ok(());
        }
        let users: Vec<SmppUserId> = self.binds.open.lock().await.keys().copied().collect();
        for user in users {
            let open = self.binds.open.lock().await;
            if let Some(count) = open.get(&user) {
                let stored = self.store.set_smpp_binds(user, node, *count, None);
                stored.await?;
            }
        }
        *self.binds.stored_for.lock().expect("no holder panics") = node;
        Ok(())
    }

    /// Stores the counts of users whose sessions were closed.
    pub(super) async fn store_closed(&self) -> Result<(), StoreError> {
        let users: Vec<SmppUserId> = {
            let closed = self.binds.closed.lock().expect("no holder panics");
            closed.keys().copied().collect()
        };
        for user in users {
            let mut open = self.binds.open.lock().await;
            let closed = self.binds.take_closed(user);
            let stored = open.get(&user).copied().unwrap_or_default();
            let count = subtract(stored, closed);
            let node = self.node.id();
            if let Err(error) = self.store.set_smpp_binds(user, node, count, None).await {
                self.binds.put_back(user, closed);
                return Err(error);
            }
            if count.all == 0 {
                open.remove(&user);
            } else {
                open.insert(user, count);
            }
        }
        Ok(())
    }

    /// Messages a second that a user may submit to this node: its share by the sessions that submit, over all nodes.
    pub fn per_second(&self, user: &SmppUser) -> Option<u32> {
        let limit = user.limits.max_per_second?;
        let senders = self.binds.senders.lock().expect("no holder panics");
        let counted = senders.get(&user.id).copied().unwrap_or_default();
        Some(counted.share_of(limit))
    }

    /// Reads how many sessions submit on other nodes, if a user with a rate limit is bound here.
    pub async fn share_rates(&self) -> Result<(), StoreError> {
        let is_limited = {
            let followed = self.followed.lock().expect("no holder panics");
            let mut users = followed.values().map(tokio::sync::watch::Sender::borrow);
            users.any(|user| {
                user.as_ref()
                    .is_some_and(|user| user.limits.max_per_second.is_some())
            })
        };
        if !is_limited {
            return Ok(());
        }
        let found = self.store.count_smpp_senders_elsewhere(self.node.id());
        let found: HashMap<SmppUserId, u32> = found.await?.into_iter().collect();
        let mut senders = self.binds.senders.lock().expect("no holder panics");
        for (user, counted) in senders.iter_mut() {
            counted.elsewhere = found.get(user).copied().unwrap_or(0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_a_rate_by_their_sessions() {
        for (here, elsewhere, per_second, expected) in [
            (1, 0, 100, 100),
            (1, 1, 100, 50),
            (3, 1, 100, 75),
            (1, 2, 100, 33),
            (1, 9, 5, 1),
            // A session that is just ending.
            (0, 0, 100, 100),
            (u32::MAX, u32::MAX, u32::MAX, u32::MAX / 2),
        ] {
            let share = Senders { here, elsewhere }.share_of(per_second);
            assert_eq!(share, expected, "{here} here, {elsewhere} elsewhere");
        }
    }
}
