//! Checks a URL when a caller gives it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{ForbiddenUrl, UrlGuard};
use domain::{AccountId, CallbackUrl, Origin};
use permits::Permits;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use crate::guard::{Forbidden, Guard, LOOKUP_TIMEOUT};
use crate::resolve::Resolve;

/// How long the result for a name is cached. Short, so that a corrected name is noticed soon.
const REMEMBERED: Duration = Duration::from_secs(30);

/// How many names are cached. When the cache is full it is cleared, which costs one lookup each.
const MAX_REMEMBERED: usize = 4096;

/// How many names are looked up at once, in total and for one account.
const MAX_LOOKUPS: usize = 128;
const MAX_OF_ACCOUNT: usize = 8;

type Verdict = Result<(), Forbidden>;

/// Checks the URLs that callers give.
///
/// Results are cached for a while, good or bad: callers give the same few URLs with thousands of messages a second, and
/// a slow name should delay its sender only once. Safety does not depend on the cache, because every address is checked
/// again before connecting.
pub struct UrlCheck {
    guard: Guard,
    resolver: Arc<dyn Resolve>,
    names: Mutex<HashMap<String, (Instant, Verdict)>>,
    lookups: Arc<Permits<AccountId>>,
}

impl UrlCheck {
    pub fn new(guard: Guard, resolver: Arc<dyn Resolve>) -> Self {
        Self {
            guard,
            resolver,
            names: Mutex::default(),
            lookups: Permits::new(MAX_LOOKUPS, |_| MAX_OF_ACCOUNT),
        }
    }

    /// Checks a URL as far as possible now.
    ///
    /// An account whose lookups all hang waits for one of them, at most as long as a lookup may take; then the URL
    /// passes, like a name that is not resolved in time.
    pub async fn check_url(&self, asker: AccountId, url: &CallbackUrl) -> Verdict {
        let origin = Origin::from_url(url);
        if let Some(host) = origin.host() {
            if let Ok(address) = host.trim_matches(['[', ']']).parse() {
                return self.guard.check_address(address);
            }
            if let Some(verdict) = self.remembered(host) {
                return verdict;
            }
        }
        if !is_name(url) {
            return self.guard.check_url(url);
        }
        let deadline = Instant::now() + LOOKUP_TIMEOUT;
        let Ok(_permit) = timeout_at(deadline, self.lookups.acquire(&[asker])).await else {
            return self.guard.check_url(url);
        };
        let verdict = self.guard.check_resolved(url, &*self.resolver).await;
        if let Some(host) = origin.host() {
            self.remember(host, verdict.clone());
        }
        verdict
    }

    fn remembered(&self, host: &str) -> Option<Verdict> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, verdict) = names.get(host)?;
        (since.elapsed() < REMEMBERED).then(|| verdict.clone())
    }

    fn remember(&self, host: &str, verdict: Verdict) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MAX_REMEMBERED {
            names.clear();
        }
        names.insert(host.to_owned(), (Instant::now(), verdict));
    }
}

/// Whether the host is a name, not an address.
fn is_name(url: &CallbackUrl) -> bool {
    let url = Url::parse(url.as_str());
    url.is_ok_and(|url| matches!(url.host(), Some(Host::Domain(_))))
}

#[async_trait]
impl UrlGuard for UrlCheck {
    async fn check(&self, asker: AccountId, url: &CallbackUrl) -> Result<(), ForbiddenUrl> {
        let verdict = self.check_url(asker, url).await;
        verdict.map_err(|forbidden| ForbiddenUrl(forbidden.to_string()))
    }
}
