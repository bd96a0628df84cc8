//! The price list of the account.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::{AccountId, Channel, Country};
use engine::catalogue::prices::{PriceList, PriceRow, Prices};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{count, money};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::query::Query;
use crate::kit::session::Member;

const PAGE_SIZE: usize = 100;
const SEPARATOR: char = '|';

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/rates", get(show))
        .route("/dashboard/rates.csv", get(download))
}

#[derive(Template)]
#[template(path = "rates.html")]
struct RatesPage {
    frame: Frame,
    is_demonstration: bool,
    has_own: bool,
    search: String,
    country: String,
    countries: Vec<Country>,
    rows: Vec<RateRow>,
    total: String,
    next: Option<String>,
    is_first: bool,
    lookup: Option<String>,
}

struct RateRow {
    country: &'static str,
    code: String,
    operator: String,
    network: String,
    mcc: String,
    mnc: String,
    rate: String,
    is_own: bool,
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let account = member.account.id;
    let live = dashboard.engine.catalogues.live();
    let prices = live.prices(Channel::Sms);
    let list = prices.list_of(account);
    let own = prices.of_account.get(&account);
    let search = Search::from_query(&query);
    let fits: Vec<&PriceRow> = list.rows().iter().filter(|row| search.fits(row)).collect();
    let start = start(&fits, query.get("after"));
    let shown = &fits[start..(start + PAGE_SIZE).min(fits.len())];
    let has_more = start + shown.len() < fits.len();
    let next = shown.last().filter(|_| has_more).map(|row| key(row));
    let currency = &dashboard.settings.currency;
    let page = RatesPage {
        frame: member.frame(),
        is_demonstration: prices.is_demonstration,
        has_own: own.is_some(),
        search: query.text("q").to_owned(),
        country: query.text("country").to_ascii_uppercase(),
        countries: countries(&list),
        rows: shown
            .iter()
            .map(|row| RateRow::new(row, own.map(|own| &**own), currency))
            .collect(),
        total: count(fits.len() as u64),
        next: next.map(|key| query.address_with("after", Some(&key))),
        is_first: start == 0,
        lookup: lookup_price(live.prices(Channel::Hlr), account, currency),
    };
    Ok(show_page(StatusCode::OK, &page))
}

impl RateRow {
    fn new(row: &PriceRow, own: Option<&PriceList>, currency: &str) -> Self {
        let is_same = |other: &PriceRow| key(other) == key(row);
        Self {
            country: row
                .country
                .map_or("All other countries", Country::short_name),
            code: row.country.map(|c| c.to_string()).unwrap_or_default(),
            operator: row.operator.clone(),
            network: row.network.clone(),
            mcc: row.mcc.map(|mcc| mcc.to_string()).unwrap_or_default(),
            mnc: row.mnc.clone().unwrap_or_default(),
            rate: money(row.rate, currency),
            is_own: own.is_some_and(|own| own.rows().iter().any(is_same)),
        }
    }
}

fn countries(list: &PriceList) -> Vec<Country> {
    let mut countries: Vec<Country> = list.rows().iter().filter_map(|row| row.country).collect();
    countries.dedup();
    countries.sort_by_key(|country| country.short_name());
    countries
}

/// The price of a lookup, if it is the same everywhere.
fn lookup_price(prices: &Prices, account: AccountId, currency: &str) -> Option<String> {
    let list = prices.list_of(account);
    match list.rows() {
        [everywhere] => Some(money(everywhere.rate, currency)),
        _ => None,
    }
}

struct Search {
    words: Vec<String>,
    country: Option<Country>,
}

impl Search {
    fn from_query(query: &Query) -> Self {
        let words = query.text("q").split_whitespace();
        Self {
            words: words.map(str::to_lowercase).collect(),
            country: query
                .get("country")
                .and_then(|code| Country::parse(code).ok()),
        }
    }

