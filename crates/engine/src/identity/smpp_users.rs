//! SMPP users: binding with a password, and following what changes while they are bound.
//!
//! [`SmppUserRegistry`] creates, changes and revokes them.

mod binds;
mod registry;
mod sessions;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use domain::access::attempts::AttemptLimit;
use domain::person::Password;
use domain::ports::{AttemptKey, SmppIdentityStore, StoreError};
use domain::smpp_user::{SmppUser, SystemId};
use domain::{Clock, SmppUserId};
use jiff::SignedDuration;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::cluster::node::Node;
use crate::entropy;
use crate::identity::attempts::AttemptCounter;
use crate::identity::gate::Gate;
use crate::identity::hasher::{Busy, Hasher};
use crate::identity::sign_in::attempt_key;
use crate::identity::throttle;

use binds::Binds;

pub use binds::{BindRefused, SmppBind};
pub use registry::{SmppUserChange, SmppUserError, SmppUserInput, SmppUserRegistry};

/// Limit of wrong passwords per address.
const BY_ADDRESS: AttemptLimit = AttemptLimit::Steady {
    burst: 10,
    forgiven_after: SignedDuration::from_secs(6),
};
/// Limit of wrong passwords per system ID, from any address that may use it.
const BY_SYSTEM_ID: AttemptLimit = AttemptLimit::Steady {
    burst: 20,
    forgiven_after: SignedDuration::from_secs(30),
};
/// The pause before the store is asked again for changed users.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// How many checked passwords are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// Why a bind is refused. To a client, an unknown system ID, a wrong password and an address that is not allowed should
/// look the same.
#[derive(Debug, thiserror::Error)]
pub enum SignInRefused {
    #[error("the system ID is unknown or revoked")]
    UnknownSystemId,
    #[error("the password is wrong")]
    WrongPassword,
    /// The password is right, but the user may not bind from this address.
    #[error("the user may not bind from this address")]
    NotAllowedFrom,
    /// Too many wrong passwords came from this address or for this system ID, or too many passwords are being checked.
    #[error("too many attempts to bind")]
    Slowed,
    #[error("the account is suspended")]
    AccountSuspended,
    #[error(transparent)]
    StoreAway(#[from] StoreError),
}

impl From<Busy> for SignInRefused {
    fn from(_: Busy) -> Self {
        Self::Slowed
    }
}

/// A user as it is now; `None` after it was revoked.
pub type FollowedUser = watch::Receiver<Option<Arc<SmppUser>>>;

/// Checks the passwords of SMPP users and follows changes of those that are bound.
pub struct SmppUsers {
    store: Arc<dyn SmppIdentityStore>,
    clock: Arc<dyn Clock>,
    hasher: Arc<Hasher>,
    gate: Arc<Gate>,
    node: Arc<Node>,
    binds: Binds,
    /// This node's own count, checked before the database, which counts for all nodes.
    by_address: AttemptCounter<IpAddr>,
    /// Passwords that were right, so that a client with many binds costs one slow hash.
    remembered: Mutex<Remembered>,
    /// Makes the digests of remembered passwords useless outside this process.
    salt: [u8; 32],
    followed: Mutex<HashMap<SmppUserId, watch::Sender<Option<Arc<SmppUser>>>>>,
    /// Wakes the task that reads the followed users again and stores the counts of closed sessions.
    wake: Arc<Notify>,
    task: std::sync::OnceLock<AbortHandle>,
}

/// Valid only while the access version stays the same.
#[derive(Default)]
struct Remembered {
    version: u64,
    users: HashMap<SystemId, (Digest, Arc<SmppUser>)>,
}

type Digest = [u8; 32];

impl Remembered {
    fn find(&self, version: u64, system_id: &SystemId, digest: &Digest) -> Option<Arc<SmppUser>> {
        let (known, user) = self
            .users
            .get(system_id)
            .filter(|_| self.version == version)?;
        (known == digest).then(|| user.clone())
    }

    fn insert(&mut self, version: u64, digest: Digest, user: &Arc<SmppUser>) {
        if self.version != version || self.users.len() >= MAX_REMEMBERED {
            self.version = version;
            self.users.clear();
        }
        let entry = (digest, user.clone());
        self.users.insert(user.system_id.clone(), entry);
    }
}

impl SmppUsers {
    /// Starts following changes. Must be called inside a tokio runtime.
    pub fn start(
        store: Arc<dyn SmppIdentityStore>,
        clock: Arc<dyn Clock>,
        hasher: Arc<Hasher>,
        gate: Arc<Gate>,
        node: Arc<Node>,
    ) -> Arc<Self> {
        let users = Arc::new(Self {
            store,
            clock,
            hasher,
            gate,
            binds: Binds::new(node.id()),
            node,
            by_address: AttemptCounter::new(BY_ADDRESS),
            remembered: Mutex::default(),
            salt: entropy::bytes(),
            followed: Mutex::default(),
            wake: Arc::default(),
            task: std::sync::OnceLock::new(),
        });
        let weak = Arc::downgrade(&users);
        let following = supervise::spawn("smpp-users", move || run_follow(weak.clone()));
        users.task.get_or_init(|| following.abort_handle());
        users
    }

