//! Sessions: signed-in browsers.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::access::token::TokenHash;
use crate::ids::{AccountId, PersonId};
use crate::person::{Device, OpenSession, SessionRecord};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The hash of the session's secret.
    pub hash: TokenHash,
    pub opened_at: Timestamp,
    pub expires: Timestamp,
    pub device: Device,
}

/// Sessions and sign-in links. Only the hashes of their secrets are stored.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Opens a session of a person; it replaces `replaced`, if given.
    async fn open_session(
        &self,
        person: PersonId,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<(), StoreError>;

    /// Stores a one-time sign-in link for an account.
    async fn create_sign_in_link(
        &self,
        link: &TokenHash,
        account: AccountId,
        expires: Timestamp,
    ) -> Result<(), StoreError>;

    /// Whether a sign-in link can still be used.
    async fn has_sign_in_link(&self, link: &TokenHash, now: Timestamp) -> Result<bool, StoreError>;

    /// Uses up a sign-in link and opens a session, in one step. `false` if the link is unknown, used or expired.
    async fn redeem_sign_in_link(
        &self,
        link: &TokenHash,
        session: &NewSession,
    ) -> Result<bool, StoreError>;

    /// The session with this hash, unless it has expired.
    async fn find_session(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<OpenSession>, StoreError>;

    /// Stores that a session was used.
    async fn touch_session(&self, session: &TokenHash, now: Timestamp) -> Result<(), StoreError>;

    /// When the person last proved who they are: by signing in, or by their password afterwards. `None` if the session
    /// is unknown or has expired.
    async fn find_proof(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError>;

    /// Stores that the password was entered again in a session.
    async fn set_proof(&self, session: &TokenHash, now: Timestamp) -> Result<(), StoreError>;

    /// The sessions of a person, the last used one first; at most `limit`.
    async fn list_sessions(
        &self,
        person: PersonId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<SessionRecord>, StoreError>;

    async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError>;

    /// Ends all sessions and pending sign-ins of a person. Returns the number of sessions.
    async fn end_sessions(&self, person: PersonId) -> Result<u64, StoreError>;
}
