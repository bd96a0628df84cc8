//! The outside world: carriers, receivers of callbacks, the guard over URLs, and images.

use std::net::IpAddr;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::callback_url::CallbackUrl;
use crate::delivery::receiver::ReceiverId;
use crate::delivery::{Callback, CarrierAnswer, CarrierRef, Delivery, QueuedMessage, Receipt};
use crate::ids::{AccountId, MessageId};
use crate::inbound::assembly::WholeText;
use crate::inbound::header::Concatenation;
use crate::inbound::number::InboundNumber;
use crate::inbound::text::Alphabet;
use crate::message::interactive::ImageUrl;
use crate::message::lookup::HomeOperator;
use crate::message::text::Udh;
use crate::number::country::Country;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;
use crate::oauth::ClientIdUrl;
use crate::person::Email;
use crate::ports::DeliveredCopy;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    Up,
    /// It takes messages, but more slowly than it should: some of its links are down, or it throttles us.
    Strained,
    Down,
}

impl Health {
    const ALL: [Self; 3] = [Self::Up, Self::Strained, Self::Down];

    /// The name in lists and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Strained => "strained",
            Self::Down => "down",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|health| health.name() == name)
    }
}

/// The state of a carrier, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierState {
    pub health: Health,
    pub links_up: u16,
    /// How many links this node should have; 0 if there is nothing to connect, or other nodes have them all.
    pub links: u16,
    /// How many links all nodes together should have; 0 if there is nothing to connect.
    pub links_total: u16,
    /// Why it is not up. It never contains a secret.
    pub note: Option<String>,
}

/// A connection to a network. It connects and delivers receipts by itself as soon as it is built.
#[async_trait]
pub trait Carrier: Send + Sync + 'static {
    /// The name in the configuration, receipts and lists.
    fn name(&self) -> &str;

    /// How many parts it may have whose answers are not stored yet: after a crash at most this many are sent twice.
    /// Changes with its binds.
    fn window(&self) -> usize;

    /// Read for every message, so it must be cheap.
    fn health(&self) -> Health;

    /// The health with its reasons.
    fn state(&self) -> CarrierState;

    /// How many binds all nodes share; 0 if there is nothing to bind. The carrier has none until
    /// [`Self::allow_binds`] gives it some.
    fn binds(&self) -> u16 {
        0
    }

    /// Sets how many binds this node may have from now on. Surplus ones are closed gracefully: they get no new parts,
    /// and their answers are waited for.
    fn allow_binds(&self, _binds: u16) {}

    /// How many binds are not closed: the allowed ones, connected or not, and those that are still closing.
    fn open_binds(&self) -> u16 {
        0
    }

    /// Returns when a message handed over now would be sent soon: a carrier with a limited rate must not hold messages
    /// for long that other accounts may overtake. `handed` parts were handed over since the last call.
    async fn ready(&self, _handed: u32) {}

    /// Hands over a message and waits for the answer. At most [`Self::window`] parts are in flight.
    async fn submit(&self, queued: &QueuedMessage) -> CarrierAnswer;

    /// Disconnects gracefully. No message is in flight by then, and no receipt follows.
    async fn stop(&self);
}

/// What the first digits of a number tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HomeNetwork {
    pub country: Option<Country>,
    /// The mobile operator that first had the number.
    pub operator: Option<HomeOperator>,
    /// That mobile operator's main network.
    pub network: Option<Network>,
}

/// What is known about numbers without asking a network.
pub trait NumberLocator: Send + Sync + 'static {
    fn locate(&self, number: &Msisdn) -> HomeNetwork;

    /// The mobile operator of a network.
    fn operator_of(&self, network: Network) -> Option<HomeNetwork>;

    /// Another mobile operator of the same country, for a ported number.
    fn other_operator(&self, home: &HomeNetwork) -> Option<HomeNetwork>;
}

/// Why a receipt was not accepted. The carrier keeps it and sends it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    #[error("too many receipts wait to be stored")]
    Busy,
    #[error("the service is shutting down")]
    Stopping,
    #[error("the receipt could not be stored")]
    Store,
}

/// Receives the receipts of carriers.
#[async_trait]
pub trait ReceiptSink: Send + Sync + 'static {
    /// Stores a receipt; after `Ok`, the carrier may forget it. `false` if the reference is unknown so far; the receipt
    /// is then stored until a part has it.
    async fn receive(&self, receipt: Receipt) -> Result<bool, ReceiptError>;

    /// Stores that the recipient has seen a part, after its receipt was stored.
    async fn mark_seen(&self, of: CarrierRef, at: Timestamp) -> Result<(), ReceiptError>;
}

/// A message from a handset, or a part of one, as a carrier delivered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandsetText {
    pub carrier: String,
    /// The sender, with `+` if it is a phone number.
    pub from: String,
    pub to: InboundNumber,
    /// `None` for a whole text.
    pub concatenation: Option<Concatenation>,
    pub alphabet: Alphabet,
    pub octets: Vec<u8>,
    /// What the header holds besides concatenation.
    pub udh: Option<Udh>,
}

/// A whole message from a handset, as another service received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardedText {
    pub carrier: String,
    /// The sender, with `+` if it is a phone number.
    pub from: String,
    pub to: InboundNumber,
    pub whole: WholeText,
    /// What the header holds besides concatenation.
    pub udh: Option<Udh>,
    /// How many parts were announced.
    pub parts: u8,
}

