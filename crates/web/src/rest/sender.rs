//! Registering the names and numbers that messages come from, and confirming the numbers.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use domain::SenderId;
use domain::ports::ListRange;
use domain::quoted::Quoted;
use domain::sender::{Category, NotAPin, SenderRecord, SenderState};
use engine::senders::SenderInput;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use requests::{InvalidField, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use super::Rest;
use super::body::JsonBody;
use super::caller::{Caller, SenderWrite};
use super::document::{ConfirmRequest, Failure};
use super::json::{Fields, Value, require};
use super::shapes::{SenderKindName, SenderRequest, SenderStateName};
use super::sms::in_range;

/// The most senders that a list gives at once.
const MAX_LIST: u32 = 1000;

/// Register a name or number to send under
///
/// An operator of the service reviews a name. A number gets a PIN of five digits by SMS, which confirms it. For a
/// number that still waits for its PIN, a new one is sent under the same ID, once a minute at most.
#[utoipa::path(
    post,
    path = "/senderId",
    operation_id = "registerSender",
    tag = "Senders",
    request_body = SenderRequest,
    responses(
        (status = 200, description = "Registered: the sender's ID.", links(
            ("sender" = (operation_id = "readSender", parameters(("senderId" = "$response.body")), description = "The state of the sender.")),
            ("confirm" = (operation_id = "confirmSender", parameters(("senderId" = "$response.body")), description = "Confirms a number by its PIN.")),
        ), body = u64, content_type = "plain/text", example = 123),
        (status = 400, description = "A field breaks a rule; the message says which.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sender:write`, or the account may not send to this number.", body = Failure),
        (status = 409, description = "The account has a live sender of this name, or a PIN was sent less than a minute ago.", body = Failure),
        (status = 429, description = "The number got, or the account had sent, as many confirmation codes as they may; `Retry-After` says when to try again.", body = Failure),
        (status = 503, description = "Overloaded or without its database; `Retry-After` says when to try again.", body = Failure),
    ),
)]
pub(super) async fn register(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SenderWrite>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let order = read_order(Fields::parse(&body)?)?;
    let registered = rest.engine.senders.register(&caller.access, order).await;
    let id =
        registered.map_err(|error| Problem::from_registration(error, &rest.settings.currency))?;
    let mut response = id.to_string().into_response();
    // The contract has this spelling.
    let plain = HeaderValue::from_static("plain/text");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    Ok(response)
}

fn read_order(mut fields: Fields<'_>) -> Result<SenderInput<'_>, InvalidField> {
    let order = SenderInput {
        name: require(fields.take_digits("name")?, "name", "the name or number")?,
        kind: require(fields.take_text("type")?, "type", "AlphaNumeric or MSISDN")?,
        category: fields.take_text("category")?,
        description: fields.take_text("categoryDescription")?,
        notification_url: fields.take_text("notificationUrl")?,
    };
    Ok(order)
}

/// A confirmed number.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfirmedSender {
    /// The sender's ID.
    #[schema(example = 123)]
    id: u64,
    /// Always `approved`.
    #[schema(example = "approved")]
    status: &'static str,
}

/// Confirm a number by the PIN that was sent to it
///
/// A PIN is good for ten minutes and five tries.
#[utoipa::path(
    post,
    path = "/senderId/confirm/{senderId}",
    operation_id = "confirmSender",
    tag = "Senders",
    params(("senderId" = u64, Path, minimum = 1, description = "The ID that the registration returned.", example = 123)),
    request_body = ConfirmRequest,
    responses(
        (status = 200, description = "The number may be used.", body = ConfirmedSender),
        (status = 400, description = "The code is not five digits, or wrong; then the message says how many tries are left.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sender:write`.", body = Failure),
        (status = 404, description = "This account has no such sender.", body = Failure),
        (status = 409, description = "The PIN has expired or its tries are used up, or the sender waits for none.", body = Failure),
    ),
)]
pub(super) async fn confirm(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SenderWrite>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let id = read_id(path)?;
    let code = read_code(Fields::parse(&body)?)?;
    let account = caller.access.account;
    rest.engine.senders.confirm(account, id, &code).await?;
    let answer = ConfirmedSender {
        id: id.get(),
        status: SenderState::Approved.name(),
    };
    Ok(axum::Json(answer).into_response())
}

