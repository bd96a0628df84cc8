//! What a message costs: the general price list and the prices of single accounts.
//!
//! The price of a destination is that of its network, else of its mobile operator, else of its country, else the one
//! for all other countries. An account's own list takes precedence.

mod difference;
mod read;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use domain::{AccountId, Channel, Country, Money, Network};
use numbering::reference::{Location, OperatorId, Reference};

pub use difference::PriceDifference;
pub use read::{Format, PriceProblem};
pub use write::push_cell;

/// A row of a price list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceRow {
    /// `None` in the row for all other countries.
    pub country: Option<Country>,
    /// The mobile operator's name, or a word for a default.
    pub operator: String,
    /// The network's name, or a word for a default.
    pub network: String,
    /// `None` if the country has no network.
    pub mcc: Option<u16>,
    /// `None` in a default row or the row of an operator.
    pub mnc: Option<String>,
    /// The price of one part.
    pub rate: Money,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Network(Country, Network),
    Operator(OperatorId),
    Country(Country),
    Elsewhere,
}

/// A price list, indexed for lookups.
#[derive(Debug, Default)]
pub struct PriceList {
    rows: Vec<PriceRow>,
    keys: Vec<Key>,
    prices: HashMap<Key, Money>,
}

impl PriceList {
    /// The rows by country, MCC and MNC; the default of a country follows its networks.
    pub fn rows(&self) -> &[PriceRow] {
        &self.rows
    }

    /// The price of one part.
    pub fn price(&self, location: &Location) -> Option<Money> {
        let network = location.country.zip(location.network);
        let keys = [
            network.map(|(country, network)| Key::Network(country, network)),
            location.operator.map(Key::Operator),
            location.country.map(Key::Country),
            Some(Key::Elsewhere),
        ];
        let mut keys = keys.into_iter().flatten();
        keys.find_map(|key| self.prices.get(&key).copied())
    }

    fn from_rows(mut keyed: Vec<(Key, PriceRow)>) -> Self {
        keyed.sort_by(|(a, x), (b, y)| sort_key(*a, x).cmp(&sort_key(*b, y)));
        let prices = keyed.iter().map(|(key, row)| (*key, row.rate)).collect();
        let (keys, rows) = keyed.into_iter().unzip();
        Self { rows, keys, prices }
    }

    /// This list with the rows of another one added; those replace rows for the same destination.
    #[must_use]
    pub fn overlaid_by(&self, other: &Self) -> Self {
        let keyed = |list: &Self| -> Vec<(Key, PriceRow)> {
            list.keys
                .iter()
                .copied()
                .zip(list.rows.iter().cloned())
                .collect()
        };
        let mut rows = keyed(self);
        rows.retain(|(key, _)| !other.prices.contains_key(key));
        rows.extend(keyed(other));
        Self::from_rows(rows)
    }
}

/// Sorts countries by code, and the row for all others last.
fn sort_key(key: Key, row: &PriceRow) -> impl Ord + '_ {
    let country = row.country.map_or("~", |_| "");
    let code = row.country;
    let default = matches!(key, Key::Country(_) | Key::Elsewhere);
    (
        country,
        code,
        default,
        row.mcc,
        &row.mnc,
        &row.operator,
        &row.network,
    )
}

/// The prices in force of one channel, or of messages from handsets.
#[derive(Debug, Clone)]
pub struct Prices {
    /// The general list.
    pub list: Arc<PriceList>,
    /// The accounts' own prices.
    pub of_account: HashMap<AccountId, Arc<PriceList>>,
    /// Whether nothing was imported yet, so that the general list is the built-in demonstration.
    pub is_demonstration: bool,
}

impl Prices {
    /// What one part, Viber message or lookup costs this account; `None` if that destination is not offered, or if a
    /// message from there is free.
    pub fn price(&self, account: AccountId, location: &Location) -> Option<Money> {
        let own = || self.of_account.get(&account)?.price(location);
        own().or_else(|| self.list.price(location))
    }

    /// The list as it applies to this account.
    pub fn list_of(&self, account: AccountId) -> Arc<PriceList> {
        match self.of_account.get(&account) {
            None => self.list.clone(),
            Some(own) => Arc::new(self.list.overlaid_by(own)),
        }
    }
}

/// The list that applies until one is imported: SMS prices by network, one price for everything else.
pub(crate) fn demonstration(channel: Channel, reference: &Reference) -> PriceList {
    let csv = match channel {
        Channel::Sms => include_str!("../../../../reference-data/demonstration-rates.csv"),
        Channel::Viber => {
            "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n,,Default,Default,,,0.012\n"
        }
        Channel::Hlr => {
            "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n,,Default,Default,,,0.005\n"
        }
    };
    PriceList::read(csv, Format::Csv, reference)
        .expect("the list that comes with the program is valid")
}

#[cfg(test)]
mod tests;
