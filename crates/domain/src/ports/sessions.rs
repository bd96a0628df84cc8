//! Sessions: where people are signed in.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::access::token::TokenHash;
use crate::ids::{AccountId, PersonId};
use crate::person::{Device, OpenSession, SessionRecord};

/// A session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The secret's fingerprint.
    pub hash: TokenHash,
    /// Now.
    pub opened_at: Timestamp,
    /// Until when it lasts.
    pub expires: Timestamp,
    /// From where.
    pub device: Device,
}

/// Sessions and the links that open one. Of every secret only the fingerprint is kept.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Opens a session of a person, in the place of `replaced` where there was one.
    async fn open_session(
        &self,
        person: PersonId,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<(), StoreError>;

    /// Keeps a one-time sign-in link for an account.
    async fn create_sign_in_link(
        &self,
        link: &TokenHash,
        account: AccountId,
        expires: Timestamp,
    ) -> Result<(), StoreError>;

    /// Uses up a sign-in link and opens a session in its place, in one step. `false`: unknown, used or expired.
    async fn redeem_sign_in_link(
        &self,
        link: &TokenHash,
        session: &NewSession,
    ) -> Result<bool, StoreError>;

    /// The session of this fingerprint, unless its time is over.
    async fn find_session(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<OpenSession>, StoreError>;

    /// Remembers that a session was used.
    async fn touch_session(&self, session: &TokenHash, now: Timestamp) -> Result<(), StoreError>;

    /// The sessions of a person, the one that was used last first; at most `limit`.
    async fn list_sessions(
        &self,
        person: PersonId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<SessionRecord>, StoreError>;

    /// Ends a session, if it exists.
    async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError>;

    /// Ends every session of a person, and what is half open, and says how many sessions there were.
    async fn end_sessions(&self, person: PersonId) -> Result<u64, StoreError>;
}