    /// Stops following.
    pub fn stop(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// Checks the password of a client that wants to bind from an address. A right password that was checked before is
    /// recognised without the slow hash, even while wrong ones are slowed.
    pub async fn sign_in(
        &self,
        system_id: &str,
        password: &str,
        from: IpAddr,
    ) -> Result<Arc<SmppUser>, SignInRefused> {
        let parsed = system_id.parse::<SystemId>().ok();
        let digest =
            domain::sha256(&[&self.salt, system_id.as_bytes(), b"\n", password.as_bytes()]);
        let version = self.gate.version();
        if let (Some(version), Some(system_id)) = (version, &parsed)
            && let Some(user) = self.remembered().find(version, system_id, &digest)
        {
            return admit(user, from);
        }
        let network = throttle::network(from);
        let begun = self.by_address.begin(network, self.clock.now());
        begun.map_err(|_| SignInRefused::Slowed)?;
        let checked = self.check(parsed.as_ref(), system_id, password, from).await;
        if matches!(checked, Ok(_) | Err(SignInRefused::StoreAway(_))) {
            self.by_address.forgive(&network);
        }
        let user = checked?;
        if let Some(version) = version {
            self.remembered().insert(version, digest, &user);
        }
        admit(user, from)
    }

    /// Checks a password by its slow hash, and counts the attempt over all nodes unless it was right.
    async fn check(
        &self,
        parsed: Option<&SystemId>,
        system_id: &str,
        password: &str,
        from: IpAddr,
    ) -> Result<Arc<SmppUser>, SignInRefused> {
        let found = match parsed {
            Some(system_id) => self.store.find_smpp_credentials(system_id).await?,
            None => None,
        };
        let network = throttle::network(from);
        let is_known = found.is_some();
        let (user, stored) = found
            .map(|found| (Arc::new(found.user), found.password))
            .unzip();
        let keys = attempt_keys(network, system_id, user.as_deref(), from);
        let counted = self.store.count_attempt(&keys, self.clock.now()).await?;
        counted.map_err(|_| SignInRefused::Slowed)?;
        let password = Password::given(password.to_owned());
        let is_right = match self.hasher.verify(password, stored).await {
            Ok(is_right) => is_right,
            Err(busy) => {
                // It was no guess.
                self.by_address.forgive(&network);
                if let Err(error) = self.store.uncount_attempt(&keys).await {
                    tracing::warn!(%error, "an attempt to bind could not be given back");
                }
                return Err(busy.into());
            }
        };
        let Some(user) = user.filter(|_| is_right) else {
            return Err(if is_known {
                SignInRefused::WrongPassword
            } else {
                SignInRefused::UnknownSystemId
            });
        };
        self.store.uncount_attempt(&keys).await?;
        Ok(user)
    }

    /// Follows a user from now on. Look at the value before waiting for a change: the user may be revoked already.
    /// Changes of the account's rules, and its suspension, are changes of the user.
    pub fn follow(&self, user: &Arc<SmppUser>) -> FollowedUser {
        let mut followed = self.followed.lock().expect("no holder panics");
        let sender = followed
            .entry(user.id)
            .or_insert_with(|| watch::Sender::new(Some(user.clone())));
        // The user may have changed since it was read.
        self.wake.notify_one();
        sender.subscribe()
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered.lock().expect("no holder panics")
    }

    /// Reads the followed users again.
    async fn refresh(&self) -> Result<(), StoreError> {
        let ids: Vec<SmppUserId> = {
            let mut followed = self.followed.lock().expect("no holder panics");
            followed.retain(|_, sender| sender.receiver_count() > 0);
            followed.keys().copied().collect()
        };
        if ids.is_empty() {
            return Ok(());
        }
        let found = self.store.find_smpp_users(&ids).await?;
        let mut found: HashMap<SmppUserId, SmppUser> =
            found.into_iter().map(|user| (user.id, user)).collect();
        let followed = self.followed.lock().expect("no holder panics");
        for id in ids {
            let Some(sender) = followed.get(&id) else {
                continue;
            };
            let now = found.remove(&id);
            sender.send_if_modified(|known| {
                let changed = known.as_deref() != now.as_ref();
                if changed {
                    *known = now.map(Arc::new);
                }
                changed
            });
        }
        Ok(())
    }
}

/// Attempts from addresses that may not use the system ID do not count against it, so a stranger cannot keep a user with
/// an address list out.
fn attempt_keys(
    network: IpAddr,
    system_id: &str,
    user: Option<&SmppUser>,
    from: IpAddr,
) -> Vec<AttemptKey> {
    let address = attempt_key("SMPP address", &network.to_string());
    let mut keys = vec![(address, BY_ADDRESS)];
    if user.is_none_or(|user| user.access.allow.allows(from)) {
        keys.push((attempt_key("SMPP system ID", system_id), BY_SYSTEM_ID));
    }
    keys
}

/// What a right password is still refused for.
fn admit(user: Arc<SmppUser>, from: IpAddr) -> Result<Arc<SmppUser>, SignInRefused> {
    if !user.access.allow.allows(from) {
        return Err(SignInRefused::NotAllowedFrom);
    }
    if user.access.suspended {
        return Err(SignInRefused::AccountSuspended);
    }
    Ok(user)
}

async fn run_follow(users: Weak<SmppUsers>) {
    let Some((mut versions, wake)) = users
        .upgrade()
        .map(|users| (users.gate.subscribe(), users.wake.clone()))
    else {
        return;
    };
    loop {
        let Some(following) = users.upgrade() else {
            return;
        };
        let done = match following.refresh().await {
            Ok(()) => following.store_closed().await,
            refused => refused,
        };
        if let Err(error) = done {
            tracing::warn!(%error, "cannot follow the changes and sessions of SMPP users; trying again");
            tokio::time::sleep(RETRY_AFTER).await;
            continue;
        }
        drop(following);
        tokio::select! {
            changed = versions.changed() => if changed.is_err() { return },
            () = wake.notified() => {}
        }
    }
}
