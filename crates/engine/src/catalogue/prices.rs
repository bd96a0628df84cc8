//! What a message costs: the price list, the prices that differ for one account, and how a list is read and written.
//!
//! The price of a destination is that of its network; else of its operator; else of its country; else the one for all
//! other countries. What an account's own list says wins over everybody's.

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
    /// Where; `None` in the row for all other countries.
    pub country: Option<Country>,
    /// The operator's name, or the words for a default.
    pub operator: String,
    /// The network's name, or the words for a default.
    pub network: String,
    /// The mobile country code; `None` where the country has no network.
    pub mcc: Option<u16>,
    /// The mobile network code; `None` in the row of an operator or a default.
    pub mnc: Option<String>,
    /// The price of one part.
    pub rate: Money,
}

/// What a row sets the price of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Network(Country, Network),
    Operator(OperatorId),
    Country(Country),
    Elsewhere,
}

/// A price list, ready to be asked.
#[derive(Debug, Default)]
pub struct PriceList {
    rows: Vec<PriceRow>,
    keys: Vec<Key>,
    prices: HashMap<Key, Money>,
}

impl PriceList {
    /// The rows: by country, then MCC and MNC, a default after the networks that it does not cover.
    pub fn rows(&self) -> &[PriceRow] {
        &self.rows
    }

    /// What one part costs there.
    pub fn price(&self, place: &Location) -> Option<Money> {
        let network = place.country.zip(place.network);
        let keys = [
            network.map(|(country, network)| Key::Network(country, network)),
            place.operator.map(Key::Operator),
            place.country.map(Key::Country),
            Some(Key::Elsewhere),
        ];
        let mut keys = keys.into_iter().flatten();
        keys.find_map(|key| self.prices.get(&key).copied())
    }

    fn of(mut keyed: Vec<(Key, PriceRow)>) -> Self {
        keyed.sort_by(|(a, x), (b, y)| place_of(*a, x).cmp(&place_of(*b, y)));
        let prices = keyed.iter().map(|(key, row)| (*key, row.rate)).collect();
        let (keys, rows) = keyed.into_iter().unzip();
        Self { rows, keys, prices }
    }

    /// This list with the rows of another in the place of its own, and those that it lacks.
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
        Self::of(rows)
    }
}

/// Where a row stands in the list: countries by their code, what is for all others last.
fn place_of(key: Key, row: &PriceRow) -> impl Ord + '_ {
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

/// The prices of a channel that are in force.
#[derive(Debug, Clone)]
pub struct Prices {
    /// Everybody's list.
    pub list: Arc<PriceList>,
    /// What differs for an account.
    pub of_account: HashMap<AccountId, Arc<PriceList>>,
    /// Whether nobody has imported a list yet, so that everybody's is the one that is only there to try things out.
    pub is_demonstration: bool,
}

impl Prices {
    /// What one part, one message or one lookup costs this account there; `None`: it cannot be had.
    pub fn price(&self, account: AccountId, place: &Location) -> Option<Money> {
        let own = || self.of_account.get(&account)?.price(place);
        own().or_else(|| self.list.price(place))
    }

    /// The list as this account sees it.
    pub fn list_of(&self, account: AccountId) -> Arc<PriceList> {
        match self.of_account.get(&account) {
            None => self.list.clone(),
            Some(own) => Arc::new(self.list.overlaid_by(own)),
        }
    }
}

/// The list that stands in until somebody imports one: for SMS by network, else one price for everywhere.
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
