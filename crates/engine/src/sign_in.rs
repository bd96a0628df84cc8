//! Signing in to the dashboard by a one-time link.

use std::sync::Arc;

use domain::ports::{Store, StoreError};
use domain::token::TokenHash;
use domain::{AccountId, Clock, TokenSecret};
use jiff::SignedDuration;

use crate::entropy;

/// How long a link may wait to be used.
const LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// How long a session lasts.
pub const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(12);

/// Links and the sessions that they open. Secrets are stored hashed.
pub struct SignIn {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl SignIn {
    /// Works on a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Makes a link's secret, good for one use within a day.
    pub async fn create_link(&self, account: AccountId) -> Result<String, StoreError> {
        let secret = secret();
        let expires = self.clock.now() + LINK_LIFETIME;
        self.store
            .create_sign_in_link(&TokenHash::of(&secret), account, expires)
            .await?;
        Ok(secret)
    }

    /// Uses a link up. The answer is the new session's secret, or `None` for a link that is unknown, used or expired.
    pub async fn redeem(&self, link: &str) -> Result<Option<String>, StoreError> {
        let session = secret();
        let now = self.clock.now();
        let opened = self
            .store
            .redeem_sign_in_link(
                &TokenHash::of(link),
                &TokenHash::of(&session),
                now + SESSION_LIFETIME,
                now,
            )
            .await?;
        Ok(opened.then_some(session))
    }

    /// The account that a session is signed in to.
    pub async fn find(&self, session: &str) -> Result<Option<AccountId>, StoreError> {
        self.store
            .find_session(&TokenHash::of(session), self.clock.now())
            .await
    }

    /// Signs out.
    pub async fn end(&self, session: &str) -> Result<(), StoreError> {
        self.store.end_session(&TokenHash::of(session)).await
    }
}

/// The letters of a token, without its prefix: this is no API token and must not pass for one.
fn secret() -> String {
    TokenSecret::from_seed(&entropy::bytes()).reveal()[domain::token::PREFIX.len()..].to_owned()
}
