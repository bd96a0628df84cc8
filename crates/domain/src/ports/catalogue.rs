//! Catalogues, imported as a whole: reference data, price lists, routing rules. Every version is stored.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{AuditStore, StoreError};
use crate::billing::Priced;
use crate::ids::AccountId;
use crate::message::channel::Channel;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CatalogueKind {
    /// Mobile operators, networks and prefixes.
    Reference,
    /// A general price list.
    Rates(Priced),
    /// The prices for one account, where they differ.
    AccountRates(Priced, AccountId),
    /// The routing rules.
    Routes,
}

impl CatalogueKind {
    /// The stored form: the kind, and the account or 0.
    pub const fn numbers(self) -> (i16, i64) {
        match self {
            Self::Reference => (1, 0),
            Self::Rates(priced) => (rates(priced), 0),
            Self::AccountRates(priced, account) => (rates(priced), account.as_i64()),
            Self::Routes => (ROUTES, 0),
        }
    }

    pub fn from_numbers(kind: i16, account: i64) -> Option<Self> {
        match (kind, account) {
            (1, 0) => return Some(Self::Reference),
            (ROUTES, 0) => return Some(Self::Routes),
            _ => {}
        }
        let priced = Priced::ALL
            .into_iter()
            .find(|priced| rates(*priced) == kind)?;
        match account {
            0 => Some(Self::Rates(priced)),
            account => Some(Self::AccountRates(priced, AccountId::from_i64(account)?)),
        }
    }
}

const ROUTES: i16 = 5;

const fn rates(priced: Priced) -> i16 {
    match priced {
        Priced::Channel(Channel::Sms) => 2,
        Priced::Channel(Channel::Viber) => 3,
        Priced::Channel(Channel::Hlr) => 4,
        Priced::Inbound => 6,
    }
}

/// A version of a catalogue, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueEntry {
    pub kind: CatalogueKind,
    /// Increases with each import, from 1.
    pub version: u32,
    pub at: Timestamp,
    /// The number of rows, as the import counted them.
    pub rows: u32,
}

/// A version with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    pub entry: CatalogueEntry,
    /// The text in the format of its importer.
    pub content: String,
}

/// Reference data, price lists and routing rules.
#[async_trait]
pub trait CatalogueStore: AuditStore {
    /// The newest version of every catalogue. Cheap: nodes ask several times a second. Kinds that this program does not
    /// know are left out.
    async fn list_newest(&self) -> Result<Vec<CatalogueEntry>, StoreError>;

    /// All versions of a catalogue, the newest first.
    async fn list_versions(&self, kind: CatalogueKind) -> Result<Vec<CatalogueEntry>, StoreError>;

    async fn find_catalogue(
        &self,
        kind: CatalogueKind,
        version: u32,
    ) -> Result<Option<Catalogue>, StoreError>;

    /// Adds the version after `previous` (0 if there is none). `false` if somebody else has imported in the meantime,
    /// and nothing was changed.
    async fn import(
        &self,
        kind: CatalogueKind,
        previous: u32,
        content: &str,
        rows: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
}