/// Receives messages from handsets.
#[async_trait]
pub trait HandsetSink: Send + Sync + 'static {
    /// Stores a message once; after `Ok`, the carrier may forget it. `source` is a hash of the carrier and its ID of the
    /// message: the same one is recognised however late it comes again, and on every node.
    async fn receive_once(&self, source: [u8; 16], text: ForwardedText)
    -> Result<(), ReceiptError>;

    /// Stores a text; after `Ok`, the carrier may forget it.
    async fn receive(&self, copy: DeliveredCopy, text: HandsetText) -> Result<(), ReceiptError>;

    /// Notes that the carrier got the answers to these copies, by session and number.
    fn confirm(&self, copies: &[(i64, i64)]);

    /// Notes that a session has ended: what it delivered and was not confirmed may come again.
    fn end_session(&self, session: i64);
}

/// A request that a carrier sent by HTTP.
#[derive(Debug, Clone, Copy, Default)]
pub struct CarrierPost<'a> {
    /// Names in lower case.
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

impl<'a> CarrierPost<'a> {
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(header, _)| *header == name);
        found.map(|(_, value)| *value)
    }
}

/// The result of a report that a carrier sent by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportResult {
    /// It is stored, or there is nothing to store. The carrier need not send it again.
    Yes,
    /// A text from a handset is stored. The answer must be empty: some carriers send back whatever it says.
    TextStored,
    /// It cannot be stored now. The carrier sends it again.
    NotNow,
    /// This service did not make the URL for reports of an upstream.
    UnknownAddress,
    /// There is no such carrier, or nothing proves that it sent this.
    Unproven,
    /// It is not a report, for this reason.
    NotAReport(String),
}

/// Accepts the reports and the texts from handsets that carriers send by HTTP.
#[async_trait]
pub trait CarrierReports: Send + Sync + 'static {
    /// Accepts a report about a message. `proof` is the end of the URL that it was sent to, which only this service can
    /// make.
    async fn take(
        &self,
        carrier: &str,
        message: MessageId,
        proof: &str,
        post: CarrierPost<'_>,
    ) -> ReportResult;

    /// Accepts a text from a handset. `proof` is the end of the carrier's URL for such texts.
    async fn take_text(&self, carrier: &str, proof: &str, post: CarrierPost<'_>) -> ReportResult;
}

/// Sends callbacks.
#[async_trait]
pub trait CallbackSender: Send + Sync + 'static {
    /// Makes one attempt, signed with each of the account's secrets.
    async fn deliver(&self, callback: &Callback, secrets: &[&str], now: Timestamp) -> Delivery;

    /// Whether this node can reach a receiver now. An SMPP user can be reached only where it has a session.
    fn can_reach(&self, receiver: ReceiverId) -> bool {
        !receiver.is_smpp()
    }
}

/// A URL that callbacks may not go to. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ForbiddenUrl(pub String);

/// Decides which URLs may be called.
#[async_trait]
pub trait UrlGuard: Send + Sync + 'static {
    /// Checks a caller's URL, as far as that is possible now. The work counts against the caller's account, so that
    /// other accounts do not wait for it.
    async fn check(&self, asker: AccountId, url: &CallbackUrl) -> Result<(), ForbiddenUrl>;
}

/// An image that a message cannot have. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableImage(pub String);

/// Checks the images of messages.
#[async_trait]
pub trait ImageGuard: Send + Sync + 'static {
    /// Checks that the URL leads to an image that a message may have: it can be fetched, is small enough, and has a
    /// format that the networks show. It finishes while the caller waits. The work counts against the caller's account,
    /// so that other accounts do not wait for it.
    async fn check(&self, asker: AccountId, url: &ImageUrl) -> Result<(), UnusableImage>;
}

/// A client's metadata document that cannot be fetched. The text is for the person who came from the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableDocument(pub String);

/// Fetches the metadata documents of clients from the URL that is their ID.
#[async_trait]
pub trait ClientDocuments: Send + Sync + 'static {
    /// The JSON at the URL, unchanged. It is small, and fetched while a person waits. The fetch counts against the
    /// address of that person, so that others do not wait for it.
    async fn fetch(&self, asker: IpAddr, id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    pub free_bytes: u64,
    pub size_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineState {
    /// The disk of the data folder, if it can be asked.
    pub disk: Option<DiskSpace>,
    /// When the certificate of the listener expires; `None` without TLS.
    pub certificate_expires_at: Option<Timestamp>,
}

/// The machine that the process runs on.
pub trait Machine: Send + Sync + 'static {
    /// May take as long as the disk takes to answer.
    fn state(&self) -> MachineState;
}

/// A signed request with a notification.
#[derive(Clone, Copy)]
pub struct SignedPost<'a> {
    pub url: &'a CallbackUrl,
    /// The ID in the header, the same for each attempt.
    pub id: &'a str,
    pub secrets: &'a [&'a str],
    pub body: &'a str,
    /// Whether the operator configured the URL: then it may be any address.
    pub is_operators: bool,
}

/// Sends notifications over HTTP.
#[async_trait]
pub trait NotificationSender: Send + Sync + 'static {
    /// Makes one attempt. The error says why it failed, without the URL.
    async fn post(&self, post: SignedPost<'_>, now: Timestamp) -> Result<(), String>;
}

/// An e-mail.
#[derive(Clone, Copy)]
pub struct Mail<'a> {
    pub to: &'a Email,
    pub subject: &'a str,
    pub text: &'a str,
}

/// Sends e-mail.
#[async_trait]
pub trait Mailer: Send + Sync + 'static {
    /// Makes one attempt, which takes a bounded time. The error says why it failed, without the address.
    async fn send(&self, mail: Mail<'_>) -> Result<(), String>;
}
