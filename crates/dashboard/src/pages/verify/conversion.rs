//! How many codes were entered, by prefix and by network.

use std::collections::HashMap;

use domain::ports::StoreError;
use domain::verify::{Conversion, NetworkConversion, PrefixConversion};
use domain::{AccountId, Country, Network};

use crate::Dashboard;
use crate::kit::format::{count, percent};
use crate::kit::location::Locations;

/// The tables.
pub(crate) struct Conversions {
    pub(crate) prefixes: Vec<PrefixRow>,
    pub(crate) networks: Vec<NetworkRow>,
    /// Whether the rows are those of every account.
    pub(crate) is_for_all: bool,
}

pub(crate) struct PrefixRow {
    /// Empty in the table of one account.
    pub(crate) account: String,
    pub(crate) prefix: String,
    pub(crate) country: &'static str,
    pub(crate) counts: Counts,
    pub(crate) is_slowed: bool,
}

pub(crate) struct NetworkRow {
    /// MCC and MNC.
    pub(crate) network: String,
    pub(crate) place: String,
    pub(crate) counts: Counts,
}

pub(crate) struct Counts {
    pub(crate) sent: String,
    pub(crate) approved: String,
    pub(crate) share: String,
}

impl Counts {
    fn new(conversion: Conversion) -> Self {
        let (sent, approved) = (conversion.sent.into(), conversion.approved.into());
        Self {
            sent: count(sent),
            approved: count(approved),
            share: percent(approved, sent),
        }
    }
}

impl Dashboard {
    /// The conversion of one account, or of all, with at most this many rows in each table.
    pub(crate) async fn conversions(
        &self,
        account: Option<AccountId>,
        limit: u32,
    ) -> Result<Conversions, StoreError> {
        let conversions = self.engine.verify.conversions();
        let mut prefixes = conversions.list(account, limit).await?;
        let networks = conversions.networks(account, limit).await?;
        let names = if account.is_some() {
            HashMap::new()
        } else {
            let ids = prefixes.iter().map(|one| one.account);
            self.engine.accounts.names(ids).await?
        };
        prefixes.sort_by_key(|one| !one.is_slowed());
        let live = self.engine.catalogues.live();
        let locations = Locations::new(&live);
        let prefix = |one: &PrefixConversion| PrefixRow {
            account: names.get(&one.account).cloned().unwrap_or_default(),
            prefix: format!("+{}", one.prefix),
            country: country(&locations, one.network, one.country).unwrap_or("Unknown"),
            counts: Counts::new(one.conversion),
            is_slowed: one.is_slowed(),
        };
        Ok(Conversions {
            prefixes: prefixes.iter().map(prefix).collect(),
            networks: networks
                .iter()
                .map(|one| NetworkRow::new(one, &locations))
                .collect(),
            is_for_all: account.is_none(),
        })
    }
}

impl NetworkRow {
    fn new(one: &NetworkConversion, locations: &Locations<'_>) -> Self {
        let codes = |network: Network| format!("{:03} {}", network.mcc(), network.mnc());
        Self {
            network: one.network.map_or_else(|| "Unknown".to_owned(), codes),
            place: match one.network {
                Some(network) => locations.words(None, Some(network)),
                None => one.country.map_or("", Country::short_name).to_owned(),
            },
            counts: Counts::new(one.conversion),
        }
    }
}

fn country(
    locations: &Locations<'_>,
    network: Option<Network>,
    country: Option<Country>,
) -> Option<&'static str> {
    let of_network = locations.country(None, network);
    of_network.or_else(|| country.map(Country::short_name))
}
