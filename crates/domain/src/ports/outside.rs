//! The world outside: carriers, receivers of callbacks, which addresses may be called, and images.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::callback_url::CallbackUrl;
use crate::country::Country;
use crate::delivery::{Callback, CarrierRef, Delivery, Parcel, Receipt, Submitted};
use crate::interactive::ImageUrl;
use crate::lookup::HomeOperator;
use crate::msisdn::Msisdn;
use crate::network::Network;

/// A way to a network.
#[async_trait]
pub trait Carrier: Send + Sync + 'static {
    /// Its name in configuration, receipts and lists.
    fn name(&self) -> &str;

    /// How many messages may be with it at once whose answers are not stored yet: after a crash so many may be sent
    /// twice, and no more.
    fn window(&self) -> usize;

    /// Hands a message over and waits for the answer.
    async fn submit(&self, parcel: &Parcel) -> Submitted;
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
    /// Takes a receipt; when this returns `Ok`, it is stored and the carrier may forget it.
    async fn receive(&self, receipt: Receipt) -> Result<(), ReceiptError>;

    /// Takes the news that the recipient of a part has seen it, after its receipt was taken.
    async fn seen(&self, of: CarrierRef, at: Timestamp) -> Result<(), ReceiptError>;
}

/// The way to those who asked for reports.
#[async_trait]
pub trait CallbackSender: Send + Sync + 'static {
    /// Tries once, signed with the account's secret.
    async fn deliver(&self, callback: &Callback, secret: &str, now: Timestamp) -> Delivery;
}

/// An address that callbacks may not go to. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ForbiddenUrl(pub String);

/// Decides which addresses may be called back.
#[async_trait]
pub trait UrlGuard: Send + Sync + 'static {
    /// Whether an address that a caller gives may be called, as far as can be told now.
    async fn check(&self, url: &CallbackUrl) -> Result<(), ForbiddenUrl>;
}

/// An image that cannot go with a message. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableImage(pub String);

/// Finds out whether there is an image at an address.
#[async_trait]
pub trait ImageGuard: Send + Sync + 'static {
    /// Whether the address leads to an image that a message may have: it can be fetched, is small enough, and is what
    /// the networks show. It takes no longer than a caller can be kept waiting.
    async fn check(&self, url: &ImageUrl) -> Result<(), UnusableImage>;
}
