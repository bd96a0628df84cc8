//! Sending SMS, listing and cancelling scheduled ones, asking what became of one.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use domain::message::{AcceptedMessages, MessageRecord, MessageState, ScheduledRecord};
use domain::ports::{Cancel, ListRange};
use domain::quoted::Quoted;
use domain::{AccountId, Code, MessageId, Timestamp, TraceContext};
use engine::sending::submit::{IdempotentRequest, SmsInput, To};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use requests::{InvalidField, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use super::Rest;
use super::body::JsonBody;
use super::caller::{Caller, SmsRead, SmsReadOrSend, SmsSend};
use super::document::{Failure, SmsRequest};
use super::json::{Fields, Value, require};
use super::shapes::MessageStateName;

/// The most rows that the scheduled list gives at once.
const MAX_LIST: u32 = 1000;
/// The status of a message that was not delivered.
const NOT_DELIVERED: u8 = 2;

/// Send an SMS to one or several recipients
///
/// Accepts the message and answers with one ID for each recipient, in their order, once it is stored durably. A long
/// text is split by itself; the number of parts over all recipients is in the answer's header. Either all recipients
/// are accepted or none.
#[utoipa::path(
    post,
    path = "/sms",
    operation_id = "sendSms",
    tag = "SMS",
    request_body = SmsRequest,
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$", description = "Makes a repeated request harmless: for 24 hours the same key with the same body gets the first answer again; with another body, 409. 1 to 255 visible ASCII characters."),
    ),
    responses(
        (status = 200, description = "Stored. One message ID for each recipient.", body = Vec<String>, headers(
            ("X-Service-Amount-Sent" = u32, description = "The number of SMS parts, over all recipients."),
        ), links(
            ("status" = (operation_id = "readMessageStatus", parameters(("id" = "$response.body#/0")), description = "What became of the first message.")),
            ("cancel" = (operation_id = "cancelMessage", parameters(("id" = "$response.body#/0")), description = "Cancels the first message, if it is scheduled.")),
        )),
        (status = 400, description = "A field breaks a rule; the message says which.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sms:send`, may not be used from this address, or its account is suspended, cannot pay, or may not send so much, there or under this sender.", body = Failure),
        (status = 409, description = "The Idempotency-Key was used with another body.", body = Failure),
        (status = 503, description = "Overloaded or without its database; `Retry-After` says when to try again.", body = Failure),
    ),
)]
pub(super) async fn send(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsSend>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let account = caller.access.account;
    let repeatable = repeatable(&headers, &body)?;
    if let Some(request) = &repeatable
        && let Some(earlier) = find_answer(&rest, account, request).await?
    {
        return Ok(answer(&rest, earlier));
    }
    let order = read_order(Fields::parse(&body)?)?;
    let trace = trace(&headers);
    let submit = &rest.engine.submit;
    let sent = submit.send(&caller.access, order, repeatable, trace);
    let problem = |error| Problem::from_submit(error, &rest.settings.currency);
    Ok(answer(&rest, sent.await.map_err(problem)?))
}

pub(super) async fn find_answer(
    rest: &Rest,
    account: AccountId,
    request: &IdempotentRequest,
) -> Result<Option<AcceptedMessages>, Problem> {
    let found = rest.engine.submit.find_answer(account, request).await;
    found.map_err(|error| Problem::from_submit(error, &rest.settings.currency))
}

pub(super) fn repeatable(
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Option<IdempotentRequest>, Problem> {
    let Some(key) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let invalid = "The Idempotency-Key must have 1 to 255 visible ASCII characters.";
    IdempotentRequest::new(key.as_bytes(), body)
        .map(Some)
        .ok_or_else(|| Problem::bad_request(invalid))
}

/// The caller's trace. A header that is not valid, or comes twice, is ignored, as the specification demands.
pub(super) fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut given = headers.get_all("traceparent").into_iter();
    let trace = TraceContext::parse(given.next()?.as_bytes());
    trace.filter(|_| given.next().is_none())
}

/// One number, several separated by commas, or a list.
pub(super) fn read_recipients<'a>(fields: &mut Fields<'a>) -> Result<To<'a>, InvalidField> {
    match fields.take("to") {
        Some(Value::List(list)) => {
            let list = list.into_iter().map(|one| one.into_digits("to"));
            Ok(To::List(list.collect::<Result<_, _>>()?))
        }
        other => {
            let one = require(other, "to", "the recipient's number")?;
            Ok(To::Text(one.into_digits("to")?))
        }
    }
}

