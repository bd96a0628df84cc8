//! Finds the session that a browser sends.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Mutex;

use domain::access::token::TokenHash;
use domain::person::SignedIn;
use domain::ports::StoreError;
use jiff::SignedDuration;

use super::SignIn;
use crate::identity::throttle::Throttle;

/// The time of last use is stored at most this often.
const STORE_LAST_USE_EVERY: SignedDuration = SignedDuration::from_mins(5);
const MAX_SESSIONS: usize = 10_000;

/// Why a session could not be looked up.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The address has sent too many unknown sessions.
    #[error("too many unknown sessions came from this address")]
    Throttled {
        /// Seconds until the next attempt.
        retry_after_s: u32,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps made-up sessions away from the database. Sessions that this node has found before are looked up even if their
/// address is throttled.
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
        if found.len() >= MAX_SESSIONS {
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
    /// Finds who is signed in by a session.
    pub async fn find(
        &self,
        session: &str,
        address: IpAddr,
    ) -> Result<Option<SignedIn>, SessionError> {
        let session = TokenHash::from_secret(session);
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

    /// Like [`Self::find`], for sessions that were found before.
    pub(super) async fn look_up(
        &self,
        session: &TokenHash,
    ) -> Result<Option<SignedIn>, StoreError> {
        let now = self.clock.now();
        let Some(found) = self.store.find_session(session, now).await? else {
            return Ok(None);
        };
        if now.duration_since(found.seen_at) >= STORE_LAST_USE_EVERY
            && let Err(error) = self.store.touch_session(session, now).await
        {
            // The request can go on: the list of sessions just shows an older time.
            tracing::warn!(%error, "cannot store when a session was last used");
        }
        Ok(Some(found.signed_in))
    }
}
