//! What a message would cost.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use engine::sending::submit::Cost;
use requests::Problem;
use serde::Serialize;
use utoipa::ToSchema;

use super::body::JsonBody;
use super::caller::{Caller, SmsReadOrSend};
use super::document::{Failure, SmsRequest};
use super::json::Fields;
use super::{Rest, sms};

/// What a message to one recipient costs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Estimate {
    /// The recipient, with a leading plus sign.
    #[schema(example = "+37120000001")]
    to: String,
    /// Into how many parts the text splits.
    parts: u8,
    /// 0 GSM-7, 1 8-bit, 2 UCS-2.
    coding: u8,
    /// The recipient's country, ISO 3166-1 alpha-2; null for a number of no country.
    #[serde(rename = "countryISO")]
    #[schema(example = "LV")]
    country: Option<String>,
    /// MCC and MNC of the recipient's network in one; null where its prefix does not tell.
    #[schema(example = "24701")]
    mccmnc: Option<String>,
    /// The price of one part, as a decimal.
    #[serde(rename = "pricePerPart")]
    #[schema(example = "0.045")]
    per_part: String,
    /// The price of all parts, as a decimal.
    #[serde(rename = "totalPrice")]
    #[schema(example = "0.09")]
    total: String,
    /// The currency of the prices.
    #[schema(example = "EUR")]
    currency: String,
}

impl Estimate {
    fn new(cost: Cost, currency: &str) -> Self {
        Self {
            to: cost.to.to_string(),
            parts: cost.shape.parts,
            coding: cost.shape.coding.number(),
            country: cost.country.map(|country| country.to_string()),
            mccmnc: cost.network.map(|network| network.to_string()),
            per_part: cost.per_part.to_string(),
            total: cost.total.to_string(),
            currency: currency.to_owned(),
        }
    }
}

/// Ask what a message would cost
///
/// Takes the body of `POST /sms` and checks it in the same way. Nothing is sent, stored or charged. One item for each
/// recipient, in their order. Whoever may send may ask.
#[utoipa::path(
    post,
    path = "/sms/cost",
    tag = "SMS",
    request_body = SmsRequest,
    responses(
        (status = 200, description = "What it would cost.", body = Vec<Estimate>),
        (status = 400, description = "A field breaks a rule, or a recipient has no price.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token has neither `sms:read` nor `sms:send`, or the account may not send under this sender.", body = Failure),
    ),
)]
pub(super) async fn estimate(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsReadOrSend>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let order = sms::read_order(Fields::parse(&body)?)?;
    let currency = &rest.settings.currency;
    let costs = rest.engine.submit.cost(&caller.access, order).await;
    let costs = costs.map_err(|error| Problem::from_submit(error, currency))?;
    let estimates: Vec<Estimate> = costs
        .into_iter()
        .map(|cost| Estimate::new(cost, currency))
        .collect();
    Ok(axum::Json(estimates).into_response())
}
