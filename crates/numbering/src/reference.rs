//! Looks up the country, operator and network of a number.
//!
//! The data comes from four CSV files in `reference-data/`, compiled in and read once at start. An installation can
//! import its own files in the same format. Everything is kept in memory: a lookup takes well under a microsecond and
//! allocates nothing.
//!
//! A prefix belongs to an operator, an area to a country; the longest match wins. Ported numbers keep their digits, so
//! the operator found is the one that the number was first assigned to.

mod by_country;
mod difference;
mod entries;
mod problem;
mod read;
mod records;
mod trie;

use std::collections::{BTreeMap, HashMap};

use domain::{Country, Msisdn, Network};

use self::by_country::ByCountry;
pub use self::difference::{Changes, Difference, TooManyRowsRemoved, difference};
pub use self::entries::{Location, NetworkEntry, NetworkStatus, Operator, OperatorId, Prefix};
pub use self::problem::{Fault, File, Problem};
use self::read::{Area, OperatorRow, Tables};
use self::trie::Trie;

#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// `operators.csv`: `id,country,name`.
    pub operators: &'a str,
    /// `networks.csv`: `mcc,mnc,country,operator_id,name,status`.
    pub networks: &'a str,
    /// `prefixes.csv`: `prefix,country,operator_id`.
    pub prefixes: &'a str,
    /// `areas.csv`: `prefix,country`.
    pub areas: &'a str,
}

impl Files<'static> {
    /// The files that are compiled in.
    pub const EMBEDDED: Self = Self {
        operators: include_str!("../../../reference-data/operators.csv"),
        networks: include_str!("../../../reference-data/networks.csv"),
        prefixes: include_str!("../../../reference-data/prefixes.csv"),
        areas: include_str!("../../../reference-data/areas.csv"),
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub operators: usize,
    /// Each network counts once for every territory that it serves.
    pub networks: usize,
    pub prefixes: usize,
    pub areas: usize,
}

pub struct Reference {
    /// Ascending by ID.
    operators: Box<[Operator]>,
    /// Within a country by MCC, MNC and operator.
    networks: ByCountry<NetworkEntry>,
    /// Within a country ascending.
    prefixes: ByCountry<Prefix>,
    /// Ascending.
    areas: Box<[Area]>,
    /// Positions in `networks`, ascending by network.
    by_network: Box<[u32]>,
    /// Positions in `operators` by country and name in lower case.
    by_name: HashMap<(Country, Box<str>), u32>,
    /// The values of `prefix_lookup` and `area_lookup` are indexes of this list.
    locations: Box<[Location]>,
    prefix_lookup: Trie,
    area_lookup: Trie,
}

impl Reference {
    /// Reads the compiled-in files, which takes a few milliseconds.
    pub fn embedded() -> Self {
        Self::parse(&Files::EMBEDDED).expect("the tests read the same files")
    }

    /// Reads files of the same format. Returns at most a hundred problems.
    pub fn parse(files: &Files<'_>) -> Result<Self, Vec<Problem>> {
        read::read(files).map(Self::index)
    }

    fn index(tables: Tables) -> Self {
        let networks = ByCountry::new(
            tables.networks,
            |entry| entry.country,
            |entry| (entry.network, entry.operator),
        );
        let prefixes = ByCountry::new(tables.prefixes, |entry| entry.country, |entry| entry.prefix);
        let mut areas = tables.areas;
        areas.sort_unstable_by_key(|area| area.prefix);
        let operators = with_networks(tables.operators, networks.all());
        Self {
            prefix_lookup: prefix_lookup(prefixes.all(), &operators),
            area_lookup: area_lookup(&areas, &operators),
            locations: locations(&operators, &areas),
            by_network: by_network(networks.all()),
            by_name: by_name(&operators),
            areas: areas.into(),
            operators,
            networks,
            prefixes,
        }
    }

    /// The location of a number: operator, country and the operator's main network if a prefix is known, else the
    /// country.
    pub fn locate(&self, number: &Msisdn) -> Location {
        let digits = number.digits().as_bytes();
        self.prefix_lookup
            .find(digits)
            .or_else(|| self.area_lookup.find(digits))
            .map_or_else(Location::default, |location| {
                self.locations[location as usize]
            })
    }

    pub fn counts(&self) -> Counts {
        Counts {
            operators: self.operators.len(),
            networks: self.networks.all().len(),
            prefixes: self.prefixes.all().len(),
            areas: self.areas.len(),
        }
    }

    /// The prefixes that start with these digits, and those that these digits start with. Scans all prefixes.
    pub fn prefixes_matching<'a>(&'a self, digits: &'a str) -> impl Iterator<Item = &'a Prefix> {
        self.prefixes.all().iter().filter(move |entry| {
            let prefix = entry.prefix.to_string();
            prefix.starts_with(digits) || digits.starts_with(&prefix)
        })
    }

    pub fn operator(&self, id: OperatorId) -> Option<&Operator> {
        position_of(&self.operators, id).map(|position| &self.operators[position as usize])
    }

    /// All operators, ascending by ID.
    pub fn operators(&self) -> &[Operator] {
        &self.operators
    }

