//! Who may call: tokens, permissions, addresses.
//!
//! What a token stands for is kept in memory, so a request costs no database read. A watcher asks the store for the
//! version of its accounts and tokens several times a second and forgets everything when it has grown. While that
//! question goes unanswered, memory is not trusted and each request asks the store itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use domain::ports::{Store, StoreError};
use domain::{Access, AccountId, Clock, Permission, Timestamp, TokenHash, TokenSecret};
use tokio::task::AbortHandle;

use crate::identity::rate::{Allowance, RateLimits, Requester};
use crate::identity::throttle::Throttle;

/// How often the version is asked for.
const WATCH_EVERY: Duration = Duration::from_millis(250);
/// How old an answer about the version may be for memory to be trusted. Within a second a revocation must be seen.
const TRUSTED_FOR: Duration = Duration::from_millis(900);
/// Tokens that are remembered at once.
const MAX_KNOWN: usize = 50_000;
/// How often it is written down when tokens were last used, and of how many with one write.
const NOTE_EVERY: Duration = Duration::from_mins(1);
const NOTED_AT_ONCE: usize = 1_000;

/// Why a call is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No token came with the request.
    #[error("no API token was given")]
    Missing,
    /// The token is malformed, unknown or revoked; which of these is nobody's business.
    #[error("the API token is not valid")]
    Unknown,
    /// The token's time is over.
    #[error("the API token has expired")]
    Expired,
    /// The account is suspended.
    #[error("the account is suspended")]
    Suspended,
    /// The token may not be used from the caller's address.
    #[error("the API token may not be used from the address {0}")]
    Address(IpAddr),
    /// The token was not granted this route, which takes any of these.
    #[error("the API token lacks the permission {}", either(.0))]
    NotGranted(&'static [Permission]),
    /// Too many wrong tokens came from the caller's address.
    #[error("too many wrong API tokens came from this address")]
    Throttled {
        /// When to try again.
        retry_after_s: u32,
    },
    /// The store could not say.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Permissions of which one is enough, in words.
pub fn either(permissions: &[Permission]) -> String {
    let names: Vec<String> = permissions.iter().map(|name| format!("'{name}'")).collect();
    names.join(" or ")
}

/// Decides about callers.
pub struct Gate {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    known: RwLock<Known>,
    started: Instant,
    /// Milliseconds after `started` at which the version was last confirmed.
    confirmed_ms: AtomicU64,
    throttle: Throttle,
    rates: RateLimits,
    tasks: std::sync::OnceLock<[AbortHandle; 2]>,
}

#[derive(Default)]
struct Known {
    version: u64,
    tokens: HashMap<TokenHash, Arc<KnownToken>>,
    /// When tokens were last used, unless that is written down. Outlives what is remembered of them.
    used: HashMap<TokenHash, LastUse>,
}

/// When a token was last used, unless that is written down: microseconds since 1970, 0 for not.
type LastUse = Arc<AtomicI64>;

/// A token that is remembered.
struct KnownToken {
    access: Arc<Access>,
    used_us: LastUse,
}

impl Known {
    /// Where to note the uses of a token. Beyond so many nothing is written down of them.
    fn last_use(&mut self, hash: TokenHash) -> LastUse {
        if self.used.len() >= MAX_KNOWN && !self.used.contains_key(&hash) {
            return LastUse::default();
        }
        self.used.entry(hash).or_default().clone()
    }

    /// When tokens were used since this was last asked.
    fn take_used(&mut self) -> Vec<(TokenHash, Timestamp)> {
        let mut taken = Vec::new();
        self.used.retain(|hash, used_us| {
            let at_us = used_us.swap(0, Ordering::Relaxed);
            if let Ok(at) = Timestamp::from_microsecond(at_us)
                && at_us > 0
            {
                taken.push((*hash, at));
            }
            // Nobody else can note another use of one that is not remembered.
            Arc::strong_count(used_us) > 1
        });
        taken
    }
}

impl Gate {
    /// Starts deciding, and watching for changes. Must be called inside a tokio runtime.
    pub fn start(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let gate = Arc::new(Self {
            store,
            clock,
            known: RwLock::default(),
            started: Instant::now(),
            confirmed_ms: AtomicU64::new(0),
            throttle: Throttle::default(),
            rates: RateLimits::default(),
            tasks: std::sync::OnceLock::new(),
        });
        let weak = Arc::downgrade(&gate);
        let watching = supervise::spawn("access-watch", move || watch(weak.clone()));
        let weak = Arc::downgrade(&gate);
        let noting = supervise::spawn("token-use", move || note(weak.clone()));
        gate.tasks
            .get_or_init(|| [watching.abort_handle(), noting.abort_handle()]);
        gate
    }

    /// Stops watching, and writes down when tokens were last used.
    pub async fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
        self.note_used().await;
    }

    /// Whether the store answered lately.
    pub fn is_current(&self) -> bool {
        let confirmed = Duration::from_millis(self.confirmed_ms.load(Ordering::Acquire));
        self.started.elapsed().saturating_sub(confirmed) < TRUSTED_FOR
    }

    /// The version of accounts, tokens and senders that memory may be trusted for; `None` while nobody knows it.
    pub(crate) fn version(&self) -> Option<u64> {
        let version = self.known.read().expect("no holder panics").version;
        self.is_current().then_some(version)
    }

    /// Decides whether the bearer of `token`, calling from `address`, may do what needs one of these permissions; any
    /// valid token will do for none.
    pub async fn admit(
        &self,
        token: Option<&str>,
        address: IpAddr,
        permissions: &'static [Permission],
    ) -> Result<Arc<Access>, Refusal> {
        let token = token.ok_or(Refusal::Missing)?;
        let now = self.clock.now();
        let token = match self.find(token, address).await? {
            Some(token) if token.access.is_expired(now) => {
                return Err(self.wrong(address, Refusal::Expired));
            }
            Some(token) => token,
            None => return Err(self.wrong(address, Refusal::Unknown)),
        };
        let access = &token.access;
        if access.suspended {
            return Err(Refusal::Suspended);
        }
        if !access.allow.allows(address) {
            return Err(Refusal::Address(address));
        }
        let granted = |permission: &Permission| access.permissions.contains(*permission);
        if permissions.is_empty() || permissions.iter().any(granted) {
            token.used_us.store(now.as_microsecond(), Ordering::Relaxed);
            Ok(access.clone())
        } else {
            Err(Refusal::NotGranted(permissions))
        }
    }

    /// Counts a request of an account that may make so many in a second; `None`: it may make any number.
    pub fn count(
        &self,
        account: AccountId,
        requester: Requester,
        per_second: u32,
    ) -> Option<Allowance> {
        let now = self.started.elapsed();
        (per_second > 0).then(|| self.rates.count(account, requester, per_second, now))
    }

    /// Refuses a request that came without a token. Where such requests cost something, they count against their address
    /// like a wrong token does.
    pub fn refuse_missing(&self, address: IpAddr) -> Refusal {
        self.wrong(address, Refusal::Missing)
    }

    /// A wrong token counts against its address; when that has used up its tries, it is told to wait instead.
    fn wrong(&self, address: IpAddr, refusal: Refusal) -> Refusal {
        match self.throttle.fail(address, self.clock.now()) {
            Some(retry_after_s) => Refusal::Throttled { retry_after_s },
            None => refusal,
        }
    }

    /// An address that has used up its tries costs the store little: what is not in memory is looked up for it slowly.
    async fn find(&self, token: &str, address: IpAddr) -> Result<Option<Arc<KnownToken>>, Refusal> {
        let hash = TokenHash::of(token);
        let version = {
            let known = self.known.read().expect("no holder panics");
            if self.is_current()
                && let Some(token) = known.tokens.get(&hash)
            {
                return Ok(Some(token.clone()));
            }
            known.version
        };
        if TokenSecret::parse(token).is_none() {
            return Ok(None);
        }
        if let Some(retry_after_s) = self.throttle.ask(address, self.clock.now()) {
            return Err(Refusal::Throttled { retry_after_s });
        }
        let Some(access) = self.store.find_access(&hash).await? else {
            return Ok(None);
        };
        let mut known = self.known.write().expect("no holder panics");
        let token = Arc::new(KnownToken {
            access: Arc::new(access),
            used_us: known.last_use(hash),
        });
        // Read under an older version, it may be out of date already: then it serves this one request only.
        if known.version == version {
            if known.tokens.len() >= MAX_KNOWN {
                known.tokens.clear();
            }
            known.tokens.insert(hash, token.clone());
        }
        Ok(Some(token))
    }

    async fn refresh(&self) {
        let asked = self.started.elapsed();
        match self.store.access_version().await {
            Ok(version) => {
                self.forget_if_changed(version);
                let confirmed = u64::try_from(asked.as_millis()).unwrap_or(u64::MAX);
                self.confirmed_ms.store(confirmed, Ordering::Release);
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "cannot ask for changes of tokens; each request asks the store until it answers");
            }
        }
    }

    fn forget_if_changed(&self, version: u64) {
        if self.known.read().expect("no holder panics").version == version {
            return;
        }
        let mut known = self.known.write().expect("no holder panics");
        known.version = version;
        known.tokens.clear();
    }

    /// Writes down when tokens were last used. What cannot be written is left out: it says little, and the next use
    /// says it again.
    async fn note_used(&self) {
        let used = self.known.write().expect("no holder panics").take_used();
        for batch in used.chunks(NOTED_AT_ONCE) {
            if let Err(error) = self.store.note_tokens_used(batch).await {
                tracing::warn!(%error, "it is not noted when tokens were last used");
                return;
            }
        }
    }
}

async fn note(gate: std::sync::Weak<Gate>) {
    let first = tokio::time::Instant::now() + NOTE_EVERY;
    let mut tick = tokio::time::interval_at(first, NOTE_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(gate) = gate.upgrade() else { return };
        gate.note_used().await;
    }
}

async fn watch(gate: std::sync::Weak<Gate>) {
    let mut tick = tokio::time::interval(WATCH_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(gate) = gate.upgrade() else { return };
        gate.refresh().await;
    }
}
