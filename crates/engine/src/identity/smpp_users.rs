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
use domain::person::{Password, PasswordHash};
use domain::ports::{AttemptKey, SmppCredentials, SmppIdentityStore, StoreError};
use domain::smpp_user::{SmppUser, SystemId};
use domain::{Clock, SmppUserId};
use jiff::SignedDuration;
use permits::{Permit, Permits};
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
/// More passwords than can ever wait to be checked at once.
const MAX_CHECKS: usize = 1 << 20;
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
    /// Too many wrong passwords came from this address or for this system ID.
    #[error("too many attempts to bind")]
    Slowed,
    #[error("too many passwords are being checked")]
    Busy,
    #[error("the account is suspended")]
    AccountSuspended,
    #[error(transparent)]
    StoreAway(#[from] StoreError),
}

impl From<Busy> for SignInRefused {
    fn from(_: Busy) -> Self {
        Self::Busy
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
    /// One check of each password at a time.
    checks: Arc<Permits<Digest>>,
    /// Makes the digests of remembered passwords useless outside this process.
    salt: [u8; 32],
    followed: Mutex<HashMap<SmppUserId, watch::Sender<Option<Arc<SmppUser>>>>>,
    /// Wakes the task that reads the followed users again.
    wake: Arc<Notify>,
    tasks: std::sync::OnceLock<[AbortHandle; 2]>,
}

/// Passwords that were right, by system ID.
#[derive(Default)]
struct Remembered(HashMap<SystemId, RightPassword>);

/// A password that was right, with what it was right for.
#[derive(Clone)]
struct RightPassword {
    digest: Digest,
    hash: PasswordHash,
    user: Arc<SmppUser>,
    /// The access version that the user was read at; `None` if it was unknown.
    version: Option<u64>,
}

type Digest = [u8; 32];

impl Remembered {
    fn find(&self, system_id: &SystemId, digest: &Digest) -> Option<RightPassword> {
        let known = self.0.get(system_id)?;
        (known.digest == *digest).then(|| known.clone())
    }