    /// Finds an operator of a country by name, ignoring case.
    pub fn operator_named(&self, country: Country, name: &str) -> Option<&Operator> {
        self.by_name
            .get(&(country, name.to_lowercase().into()))
            .map(|&position| &self.operators[position as usize])
    }

    /// The entries of a network: several if territories or operators share it, none if it is unknown.
    pub fn find_network(&self, network: Network) -> impl Iterator<Item = &NetworkEntry> {
        let entries = self.networks.all();
        let start = self
            .by_network
            .partition_point(|&position| entries[position as usize].network < network);
        self.by_network[start..]
            .iter()
            .map(|&position| &entries[position as usize])
            .take_while(move |entry| entry.network == network)
    }

    /// The networks of a country, by MCC, MNC and operator.
    pub fn networks(&self, country: Country) -> &[NetworkEntry] {
        self.networks.get(country)
    }

    /// The prefixes of a country, ascending.
    pub fn prefixes(&self, country: Country) -> &[Prefix] {
        self.prefixes.get(country)
    }

    /// The MCC with the most operational networks of a country; the lowest if several have as many.
    pub fn main_mcc(&self, country: Country) -> Option<u16> {
        main_mcc(self.networks(country))
    }
}

/// The MCC with the most operational networks; the lowest if several have as many.
fn main_mcc<'a>(networks: impl IntoIterator<Item = &'a NetworkEntry>) -> Option<u16> {
    let mut operational: BTreeMap<u16, usize> = BTreeMap::new();
    for entry in networks {
        *operational.entry(entry.network.mcc()).or_default() +=
            usize::from(entry.status == NetworkStatus::Operational);
    }
    // `max_by_key` returns the last maximum, so the lowest MCC has to come last.
    let most = operational
        .into_iter()
        .rev()
        .max_by_key(|&(_, count)| count);
    most.map(|(mcc, _)| mcc)
}

/// Adds to each operator its networks, in ascending order.
fn with_networks(operators: Vec<OperatorRow>, networks: &[NetworkEntry]) -> Box<[Operator]> {
    let mut by_operator: HashMap<OperatorId, Vec<&NetworkEntry>> = HashMap::new();
    for entry in networks {
        by_operator.entry(entry.operator).or_default().push(entry);
    }
    operators
        .into_iter()
        .map(|row| {
            let own = by_operator.get(&row.id).map_or(&[][..], Vec::as_slice);
            with_own_networks(row, own)
        })
        .collect()
}

fn with_own_networks(row: OperatorRow, networks: &[&NetworkEntry]) -> Operator {
    let mcc = main_mcc(networks.iter().copied());
    let in_main_mcc = || {
        networks
            .iter()
            .filter(|entry| Some(entry.network.mcc()) == mcc)
    };
    let main = in_main_mcc()
        .find(|entry| entry.status == NetworkStatus::Operational)
        .or_else(|| in_main_mcc().next());
    Operator {
        id: row.id,
        country: row.country,
        name: row.name,
        main: main.map(|entry| entry.network),
        networks: in_main_mcc().map(|entry| entry.network).collect(),
    }
}

/// The locations of all operators, then those of all areas.
fn locations(operators: &[Operator], areas: &[Area]) -> Box<[Location]> {
    let of_operators = operators.iter().map(|operator| Location {
        country: operator.country,
        operator: Some(operator.id),
        network: operator.main,
    });
    let of_areas = areas.iter().map(|area| Location {
        country: Some(area.country),
        ..Location::default()
    });
    of_operators.chain(of_areas).collect()
}

/// Maps each prefix to the location of its operator.
fn prefix_lookup(prefixes: &[Prefix], operators: &[Operator]) -> Trie {
    Trie::new(prefixes.iter().map(|entry| {
        let operator = position_of(operators, entry.operator);
        let operator = operator.expect("reading checked every operator");
        (entry.prefix, operator)
    }))
}

/// Maps each area to its location. Locations of areas follow those of the operators.
fn area_lookup(areas: &[Area], operators: &[Operator]) -> Trie {
    let locations = as_position(operators.len())..;
    Trie::new(areas.iter().map(|area| area.prefix).zip(locations))
}

fn position_of(operators: &[Operator], id: OperatorId) -> Option<u32> {
    let position = operators.binary_search_by_key(&id, |operator| operator.id);
    position.ok().map(as_position)
}

/// A position takes half the memory of a `usize`.
fn as_position(index: usize) -> u32 {
    u32::try_from(index).expect("a file that fits in memory has fewer rows")
}

fn by_network(entries: &[NetworkEntry]) -> Box<[u32]> {
    let mut positions: Box<[u32]> = (0..as_position(entries.len())).collect();
    positions.sort_by_key(|&position| entries[position as usize].network);
    positions
}

fn by_name(operators: &[Operator]) -> HashMap<(Country, Box<str>), u32> {
    (0..)
        .zip(operators)
        .filter_map(|(position, operator)| {
            let name = operator.name.to_lowercase().into();
            operator.country.map(|country| ((country, name), position))
        })
        .collect()
}

#[cfg(test)]
mod tests;
