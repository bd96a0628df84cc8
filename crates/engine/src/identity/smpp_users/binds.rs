//! The sessions of SMPP users, counted over all nodes, and how the nodes share a user's rate limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use domain::ports::{SmppBinds, StoreError};
use domain::smpp_user::{BindKind, SmppUser};
use domain::{NodeId, SmppUserId};
use permits::{Permit, Permits};
use tokio::sync::Notify;

use super::SmppUsers;

/// More users than can ever wait for their turn at once.
const MAX_TURNS: usize = 1 << 20;

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
        }
    }
}

/// Sessions of each user.
type Counts = HashMap<SmppUserId, SmppBinds>;

/// The sessions of this node.
pub(super) struct Binds {
    /// As stored. Changed only with the user's turn.
    open: Mutex<Counts>,
    /// One turn for each user, held while its count is stored, so that its counts are stored in their order.
    turns: Arc<Permits<SmppUserId>>,
    /// The node that all of them are stored for.
    stored_for: Mutex<NodeId>,
    /// Sessions that were closed since. Users whose count may not be stored are here, too.
    closed: Mutex<Counts>,
    /// Wakes the task that stores the counts of these users.
    wake: Arc<Notify>,
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
            open: Mutex::default(),
            turns: Permits::new(MAX_TURNS, |_| 1),
            stored_for: Mutex::new(node),
            closed: Mutex::default(),
            wake: Arc::default(),
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

    pub(super) fn wake(&self) -> Arc<Notify> {
        self.wake.clone()
    }

    fn open(&self) -> MutexGuard<'_, Counts> {
        self.open.lock().expect("no holder panics")
    }

    fn take_closed(&self, user: SmppUserId) -> SmppBinds {
        let mut closed = self.closed.lock().expect("no holder panics");
        closed.remove(&user).unwrap_or_default()
    }

    /// Sessions whose end is not stored yet. The count of the user is stored soon.
    fn put_back(&self, user: SmppUserId, binds: SmppBinds) {
        let mut closed = self.closed.lock().expect("no holder panics");
        let counted = closed.entry(user).or_default();
        *counted = add(*counted, binds);
        drop(closed);
        self.wake.notify_one();
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
        let turn = self.binds.turns.acquire(&[user.id]).await;
        let counting = self
            .clone()
            .count(turn, user.id, kind, user.limits.max_binds);
        // A client that gives up must not stop it halfway: the counts here would differ from those that are stored.
        let counted = tokio::spawn(counting).await;
        counted.expect("counting does not panic")
    }

    async fn count(
        self: Arc<Self>,
        _turn: Permit<SmppUserId>,
        user: SmppUserId,
        kind: BindKind,
        most: Option<u32>,
    ) -> Result<SmppBind, BindRefused> {
        let closed = self.binds.take_closed(user);
        let stored = self.binds.open().get(&user).copied().unwrap_or_default();
        let held = subtract(stored, closed);
        let count = add(held, one(kind));
        let node = self.node.id();
        // The database need not be asked by a client that tries again and again.
        let is_refused_here = most.is_some_and(|most| held.all >= most);
        let stored = if is_refused_here {
            Ok(false)
        } else {
            self.store.set_smpp_binds(user, node, count, most).await
        };
        match stored {
            Ok(true) => {}
            Ok(false) => {
                if closed != SmppBinds::default() {
                    self.binds.put_back(user, closed);
                }
                return Err(BindRefused::TooMany);
            }
            Err(error) => {
                // Perhaps the count is stored nevertheless, so it is stored again without this session.
                self.binds.put_back(user, closed);
                return Err(error.into());
            }
        }
        self.binds.open().insert(user, count);
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
        let users: Vec<SmppUserId> = self.binds.open().keys().copied().collect();
        for user in users {
            let _turn = self.binds.turns.acquire(&[user]).await;
            let count = self.binds.open().get(&user).copied();
            if let Some(count) = count {
                self.store.set_smpp_binds(user, node, count, None).await?;
            }
        }
        *self.binds.stored_for.lock().expect("no holder panics") = node;
        Ok(())
    }

    /// Stores the counts of users whose sessions were closed. One that cannot be stored keeps no other waiting.
    pub(super) async fn store_closed(&self) -> Result<(), StoreError> {
        let users: Vec<SmppUserId> = {
            let closed = self.binds.closed.lock().expect("no holder panics");
            closed.keys().copied().collect()
        };
        let mut result = Ok(());
        for user in users {
            if let Err(error) = self.store_closed_of(user).await {
                result = Err(error);
            }
        }
        result
    }

    async fn store_closed_of(&self, user: SmppUserId) -> Result<(), StoreError> {
        let _turn = self.binds.turns.acquire(&[user]).await;
        let closed = self.binds.take_closed(user);
        let stored = self.binds.open().get(&user).copied().unwrap_or_default();
        let count = subtract(stored, closed);
        let node = self.node.id();
        if let Err(error) = self.store.set_smpp_binds(user, node, count, None).await {
            self.binds.put_back(user, closed);
            return Err(error);
        }
        let mut open = self.binds.open();
        if count.all == 0 {
            open.remove(&user);
        } else {
            open.insert(user, count);
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
