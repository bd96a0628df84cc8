//! The inbox: messages that handsets sent to the account's numbers.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use domain::inbound::message::{InboundMessage as Message, InboundRecord};
use domain::inbound::number::InboundNumber;
use domain::ports::{Cursor, InboundFilter, InboundOwner};
use domain::{AccountId, MessageId, Msisdn};
use requests::Problem;
use utoipa::ToSchema;

use super::Rest;
use super::caller::{Caller, SmsReadOrSend};
use super::document::Failure;
use super::messages::{DEFAULT_LIST, invalid, page_response, read_cursor, read_time};
use super::shapes::DateTimeText;
use super::sms::{read_id, read_path, unknown_message};

/// A message from a handset. Callbacks have the same form.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it only describes InboundRecord, which a test compares"
)]
pub(super) struct InboundMessage {
    #[schema(example = "10001")]
    id: String,
    /// The sender, with a leading plus sign if it is a phone number.
    #[schema(example = "+37120000001")]
    from: String,
    /// The number or short code that it was sent to.
    #[schema(example = "1234")]
    to: String,
    /// The text; hexadecimal digits if `coding` is 1.
    #[schema(example = "Yes, please")]
    message: String,
    /// When its first part came, UTC, `YYYY-MM-DD HH:MM:SS`.
    #[schema(example = "2030-01-31 07:30:00")]
    received: String,
    /// How many parts it has.
    #[schema(example = 1)]
    parts: u8,
    /// 0 GSM-7, 1 binary, 2 UCS-2.
    #[schema(example = 0)]
    coding: u8,
    /// The user data header, written as for sending; null unless it holds more than concatenation.
    udh: Option<String>,
    /// Mobile country code of the sender, when known.
    #[schema(example = "247")]
    mcc: Option<String>,
    /// Mobile network code of the sender, when known.
    #[schema(example = "02")]
    mnc: Option<String>,
    /// The keyword of the number that the text begins with, as it was configured.
    keyword: Option<String>,
    /// The newest message of the last 72 hours from this number to this sender.
    #[serde(rename = "inReplyTo")]
    in_reply_to: Option<String>,
    /// Whether a part did not come within a day; `[…]` stands for it.
    #[schema(example = false)]
    incomplete: bool,
}

/// List the inbox
///
/// Messages from handsets to the account's numbers, newest first. The list goes on under the cursor in the header
/// `X-Next-Cursor`, which is there as long as there is more.
#[utoipa::path(
    get,
    path = "/sms/inbox",
    operation_id = "listInbox",
    tag = "SMS",
    params(
        ("from" = Option<String>, Query, min_length = 1, description = "Only messages from this sender.", example = "+37120000001"),
        ("to" = Option<String>, Query, pattern = "^([+]?[1-9][0-9]{6,14}|[0-9]{3,8})$", description = "Only messages to this number or short code.", example = "1234"),
        ("since" = inline(Option<DateTimeText>), Query, description = "Only messages that were received at this time or later, ISO 8601 with offset.", example = "2026-01-31T09:30:00+02:00"),
        ("until" = inline(Option<DateTimeText>), Query, description = "Only messages that were received before this time, ISO 8601 with offset.", example = "2040-01-31T09:30:00+02:00"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "At most so many: 1 to 1000, by default 100."),
        ("cursor" = Option<String>, Query, pattern = "^([1-9][0-9]{0,14}|[1-8][0-9]{15})$", description = "The header `X-Next-Cursor` of the page before."),
    ),
    responses(
        (status = 200, description = "The messages.", body = Vec<InboundMessage>, headers(
            ("X-Next-Cursor" = String, description = "The cursor of the next page; absent on the last one."),
        )),
        (status = 400, description = "A parameter breaks a rule; the message says which.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token has neither `sms:read` nor `sms:send`.", body = Failure),
        (status = 503, description = "Overloaded or without its database; `Retry-After` says when to try again.", body = Failure),
    ),
)]
pub(super) async fn list(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsReadOrSend>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (filter, cursor) = read_query(caller.access.account, query.as_deref().unwrap_or(""))?;
    let page = rest.engine.numbers.list_messages(&filter, cursor).await?;
    let rows: Vec<InboundRecord> = page.rows.iter().map(Message::record).collect();
    Ok(page_response(rows, page.next))
}