    /// Every word must match: digits the codes, other words the names.
    fn fits(&self, row: &PriceRow) -> bool {
        let in_country = self
            .country
            .is_none_or(|country| row.country == Some(country));
        in_country && self.words.iter().all(|word| has(row, word))
    }
}

fn has(row: &PriceRow, word: &str) -> bool {
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        let mcc = row.mcc.map(|mcc| mcc.to_string()).unwrap_or_default();
        let mnc = row.mnc.as_deref().unwrap_or_default();
        return mcc == word || mnc == word || (!mnc.is_empty() && format!("{mcc}{mnc}") == word);
    }
    let country = row.country.map_or("", Country::name);
    let short = row.country.map_or("", Country::short_name);
    let code = row.country.map(|c| c.to_string()).unwrap_or_default();
    let names = [country, short, &row.operator, &row.network];
    code.eq_ignore_ascii_case(word) || names.iter().any(|name| name.to_lowercase().contains(word))
}

/// Identifies a row from one page to the next.
fn key(row: &PriceRow) -> String {
    let mcc = row.mcc.map(|mcc| mcc.to_string()).unwrap_or_default();
    let code = row.country.map(|c| c.to_string()).unwrap_or_default();
    let mnc = row.mnc.as_deref().unwrap_or_default();
    [&code, &mcc, mnc, &row.operator, &row.network].join(&SEPARATOR.to_string())
}

/// The start of a page. If an import has removed the row, the page starts with its country.
fn start(rows: &[&PriceRow], after: Option<&str>) -> usize {
    let Some(after) = after else { return 0 };
    if let Some(place) = rows.iter().position(|row| key(row) == after) {
        return place + 1;
    }
    let code = after.split(SEPARATOR).next().unwrap_or_default();
    let is_there = |row: &&PriceRow| row.country.is_none_or(|country| country.as_str() >= code);
    rows.iter().position(is_there).unwrap_or_default()
}

/// The whole list, like `GET /rates?format=csv`.
async fn download(State(dashboard): State<Arc<Dashboard>>, member: Member) -> Response {
    let live = dashboard.engine.catalogues.live();
    let csv = live
        .prices(Channel::Sms)
        .list_of(member.account.id)
        .to_csv();
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"rates.csv\""),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, csv).into_response()
}

#[cfg(test)]
mod tests {
    use domain::Money;

    use super::*;

    fn row(country: &str, operator: &str, mcc: u16, mnc: &str) -> PriceRow {
        PriceRow {
            country: Country::parse(country).ok(),
            operator: operator.to_owned(),
            network: operator.to_owned(),
            mcc: Some(mcc),
            mnc: Some(mnc.to_owned()),
            rate: Money::from_micros(46_800),
        }
    }

    #[test]
    fn every_word_must_be_found() {
        let row = row("LV", "Latvijas Mobilais", 247, "01");
        for (words, fits) in [
            ("", true),
            ("latvia", true),
            ("LV", true),
            ("mobil 247", true),
            ("247 02", false),
            ("24701", true),
            ("24", false),
            ("estonia", false),
        ] {
            let search = Search {
                words: words.split_whitespace().map(str::to_lowercase).collect(),
                country: None,
            };
            assert_eq!(search.fits(&row), fits, "{words}");
        }
    }

    #[test]
    fn a_page_starts_after_the_last_row_of_the_one_before() {
        let rows = [
            row("EE", "A", 248, "01"),
            row("LV", "B", 247, "01"),
            row("LV", "C", 247, "02"),
        ];
        let rows: Vec<&PriceRow> = rows.iter().collect();
        for (after, expected) in [
            (None, 0),
            (Some(key(rows[1])), 2),
            (Some(key(rows[2])), 3),
            (Some("LV|247|09|gone|gone".to_owned()), 1),
            (Some("ZZ|".to_owned()), 0),
        ] {
            assert_eq!(start(&rows, after.as_deref()), expected, "{after:?}");
        }
    }
}
