//! The ports: what the service needs from a database, by use case.
//!
//! Each call is atomic. No transaction object and no row is visible outside an implementation.

use std::error::Error;

mod access;
mod alerts;
mod attempts;
mod audit;
mod billing;
mod binds;
mod callbacks;
mod catalogue;
mod codes;
mod dispatch;
mod export;
mod history;
mod inbound;
mod inbound_sources;
mod memberships;
mod messages;
mod monitoring;
mod oauth;
mod operations;
mod opt_outs;
mod outside;
mod people;
mod polls;
mod ported;
mod privacy;
mod replies;
mod request_log;
mod second_factor;
mod senders;
mod sessions;
mod smpp_users;
mod templates;
mod traffic;
mod verify;

pub use access::{AccessStore, AccountRecord, NewAccount, NewToken, TokenInput, TokenRecord};
pub use alerts::{AlertStore, FailingReceiver, NewNotification, Notification, NotifySetting};
pub use attempts::{AttemptKey, AttemptStore};
pub use audit::{AuditEntry, AuditFilter, AuditStore, Change};
pub use billing::{BillingStore, Imbalance};
pub use binds::{BindDemand, BindShare, BindStore, PoolCursor, RoutePool, Shared};
pub use callbacks::{
    CallbackFilter, CallbackRecord, CallbackState, CallbackStore, CallbackSubject,
    ClaimedCallbacks, HeldCallback, ReplayCursor, ReplayRequest, ReplaySource, Replayed,
    SigningSecrets, UnreadableCallback,
};
pub use catalogue::{Catalogue, CatalogueEntry, CatalogueKind, CatalogueStore};
pub use codes::{CodeStore, KeyStore};
pub use dispatch::{
    CarrierStatus, Claimed, ClaimedRow, DispatchStore, Ended, HeartbeatResult, InTransit, Inbox,
    Matched, NodeCarrierStatus, NodeInfo, PoolClaim, SetAside, Settled,
};
pub use export::{
    ExportFilter, ExportPage, ExportRange, ExportStore, ExportedMessage, LedgerTotals,
};
pub use history::{
    Cursor, HistoryStore, MessageDetail, MessageFilter, MessageSummary, Page, PartDetail, Place,
    StateName,
};
pub use inbound::{
    Delivered, DeliveredCopy, DeliveredResult, IfUnclear, InboundFilter, InboundOwner, InboundPart,
    InboundStore, NewInbound, NumberEntry, OwnedNumber, PartKey, PartSet,
};
pub use inbound_sources::InboundSourceStore;
pub use memberships::{Joining, MembershipStore};
pub use messages::{
    AcceptResult, Accepted, Cancel, ID_BLOCK_LIFETIME, ListRange, MessageStore, Replace,
    StoredAnswer, accept_results,
};
pub use monitoring::{
    AccountBalance, ConnectionUse, DatabaseHealth, MonitoringStore, PooledMessages, WaitingMessages,
};
pub use oauth::{
    Approval, CodeRedemption, GrantRecord, NewPair, OAuthStore, Revoked, Rotated, Rotation,
    StoredClient,
};
pub use operations::{
    Counted, DatabaseFacts, NodeFacts, NodeStatus, OperationsStore, Overdue, Queue, QueueDepth,
    Receiver, Unmatched,
};
pub use opt_outs::{ListVersions, OptOutChange, OptOutStore};
pub use outside::{
    CallbackSender, Carrier, CarrierPost, CarrierReports, CarrierState, ClientDocuments, DiskSpace,
    ForbiddenUrl, ForwardedText, HandsetSink, HandsetText, Health, HomeNetwork, ImageGuard,
    Machine, MachineState, Mail, Mailer, NotificationSender, NumberLocator, ReceiptError,
    ReceiptSink, ReportResult, SignedPost, UnusableDocument, UnusableImage, UrlGuard,
};
pub use people::{
    Credentials, Invitation, InvitationRecord, NewPerson, PeopleStore, PersonChanged, PersonRecord,
    Purpose, Redeemed,
};
pub use polls::{AwaitedReport, DuePoll, PollStore, ReportPolls};
pub use ported::{PortedChange, PortedStore, PortedVersions};
pub use privacy::{InboundDetail, PrivacyStore, SubjectMessage, SubjectPage};
pub use replies::{DueReply, NewReply, ReplyStore};
pub use request_log::{RefusedRequest, RequestLogStore};
pub use second_factor::{PendingSignIn, SecondFactor, SecondFactorStore, SecondProof};
pub use senders::{
    Confirmed, NewSender, Registered, Reviewed, SenderFilter, SenderRight, SenderStore,
};
pub use sessions::{NewSession, SessionStore};
pub use smpp_users::{NewSmppUser, SmppBinds, SmppCredentials, SmppUserStore};
pub use templates::TemplateStore;
pub use traffic::{
    DeliveryCount, LATENCY_BOUNDS_US, LatencyCount, Span, TrafficCount, TrafficStore,
};
pub use verify::{MAX_CONVERSION_ROWS, NewVerification, Started, VerifyStore};

