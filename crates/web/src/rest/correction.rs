//! Number correction.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::Country;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use requests::Problem;
use serde::Serialize;
use utoipa::ToSchema;

use super::Rest;
use super::body::JsonBody;
use super::caller::{Caller, NumbersRead};
use super::document::Failure;
use super::json::{Fields, Value, parse_list};
use super::shapes::NumberTypeName;

/// Maximum number of phone numbers in one request.
pub const MAX_CORRECTIONS: usize = 10_000;
/// A smaller body has so few numbers that another thread would cost more than it saves.
const FEW_BYTES: usize = 2048;

/// A number to correct.
#[derive(ToSchema)]
#[schema(example = json!({"Number": "29 111 111", "CountryIso": "LV"}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently"
)]
pub(super) struct NumberToCorrect {
    /// The number, as people write it.
    #[schema(rename = "Number", example = "29 111 111")]
    number: String,
    /// The country that a local number is read for, ISO 3166-1 alpha-2; `country` will do.
    #[schema(rename = "CountryIso", example = "LV")]
    country_iso: Option<String>,
}

/// A corrected number.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CorrectedNumber<'a> {
    /// What is wrong; null when nothing is.
    #[serde(rename = "Error")]
    error: Option<String>,
    /// The number as it was sent.
    #[serde(rename = "Number")]
    #[schema(example = "29 111 111")]
    number: Option<Cow<'a, str>>,
    /// `mobile`, `landline` or `unknown`.
    #[serde(rename = "NumberType")]
    #[schema(value_type = NumberTypeName)]
    number_type: &'static str,
    /// The number's country, ISO 3166-1 alpha-2; null for one that belongs to none.
    #[serde(rename = "CountryIso")]
    #[schema(example = "LV")]
    country: Option<String>,
    /// Whether it is a mobile number.
    #[serde(rename = "Mobile")]
    mobile: bool,
    /// The number in international form; null when it could not be corrected.
    #[serde(rename = "NumberE164")]
    #[schema(example = "+37129111111")]
    e164: Option<String>,
}

impl<'a> CorrectedNumber<'a> {
    /// Reads a number for its country first, then as an international one.
    fn new(number: Cow<'a, str>, country: Option<Country>) -> Self {
        match numbering::examine(&number, country) {
            Err(error) => Self::wrong(Some(number), country, format!("{error}.")),
            Ok(corrected) => Self {
                error: None,
                number: Some(number),
                number_type: corrected.kind.name(),
                country: corrected.country.map(|country| country.to_string()),
                mobile: corrected.kind == numbering::NumberType::Mobile,
                e164: Some(corrected.number.to_string()),
            },
        }
    }

    fn wrong(number: Option<Cow<'a, str>>, country: Option<Country>, error: String) -> Self {
        Self {
            error: Some(error),
            number,
            number_type: numbering::NumberType::Unknown.name(),
            country: country.map(|country| country.to_string()),
            mobile: false,
            e164: None,
        }
    }
}

/// Correct numbers
///
/// Reads each number for its country first, then as an international one, and answers in the same order. A number
/// that cannot be read gets an `Error` of its own; the others are not affected. At most 10,000 in one request.
#[utoipa::path(
    post,
    path = "/numberCorrection",
    operation_id = "correctNumbers",
    tag = "Numbers",
    request_body = Vec<NumberToCorrect>,
    responses(
        (status = 200, description = "One item for each number.", body = Vec<CorrectedNumber>),
        (status = 400, description = "The body is no array, or has more than 10,000 items.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `numbers:read`.", body = Failure),
    ),
)]
pub(super) async fn correct(
    State(rest): State<Arc<Rest>>,
    _caller: Caller<NumbersRead>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let answer = if body.len() <= FEW_BYTES {
        correct_all(&body)?
    } else {
        let work = rest.corrections.run(move || correct_all(&body));
        work.await.ok_or_else(Problem::internal)??
    };
    let mut response = answer.into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}

/// Correct numbers, by GET
///
/// The same as `POST /numberCorrection`, for callers that send their array with GET. Many programs and proxies drop the
/// body of a GET request, so use POST.
#[utoipa::path(
    get,
    path = "/numberCorrection",
    operation_id = "correctNumbersByGet",
    tag = "Numbers",
    request_body = Vec<NumberToCorrect>,
    responses(
        (status = 200, description = "One item for each number.", body = Vec<CorrectedNumber>),
        (status = 400, description = "The body is no array, or has more than 10,000 items.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `numbers:read`.", body = Failure),
    ),
)]
pub(super) async fn correct_by_get(
    rest: State<Arc<Rest>>,
    caller: Caller<NumbersRead>,
    body: JsonBody,
) -> Result<Response, Problem> {
    correct(rest, caller, body).await
}

fn correct_all(body: &[u8]) -> Result<Bytes, Problem> {
    let items = parse_list(body)?;
    if items.len() > MAX_CORRECTIONS {
        let count = items.len();
        let message =
            format!("The body has {count} items, more than {MAX_CORRECTIONS}; split the request.");
        return Err(Problem::bad_request(message));
    }
    let corrected: Vec<CorrectedNumber<'_>> = items.into_iter().map(correct_one).collect();
    let json = serde_json::to_vec(&corrected).expect("plain fields");
    Ok(json.into())
}

fn correct_one(item: Value<'_>) -> CorrectedNumber<'_> {
    let Value::Object(mut fields) = item else {
        let error = format!("{item}; give an object with Number and CountryIso.");
        return CorrectedNumber::wrong(None, None, error);
    };
    let number = match fields.take_digits("Number") {
        Ok(Some(number)) => number,
        Ok(None) => {
            let error = "Number is missing; give the number to correct.".to_owned();
            return CorrectedNumber::wrong(None, None, error);
        }
        Err(invalid) => return CorrectedNumber::wrong(None, None, invalid.to_string()),
    };
    let country = match read_country(&mut fields) {
        Ok(country) => country,
        Err(error) => return CorrectedNumber::wrong(Some(number), None, error),
    };
    CorrectedNumber::new(number, country)
}

/// The examples of the contract call it `CountryIso`, its list of fields `country`. Empty means absent.
fn read_country(fields: &mut Fields<'_>) -> Result<Option<Country>, String> {
    let given = match fields.take_text("CountryIso") {
        Ok(None) => fields.take_text("country"),
        given => given,
    };
    let given = given.map_err(|invalid| invalid.to_string())?;
    let given = given.filter(|code| !code.is_empty());
    let country = given.map(|code| Country::parse(&code)).transpose();
    country.map_err(|unknown| format!("{unknown}."))
}
