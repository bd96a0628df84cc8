//! The list of messages.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use domain::message::MessageState;
use domain::message::schedule::parse_date_time;
use domain::ports::{Cursor, MessageFilter, MessageSummary, StateName};
use domain::quoted::Quoted;
use domain::{AccountId, MessageId, Msisdn, Timestamp};
use engine::reading::history::MAX_LIST_SIZE;
use http::{HeaderName, HeaderValue};
use requests::Problem;
use serde::Serialize;
use utoipa::ToSchema;

use super::Rest;
use super::caller::{Caller, SmsRead};
use super::document::Failure;
use super::shapes::{ChannelName, DateTimeText, MessageStateName};
use super::sms::{ended, in_range, utc};

/// The length of a list if the caller gives no limit.
pub(super) const DEFAULT_LIST: u32 = 100;
const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// A message in the list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ListedMessage {
    /// The ID that the submission returned.
    #[schema(example = "10001")]
    id: String,
    /// `sms`, `viber` or `hlr` (a lookup).
    #[schema(value_type = ChannelName)]
    channel: &'static str,
    /// The originator; null for a lookup.
    #[schema(example = "Acme")]
    from: Option<String>,
    /// The recipient, with a leading plus sign; null if it was erased.
    #[schema(example = "+37120000001")]
    to: Option<String>,
    /// When it was accepted, UTC, `YYYY-MM-DD HH:MM:SS`.
    #[schema(example = "2030-01-31 07:30:00")]
    accepted: String,
    /// When it is to be sent, UTC, `YYYY-MM-DD HH:MM:SS`; null unless it is scheduled and still waits.
    #[schema(example = "2030-01-31 07:30:00")]
    scheduled: Option<String>,
    /// The state of the message.
    #[schema(value_type = MessageStateName)]
    state: &'static str,
    /// 1 delivered, 2 not delivered, 16 expired after it was sent; null until that is known.
    #[schema(example = 1)]
    status: Option<u8>,
    /// The service error code; null until the status is known.
    #[schema(example = 0)]
    error: Option<u16>,
    /// Into how many parts it splits.
    #[schema(example = 1)]
    parts: u8,
    /// The price at acceptance, all parts together, as a decimal. Refunds are not subtracted.
    #[schema(example = "0.045")]
    price: String,
}

impl From<MessageSummary> for ListedMessage {
    fn from(message: MessageSummary) -> Self {
        let ended = ended(message.state);
        Self {
            id: message.id.to_string(),
            channel: message.channel.name(),
            from: message.from,
            to: message.to.map(|to| to.to_string()),
            accepted: utc(message.accepted_at),
            scheduled: match message.state {
                MessageState::Scheduled { at } => Some(utc(at)),
                _ => None,
            },
            state: message.state.name(),
            status: ended.map(|(status, _, _)| status),
            error: ended.map(|(_, error, _)| error),
            parts: message.parts,
            price: message.price.to_string(),
        }
    }
}

/// List the account's messages
///
/// Newest first, lookups included. A list goes on under the cursor in the header `X-Next-Cursor`, which is there as long
/// as there is more. Messages that are accepted in the meantime do not shift the pages. A search for rare messages is
/// limited in time: a page may have fewer messages than asked for, even none, and still have a cursor.
#[utoipa::path(
    get,
    path = "/messages",
    operation_id = "listMessages",
    tag = "Messages",
    params(
        ("from" = Option<String>, Query, min_length = 1, description = "Only messages from this originator, written exactly so; a number with or without its plus sign.", example = "Acme"),
        ("to" = Option<String>, Query, pattern = "^[+]?[1-9][0-9]{6,14}$", description = "Only messages to this number, in international form.", example = "+37120000001"),
        ("state" = inline(Option<MessageStateName>), Query, description = "Only messages in this state.", example = "delivered"),
        ("channel" = inline(Option<ChannelName>), Query, description = "Only messages of this channel; `hlr` are lookups.", example = "sms"),
        ("since" = inline(Option<DateTimeText>), Query, description = "Only messages that were accepted at this time or later, ISO 8601 with offset.", example = "2026-01-31T09:30:00+02:00"),
        ("until" = inline(Option<DateTimeText>), Query, description = "Only messages that were accepted before this time, ISO 8601 with offset.", example = "2040-01-31T09:30:00+02:00"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "At most so many: 1 to 1000, by default 100."),
        ("cursor" = Option<String>, Query, pattern = "^([1-9][0-9]{0,14}|[1-8][0-9]{15})$", description = "The header `X-Next-Cursor` of the page before."),
    ),
    responses(
        (status = 200, description = "The messages.", body = Vec<ListedMessage>, headers(
            ("X-Next-Cursor" = String, description = "The cursor of the next page; absent on the last one."),
        )),
        (status = 400, description = "A parameter breaks a rule; the message says which.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sms:read`.", body = Failure),
        (status = 503, description = "Overloaded or without its database; `Retry-After` says when to try again.", body = Failure),
    ),
)]
pub(super) async fn list(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsRead>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (filter, cursor) = read_query(caller.access.account, query.as_deref().unwrap_or(""))?;
    let page = rest.engine.history.list_messages(&filter, cursor).await?;
    let rows: Vec<ListedMessage> = page.rows.into_iter().map(ListedMessage::from).collect();
    Ok(page_response(rows, page.next))
}

/// A page, with the cursor of the next one in a header.
pub(super) fn page_response(rows: impl Serialize, next: Option<MessageId>) -> Response {
    let mut response = axum::Json(rows).into_response();
    if let Some(next) = next {
        let next = HeaderValue::from(next.get());
        response.headers_mut().insert(NEXT_CURSOR, next);
    }
    response
}

