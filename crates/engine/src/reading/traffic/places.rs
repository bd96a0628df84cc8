//! The networks and countries behind a group of an overview, for a search of its messages.

use domain::Country;
use domain::ports::Place;
use numbering::reference::{NetworkEntry, Reference};

/// Where messages of a country go.
pub fn country_places(reference: &Reference, country: Country) -> Vec<Place> {
    let mut places = network_places(reference, country, |_| true);
    places.push(Place::Country(country));
    places
}

/// Where messages of a mobile operator go; `None` if the country has no operator of this name.
pub fn operator_places(reference: &Reference, country: Country, name: &str) -> Option<Vec<Place>> {
    let is_named = |entry: &NetworkEntry| {
        let operator = reference.operator(entry.operator);
        operator.is_some_and(|operator| *operator.name == *name)
    };
    let places = network_places(reference, country, is_named);
    (!places.is_empty()).then_some(places)
}

/// Networks count in the country and for the operator of their first entry.
fn network_places(
    reference: &Reference,
    country: Country,
    is_wanted: impl Fn(&NetworkEntry) -> bool,
) -> Vec<Place> {
    let counts_here = |entry: &&NetworkEntry| {
        let first = reference.find_network(entry.network).next();
        first.is_some_and(|first| first.country == Some(country) && is_wanted(first))
    };
    let entries = reference.networks(country).iter().filter(counts_here);
    let mut places: Vec<Place> = entries.map(|entry| Place::Network(entry.network)).collect();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_has_its_networks_and_numbers_without_one() {
        let reference = Reference::embedded();
        let latvia = Country::parse("LV").expect("a country");
        let network = "24701".parse().expect("a network");
        let places = country_places(&reference, latvia);
        assert!(places.contains(&Place::Network(network)));
        assert!(places.contains(&Place::Country(latvia)));

        let entry = reference.find_network(network).next().expect("known");
        let operator = reference.operator(entry.operator).expect("known");
        let own = operator_places(&reference, latvia, &operator.name).expect("known");
        assert!(own.contains(&Place::Network(network)), "{own:?}");
        assert!(own.len() < places.len() && own.iter().all(|place| places.contains(place)));
        assert_eq!(operator_places(&reference, latvia, "Nobody"), None);
    }
}
