//! Lookups of subscribers.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use domain::MessageId;
use domain::message::lookup::LookupRecord;
use domain::quoted::Quoted;
use engine::sending::submit::LookupInput;
use http::HeaderMap;
use requests::{InvalidField, Problem};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::body::JsonBody;
use super::callbacks::LookupResult;
use super::caller::{Caller, HlrLookup};
use super::document::Failure;
use super::json::{Fields, require};
use super::shapes::{LookupStateName, PhoneNumber};
use super::{Rest, sms};

/// A subscriber to look up. JSON null means absent; unknown fields are ignored.
#[derive(ToSchema)]
#[schema(example = json!({"msisdn": "+37129100000", "callBackUrl": "https://example.com/hlr"}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently"
)]
pub(super) struct LookupRequest {
    msisdn: PhoneNumber,
    /// Where the result is sent: an http or https address. It may be missing only with the query `callback=none`.
    #[schema(
        rename = "callBackUrl",
        format = "uri",
        max_length = 2048,
        pattern = "^[Hh][Tt][Tt][Pp][Ss]?://",
        example = "https://example.com/hlr"
    )]
    callback_url: Option<String>,
}

/// Look a subscriber up
///
/// Asks the home network of a number, and sends what it says to `callBackUrl`. Each lookup is charged; one that brings
/// no answer (errors 50 to 52) is refunded. With `callback=none`, `callBackUrl` may be left out; `GET /hlr/{id}` has the
/// result.
#[utoipa::path(
    post,
    path = "/hlr",
    operation_id = "lookUp",
    tag = "Numbers",
    request_body = LookupRequest,
    params(
        ("callback" = Option<String>, Query, pattern = "^none$", description = "`none`: the result is only read, so `callBackUrl` may be missing."),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$", description = "Makes a repeated request harmless, as in `POST /sms`."),
    ),
    responses(
        (status = 200, description = "Stored. The ID of the lookup.", body = Vec<u64>, links(
            ("result" = (operation_id = "readLookup", parameters(("id" = "$response.body#/0")), description = "The result of the lookup.")),
        )),
        (status = 400, description = "A field breaks a rule; the message says which.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `hlr:lookup`, or the account cannot pay.", body = Failure),
        (status = 409, description = "The Idempotency-Key was used with another body.", body = Failure),
        (status = 503, description = "Overloaded or without its database; `Retry-After` says when to try again.", body = Failure),
    ),
)]
pub(super) async fn look_up(
    State(rest): State<Arc<Rest>>,
    caller: Caller<HlrLookup>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let is_only_read = is_only_read(query.as_deref().unwrap_or(""))?;
    let repeatable = sms::repeatable(&headers, &body)?;
    if let Some(request) = &repeatable
        && let Some(earlier) = sms::find_answer(&rest, caller.access.account, request).await?
    {
        return Ok(answer(earlier.first));
    }
    let mut fields = Fields::parse(&body)?;
    let order = LookupInput {
        msisdn: require(
            fields.take_digits("msisdn")?,
            "msisdn",
            "the subscriber's number",
        )?,
        callback_url: read_callback_url(&mut fields, is_only_read)?,
    };
    let stored = rest
        .engine
        .submit
        .look_up(&caller.access, order, repeatable, sms::trace(&headers))
        .await;
    let receipt = stored.map_err(|error| Problem::from_submit(error, &rest.settings.currency))?;
    Ok(answer(receipt.first))
}

/// Whether the caller wants no callback.
fn is_only_read(query: &str) -> Result<bool, Problem> {
    let mut parameters = url::form_urlencoded::parse(query.as_bytes());
    match parameters.find(|(name, _)| name == "callback") {
        None => Ok(false),
        Some((_, value)) if value == "none" => Ok(true),
        Some((_, value)) => {
            let shown = Quoted(&value);
            let message = format!(
                "Invalid value for the query parameter 'callback': {shown}; give none, or leave it out."
            );
            Err(Problem::bad_request(message))
        }
    }
}

fn read_callback_url<'a>(
    fields: &mut Fields<'a>,
    is_only_read: bool,
) -> Result<Option<Cow<'a, str>>, InvalidField> {
    match fields.take_text("callBackUrl")? {
        None if is_only_read => Ok(None),
        url => require(url, "callBackUrl", "the address for the result").map(Some),
    }
}

fn answer(id: MessageId) -> Response {
    axum::Json([id.get()]).into_response()
}

/// The state of a lookup.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LookupStatus {
    /// Its ID.
    id: u64,
    /// `pending`, or `done` once there is a result.
    #[schema(value_type = LookupStateName)]
    state: &'static str,
    /// The result, as it is sent to `callBackUrl`; null as long as it is pending.
    #[schema(value_type = Option<LookupResult>)]
    result: Option<Box<RawValue>>,
}

impl LookupStatus {
    fn new(record: LookupRecord) -> Result<Self, Problem> {
        let result = record.report.map(RawValue::from_string).transpose();
        let result = result.map_err(|_| Problem::internal())?;
        Ok(Self {
            id: record.id.get(),
            state: if result.is_some() { "done" } else { "pending" },
            result,
        })
    }
}

/// Ask what became of a lookup
#[utoipa::path(
    get,
    path = "/hlr/{id}",
    operation_id = "readLookup",
    tag = "Numbers",
    params(("id" = u64, Path, minimum = 1, description = "The ID that the request returned.", example = 7)),
    responses(
        (status = 200, description = "The state of the lookup.", body = LookupStatus),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `hlr:lookup`.", body = Failure),
        (status = 404, description = "This account has no such lookup.", body = Failure),
    ),
)]
pub(super) async fn status(
    State(rest): State<Arc<Rest>>,
    caller: Caller<HlrLookup>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let text = path.map_or_else(|_| String::new(), |Path(text)| text);
    let unknown = || Problem::not_found(format!("There is no lookup {}.", Quoted(&text)));
    let id = text.parse().map_err(|_| unknown())?;
    let found = rest
        .engine
        .messages
        .find_lookup(caller.access.account, id)
        .await?;
    let status = LookupStatus::new(found.ok_or_else(unknown)?)?;
    Ok(axum::Json(status).into_response())
}
