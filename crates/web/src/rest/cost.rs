//! What a message would cost, and whether it would be accepted.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::{Access, Code, Money, Msisdn};
use engine::sending::submit::{Cost, Preview, SubmitError};
use http::HeaderValue;
use requests::{Problem, RETRYABLE};
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
/// recipient, in their order. Any token that may send may ask.
#[utoipa::path(
    post,
    path = "/sms/cost",
    operation_id = "estimateSms",
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

/// What would become of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Check {
    /// Whether `POST /sms` would accept it now.
    accepted: bool,
    /// Why not; null if it would be accepted.
    refusal: Option<CheckRefusal>,
    /// The number of parts, over all recipients.
    #[schema(example = 1)]
    parts: u32,
    /// The price of all parts to all recipients, as a decimal.
    #[serde(rename = "totalPrice")]
    #[schema(example = "0.045")]
    total: String,
    /// The currency of the prices.
    #[schema(example = "EUR")]
    currency: String,
    /// What each recipient costs, in their order.
    recipients: Vec<Estimate>,
}

/// Why a message would be refused.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckRefusal {
    /// The status that `POST /sms` would answer with.
    #[schema(example = 403)]
    status: u16,
    /// What is wrong and what to do.
    message: String,
    /// The service error code; null where the catalogue has none.
    #[schema(example = 28)]
    error: Option<u16>,
}

impl From<Problem> for CheckRefusal {
    fn from(problem: Problem) -> Self {
        Self {
            status: problem.status().as_u16(),
            error: problem.code().map(Code::number),
            message: problem.into_message(),
        }
    }
}

/// Ask whether a message would be accepted
///
/// Takes the body of `POST /sms` and checks it in the same way, the account's balance, caps, countries and senders
/// included. Nothing is sent, stored or charged. A message to a recipient who opted out is accepted too, but costs
/// nothing and is not sent.
#[utoipa::path(
    post,
    path = "/sms/check",
    operation_id = "checkSms",
    tag = "SMS",
    request_body = SmsRequest,
    responses(
        (status = 200, description = "Whether it would be accepted, and what it would cost.", body = Check),
        (status = 400, description = "A field breaks a rule, or a recipient has no price or no route.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token has neither `sms:read` nor `sms:send`, or the account is suspended.", body = Failure),
    ),
)]
pub(super) async fn check(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsReadOrSend>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let order = sms::read_order(Fields::parse(&body)?)?;
    let currency = &rest.settings.currency;
    let problem = |error| Problem::from_submit(error, currency);
    let previewed = rest.engine.submit.preview(&caller.access, order).await;
    let mut preview = previewed.map_err(problem)?;
    let total = preview.costs.iter().map(|cost| cost.total);
    let total = total.fold(Money::ZERO, Money::plus);
    let refusal = match preview.refusal.take() {
        None => find_unpaid(&rest, &caller.access, &preview, total).await?,
        refusal => refusal,
    };
    let refusal = refusal.map(problem);
    let is_permanent = refusal.as_ref().is_some_and(Problem::is_permanent);
    let parts = preview.costs.iter().map(|cost| u32::from(cost.shape.parts));
    let check = Check {
        accepted: refusal.is_none(),
        refusal: refusal.map(Into::into),
        parts: parts.sum(),
        total: total.to_string(),
        currency: currency.clone(),
        recipients: preview
            .costs
            .into_iter()
            .map(|cost| Estimate::new(cost, currency))
            .collect(),
    };
    let mut response = axum::Json(check).into_response();
    if is_permanent {
        // As `POST /sms` would answer.
        let permanent = HeaderValue::from_static("false");
        response.headers_mut().insert(RETRYABLE, permanent);
    }
    Ok(response)
}

/// Why the account could not pay.
async fn find_unpaid(
    rest: &Rest,
    access: &Access,
    preview: &Preview,
    total: Money,
) -> Result<Option<SubmitError>, Problem> {
    if preview.is_test {
        return Ok(None);
    }
    let recipients: Vec<Msisdn> = preview.costs.iter().map(|cost| cost.to).collect();
    let accounts = &rest.engine.accounts;
    let paid = accounts.check_payment(access, &recipients, total);
    Ok(paid.await?.err().map(SubmitError::NotPaid))
}