pub(super) fn read_order(mut fields: Fields<'_>) -> Result<SmsInput<'_>, InvalidField> {
    let order = SmsInput {
        to: read_recipients(&mut fields)?,
        from: require(
            fields.take_digits("from")?,
            "from",
            "the sender's number or name",
        )?,
        message: require(fields.take_text("message")?, "message", "the text")?,
        dlr_url: fields.take_text("dlrUrl")?,
        priority: fields.take_text("priority")?,
        scheduled: fields.take_text("scheduled")?,
        udh: fields.take_text("udh")?,
        coding: fields.take_whole("coding")?,
        test_mode: fields.take_digits("testMode")?,
        expire_in: fields.take_whole("expireIn")?,
        correct_by: fields.take_text("correctBy")?,
    };
    Ok(order)
}

pub(super) fn answer(rest: &Rest, receipt: AcceptedMessages) -> Response {
    let mut body = String::with_capacity(2 + 20 * receipt.messages as usize);
    for id in receipt.ids() {
        let lead = if body.is_empty() { "[\"" } else { ",\"" };
        write!(body, "{lead}{id}\"").expect("strings take everything");
    }
    body.push(']');
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(rest.settings.amount_header.clone(), receipt.parts.into());
    response
}

/// A message that waits for its time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScheduledMessage {
    /// The ID that the submission returned.
    #[schema(example = "10001")]
    id: String,
    /// UTC, `YYYY-MM-DD HH:MM:SS`.
    #[schema(example = "2030-01-31 07:30:00")]
    scheduled: String,
    /// The originator.
    from: String,
    /// The recipient, with a leading plus sign.
    to: String,
    /// The text.
    message: String,
    /// Where the delivery report goes; null when none was asked for.
    #[serde(rename = "dlrUrl")]
    dlr_url: Option<String>,
}

impl From<ScheduledRecord> for ScheduledMessage {
    fn from(record: ScheduledRecord) -> Self {
        Self {
            id: record.id.to_string(),
            scheduled: utc(record.at),
            from: record.from,
            to: record.to.to_string(),
            message: record.text,
            dlr_url: record.dlr_url,
        }
    }
}

/// List the scheduled messages that still wait
///
/// Ascending by time, then ID.
#[utoipa::path(
    get,
    path = "/sms",
    operation_id = "listScheduledSms",
    tag = "SMS",
    params(
        ("scheduled" = String, Query, description = "Must be present; its value does not matter.", allow_reserved, example = "true"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "At most so many: 1 to 1000, by default 1000."),
        ("offset" = Option<u64>, Query, minimum = 0, maximum = 9_007_199_254_740_991_i64, description = "Skip so many, by default 0."),
    ),
    responses(
        (status = 200, description = "The messages.", body = Vec<ScheduledMessage>),
        (status = 400, description = "`scheduled` is missing, or a number is out of range.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sms:read`.", body = Failure),
    ),
)]
pub(super) async fn list(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsRead>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let page = read_page(query.as_deref().unwrap_or(""))?;
    let records = rest
        .engine
        .messages
        .list_scheduled(caller.access.account, page)
        .await?;
    let records: Vec<ScheduledMessage> = records.into_iter().map(ScheduledMessage::from).collect();
    Ok(axum::Json(records).into_response())
}

fn read_page(query: &str) -> Result<ListRange, Problem> {
    let mut page = ListRange {
        limit: MAX_LIST,
        offset: 0,
    };
    let mut scheduled = false;
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "scheduled" => scheduled = true,
            "limit" => {
                let limit = in_range("limit", &value, 1, u64::from(MAX_LIST))?;
                page.limit = u32::try_from(limit).unwrap_or(MAX_LIST);
            }
            "offset" => page.offset = in_range("offset", &value, 0, domain::ids::MAX_ID)?,
            _ => {}
        }
    }
    if scheduled {
        Ok(page)
    } else {
        Err(Problem::bad_request(
            "The query parameter 'scheduled' is missing; only GET /sms?scheduled is a list.",
        ))
    }
}

pub(super) fn in_range(name: &str, value: &str, min: u64, max: u64) -> Result<u64, Problem> {
    let number = value
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| {
        let shown = Quoted(value);
        Problem::bad_request(format!("Invalid value for the query parameter '{name}': {shown}; give a whole number from {min} to {max}."))
    })
}

