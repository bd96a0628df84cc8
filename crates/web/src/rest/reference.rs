//! Operators, networks and prefixes.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use domain::Country;
use domain::quoted::Quoted;
use http::HeaderMap;
use numbering::reference::{NetworkEntry, Operator, OperatorId, Prefix};
use requests::Problem;
use serde::Serialize;
use utoipa::ToSchema;

use super::Rest;
use super::answer_cache::{CachedAnswer, Subject};
use super::caller::{Caller, NumbersRead};
use super::document::Failure;
use super::shapes::PageNumber;

/// The networks of one page.
const PAGE: usize = 100;

/// A mobile operator.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OperatorAnswer<'a> {
    /// Its name.
    #[schema(example = "LMT")]
    name: &'a str,
    /// ISO 3166-1 alpha-2; null for networks that belong to no country.
    #[schema(example = "LV")]
    country: Option<&'a str>,
    /// Its main mobile country code; null when it has no network.
    #[schema(example = 247)]
    mcc: Option<u16>,
    /// Its mobile network codes under that country code.
    #[schema(example = json!(["01", "10"]))]
    mnc: Vec<String>,
}

impl<'a> From<&'a Operator> for OperatorAnswer<'a> {
    fn from(operator: &'a Operator) -> Self {
        Self {
            name: &operator.name,
            country: operator.country.as_ref().map(Country::as_str),
            mcc: operator.mcc(),
            mnc: operator
                .networks
                .iter()
                .map(|network| network.mnc())
                .collect(),
        }
    }
}

/// Describe an operator
#[utoipa::path(
    get,
    path = "/operators/{operatorId}",
    operation_id = "readOperator",
    tag = "Numbers",
    params(
        ("operatorId" = u32, Path, minimum = 1, description = "The operator's ID, as the other operations name it.", example = 1635),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an answer that you have; if it is still current, 304."),
    ),
    responses(
        (status = 200, description = "The operator.", body = OperatorAnswer),
        (status = 304, description = "What you have is current."),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `numbers:read`.", body = Failure),
        (status = 404, description = "There is no such operator.", body = Failure),
    ),
)]
pub(super) async fn operator(
    State(rest): State<Arc<Rest>>,
    _caller: Caller<NumbersRead>,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let text = path.map_or_else(|_| String::new(), |Path(text)| text);
    let unknown = || Problem::not_found(format!("There is no operator {}.", Quoted(&text)));
    let live = rest.engine.catalogues.live();
    let id = text
        .parse()
        .ok()
        .and_then(OperatorId::new)
        .ok_or_else(unknown)?;
    let operator = live.reference.operator(id).ok_or_else(unknown)?;
    let make = || CachedAnswer::json(to_json(&OperatorAnswer::from(operator)));
    let answer = rest.answers.get(&live, Subject::Operator(id), make);
    Ok(answer.respond(&headers))
}

/// A mobile network.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NetworkAnswer<'a> {
    /// ISO 3166-1 alpha-2.
    #[schema(example = "LV")]
    country: Option<&'a str>,
    /// Mobile country code.
    #[serde(rename = "MCC")]
    #[schema(example = 247)]
    mcc: u16,
    /// Mobile network code, with its leading zeros.
    #[serde(rename = "MNC")]
    #[schema(example = "01")]
    mnc: String,
    /// The operator that runs it.
    #[serde(rename = "operatorId")]
    #[schema(example = 1635)]
    operator_id: u32,
}

impl<'a> From<&'a NetworkEntry> for NetworkAnswer<'a> {
    fn from(entry: &'a NetworkEntry) -> Self {
        Self {
            country: entry.country.as_ref().map(Country::as_str),
            mcc: entry.network.mcc(),
            mnc: entry.network.mnc(),
            operator_id: entry.operator.get(),
        }
    }
}