fn read_query(
    account: AccountId,
    query: &str,
) -> Result<(MessageFilter, Cursor<MessageId>), Problem> {
    let mut filter = MessageFilter {
        account: Some(account),
        ..MessageFilter::default()
    };
    let mut cursor = Cursor {
        before: None,
        limit: DEFAULT_LIST,
    };
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let value = value.as_ref();
        match &*key {
            "from" if value.is_empty() => {
                return Err(invalid("from", value, "give an originator"));
            }
            "from" => filter.from = Some(value.to_owned()),
            "to" => {
                let rule = "give a number in international form";
                let to = Msisdn::parse(value).map_err(|_| invalid("to", value, rule))?;
                filter.to = Some(to);
            }
            "state" => filter.state = Some(read_state(value)?),
            "channel" => {
                let rule = "give sms, viber or hlr";
                let channel = value.parse().map_err(|_| invalid("channel", value, rule))?;
                filter.channel = Some(channel);
            }
            "since" => filter.since = Some(read_time("since", value)?),
            "until" => filter.until = Some(read_time("until", value)?),
            _ => read_cursor(&mut cursor, &key, value)?,
        }
    }
    Ok((filter, cursor))
}

/// Reads the parameters that lists have in common; others are ignored.
pub(super) fn read_cursor(
    cursor: &mut Cursor<MessageId>,
    key: &str,
    value: &str,
) -> Result<(), Problem> {
    match key {
        "limit" => {
            let limit = in_range("limit", value, 1, u64::from(MAX_LIST_SIZE))?;
            cursor.limit = u32::try_from(limit).unwrap_or(MAX_LIST_SIZE);
        }
        "cursor" => {
            let rule = "give the header X-Next-Cursor of the page before";
            let before = value.parse().map_err(|_| invalid("cursor", value, rule))?;
            cursor.before = Some(before);
        }
        _ => {}
    }
    Ok(())
}

fn read_state(value: &str) -> Result<StateName, Problem> {
    let mut states = StateName::ALL.into_iter();
    states.find(|state| state.name() == value).ok_or_else(|| {
        let names = StateName::ALL.map(StateName::name).join(", ");
        invalid("state", value, &format!("give one of {names}"))
    })
}

/// A plus sign that was not escaped arrives as a space.
pub(super) fn read_time(name: &str, value: &str) -> Result<Timestamp, Problem> {
    parse_date_time(&value.replace(' ', "+")).map_err(|error| {
        Problem::bad_request(format!(
            "Invalid value for the query parameter '{name}': {error}."
        ))
    })
}

pub(super) fn invalid(name: &str, value: &str, rule: &str) -> Problem {
    let shown = Quoted(value);
    Problem::bad_request(format!(
        "Invalid value for the query parameter '{name}': {shown}; {rule}."
    ))
}

#[cfg(test)]
mod tests {
    use domain::Channel;

    use super::*;

    fn read(query: &str) -> Result<(MessageFilter, Cursor<MessageId>), String> {
        let account = AccountId::new(7).expect("in range");
        read_query(account, query).map_err(Problem::into_message)
    }

    #[test]
    fn a_query_becomes_a_filter() {
        let query = "from=Acme&to=%2B37120000001&state=failed&channel=viber&since=2026-01-31T09:30:00%2B02:00\
            &until=2026-02-01T00:00:30Z&limit=1000&cursor=12&colour=red";
        let (filter, cursor) = read(query).expect("valid");
        assert_eq!(filter.account, AccountId::new(7));
        assert_eq!(filter.from.as_deref(), Some("Acme"));
        let to = filter.to.map(|to| to.to_string());
        assert_eq!(to.as_deref(), Some("+37120000001"));
        assert_eq!(filter.state, Some(StateName::Failed));
        assert_eq!(filter.channel, Some(Channel::Viber));
        let shown = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
        assert_eq!(shown(filter.since), "2026-01-31T07:30:00Z");
        assert_eq!(shown(filter.until), "2026-02-01T00:00:30Z");
        assert_eq!((cursor.before, cursor.limit), (MessageId::new(12), 1000));
        // A plus sign that was not escaped.
        let (filter, cursor) =
            read("to=+37120000001&since=2026-01-31T09:30:00+02:00").expect("valid");
        assert_eq!(filter.to.map(|to| to.to_string()), to);
        assert_eq!(shown(filter.since), "2026-01-31T07:30:00Z");
        assert_eq!((cursor.before, cursor.limit), (None, 100));
    }

    #[test]
    fn invalid_parameters_are_named_with_their_rule() {
        for (query, expected) in [
            ("from=", "'from': ''; give an originator"),
            ("to=nobody", "'to': 'nobody'; give a number"),
            ("to=", "'to': ''"),
            (
                "state=lost",
                "'state': 'lost'; give one of scheduled, queued",
            ),
            ("state=", "'state': ''"),
            (
                "channel=pigeon",
                "'channel': 'pigeon'; give sms, viber or hlr",
            ),
            (
                "since=yesterday",
                "'since': 'yesterday' is not a date-time with offset",
            ),
            ("since=2026-01-31T09:30:00", "'since'"),
            ("until=2026-01-31T09:30:00%2B15:00", "'until'"),
            (
                "limit=0",
                "'limit': '0'; give a whole number from 1 to 1000",
            ),
            ("limit=1001", "'limit': '1001'"),
            (
                "cursor=abc",
                "'cursor': 'abc'; give the header X-Next-Cursor",
            ),
            ("cursor=0", "'cursor'"),
            ("cursor=", "'cursor'"),
        ] {
            let message = read(query).expect_err(query);
            assert!(message.contains(expected), "{query}: {message}");
            assert!(message.ends_with('.'), "{query}: {message}");
        }
    }
}
