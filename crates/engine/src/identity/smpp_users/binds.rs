//! The sessions of SMPP users, counted over all nodes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use domain::SmppUserId;
use domain::ports::StoreError;
use domain::smpp_user::SmppUser;

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
}

impl Drop for SmppBind {
    fn drop(&mut self) {
        if let Some(users) = self.users.upgrade() {
            users.binds.close(self.user);
            users.wake.notify_one();
        }
    }
}

/// The sessions of this node.
#[derive(Default)]
pub(super) struct Binds {
    /// As stored. Locked while a count is stored, so that counts are stored in their order.
    open: tokio::sync::Mutex<HashMap<SmppUserId, u32>>,
    /// Sessions that were closed since.
    closed: Mutex<HashMap<SmppUserId, u32>>,
}

impl Binds {
    fn close(&self, user: SmppUserId) {
        let mut closed = self.closed.lock().expect("no holder panics");
        *closed.entry(user).or_default() += 1;
    }

    fn take_closed(&self, user: SmppUserId) -> u32 {
        let mut closed = self.closed.lock().expect("no holder panics");
        closed.remove(&user).unwrap_or(0)
    }

    /// A count that could not be stored is stored later.
    fn put_back(&self, user: SmppUserId, count: u32) {
        let mut closed = self.closed.lock().expect("no holder panics");
        *closed.entry(user).or_default() += count;
    }
}

impl SmppUsers {
    /// Counts a session of a user, unless the user has as many as it may have, over all nodes.
    pub async fn bind(self: &Arc<Self>, user: &SmppUser) -> Result<SmppBind, BindRefused> {
        let mut open = self.binds.open.lock().await;
        let closed = self.binds.take_closed(user.id);
        let count = open.get(&user.id).copied().unwrap_or(0);
        let count = count.saturating_sub(closed) + 1;
        let (node, most) = (self.node.id(), user.limits.max_binds);
        let stored = self.store.set_smpp_binds(user.id, node, count, most).await;
        match stored {
            Ok(true) => {}
            refused => {
                self.binds.put_back(user.id, closed);
                refused?;
                return Err(BindRefused::TooMany);
            }
        }
        open.insert(user.id, count);
        Ok(SmppBind {
            users: Arc::downgrade(self),
            user: user.id,
        })
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
            let count = open.get(&user).copied().unwrap_or(0).saturating_sub(closed);
            let node = self.node.id();
            if let Err(error) = self.store.set_smpp_binds(user, node, count, None).await {
                self.binds.put_back(user, closed);
                return Err(error);
            }
            if count == 0 {
                open.remove(&user);
            } else {
                open.insert(user, count);
            }
        }
        Ok(())
    }
}