/// List the mobile networks of a country
///
/// By MCC, MNC and operator, 100 on a page. A page past the end is empty.
#[utoipa::path(
    get,
    path = "/mccmnc/{country}",
    operation_id = "listNetworks",
    tag = "Numbers",
    params(
        ("country" = String, Path, pattern = "^[A-Za-z]{2}$", description = "ISO 3166-1 alpha-2, or XK, in any case.", example = "LV"),
        ("Page" = inline(Option<PageNumber>), Query, description = "Which page, from 1; `page` will do."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an answer that you have; if it is still current, 304."),
    ),
    responses(
        (status = 200, description = "The networks.", body = Vec<NetworkAnswer>, headers(
            ("X-Total-Count" = u32, description = "How many networks all pages together have."),
        )),
        (status = 304, description = "What you have is current."),
        (status = 400, description = "`Page` is no whole number from 1.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `numbers:read`.", body = Failure),
        (status = 404, description = "There is no such country.", body = Failure),
    ),
)]
pub(super) async fn networks(
    State(rest): State<Arc<Rest>>,
    _caller: Caller<NumbersRead>,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let country = read_country(path)?;
    let page = read_page(query.as_deref().unwrap_or(""))?;
    let live = rest.engine.catalogues.live();
    let networks = live.reference.networks(country);
    let make = |networks: &[NetworkEntry], total| {
        let networks: Vec<NetworkAnswer<'_>> = networks.iter().map(NetworkAnswer::from).collect();
        CachedAnswer::json(to_json(&networks)).with_total(total)
    };
    let Some(items) = networks.chunks(PAGE).nth(page - 1) else {
        return Ok(make(&[], networks.len()).respond(&headers));
    };
    let subject = Subject::Networks(country, page);
    let answer = rest
        .answers
        .get(&live, subject, || make(items, networks.len()));
    Ok(answer.respond(&headers))
}

/// A mobile prefix.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PrefixAnswer<'a> {
    /// E.164 digits, calling code included.
    #[schema(example = 371_291)]
    prefix: u64,
    /// ISO 3166-1 alpha-2.
    #[schema(example = "LV")]
    country: Option<&'a str>,
    /// The operator that the numbers were given to.
    #[serde(rename = "operatorId")]
    #[schema(example = 1635)]
    operator_id: u32,
}

impl<'a> From<&'a Prefix> for PrefixAnswer<'a> {
    fn from(prefix: &'a Prefix) -> Self {
        Self {
            prefix: prefix.prefix,
            country: prefix.country.as_ref().map(Country::as_str),
            operator_id: prefix.operator.get(),
        }
    }
}

/// List the mobile prefixes of a country
///
/// Ascending. The longest prefix that a number begins with tells its operator; a number may have been ported since.
#[utoipa::path(
    get,
    path = "/prefixes/{country}",
    operation_id = "listPrefixes",
    tag = "Numbers",
    params(
        ("country" = String, Path, pattern = "^[A-Za-z]{2}$", description = "ISO 3166-1 alpha-2, or XK, in any case.", example = "LV"),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an answer that you have; if it is still current, 304."),
    ),
    responses(
        (status = 200, description = "The prefixes.", body = Vec<PrefixAnswer>),
        (status = 304, description = "What you have is current."),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `numbers:read`.", body = Failure),
        (status = 404, description = "There is no such country.", body = Failure),
    ),
)]
pub(super) async fn prefixes(
    State(rest): State<Arc<Rest>>,
    _caller: Caller<NumbersRead>,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let country = read_country(path)?;
    let live = rest.engine.catalogues.live();
    let make = || {
        let prefixes = live.reference.prefixes(country).iter();
        let prefixes: Vec<PrefixAnswer<'_>> = prefixes.map(PrefixAnswer::from).collect();
        CachedAnswer::json(to_json(&prefixes))
    };
    let answer = rest.answers.get(&live, Subject::Prefixes(country), make);
    Ok(answer.respond(&headers))
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain fields")
}

fn read_country(path: Result<Path<String>, PathRejection>) -> Result<Country, Problem> {
    let text = path.map_or_else(|_| String::new(), |Path(text)| text);
    Country::parse(&text)
        .map_err(|unknown| Problem::not_found(format!("{unknown}; give one such as LV.")))
}

fn read_page(query: &str) -> Result<usize, Problem> {
    let pages = url::form_urlencoded::parse(query.as_bytes());
    let mut given = pages.filter(|(key, _)| key.eq_ignore_ascii_case("page"));
    let Some((_, value)) = given.next() else {
        return Ok(1);
    };
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // A page with more digits than a number holds is past every end.
    let number = is_number.then(|| value.parse().unwrap_or(usize::MAX));
    number.filter(|page| *page > 0).ok_or_else(|| {
        let shown = Quoted(&value);
        Problem::bad_request(format!(
            "Invalid value for the query parameter 'Page': {shown}; give a whole number from 1."
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_from_one() {
        for (query, page) in [
            ("", Some(1)),
            ("x=2", Some(1)),
            ("Page=3", Some(3)),
            ("page=3", Some(3)),
            ("Page=99999999999999999999999", Some(usize::MAX)),
            ("Page=0", None),
            ("Page=-1", None),
            ("Page=", None),
            ("Page=1.0", None),
            ("Page=%2B1", None),
            ("Page=one", None),
        ] {
            assert_eq!(read_page(query).ok(), page, "{query}");
        }
    }
}