    fn insert(&mut self, known: RightPassword) {
        if self.0.len() >= MAX_REMEMBERED {
            self.0.clear();
        }
        self.0.insert(known.user.system_id.clone(), known);
    }
}

/// A client that wants to bind.
struct Credentials {
    /// `None` if it cannot be the ID of a user.
    system_id: Option<SystemId>,
    /// What the client gave.
    given: String,
    password: Password,
    digest: Digest,
    from: IpAddr,
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
            checks: Permits::new(MAX_CHECKS, |_| 1),
            salt: entropy::bytes(),
            followed: Mutex::default(),
            wake: Arc::default(),
            tasks: std::sync::OnceLock::new(),
        });
        let weak = Arc::downgrade(&users);
        let following = supervise::spawn("smpp-users", move || run_follow(weak.clone()));
        let weak = Arc::downgrade(&users);
        let counting = supervise::spawn("smpp-binds", move || run_store_closed(weak.clone()));
        users
            .tasks
            .get_or_init(|| [following.abort_handle(), counting.abort_handle()]);
        users
    }

    /// Stops following.
    pub fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
    }

    /// Checks the password of a client that wants to bind from an address. A right password that was checked before is
    /// recognised without the slow hash, even while wrong ones are slowed.
    pub async fn sign_in(
        self: &Arc<Self>,
        system_id: &str,
        password: &str,
        from: IpAddr,
    ) -> Result<Arc<SmppUser>, SignInRefused> {
        let credentials = Credentials {
            system_id: system_id.parse().ok(),
            given: system_id.to_owned(),
            password: Password::given(password.to_owned()),
            digest: domain::sha256(&[&self.salt, system_id.as_bytes(), b"\n", password.as_bytes()]),
            from,
        };
        if let Some(user) = self.recognise(&credentials).await? {
            return admit(user, from);
        }
        // The binds of one client often come at once: one of them is checked, and the others wait for the result.
        let turn = self.checks.acquire(&[credentials.digest]).await;
        if let Some(user) = self.recognise(&credentials).await? {
            return admit(user, from);
        }
        // A client that gives up must not stop it halfway: a right password would count as a wrong one.
        let checked = tokio::spawn(self.clone().count_and_check(turn, credentials)).await;
        admit(checked.expect("checking does not panic")?, from)
    }

    /// The user, if its password was right before and is still the same.
    async fn recognise(
        &self,
        credentials: &Credentials,
    ) -> Result<Option<Arc<SmppUser>>, StoreError> {
        let Some(system_id) = &credentials.system_id else {
            return Ok(None);
        };
        let version = self.gate.version();
        let Some(known) = self.remembered().find(system_id, &credentials.digest) else {
            return Ok(None);
        };
        if version.is_some() && version == known.version {
            return Ok(Some(known.user));
        }
        let found = self.store.find_smpp_credentials(system_id).await?;
        let Some(found) = found.filter(|found| found.password == known.hash) else {
            return Ok(None);
        };
        let user = Arc::new(found.user);
        self.remembered().insert(RightPassword {
            user: user.clone(),
            version,
            ..known
        });
        Ok(Some(user))
    }

    /// Checks a password, with a limit on wrong ones from an address.
    async fn count_and_check(
        self: Arc<Self>,
        _turn: Permit<Digest>,
        credentials: Credentials,
    ) -> Result<Arc<SmppUser>, SignInRefused> {
        let network = throttle::network(credentials.from);
        let begun = self.by_address.begin(network, self.clock.now());
        begun.map_err(|_| SignInRefused::Slowed)?;
        let (version, digest) = (self.gate.version(), credentials.digest);
        let checked = self.check(network, credentials).await;
        let was_guess = matches!(
            checked,
            Err(SignInRefused::UnknownSystemId
                | SignInRefused::WrongPassword
                | SignInRefused::Slowed)
        );
        if !was_guess {
            self.by_address.forgive(&network);
        }
        let found = checked?;
        let user = Arc::new(found.user);
        self.remembered().insert(RightPassword {
            digest,
            hash: found.password,
            user: user.clone(),
            version,
        });
        Ok(user)
    }

    /// Checks a password by its slow hash, and counts the attempt over all nodes unless it was right.
    async fn check(
        &self,
        network: IpAddr,
        credentials: Credentials,
    ) -> Result<SmppCredentials, SignInRefused> {
        let found = match &credentials.system_id {
            Some(system_id) => self.store.find_smpp_credentials(system_id).await?,
            None => None,
        };
        let user = found.as_ref().map(|found| &found.user);
        let keys = attempt_keys(network, &credentials.given, user, credentials.from);
        let counted = self.store.count_attempt(&keys, self.clock.now()).await?;
        counted.map_err(|_| SignInRefused::Slowed)?;
        let hash = found.as_ref().map(|found| found.password.clone());
        let verified = self.hasher.verify(credentials.password, hash).await;
        if !matches!(verified, Ok(false)) {
            // It was no guess.
            self.store.uncount_attempt(&keys).await?;
        }
        match (found, verified?) {
            (Some(found), true) => Ok(found),
            (Some(_), false) => Err(SignInRefused::WrongPassword),
            (None, _) => Err(SignInRefused::UnknownSystemId),
        }
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
/// an address list out. They are counted apart, so that a stranger cannot tell such a user from an unknown one.
fn attempt_keys(
    network: IpAddr,
    system_id: &str,
    user: Option<&SmppUser>,
    from: IpAddr,
) -> [AttemptKey; 2] {
    let is_allowed = user.is_none_or(|user| user.access.allow.allows(from));
    let kind = if is_allowed {
        "SMPP system ID"
    } else {
        "SMPP system ID, elsewhere"
    };
    [
        (
            attempt_key("SMPP address", &network.to_string()),
            BY_ADDRESS,
        ),
        (attempt_key(kind, system_id), BY_SYSTEM_ID),
    ]
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
        if let Err(error) = following.refresh().await {
            tracing::warn!(%error, "cannot follow the changes of SMPP users; trying again");
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

/// Apart from [`run_follow`]: after many sessions have ended it takes long, and a revoked user must not wait for it.
async fn run_store_closed(users: Weak<SmppUsers>) {
    let Some(wake) = users.upgrade().map(|users| users.binds.wake()) else {
        return;
    };
    loop {
        wake.notified().await;
        let Some(counting) = users.upgrade() else {
            return;
        };
        if let Err(error) = counting.store_closed().await {
            tracing::warn!(%error, "the sessions of SMPP users cannot be counted; trying again");
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
}
