//! The price list.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use domain::Channel;
use domain::quoted::Quoted;
use http::{HeaderMap, HeaderName, HeaderValue};
use requests::Problem;
use serde::Serialize;
use utoipa::ToSchema;

use super::Rest;
use super::answer_cache::{CachedAnswer, Subject};
use super::caller::{Caller, SmsRates};
use super::document::Failure;
use super::shapes::ChannelName;

/// Marks the demonstration prices of the program, which are in force until an import.
const DEMONSTRATION: HeaderName = HeaderName::from_static("x-demonstration-prices");

/// The price of a part to one network, or to all those of a country that no other row names.
#[derive(ToSchema)]
#[schema(as = Rate)]
#[expect(
    dead_code,
    reason = "describes the answer for the document; the list is kept as ready text"
)]
pub(super) struct PriceListRow {
    /// The country's name.
    #[schema(rename = "CountryName", example = "Latvia")]
    country_name: String,
    /// ISO 3166-1 alpha-2.
    #[schema(rename = "CountryCode", example = "LV")]
    country_code: String,
    /// The operator's name; `All` for the only price of a country, `All other carriers` where others are named.
    #[schema(rename = "Operator", example = "LMT")]
    operator: String,
    /// The network's name, or the same words.
    #[schema(rename = "Network", example = "LMT")]
    network: String,
    /// Mobile country code; null only where the country has no network.
    #[schema(rename = "MCC", example = 247)]
    mcc: Option<u16>,
    /// Mobile network code; null for all those that no other row names.
    #[schema(rename = "MNC", example = "01")]
    mnc: Option<String>,
    /// The price of one part, as a decimal in the service's currency.
    #[schema(rename = "Rate", example = "0.0468")]
    rate: String,
}

/// The form of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RateFormat {
    /// A JSON array.
    Json,
    /// CSV by RFC 4180, with a header line.
    Csv,
}

/// Read the price list
///
/// The prices that this account pays, by country and network: for one part of an SMS, for a Viber message or for a lookup.
#[utoipa::path(
    get,
    path = "/rates",
    operation_id = "listRates",
    tag = "Numbers",
    params(
        ("format" = inline(Option<RateFormat>), Query, description = "`json` when absent."),
        ("channel" = inline(Option<ChannelName>), Query, description = "`sms` when absent; `hlr` are lookups."),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an answer that you have; if it is still current, 304."),
    ),
    responses(
        (status = 200, description = "The list.", content((Vec<PriceListRow> = "application/json"), (String = "text/csv"))),
        (status = 304, description = "What you have is current."),
        (status = 400, description = "The format is neither `json` nor `csv`, or there is no such channel.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sms:rates`.", body = Failure),
    ),
)]
pub(super) async fn rates(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsRates>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = query.as_deref().unwrap_or("");
    let (format, channel) = (read_format(query)?, read_channel(query)?);
    let account = caller.access.account;
    let live = rest.engine.catalogues.live();
    // Accounts without prices of their own share one answer.
    let prices = live.prices(channel);
    let own = prices.of_account.contains_key(&account).then_some(account);
    let answer = match format {
        RateFormat::Json => {
            let subject = Subject::RatesJson(channel, own);
            let make = || CachedAnswer::json(prices.list_of(account).to_json());
            rest.answers.get(&live, subject, make)
        }
        RateFormat::Csv => {
            let subject = Subject::RatesCsv(channel, own);
            let content_type = HeaderValue::from_static("text/csv; charset=utf-8");
            let make = || CachedAnswer::new(prices.list_of(account).to_csv(), content_type);
            rest.answers.get(&live, subject, make)
        }
    };
    let mut response = answer.respond(&headers);
    if prices.is_demonstration {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert(DEMONSTRATION, yes);
    }
    Ok(response)
}

fn read_channel(query: &str) -> Result<Channel, Problem> {
    let mut given =
        url::form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == "channel");
    let Some((_, value)) = given.next() else {
        return Ok(Channel::Sms);
    };
    value.parse().map_err(|_| {
        let shown = Quoted(&value);
        Problem::bad_request(format!(
            "Invalid value for the query parameter 'channel': {shown}; give sms, viber or hlr."
        ))
    })
}

fn read_format(query: &str) -> Result<RateFormat, Problem> {
    let mut given =
        url::form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == "format");
    match given.next().as_ref().map(|(_, value)| &**value) {
        None | Some("json") => Ok(RateFormat::Json),
        Some("csv") => Ok(RateFormat::Csv),
        Some(other) => {
            let shown = Quoted(other);
            let message = format!(
                "Invalid value for the query parameter 'format': {shown}; give json or csv."
            );
            Err(Problem::bad_request(message))
        }
    }
}