/// What became of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessageStatus {
    /// The ID that the submission returned.
    #[schema(example = "10001")]
    id: String,
    /// 1 delivered, 2 not delivered, 16 expired after it was sent; null until that is known.
    status: Option<u8>,
    /// The service error code; null until the status is known.
    error: Option<u16>,
    /// When the status became known, UTC, `YYYY-MM-DD HH:MM:SS`.
    #[serde(rename = "dlrDate")]
    dlr_date: Option<String>,
    /// The state of the message, in a word.
    #[schema(value_type = MessageStateName)]
    state: &'static str,
    /// Into how many parts it splits.
    parts: u8,
    /// Mobile country code, when known.
    mcc: Option<String>,
    /// Mobile network code, when known.
    mnc: Option<String>,
}

impl From<MessageRecord> for MessageStatus {
    fn from(record: MessageRecord) -> Self {
        let ended = ended(record.state);
        Self {
            id: record.id.to_string(),
            status: ended.map(|(status, _, _)| status),
            error: ended.map(|(_, error, _)| error),
            dlr_date: ended.map(|(_, _, at)| utc(at)),
            state: record.state.name(),
            parts: record.parts,
            mcc: record
                .network
                .map(|network| format!("{:03}", network.mcc())),
            mnc: record.network.map(domain::Network::mnc),
        }
    }
}

/// The status, the service error code and the time of a message that has ended.
pub(super) fn ended(state: MessageState) -> Option<(u8, u16, Timestamp)> {
    match state {
        MessageState::Scheduled { .. } | MessageState::Queued | MessageState::Sent => None,
        MessageState::Cancelled { at } => Some((NOT_DELIVERED, Code::CANCELLED.number(), at)),
        MessageState::Ended { outcome, at } => {
            Some((outcome.status(), outcome.code().number(), at))
        }
    }
}

/// Ask what became of a message
///
/// `sms:send` is enough, so that a program that may send can follow its messages.
#[utoipa::path(
    get,
    path = "/sms/status/{id}",
    operation_id = "readMessageStatus",
    tag = "SMS",
    params(("id" = String, Path, pattern = "^([1-9][0-9]{0,14}|[1-8][0-9]{15})$", description = "The ID that the submission returned.", example = "10001")),
    responses(
        (status = 200, description = "The state of the message.", body = MessageStatus),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token has neither `sms:read` nor `sms:send`.", body = Failure),
        (status = 404, description = "This account has no such message.", body = Failure),
    ),
)]
pub(super) async fn status(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsReadOrSend>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let id = read_path(path)?;
    let message = read_id(&id)?;
    let record = rest
        .engine
        .messages
        .find(caller.access.account, message)
        .await?;
    let record = record.ok_or_else(|| unknown_message(&id))?;
    Ok(axum::Json(MessageStatus::from(record)).into_response())
}

/// A message that was taken back.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cancelled {
    /// Its ID.
    #[schema(example = "10001")]
    id: String,
    /// Always `cancelled`.
    #[schema(example = "cancelled")]
    status: &'static str,
}

/// Cancel a scheduled message
///
/// Only a message that still waits for its time can be taken back. Its price is given back with it.
#[utoipa::path(
    delete,
    path = "/sms/{id}",
    operation_id = "cancelMessage",
    tag = "SMS",
    params(("id" = String, Path, pattern = "^([1-9][0-9]{0,14}|[1-8][0-9]{15})$", description = "The ID that the submission returned.", example = "10001")),
    responses(
        (status = 200, description = "It is cancelled.", body = Cancelled),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sms:send`.", body = Failure),
        (status = 404, description = "This account has no such message.", body = Failure),
        (status = 409, description = "It no longer waits: it was sent or cancelled.", body = Failure),
    ),
)]
pub(super) async fn cancel(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsSend>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let id = read_path(path)?;
    let message = read_id(&id)?;
    match rest
        .engine
        .messages
        .cancel(caller.access.account, message)
        .await?
    {
        Cancel::Done => Ok(axum::Json(Cancelled {
            id: message.to_string(),
            status: "cancelled",
        })
        .into_response()),
        Cancel::NotWaiting(state) => Err(Problem::conflict(format!(
            "Message {message} is {}; only a scheduled message can be cancelled.",
            state.name()
        ))),
        Cancel::Unknown => Err(unknown_message(&id)),
    }
}

pub(super) fn read_path(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    path.map(|Path(id)| id)
        .map_err(|_| Problem::not_found("There is no such message; an ID is made of digits."))
}

pub(super) fn read_id(text: &str) -> Result<MessageId, Problem> {
    text.parse().map_err(|_| unknown_message(text))
}

pub(super) fn unknown_message(id: &str) -> Problem {
    Problem::not_found(format!("There is no message {}.", Quoted(id)))
}

pub(super) fn utc(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
