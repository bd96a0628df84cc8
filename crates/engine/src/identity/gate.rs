//! Who may call: tokens, permissions, addresses.
//!
//! Tokens are cached in memory, so a request costs no database read. A watcher asks the store four times a second for
//! the version of its accounts and tokens, and clears the cache when it has changed. While the watcher gets no answer,
//! the cache is not trusted and each request asks the store.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use domain::ports::{AccessStore, StoreError};
use domain::{Access, AccountId, Clock, Permission, Timestamp, TokenHash, TokenSecret};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::identity::rate::{Allowance, RateLimits, Requester};
use crate::identity::throttle::Throttle;

const WATCH_EVERY: Duration = Duration::from_millis(250);
/// How old the last answer about the version may be for the cache to be trusted. Revocations must apply within a
/// second.
const TRUSTED_FOR: Duration = Duration::from_millis(900);
const NEVER: u64 = u64::MAX;
const MAX_CACHED: usize = 50_000;
/// How often the times of last use are stored, and how many in one write.
const STORE_USES_EVERY: Duration = Duration::from_mins(1);
const STORE_USES_BATCH: usize = 1_000;

/// Why a call is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No token came with the request.
    #[error("no API token was given")]
    Missing,
    /// The token is malformed, unknown or revoked. Callers do not learn which.
    #[error("the API token is not valid")]
    Unknown,
    #[error("the API token has expired")]
    Expired,
    /// The account is suspended.
    #[error("the account is suspended")]
    Suspended,
    /// The token may not be used from the caller's address.
    #[error("the API token may not be used from the address {0}")]
    Address(IpAddr),
    /// The route needs one of these permissions, and the token has none.
    #[error("the API token lacks the permission {}", either(.0))]
    NotGranted(&'static [Permission]),
    /// Too many wrong tokens came from the caller's address.
    #[error("too many wrong API tokens came from this address")]
    Throttled {
        /// Seconds until the next attempt.
        retry_after_s: u32,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Lists alternative permissions for an error message.
pub fn either(permissions: &[Permission]) -> String {
    let names: Vec<String> = permissions.iter().map(|name| format!("'{name}'")).collect();
    names.join(" or ")
}

/// Checks the tokens of callers.
pub struct Gate {
    store: Arc<dyn AccessStore>,
    clock: Arc<dyn Clock>,
    cache: RwLock<TokenCache>,
    versions: watch::Sender<u64>,
    started: Instant,
    /// Milliseconds after `started` at which the version was last confirmed; [`NEVER`] before the first answer.
    confirmed_ms: AtomicU64,
    throttle: Throttle,
    rates: RateLimits<(AccountId, Requester)>,
    tasks: std::sync::OnceLock<[AbortHandle; 2]>,
}

#[derive(Default)]
struct TokenCache {
    version: u64,
    tokens: HashMap<TokenHash, Arc<CachedToken>>,
    /// Times of last use that are not stored yet. They outlive the cached tokens.
    used: HashMap<TokenHash, LastUse>,
}

/// When a token was last used, in microseconds since 1970; 0 if there is nothing to store.
type LastUse = Arc<AtomicI64>;

struct CachedToken {
    access: Arc<Access>,
    used_us: LastUse,
}

impl TokenCache {
    /// Where to record the uses of a token. If there are too many tokens, further uses are not stored.
    fn last_use(&mut self, hash: TokenHash) -> LastUse {
        if self.used.len() >= MAX_CACHED && !self.used.contains_key(&hash) {
            return LastUse::default();
        }
        self.used.entry(hash).or_default().clone()
    }

    /// Takes the times of last use that are not stored yet.
    fn take_used(&mut self) -> Vec<(TokenHash, Timestamp)> {
        let mut uses = Vec::new();
        self.used.retain(|hash, used_us| {
            let at_us = used_us.swap(0, Ordering::Relaxed);
            if let Ok(at) = Timestamp::from_microsecond(at_us)
                && at_us > 0
            {
                uses.push((*hash, at));
            }
            // If the token is not cached, nothing can record another use of it.
            Arc::strong_count(used_us) > 1
        });
        uses
    }
}

impl Gate {
    /// Starts the gate and its watcher. Must be called inside a tokio runtime.
    pub fn start(store: Arc<dyn AccessStore>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let gate = Arc::new(Self {
            store,
            clock,
            cache: RwLock::default(),
            versions: watch::Sender::default(),
            started: Instant::now(),
            confirmed_ms: AtomicU64::new(NEVER),
            throttle: Throttle::default(),
            rates: RateLimits::default(),
            tasks: std::sync::OnceLock::new(),
        });
        let weak = Arc::downgrade(&gate);
        let watching = supervise::spawn("access-watch", move || run_watch(weak.clone()));
        let weak = Arc::downgrade(&gate);
        let storing = supervise::spawn("token-use", move || run_store_last_uses(weak.clone()));
        gate.tasks
            .get_or_init(|| [watching.abort_handle(), storing.abort_handle()]);
        gate
    }

    /// Stops watching, and stores the times of last use.
    pub async fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
        self.store_last_uses().await;
    }

    /// Whether the store answered recently.
    pub fn is_current(&self) -> bool {
        let confirmed_ms = self.confirmed_ms.load(Ordering::Acquire);
        let elapsed = self.started.elapsed();
        confirmed_ms != NEVER
            && elapsed.saturating_sub(Duration::from_millis(confirmed_ms)) < TRUSTED_FOR
    }

    /// The version of accounts, tokens and senders that caches may rely on; `None` while it is unknown.
    pub(crate) fn version(&self) -> Option<u64> {
        let version = self.cache.read().expect("no holder panics").version;
        self.is_current().then_some(version)
    }

    /// Tells when accounts, tokens, SMPP users or senders have changed on any node, within a second.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.versions.subscribe()
    }

    /// Decides whether the bearer of `token`, calling from `address`, may do something that needs one of these
    /// permissions. If `permissions` is empty, any valid token is enough.
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
                return Err(self.count_failure(address, Refusal::Expired));
            }
            Some(token) => token,
            None => return Err(self.count_failure(address, Refusal::Unknown)),
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

    /// What a token allows, if it was used lately; whether it may be used now is not checked.
    pub fn find_cached(&self, token: &str) -> Option<Arc<Access>> {
        let hash = TokenHash::from_secret(token);
        let cache = self.cache.read().expect("no holder panics");
        let token = cache.tokens.get(&hash)?;
        Some(token.access.clone())
    }

    /// Counts a request against the account's rate limit; `None` if it has none.
    pub fn count(
        &self,
        account: AccountId,
        requester: Requester,
        per_second: u32,
    ) -> Option<Allowance> {
        let now = self.started.elapsed();
        (per_second > 0).then(|| {
            let key = (account, requester);
            self.rates.count(key, per_second, now)
        })
    }

    /// Refuses a request without a token. Where such requests are expensive, they count against the address like a
    /// wrong token.
    pub fn refuse_missing(&self, address: IpAddr) -> Refusal {
        self.count_failure(address, Refusal::Missing)
    }

    /// Counts a wrong token against its address. After too many, the address must wait.
    fn count_failure(&self, address: IpAddr, refusal: Refusal) -> Refusal {
        match self.throttle.fail(address, self.clock.now()) {
            Some(retry_after_s) => Refusal::Throttled { retry_after_s },
            None => refusal,
        }
    }

    /// An address without attempts left cannot flood the store: its lookups of tokens that are not cached are slowed
    /// down.
    async fn find(
        &self,
        token: &str,
        address: IpAddr,
    ) -> Result<Option<Arc<CachedToken>>, Refusal> {
        let hash = TokenHash::from_secret(token);
        let version = {
            let cache = self.cache.read().expect("no holder panics");
            if self.is_current()
                && let Some(token) = cache.tokens.get(&hash)
            {
                return Ok(Some(token.clone()));
            }
            cache.version
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
        let mut cache = self.cache.write().expect("no holder panics");
        let token = Arc::new(CachedToken {
            access: Arc::new(access),
            used_us: cache.last_use(hash),
        });
        // A token that was read under an older version may be out of date, so it serves only this request.
        if cache.version == version {
            if cache.tokens.len() >= MAX_CACHED {
                cache.tokens.clear();
            }
            cache.tokens.insert(hash, token.clone());
        }
        Ok(Some(token))
    }

    async fn refresh(&self) {
        let asked_at = self.started.elapsed();
        match self.store.access_version().await {
            Ok(version) => {
                self.clear_if_changed(version);
                let confirmed = u64::try_from(asked_at.as_millis()).unwrap_or(u64::MAX);
                self.confirmed_ms.store(confirmed, Ordering::Release);
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "cannot ask for changes of tokens; each request asks the store until it answers");
            }
        }
    }

    fn clear_if_changed(&self, version: u64) {
        if self.cache.read().expect("no holder panics").version == version {
            return;
        }
        let mut cache = self.cache.write().expect("no holder panics");
        cache.version = version;
        cache.tokens.clear();
        self.versions.send_replace(version);
    }

    /// Stores the times of last use. A failure loses little: the next use of the token records a later time.
    async fn store_last_uses(&self) {
        let used = self.cache.write().expect("no holder panics").take_used();
        for batch in used.chunks(STORE_USES_BATCH) {
            if let Err(error) = self.store.record_token_use(batch).await {
                tracing::warn!(%error, "cannot store when tokens were last used");
                return;
            }
        }
    }
}

async fn run_store_last_uses(gate: std::sync::Weak<Gate>) {
    let first = tokio::time::Instant::now() + STORE_USES_EVERY;
    let mut tick = tokio::time::interval_at(first, STORE_USES_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(gate) = gate.upgrade() else { return };
        gate.store_last_uses().await;
    }
}

async fn run_watch(gate: std::sync::Weak<Gate>) {
    let mut tick = tokio::time::interval(WATCH_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(gate) = gate.upgrade() else { return };
        gate.refresh().await;
    }
}
