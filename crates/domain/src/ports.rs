//! The ports: what the service asks of a database, shaped by use case.
//!
//! Each call is atomic. No transaction object and no row leaves the room behind these traits.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::access::{Access, AccountName, AllowList};
use crate::ids::{AccountId, MessageId, TokenId};
use crate::message::{MessageRecord, ScheduledRecord, Submission, SubmitReceipt};
use crate::money::Money;
use crate::permission::Permissions;
use crate::token::TokenHash;

/// Why a store could not do what it was asked. Says what to do next, never what SQL was run.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No room on the disk. Nothing was stored; it works again once there is room.
    #[error("the database has no room left on its disk")]
    Full {
        /// What the database said.
        #[source]
        source: Cause,
    },
    /// A write could not be made durable. What the disk holds is unknown until a restart reads it back.
    #[error("the database could not make a write durable")]
    Broken {
        /// What the database said.
        #[source]
        source: Cause,
    },
    /// Not reachable, or too busy to answer in time. Trying again later may work.
    #[error("the database cannot be reached")]
    Unavailable {
        /// What happened on the way.
        #[source]
        source: Cause,
    },
    /// The database refused a statement or holds something that no version of ours wrote.
    #[error("the database did not do as asked: {operation}")]
    Unexpected {
        /// What was being done.
        operation: &'static str,
        /// What the database said.
        #[source]
        source: Cause,
    },
}

/// The chain behind a store's error, for the log.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Everything that the service keeps.
pub trait Store: MessageStore + AccessStore {}

impl<T: MessageStore + AccessStore> Store for T {}

/// What became of one submission of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored, durably.
    Stored,
    /// Its idempotency key was used before with the same body: this was the answer, and nothing new was stored.
    Replayed(SubmitReceipt),
    /// Its idempotency key was used before with another body: nothing was stored.
    KeyConflict,
}

/// What an idempotency key was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptAnswer {
    /// SHA-256 of the body that it came with.
    pub body: [u8; 32],
    /// What was answered.
    pub receipt: SubmitReceipt,
}

/// What came of an attempt to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// It is cancelled now.
    Done,
    /// It is known, but no longer waits for its time.
    NotWaiting(crate::message::MessageState),
    /// This account has no such message.
    Unknown,
}

/// Which rows of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: u32,
    /// After so many.
    pub offset: u64,
}

/// Messages.
#[async_trait]
pub trait MessageStore: Send + Sync + 'static {
    /// Reserves `count` consecutive message IDs, never given out before to any node, and returns the first.
    async fn reserve_ids(&self, count: u64) -> Result<MessageId, StoreError>;

    /// Stores submissions in one transaction: messages, queue rows, idempotency keys. The answers are in the order
    /// of the batch. When this returns `Ok`, everything [`Accepted::Stored`] survives a power cut.
    async fn accept(&self, batch: Arc<Vec<Submission>>) -> Result<Vec<Accepted>, StoreError>;

    /// What this idempotency key was used for, if it was, within its lifetime.
    async fn find_answer(
        &self,
        account: AccountId,
        key: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<KeptAnswer>, StoreError>;

    /// One message of this account.
    async fn find_message(
        &self,
        account: AccountId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, StoreError>;

    /// The account's messages that still wait for their time, by time, then ID.
    async fn list_scheduled(
        &self,
        account: AccountId,
        page: Page,
    ) -> Result<Vec<ScheduledRecord>, StoreError>;

    /// Cancels a message that still waits for its time.
    async fn cancel(
        &self,
        account: AccountId,
        id: MessageId,
        now: Timestamp,
    ) -> Result<Cancel, StoreError>;

    /// Forgets idempotency keys whose lifetime is over, at most `limit` of them, and says how many those were.
    async fn prune_answers(&self, now: Timestamp, limit: u32) -> Result<u64, StoreError>;
}

/// An account, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// Its ID.
    pub id: AccountId,
    /// Its name.
    pub name: String,
    /// What it may still spend.
    pub balance: Money,
    /// Whether it is suspended.
    pub suspended: bool,
    /// The secret that signs its callbacks.
    pub callback_secret: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// An account to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// Its name, unique.
    pub name: AccountName,
    /// What it starts with.
    pub balance: Money,
    /// The secret that will sign its callbacks.
    pub callback_secret: String,
    /// Now.
    pub created_at: Timestamp,
}

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Whose.
    pub account: AccountId,
    /// What people call it.
    pub name: String,
    /// The secret's fingerprint.
    pub hash: TokenHash,
    /// What it may do.
    pub permissions: Permissions,
    /// From where.
    pub allow: AllowList,
    /// Until when.
    pub expires: Option<Timestamp>,
    /// Now.
    pub created_at: Timestamp,
}

/// A token, as lists show it: everything but the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// What it stands for.
    pub access: Access,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Accounts, tokens and sign-ins.
///
/// Whatever changes the answer of [`AccessStore::find_access`] raises [`AccessStore::access_version`] in the same
/// transaction. Nodes keep what they found and ask only for the version, so a revocation is seen everywhere at once.
#[async_trait]
pub trait AccessStore: Send + Sync + 'static {
    /// A number that grows with each change of accounts or tokens.
    async fn access_version(&self) -> Result<u64, StoreError>;

    /// What the token of this fingerprint stands for. Revoked ones are not found; expired ones are.
    async fn find_access(&self, hash: &TokenHash) -> Result<Option<Access>, StoreError>;

    /// Creates an account; `None` when the name is taken.
    async fn create_account(&self, account: &NewAccount) -> Result<Option<AccountId>, StoreError>;

    /// The account of this name.
    async fn find_account(&self, name: &str) -> Result<Option<AccountRecord>, StoreError>;

    /// The account of this ID.
    async fn find_account_by_id(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError>;

    /// Every account, by ID.
    async fn list_accounts(&self) -> Result<Vec<AccountRecord>, StoreError>;

    /// Suspends or resumes an account; `false` when there is none of this name.
    async fn set_suspended(&self, name: &str, suspended: bool) -> Result<bool, StoreError>;

    /// Creates a token.
    async fn create_token(&self, token: &NewToken) -> Result<TokenId, StoreError>;

    /// The tokens of an account, or all of them, by ID; revoked ones are left out.
    async fn list_tokens(&self, account: Option<AccountId>)
    -> Result<Vec<TokenRecord>, StoreError>;

    /// Revokes a token; `false` when there is none of this ID, or it is revoked already.
    async fn revoke_token(&self, id: TokenId, now: Timestamp) -> Result<bool, StoreError>;

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
        session: &TokenHash,
        session_expires: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// The account that a session is signed in to.
    async fn find_session(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<AccountId>, StoreError>;

    /// Ends a session, if it exists.
    async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError>;
}