/// Read a message of the inbox
#[utoipa::path(
    get,
    path = "/sms/inbox/{id}",
    operation_id = "readInboxMessage",
    tag = "SMS",
    params(("id" = String, Path, pattern = "^([1-9][0-9]{0,14}|[1-8][0-9]{15})$", description = "Its ID, from the list or the callback.", example = "10001")),
    responses(
        (status = 200, description = "The message.", body = InboundMessage),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token has neither `sms:read` nor `sms:send`.", body = Failure),
        (status = 404, description = "This account has no such message.", body = Failure),
    ),
)]
pub(super) async fn find(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsReadOrSend>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let id = read_path(path)?;
    let message = read_id(&id)?;
    let account = Some(caller.access.account);
    let found = rest.engine.numbers.find_message(account, message).await?;
    let found = found.ok_or_else(|| unknown_message(&id))?;
    Ok(axum::Json(found.record()).into_response())
}

fn read_query(
    account: AccountId,
    query: &str,
) -> Result<(InboundFilter, Cursor<MessageId>), Problem> {
    let mut filter = InboundFilter {
        owner: InboundOwner::Account(account),
        ..InboundFilter::default()
    };
    let mut cursor = Cursor {
        before: None,
        limit: DEFAULT_LIST,
    };
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let value = value.as_ref();
        match &*key {
            "from" if value.is_empty() => return Err(invalid("from", value, "give a sender")),
            "from" => filter.from = Some(read_sender(value)),
            "to" => {
                let rule = "give a number in international form, or a short code";
                let to = InboundNumber::parse(value.trim());
                filter.to = Some(to.map_err(|_| invalid("to", value, rule))?);
            }
            "since" => filter.since = Some(read_time("since", value)?),
            "until" => filter.until = Some(read_time("until", value)?),
            _ => read_cursor(&mut cursor, &key, value)?,
        }
    }
    Ok((filter, cursor))
}

/// A sender as it is stored: a number has its plus sign, even if the query has none.
fn read_sender(value: &str) -> String {
    let value = value.trim();
    match InboundNumber::parse(value) {
        Ok(InboundNumber::Msisdn(number)) => Msisdn::to_string(&number),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use domain::message::text::Coding;
    use utoipa::PartialSchema as _;

    use super::*;

    #[test]
    fn a_query_becomes_a_filter() {
        let account = AccountId::new(7).expect("in range");
        let query = "from=37120000001&to=1234&since=2026-01-31T09:30:00%2B02:00&limit=5&cursor=12";
        let (filter, cursor) = read_query(account, query)
            .map_err(Problem::into_message)
            .expect("valid");
        assert_eq!(filter.owner, InboundOwner::Account(account));
        assert_eq!(filter.from.as_deref(), Some("+37120000001"));
        assert_eq!(filter.to.map(|to| to.to_string()).as_deref(), Some("1234"));
        assert!(filter.since.is_some() && filter.until.is_none());
        assert_eq!((cursor.before, cursor.limit), (MessageId::new(12), 5));
        for (query, part) in [
            ("from=", "'from'"),
            ("to=x", "'to': 'x'; give a number"),
            ("since=now", "'since'"),
            ("limit=0", "'limit'"),
        ] {
            let refused = read_query(account, query).map_err(Problem::into_message);
            let refused = refused.expect_err(query);
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn the_schema_has_the_fields_of_the_record() {
        let message = Message {
            id: MessageId::new(1).expect("in range"),
            account: None,
            carrier: String::new(),
            from: String::new(),
            to: InboundNumber::parse("1234").expect("a short code"),
            text: String::new(),
            coding: Coding::Gsm7,
            udh: None,
            network: None,
            parts: 1,
            keyword: None,
            in_reply_to: None,
            is_incomplete: false,
            received_at: domain::Timestamp::UNIX_EPOCH,
            price: domain::Money::ZERO,
        };
        let record = serde_json::to_value(message.record()).expect("JSON");
        let schema = serde_json::to_value(InboundMessage::schema()).expect("JSON");
        let names = |value: &serde_json::Value| -> std::collections::BTreeSet<String> {
            value
                .as_object()
                .expect("an object")
                .keys()
                .cloned()
                .collect()
        };
        assert_eq!(names(&record), names(&schema["properties"]));
    }
}
