//! Finding the session that a browser sends.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Mutex;

use domain::access::token::TokenHash;
use domain::person::SignedIn;
use domain::ports::StoreError;
use jiff::SignedDuration;

use super::SignIn;
use crate::identity::throttle::Throttle;

/// The time of last use is written at most this often.
const SEEN_EVERY: SignedDuration = SignedDuration::from_mins(5);
/// Sessions that a node remembers at once.
const MAX_KNOWN: usize = 10_000;

/// Why it is not known whose session it is.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The address has sent too many sessions that do not exist.
    #[error("too many unknown sessions came from this address")]
    Throttled {
        /// When to try again.
        retry_after_s: u32,
    },
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps made-up sessions away from the database. A session that this node has found before is looked up whatever
/// others at the same address send.
#[derive(Default)]
pub(super) struct KnownSessions {
    found: Mutex<HashSet<TokenHash>>,
    throttle: Throttle,
}

impl KnownSessions {
    fn contains(&self, session: &TokenHash) -> bool {
        let found = self.found.lock().expect("no holder panics");
        found.contains(session)
    }

    fn insert(&self, session: TokenHash) {
        let mut found = self.found.lock().expect("no holder panics");
        if found.len() >= MAX_KNOWN {
            found.clear();
        }
        found.insert(session);
    }

    fn remove(&self, session: &TokenHash) {
        let mut found = self.found.lock().expect("no holder panics");
        found.remove(session);
    }
}

impl SignIn {
    /// Finds who a session belongs to.
    pub async fn find(
        &self,
        session: &str,
        address: IpAddr,
    ) -> Result<Option<SignedIn>, SessionError> {
        let session = TokenHash::of(session);
        let is_known = self.known_sessions.contains(&session);
        let throttle = &self.known_sessions.throttle;
        if !is_known && let Some(retry_after_s) = throttle.ask(address, self.clock.now()) {
            return Err(SessionError::Throttled { retry_after_s });
        }
        let found = self.look_up(&session).await?;
        match (&found, is_known) {
            (Some(_), true) => {}
            (Some(_), false) => self.known_sessions.insert(session),
            (None, true) => self.known_sessions.remove(&session),
            (None, false) => {
                throttle.fail(address, self.clock.now());
            }
        }
        Ok(found)
    }

    /// Finds who a session belongs to, for callers that have found it before.
    pub(super) async fn look_up(
        &self,
        session: &TokenHash,
    ) -> Result<Option<SignedIn>, StoreError> {
        let now = self.clock.now();
        let Some(found) = self.store.find_session(session, now).await? else {
            return Ok(None);
        };
        if now.duration_since(found.seen_at) >= SEEN_EVERY
            && let Err(error) = self.store.touch_session(session, now).await
        {
            // The request goes on: the list of sessions only shows an older time.
            tracing::warn!(%error, "a session's time of last use could not be stored");
        }
        Ok(Some(found.signed_in))
    }
}
