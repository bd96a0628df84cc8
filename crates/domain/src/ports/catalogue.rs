//! What is imported as a whole: reference data, price lists, rules of routing. Every version is kept.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::AccountId;
use crate::message::channel::Channel;

/// What a catalogue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CatalogueKind {
    /// Operators, networks and prefixes.
    Reference,
    /// The price list of a channel, everybody's.
    Rates(Channel),
    /// The prices of a channel that differ for one account.
    AccountRates(Channel, AccountId),
    /// Which messages go by which carriers.
    Routes,
}

impl CatalogueKind {
    /// The numbers that both databases keep: what it is, and whose.
    pub const fn numbers(self) -> (i16, i64) {
        match self {
            Self::Reference => (1, 0),
            Self::Rates(channel) => (rates(channel), 0),
            Self::AccountRates(channel, account) => (rates(channel), account.as_i64()),
            Self::Routes => (ROUTES, 0),
        }
    }

    /// Reads back the numbers.
    pub fn from_numbers(kind: i16, account: i64) -> Option<Self> {
        match (kind, account) {
            (1, 0) => return Some(Self::Reference),
            (ROUTES, 0) => return Some(Self::Routes),
            _ => {}
        }
        let channel = Channel::ALL
            .into_iter()
            .find(|channel| rates(*channel) == kind)?;
        match account {
            0 => Some(Self::Rates(channel)),
            account => Some(Self::AccountRates(channel, AccountId::from_i64(account)?)),
        }
    }
}

const ROUTES: i16 = 5;

const fn rates(channel: Channel) -> i16 {
    match channel {
        Channel::Sms => 2,
        Channel::Viber => 3,
        Channel::Hlr => 4,
    }
}

/// A catalogue's newest version, or one of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// Which catalogue.
    pub kind: CatalogueKind,
    /// Grows with each import of it, from 1.
    pub version: u32,
    /// When it was imported.
    pub at: Timestamp,
    /// How many rows it has, as the import counted them.
    pub rows: u32,
}

/// A version with what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// Which.
    pub entry: CatalogueEntry,
    /// The text, in the form that its reader gave it.
    pub content: String,
}

/// Reference data, price lists and rules of routing.
#[async_trait]
pub trait CatalogueStore: Send + Sync + 'static {
    /// The newest version of every catalogue that was ever imported. Cheap: nodes ask several times a
    /// second. Kinds that this version does not know are left out.
    async fn list_newest(&self) -> Result<Vec<CatalogueEntry>, StoreError>;

    /// All versions of a catalogue, the newest first.
    async fn list_versions(&self, kind: CatalogueKind) -> Result<Vec<CatalogueEntry>, StoreError>;

    /// One version; `None` when there is no such.
    async fn find_catalogue(
        &self,
        kind: CatalogueKind,
        version: u32,
    ) -> Result<Option<Catalogue>, StoreError>;

    /// Adds the version after `previous` (0 when there was none). `false`: somebody else imported in the meantime, and
    /// nothing was changed.
    async fn import(
        &self,
        kind: CatalogueKind,
        previous: u32,
        content: &str,
        rows: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
}
