//! The reference data: its versions, and a search for numbers, prefixes, mobile operators and networks.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::ports::{CatalogueEntry, CatalogueKind};
use domain::{Country, Msisdn, Network};
use http::StatusCode;
use numbering::Reference;
use numbering::reference::{
    Location, NetworkEntry, Operator as MobileOperator, OperatorId, Prefix,
};

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Moment, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Operator;

const SHOWN: usize = 50;
const SHOWN_VERSIONS: usize = 20;

#[derive(Template)]
#[template(path = "operator/reference.html")]
struct ReferencePage {
    frame: Frame,
    versions: Vec<VersionRow>,
    operators: String,
    networks: String,
    prefixes: String,
    areas: String,
    asked: String,
    found: Option<Matches>,
}

struct VersionRow {
    number: u32,
    at: Moment,
    rows: String,
}

#[derive(Default)]
struct Matches {
    number: Option<LocationRow>,
    networks: Vec<NetworkRow>,
    operators: Vec<OperatorRow>,
    prefixes: Vec<PrefixRow>,
}

impl Matches {
    fn is_empty(&self) -> bool {
        self.number.is_none()
            && self.networks.is_empty()
            && self.operators.is_empty()
            && self.prefixes.is_empty()
    }
}

struct LocationRow {
    number: String,
    country: String,
    operator: String,
    network: String,
}

struct NetworkRow {
    code: String,
    name: String,
    country: String,
    operator: String,
    status: &'static str,
}

struct OperatorRow {
    id: u32,
    name: String,
    country: String,
    networks: String,
}

struct PrefixRow {
    prefix: u64,
    country: String,
    operator: String,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
    query: Query,
) -> Result<Response, Failure> {
    let catalogues = &dashboard.engine.catalogues;
    let history = catalogues.history(CatalogueKind::Reference).await?;
    let live = catalogues.live();
    let counts = live.reference.counts();
    let shown = |number: usize| count(number as u64);
    let page = ReferencePage {
        frame: operator.frame(),
        versions: history
            .iter()
            .take(SHOWN_VERSIONS)
            .map(VersionRow::from)
            .collect(),
        operators: shown(counts.operators),
        networks: shown(counts.networks),
        prefixes: shown(counts.prefixes),
        areas: shown(counts.areas),
        asked: query.text("asked").to_owned(),
        found: query
            .get("asked")
            .map(|asked| look_up(&live.reference, asked)),
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// Finds everything that a text may mean.
fn look_up(reference: &Reference, asked: &str) -> Matches {
    let digits: String = asked.chars().filter(char::is_ascii_digit).collect();
    let is_number = asked
        .chars()
        .all(|c| c.is_ascii_digit() || " +-().".contains(c));
    if is_number && !digits.is_empty() {
        by_digits(reference, &digits)
    } else {
        by_words(reference, asked)
    }
}

fn by_digits(reference: &Reference, digits: &str) -> Matches {
    let network = digits.parse::<Network>().ok();
    let networks = network.map(|network| reference.find_network(network));
    let id = digits.parse().ok().and_then(OperatorId::new);
    let operator = id.and_then(|id| reference.operator(id));
    let number = Msisdn::parse(digits).ok();
    Matches {
        number: number.map(|number| LocationRow::new(reference, &number)),
        networks: networks
            .into_iter()
            .flatten()
            .take(SHOWN)
            .map(|entry| NetworkRow::new(reference, entry))
            .collect(),
        operators: operator.into_iter().map(OperatorRow::from).collect(),
        prefixes: reference
            .prefixes_matching(digits)
            .take(SHOWN)
            .map(|entry| PrefixRow::new(reference, entry))
            .collect(),
    }
}

fn by_words(reference: &Reference, asked: &str) -> Matches {
    let wanted = asked.to_lowercase();
    let is_named = |one: &&MobileOperator| one.name.to_lowercase().contains(&wanted);
    let operators = reference.operators().iter().filter(is_named);
    let country = Country::parse(asked).ok();
    let networks = country.map_or(&[][..], |country| reference.networks(country));
    Matches {
        networks: networks
            .iter()
            .take(SHOWN)
            .map(|entry| NetworkRow::new(reference, entry))
            .collect(),
        operators: operators.take(SHOWN).map(OperatorRow::from).collect(),
        ..Matches::default()
    }
}

fn country_name(country: Option<Country>) -> String {
    country.map_or_else(|| "–".to_owned(), |country| country.short_name().to_owned())
}

fn operator_name(reference: &Reference, id: OperatorId) -> String {
    let name = reference.operator(id).map_or("", |operator| &operator.name);
    format!("{name} ({id})")
}

/// MCC and MNC, such as `247-01`.
pub(super) fn network_code(network: Network) -> String {
    format!("{:03}-{}", network.mcc(), network.mnc())
}

impl From<&CatalogueEntry> for VersionRow {
    fn from(entry: &CatalogueEntry) -> Self {
        Self {
            number: entry.version,
            at: entry.at.into(),
            rows: count(entry.rows.into()),
        }
    }
}

impl LocationRow {
    fn new(reference: &Reference, number: &Msisdn) -> Self {
        let Location {
            country,
            operator,
            network,
        } = reference.locate(number);
        let nothing = || "–".to_owned();
        Self {
            number: number.to_string(),
            country: country_name(country),
            operator: operator.map_or_else(nothing, |id| operator_name(reference, id)),
            network: network.map_or_else(nothing, network_code),
        }
    }
}

impl NetworkRow {
    fn new(reference: &Reference, entry: &NetworkEntry) -> Self {
        Self {
            code: network_code(entry.network),
            name: entry.name.to_string(),
            country: country_name(entry.country),
            operator: operator_name(reference, entry.operator),
            status: entry.status.as_str(),
        }
    }
}

impl From<&MobileOperator> for OperatorRow {
    fn from(operator: &MobileOperator) -> Self {
        let networks = operator.networks.iter();
        let networks: Vec<String> = networks.map(|network| network_code(*network)).collect();
        Self {
            id: operator.id.get(),
            name: operator.name.to_string(),
            country: country_name(operator.country),
            networks: networks.join(", "),
        }
    }
}

impl PrefixRow {
    fn new(reference: &Reference, entry: &Prefix) -> Self {
        Self {
            prefix: entry.prefix,
            country: country_name(entry.country),
            operator: operator_name(reference, entry.operator),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_everything_that_it_may_mean() {
        let reference = Reference::embedded();
        for (asked, number, networks, operators, prefixes) in [
            ("+371 2000 0001", true, false, false, true),
            ("247-01", false, true, false, false),
            ("LMT", false, false, true, false),
            ("lv", false, true, true, false),
            ("no such operator anywhere", false, false, false, false),
        ] {
            let found = look_up(&reference, asked);
            assert_eq!(found.number.is_some(), number, "{asked}: number");
            assert_eq!(!found.networks.is_empty(), networks, "{asked}: networks");
            assert_eq!(!found.operators.is_empty(), operators, "{asked}: operators");
            assert_eq!(!found.prefixes.is_empty(), prefixes, "{asked}: prefixes");
        }
    }
}