/// The error does not repeat the value, because it may be most of a PIN.
fn read_code(mut fields: Fields<'_>) -> Result<Cow<'_, str>, InvalidField> {
    match require(fields.take("code"), "code", "the 5 digits")? {
        Value::Text(code) => Ok(code),
        Value::Whole(code) => Ok(code.to_string().into()),
        _ => Err(InvalidField::new("code", NotAPin)),
    }
}

/// A registered name or number.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sender {
    /// The ID that the registration returned.
    #[schema(example = 123)]
    id: u64,
    /// The name, or the number with a leading plus sign.
    #[schema(example = "Acme")]
    name: String,
    /// What kind of sender it is.
    #[serde(rename = "type")]
    #[schema(value_type = SenderKindName)]
    kind: &'static str,
    /// `pending` (under review), `awaiting_confirmation` (a PIN was sent), `approved`, `rejected` or `revoked`.
    #[schema(value_type = SenderStateName)]
    status: &'static str,
    /// Why, in the reviewer's words; null when none were given.
    reason: Option<String>,
    /// What a name stands for.
    #[schema(example = "Company")]
    category: Option<&'static str>,
    /// What the reviewer was told.
    #[serde(rename = "categoryDescription")]
    category_description: Option<String>,
    /// The URL that is called when the status changes.
    #[serde(rename = "notificationUrl")]
    notification_url: Option<String>,
    /// When it was registered, RFC 3339.
    #[schema(example = "2030-01-31T09:30:00Z")]
    created: String,
}

impl From<SenderRecord> for Sender {
    fn from(record: SenderRecord) -> Self {
        let url = record.notification_url;
        Self {
            id: record.id.get(),
            name: record.name.to_string(),
            kind: record.name.kind().name(),
            status: record.state.name(),
            reason: record.reason,
            category: record.category.map(Category::name),
            category_description: record.description,
            notification_url: url.map(|url| url.as_str().to_owned()),
            created: record.created_at.to_string(),
        }
    }
}

/// List the account's senders
///
/// Ascending by ID.
#[utoipa::path(
    get,
    path = "/senderId",
    operation_id = "listSenders",
    tag = "Senders",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "At most so many: 1 to 1000, by default 1000."),
        ("offset" = Option<u64>, Query, minimum = 0, maximum = 9_007_199_254_740_991_i64, description = "Skip so many, by default 0."),
    ),
    responses(
        (status = 200, description = "The senders.", body = Vec<Sender>),
        (status = 400, description = "A number is out of range.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sender:write`.", body = Failure),
    ),
)]
pub(super) async fn list(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SenderWrite>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let page = read_page(query.as_deref().unwrap_or(""))?;
    let senders = rest
        .engine
        .senders
        .list(caller.access.account, page)
        .await?;
    let senders: Vec<Sender> = senders.into_iter().map(Sender::from).collect();
    Ok(axum::Json(senders).into_response())
}

fn read_page(query: &str) -> Result<ListRange, Problem> {
    let mut page = ListRange {
        limit: MAX_LIST,
        offset: 0,
    };
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "limit" => {
                let limit = in_range("limit", &value, 1, u64::from(MAX_LIST))?;
                page.limit = u32::try_from(limit).unwrap_or(MAX_LIST);
            }
            "offset" => page.offset = in_range("offset", &value, 0, domain::ids::MAX_ID)?,
            _ => {}
        }
    }
    Ok(page)
}

/// Read a sender's state
#[utoipa::path(
    get,
    path = "/senderId/{senderId}",
    operation_id = "readSender",
    tag = "Senders",
    params(("senderId" = u64, Path, minimum = 1, description = "The ID that the registration returned.", example = 123)),
    responses(
        (status = 200, description = "The sender.", body = Sender),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sender:write`.", body = Failure),
        (status = 404, description = "This account has no such sender.", body = Failure),
    ),
)]
pub(super) async fn find(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SenderWrite>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let id = read_id(path)?;
    let found = rest.engine.senders.find(caller.access.account, id).await?;
    let record = found.ok_or_else(|| unknown(&id.to_string()))?;
    Ok(axum::Json(Sender::from(record)).into_response())
}

/// Invalid text in the path is an unknown sender.
fn read_id(path: Result<Path<String>, PathRejection>) -> Result<SenderId, Problem> {
    let text = path.map_or_else(|_| String::new(), |Path(text)| text);
    text.parse().map_err(|_| unknown(&text))
}

fn unknown(id: &str) -> Problem {
    Problem::not_found(format!("There is no sender {}.", Quoted(id)))
}