/// Why a store failed. The text says what happened, never which SQL was run.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full. Nothing was stored; it works again when there is space.
    #[error("the database has no room left on its disk")]
    Full {
        #[source]
        source: Cause,
    },
    /// A write could not be made durable. The state on disk is unknown until a restart reads it.
    #[error("the database could not make a write durable")]
    Broken {
        #[source]
        source: Cause,
    },
    /// Not reachable, or too busy to answer in time. A later attempt may work.
    #[error("the database cannot be reached")]
    Unavailable {
        #[source]
        source: Cause,
    },
    /// A message ID exists already: a database that was restored or promoted without its newest writes reserved the
    /// same IDs again. Nothing was stored; other IDs may work.
    #[error("a message ID is taken already")]
    IdTaken {
        #[source]
        source: Cause,
    },
    /// The database refused a statement, or contains something that no version of ours wrote.
    #[error("the database did not do as asked: {operation}")]
    Unexpected {
        operation: &'static str,
        #[source]
        source: Cause,
    },
}

/// The cause of a store error, for the log.
pub type Cause = Box<dyn Error + Send + Sync>;

/// What a message needs on its way: accepting, sending, receipts, callbacks.
pub trait WorkStore: MessageStore + DispatchStore + BindStore + CallbackStore {}

impl<T> WorkStore for T where T: MessageStore + DispatchStore + BindStore + CallbackStore {}

/// Accounts with their tokens, balances and signing secrets.
pub trait AccountStore: AccessStore + BillingStore + CallbackStore + AuditStore {}

impl<T> AccountStore for T where T: AccessStore + BillingStore + CallbackStore + AuditStore {}

/// People and how they sign in.
pub trait IdentityStore:
    PeopleStore + MembershipStore + SessionStore + SecondFactorStore + AttemptStore + AuditStore
{
}

impl<T> IdentityStore for T where
    T: PeopleStore + MembershipStore + SessionStore + SecondFactorStore + AttemptStore + AuditStore
{
}

/// SMPP users and how they sign in.
pub trait SmppIdentityStore: SmppUserStore + AttemptStore + AuditStore {}

impl<T> SmppIdentityStore for T where T: SmppUserStore + AttemptStore + AuditStore {}

/// The whole database. Each use case takes only the part of it that it needs: an `Arc<dyn Store>` coerces to an `Arc`
/// of any of these traits.
pub trait Store:
    WorkStore
    + AccountStore
    + IdentityStore
    + SmppIdentityStore
    + CatalogueStore
    + SenderStore
    + CodeStore
    + VerifyStore
    + KeyStore
    + OAuthStore
    + HistoryStore
    + InboundStore
    + ReplyStore
    + InboundSourceStore
    + ExportStore
    + PrivacyStore
    + TrafficStore
    + OperationsStore
    + MonitoringStore
    + AlertStore
    + OptOutStore
    + PortedStore
    + TemplateStore
    + RequestLogStore
    + PollStore
{
}

impl<T> Store for T where
    T: WorkStore
        + AccountStore
        + IdentityStore
        + SmppIdentityStore
        + CatalogueStore
        + SenderStore
        + CodeStore
        + VerifyStore
        + KeyStore
        + OAuthStore
        + HistoryStore
        + InboundStore
        + ReplyStore
        + InboundSourceStore
        + ExportStore
        + PrivacyStore
        + TrafficStore
        + OperationsStore
        + MonitoringStore
        + AlertStore
        + OptOutStore
        + PortedStore
        + TemplateStore
        + RequestLogStore
        + PollStore
{
}
