//! Opt-outs: recipients that the account must not write to.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use domain::opt_out::{OptOut, OptOutKey, Via};
use domain::quoted::Quoted;
use domain::{Msisdn, Originator};
use engine::Actor;
use engine::refusals::opt_outs::OptOutError;
use http::HeaderValue;
use requests::{InvalidField, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use super::Rest;
use super::body::JsonBody;
use super::caller::{Caller, SmsRead, SmsSend};
use super::document::{Failure, OptOutRequest};
use super::json::{Fields, require};
use super::shapes::{OptOutVia, SenderText};
use super::sms::{in_range, utc};

/// The most entries that a page has, and how many it has by default.
const MAX_LIST: u32 = 1000;
const DEFAULT_LIST: u32 = 100;
const NEXT_CURSOR: &str = "x-next-cursor";

/// A recipient that the account must not write to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OptOutEntry {
    /// The recipient, with a leading plus sign.
    #[schema(example = "+37120000001")]
    number: String,
    /// The sender that the recipient does not want messages from; null for all senders of the account.
    #[schema(example = "Acme")]
    sender: Option<String>,
    /// Since when, UTC, `YYYY-MM-DD HH:MM:SS`.
    #[schema(example = "2030-01-31 07:30:00")]
    since: String,
    /// How it came onto the list: `keyword`, `api`, `dashboard` or `import`.
    #[schema(value_type = OptOutVia)]
    via: &'static str,
}

impl From<OptOut> for OptOutEntry {
    fn from(entry: OptOut) -> Self {
        Self {
            number: entry.key.recipient.to_string(),
            sender: entry.key.sender.map(|sender| sender.to_string()),
            since: utc(entry.since),
            via: entry.via.name(),
        }
    }
}

/// List the opt-outs of the account
///
/// Sorted by number and sender. If there are more, the answer's header `X-Next-Cursor` has the cursor of the next page.
#[utoipa::path(
    get,
    path = "/optOuts",
    operation_id = "listOptOuts",
    tag = "Opt-outs",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "At most so many: 1 to 1000, by default 100."),
        ("cursor" = Option<String>, Query, pattern = "^[1-9][0-9]{6,14}(-(2b3[1-9](3[0-9]){6,14}|(?=(..)*(3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]))((3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|20|2e){1,11}|(3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|20|2[136de]|5f){3,11})))?$", description = "The value of `X-Next-Cursor` of the page before."),
    ),
    responses(
        (status = 200, description = "The entries.", body = Vec<OptOutEntry>, headers(
            ("X-Next-Cursor" = String, description = "Only if there are more."),
        )),
        (status = 400, description = "`limit` is out of range, or the cursor is not one.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sms:read`.", body = Failure),
    ),
)]
pub(super) async fn list(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsRead>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (limit, after) = read_page(query.as_deref().unwrap_or(""))?;
    let account = caller.access.account;
    let opt_outs = &rest.engine.opt_outs;
    let mut entries = opt_outs.list(account, after.as_ref(), limit + 1).await?;
    let has_more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let next = entries
        .last()
        .filter(|_| has_more)
        .map(|last| cursor(&last.key));
    let entries: Vec<OptOutEntry> = entries.into_iter().map(OptOutEntry::from).collect();
    let mut response = axum::Json(entries).into_response();
    if let Some(next) = next.and_then(|next| HeaderValue::try_from(next).ok()) {
        response.headers_mut().insert(NEXT_CURSOR, next);
    }
    Ok(response)
}

/// Put a recipient on the opt-out list
///
/// From now on messages to it end with status 2 and error 27, free of charge, also those that wait to be sent. An entry
/// that was there stays as it is and is returned.
#[utoipa::path(
    post,
    path = "/optOuts",
    operation_id = "addOptOut",
    tag = "Opt-outs",
    request_body = OptOutRequest,
    responses(
        (status = 200, description = "The entry.", body = OptOutEntry, links(
            ("remove" = (operation_id = "removeOptOut", parameters(("number" = "$response.body#/number"), ("sender" = "$response.body#/sender")), description = "Removes the entry. One for all senders has no sender: then leave it out.")),
        )),
        (status = 400, description = "A field breaks a rule; the message says which.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sms:send`.", body = Failure),
        (status = 409, description = "The list is full.", body = Failure),
    ),
)]
pub(super) async fn add(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsSend>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let key = read_key(Fields::parse(&body)?)?;
    let (by, account) = (Actor::token(&caller.access), caller.access.account);
    let added = rest.engine.opt_outs.add(&by, account, key, Via::Api).await;
    let entry = added.map_err(|error| match error {
        full @ OptOutError::Full => Problem::conflict(capitalized(&full.to_string())),
        OptOutError::Store(error) => error.into(),
    })?;
    Ok(axum::Json(OptOutEntry::from(entry)).into_response())
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).chain(['.']).collect()
}

fn read_key(mut fields: Fields<'_>) -> Result<OptOutKey, InvalidField> {
    let number = require(
        fields.take_digits("number")?,
        "number",
        "the recipient's number",
    )?;
    let sender = fields.take_digits("sender")?;
    let recipient = Msisdn::parse(&number).map_err(|error| InvalidField::new("number", error))?;
    let sender = sender.as_deref().map(Originator::parse_approved);
    let sender = sender.transpose();
    let sender = sender.map_err(|error| InvalidField::new("sender", error))?;
    Ok(OptOutKey { recipient, sender })
}

