//! The world outside: carriers, receivers of callbacks, which addresses may be called, and images.

use std::net::IpAddr;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::callback_url::CallbackUrl;
use crate::delivery::{Callback, CarrierRef, Delivery, Parcel, Receipt, Submitted};
use crate::ids::{AccountId, MessageId};
use crate::message::interactive::ImageUrl;
use crate::message::lookup::HomeOperator;
use crate::number::country::Country;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;
use crate::oauth::ClientIdUrl;

/// How a carrier does, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    /// It takes messages.
    Up,
    /// It takes messages, but slower than it should: some of its links are down, or it asked for less.
    Strained,
    /// It takes none.
    Down,
}

impl Health {
    const ALL: [Self; 3] = [Self::Up, Self::Strained, Self::Down];

    /// The word in lists and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Strained => "strained",
            Self::Down => "down",
        }
    }

    /// Reads the word back.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|health| health.name() == name)
    }
}

/// How a carrier does, for people who look after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierState {
    /// In a word.
    pub health: Health,
    /// How many of its links are up.
    pub links_up: u16,
    /// How many there should be here; 0 where there is nothing to connect, or all are other nodes'.
    pub links: u16,
    /// How many there should be, over all nodes; 0 where there is nothing to connect.
    pub links_total: u16,
    /// Why it is not simply up. No secret stands in it.
    pub note: Option<String>,
}

/// A way to a network. Built running: it connects and brings receipts by itself.
#[async_trait]
pub trait Carrier: Send + Sync + 'static {
    /// Its name in configuration, receipts and lists.
    fn name(&self) -> &str;

    /// How many parts may be with it at once whose answers are not stored yet: after a crash so many may be sent twice,
    /// and no more. Grows and shrinks with its binds.
    fn window(&self) -> usize;

    /// How it does. Asked for every message, so this must cost next to nothing.
    fn health(&self) -> Health;

    /// How it does, with the reasons.
    fn state(&self) -> CarrierState;

    /// How many binds there are to share out, over all nodes; 0 where there is nothing to bind. It has none until
    /// [`Self::allow_binds`] gives it some.
    fn binds(&self) -> u16 {
        0
    }

    /// How many binds this node may have from now on. What is above is closed in order: nothing new goes by it, what is
    /// under way is waited for.
    fn allow_binds(&self, _binds: u16) {}

    /// How many binds are not closed: those that it may have, connected or not, and those that are still on their end.
    fn open_binds(&self) -> u16 {
        0
    }

    /// Returns when a message handed over now would leave soon: a carrier that sends at a limited rate must not queue for
    /// long what other accounts may want to pass. `handed` parts were handed over since the last call.
    async fn ready(&self, _handed: u32) {}

    /// Hands a message over and waits for the answer. No more than [`Self::window`] parts are ever under way.
    async fn submit(&self, parcel: &Parcel) -> Submitted;

    /// Disconnects in order, and brings nothing more. No message is under way by then.
    async fn stop(&self);
}

/// What a number's first digits tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Home {
    /// The country.
    pub country: Option<Country>,
    /// The operator that the number was first given to.
    pub operator: Option<HomeOperator>,
    /// That operator's main network.
    pub network: Option<Network>,
}

/// What is known about numbers without asking a network.
pub trait NumberBook: Send + Sync + 'static {
    /// Where a number is at home.
    fn home(&self, number: &Msisdn) -> Home;

    /// Another operator of the same country, for a number that was ported.
    fn neighbour(&self, home: &Home) -> Option<Home>;
}

/// Why a receipt was not taken: the carrier keeps it and brings it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// Too many wait already.
    #[error("too many receipts wait to be stored")]
    Busy,
    /// The service is going down.
    #[error("the service is shutting down")]
    Stopping,
    /// The store could not.
    #[error("the receipt could not be stored")]
    Store,
}

/// Where a carrier brings its receipts.
#[async_trait]
pub trait ReceiptSink: Send + Sync + 'static {
    /// Takes a receipt; when this returns `Ok`, it is stored and the carrier may forget it. `false`: no part is known
    /// by that name yet, and it is kept until one is.
    async fn receive(&self, receipt: Receipt) -> Result<bool, ReceiptError>;

    /// Takes the news that the recipient of a part has seen it, after its receipt was taken.
    async fn seen(&self, of: CarrierRef, at: Timestamp) -> Result<(), ReceiptError>;
}

/// What becomes of a report that a carrier brings by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportTaken {
    /// It is stored, or there is nothing to store: the carrier need not bring it again.
    Yes,
    /// It cannot be stored now: the carrier brings it again.
    NotNow,
    /// There is no such carrier, or the address was not made by this service.
    UnknownAddress,
    /// It is not a report. The text says why.
    NotAReport(String),
}

/// Takes the reports of carriers that bring them by HTTP.
#[async_trait]
pub trait CarrierReports: Send + Sync + 'static {
    /// Takes a report on a message. `proof` is the end of the address that it was brought to: only this service can have
    /// made it.
    async fn take(
        &self,
        carrier: &str,
        message: MessageId,
        proof: &str,
        body: &[u8],
    ) -> ReportTaken;
}

/// The way to those who asked for reports.
#[async_trait]
pub trait CallbackSender: Send + Sync + 'static {
    /// Tries once, signed with each of the account's secrets.
    async fn deliver(&self, callback: &Callback, secrets: &[&str], now: Timestamp) -> Delivery;
}

/// An address that callbacks may not go to. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ForbiddenUrl(pub String);

/// Decides which addresses may be called back.
#[async_trait]
pub trait UrlGuard: Send + Sync + 'static {
    /// Whether an address that a caller gives may be called, as far as can be told now. The work counts for the caller's
    /// account, so that it does not keep others waiting.
    async fn check(&self, asker: AccountId, url: &CallbackUrl) -> Result<(), ForbiddenUrl>;
}

/// An image that cannot go with a message. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableImage(pub String);

/// Finds out whether there is an image at an address.
#[async_trait]
pub trait ImageGuard: Send + Sync + 'static {
    /// Whether the address leads to an image that a message may have: it can be fetched, is small enough, and is what
    /// the networks show. It takes no longer than a caller can be kept waiting. The work counts for the caller's account,
    /// so that it does not keep others waiting.
    async fn check(&self, asker: AccountId, url: &ImageUrl) -> Result<(), UnusableImage>;
}

/// A document about a client that cannot be had. The text is for whoever sent the client here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableDocument(pub String);

/// Fetches what clients say of themselves at the address that is their ID.
#[async_trait]
pub trait ClientDocuments: Send + Sync + 'static {
    /// The JSON at the address, as it came. It is small, and it takes no longer than a person can be kept waiting. The
    /// fetch counts for the address that asks, so that it does not keep others waiting.
    async fn fetch(&self, asker: IpAddr, id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument>;
}
