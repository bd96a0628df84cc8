//! The country and network of a number, in words.

use domain::{Msisdn, Network};
use engine::catalogue::CatalogueSnapshot;

/// Finds the location of numbers in the reference data.
pub(crate) struct Locations<'a>(&'a CatalogueSnapshot);

impl<'a> Locations<'a> {
    pub(crate) fn new(live: &'a CatalogueSnapshot) -> Self {
        Self(live)
    }

    /// Country and network, as far as they are known: `Latvia, Tele2`.
    pub(crate) fn words(&self, to: Option<&Msisdn>, network: Option<Network>) -> String {
        let country = self.country(to, network);
        match (country, network.and_then(|network| self.operator(network))) {
            (Some(country), Some(operator)) => format!("{country}, {operator}"),
            (Some(name), None) => name.to_owned(),
            (None, Some(name)) => name,
            (None, None) => String::new(),
        }
    }

    /// Short enough for a table: `LV, Tele2`.
    pub(crate) fn short(&self, to: Option<&Msisdn>, network: Option<Network>) -> String {
        let entry = network.and_then(|network| self.0.reference.find_network(network).next());
        let country = entry.and_then(|entry| entry.country);
        let country = country.or_else(|| self.0.reference.locate(to?).country);
        match (country, entry) {
            (Some(country), Some(entry)) => format!("{country}, {}", entry.name),
            (Some(country), None) => country.to_string(),
            (None, Some(entry)) => entry.name.to_string(),
            (None, None) => String::new(),
        }
    }

    /// The name of the country.
    pub(crate) fn country(
        &self,
        to: Option<&Msisdn>,
        network: Option<Network>,
    ) -> Option<&'static str> {
        let located = || self.0.reference.locate(to?).country;
        let country = network.and_then(|network| self.country_of(network));
        country.or_else(|| located().map(domain::Country::short_name))
    }

    fn country_of(&self, network: Network) -> Option<&'static str> {
        let mut entries = self.0.reference.find_network(network);
        entries
            .find_map(|entry| entry.country)
            .map(domain::Country::short_name)
    }

    fn operator(&self, network: Network) -> Option<String> {
        let mut entries = self.0.reference.find_network(network);
        entries.next().map(|entry| entry.name.to_string())
    }
}