/// An entry that was removed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovedOptOut {
    /// The recipient, with a leading plus sign.
    #[schema(example = "+37120000001")]
    number: String,
    /// The sender; null for all senders of the account.
    #[schema(example = "Acme")]
    sender: Option<String>,
}

/// Take a recipient off the opt-out list
///
/// Without `sender` this removes the entry for all senders, with it the one for that sender.
#[utoipa::path(
    delete,
    path = "/optOuts/{number}",
    operation_id = "removeOptOut",
    tag = "Opt-outs",
    params(
        ("number" = String, Path, pattern = "^[+]?[1-9][0-9]{6,14}$", description = "The recipient's number.", example = "+37120000001"),
        ("sender" = inline(Option<SenderText>), Query, description = "The sender of the entry.", example = "Acme"),
    ),
    responses(
        (status = 200, description = "It is removed.", body = RemovedOptOut),
        (status = 400, description = "The number or the sender is not one.", body = Failure),
        (status = 401, description = "No valid token.", body = Failure),
        (status = 403, description = "The token lacks `sms:send`.", body = Failure),
        (status = 404, description = "The list has no such entry.", body = Failure),
    ),
)]
pub(super) async fn remove(
    State(rest): State<Arc<Rest>>,
    caller: Caller<SmsSend>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let Path(number) =
        path.map_err(|_| Problem::not_found("There is no such opt-out; give a number."))?;
    let invalid =
        |what, error: String| Problem::bad_request(format!("Invalid value for {what}: {error}."));
    let recipient =
        Msisdn::parse(&number).map_err(|error| invalid("the number", error.to_string()))?;
    let query = query.unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let sender = pairs.find(|(key, _)| key == "sender");
    let sender = sender.map(|(_, value)| Originator::parse_approved(&value));
    let sender = sender.transpose();
    let sender =
        sender.map_err(|error| invalid("the query parameter 'sender'", error.to_string()))?;
    let key = OptOutKey { recipient, sender };
    let (by, account) = (Actor::token(&caller.access), caller.access.account);
    let removed = rest.engine.opt_outs.remove(&by, account, &key).await?;
    let sender = key.sender.map(|sender| sender.to_string());
    if !removed {
        let which = sender.map_or_else(
            || "all senders".to_owned(),
            |sender| format!("sender {}", Quoted(&sender)),
        );
        return Err(Problem::not_found(format!(
            "{recipient} is not on the opt-out list for {which}; GET /optOuts shows the list."
        )));
    }
    let removed = RemovedOptOut {
        number: recipient.to_string(),
        sender,
    };
    Ok(axum::Json(removed).into_response())
}

fn read_page(query: &str) -> Result<(u32, Option<OptOutKey>), Problem> {
    let (mut limit, mut after) = (DEFAULT_LIST, None);
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "limit" => {
                let given = in_range("limit", &value, 1, u64::from(MAX_LIST))?;
                limit = u32::try_from(given).unwrap_or(MAX_LIST);
            }
            "cursor" => {
                let unknown = "The query parameter 'cursor' is not one of this list; give the value of \
                               X-Next-Cursor, or leave it out to start again.";
                let read = read_cursor(&value);
                after = Some(read.ok_or_else(|| Problem::bad_request(unknown))?);
            }
            _ => {}
        }
    }
    Ok((limit, after))
}

/// The digits of the number, and the sender in hex.
fn cursor(key: &OptOutKey) -> String {
    let mut cursor = key.recipient.digits().to_owned();
    if let Some(sender) = &key.sender {
        cursor.push('-');
        for byte in sender.to_string().bytes() {
            write!(cursor, "{byte:02x}").expect("strings take everything");
        }
    }
    cursor
}

fn read_cursor(cursor: &str) -> Option<OptOutKey> {
    let (digits, hex) = cursor
        .split_once('-')
        .map_or((cursor, None), |(digits, hex)| (digits, Some(hex)));
    let recipient = Msisdn::parse(digits).ok()?;
    let sender = match hex {
        None => None,
        Some(hex) => {
            let bytes = (0..hex.len()).step_by(2);
            let bytes = bytes.map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok());
            let sender = String::from_utf8(bytes.collect::<Option<_>>()?).ok()?;
            Some(Originator::parse_approved(&sender).ok()?)
        }
    };
    Some(OptOutKey { recipient, sender })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back() {
        for sender in [None, Some("Acme Inc."), Some("+37120000001"), Some("12345")] {
            let key = OptOutKey {
                recipient: Msisdn::parse("+37120000002").expect("a number"),
                sender: sender.map(|sender| Originator::parse(sender).expect("a sender")),
            };
            assert_eq!(read_cursor(&cursor(&key)), Some(key), "{sender:?}");
        }
        for wrong in [
            "",
            "abc",
            "37120000002-",
            "37120000002-4",
            "37120000002-zz",
            "1",
        ] {
            assert_eq!(read_cursor(wrong), None, "{wrong}");
        }
    }
}
