//! Tools for sender IDs.

use domain::Permission;
use domain::sender::{SenderKind, SenderState};
use serde_json::{Value, json};

use super::paging::{CURSOR, LIMIT, NEXT_CURSOR, Page, cursor_schema, limit_schema, next_schema};
use super::{Answer, Arguments, Hints, Tool, body_without, in_address, nullable};
use crate::mcp::api::ApiRequest;

pub(super) static REGISTER_SENDER_ID: Tool = Tool {
    name: "register_sender_id",
    title: "Register a sender name",
    description: "Registers an alphanumeric name, such as a company's, as a sender of messages. Free of charge. \
A person reviews it; until then its status is pending.",
    scope: Some(Permission::SenderWrite),
    waits: false,
    hints: Hints::ADDS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 3, "maxLength": 11, "description": "Latin letters, digits, spaces, dots and - _ & # !; some operators show the symbols wrongly." },
                "category": { "type": "string", "enum": ["Company", "Product", "Brand", "Shortcode", "Landline", "Other"] },
                "categoryDescription": { "type": "string", "minLength": 1, "maxLength": 1000, "description": "For the reviewer: why the account may use the name." },
                "notificationUrl": notification_schema(),
            },
            "required": ["name", "category", "categoryDescription"],
            "examples": [{ "name": "Acme", "category": "Company", "categoryDescription": "The name of our company, Acme Ltd." }],
        })
    },
    output: registered_schema,
    ask: |arguments| Ok(register(arguments, SenderKind::AlphaNumeric)),
    read: |_, answer| {
        let next =
            "A person reviews the name. Messages under it may be refused until it is approved.";
        registered(answer, SenderState::Pending, next)
    },
};

pub(super) static REGISTER_MSISDN_SENDER: Tool = Tool {
    name: "register_msisdn_sender",
    title: "Register a mobile number as sender",
    description: "Registers a mobile number of the user as a sender of messages. Free of charge. \
The service sends a PIN of 5 digits to it by SMS; ask the user for it and give it to confirm_msisdn_sender. Calling this again sends a new PIN, once a minute at most.",
    scope: Some(Permission::SenderWrite),
    waits: false,
    hints: Hints {
        open_world: true,
        ..Hints::ADDS
    },
    input: || {
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "The number in international form." },
                "notificationUrl": notification_schema(),
            },
            "required": ["name"],
            "examples": [{ "name": "+37120000001" }],
        })
    },
    output: registered_schema,
    ask: |arguments| Ok(register(arguments, SenderKind::Msisdn)),
    read: |_, answer| {
        let next = "A PIN of 5 digits was sent to the number by SMS. Ask the user for it and call confirm_msisdn_sender with this senderId within 10 minutes.";
        registered(answer, SenderState::AwaitingConfirmation, next)
    },
};

pub(super) static CONFIRM_MSISDN_SENDER: Tool = Tool {
    name: "confirm_msisdn_sender",
    title: "Confirm a mobile number",
    description: "Confirms a number with the PIN that register_msisdn_sender sent to it. Free of charge. \
The user reads the PIN on the handset; never guess it: after five wrong ones it is void.",
    scope: Some(Permission::SenderWrite),
    waits: false,
    hints: Hints::ADDS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "senderId": { "type": "integer", "minimum": 1, "description": "From register_msisdn_sender." },
                "code": { "type": "string", "pattern": "^[0-9]{5}$", "description": "The PIN." },
            },
            "required": ["senderId", "code"],
            "examples": [{ "senderId": 123, "code": "12345" }],
        })
    },
    output: || {
        json!({
            "senderId": { "type": "integer" },
            "status": { "type": "string" },
        })
    },
    ask: |arguments| {
        let id = in_address(
            arguments,
            "senderId",
            "the ID that the registration returned",
        )?;
        let body = body_without(arguments, &["senderId"]);
        Ok(ApiRequest::post(
            format!("/senderId/confirm/{id}"),
            Value::Object(body),
        ))
    },
    read: |_, answer| {
        let confirmed = answer.json()?;
        Some(json!({
            "senderId": confirmed["id"].as_u64()?,
            "status": confirmed["status"].as_str()?,
        }))
    },
};

pub(super) static LIST_SENDERS: Tool = Tool {
    name: "list_senders",
    title: "List the account's senders",
    description: "Lists the names and numbers that the account has registered as senders, with the status of each. Free of charge. \
Use it to choose the from of send_sms. An account that is limited to approved senders may use only those with status approved.",
    scope: Some(Permission::SenderWrite),
    waits: false,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                LIMIT: limit_schema(),
                CURSOR: cursor_schema(),
            },
            "examples": [{ "cursor": "100" }],
        })
    },
    output: || {
        json!({
            "senders": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "integer" },
                        "name": { "type": "string" },
                        "type": { "type": "string", "enum": [SenderKind::AlphaNumeric.name(), SenderKind::Msisdn.name()] },
                        "status": { "type": "string" },
                        "reason": nullable("string"),
                        "category": nullable("string"),
                        "categoryDescription": nullable("string"),
                        "notificationUrl": nullable("string"),
                        "created": { "type": "string" },
                    },
                },
            },
            NEXT_CURSOR: next_schema(),
        })
    },
    ask: |arguments| {
        let Page { limit, offset } = Page::read(arguments)?;
        // One more than asked for shows whether there is a next page.
        let path = format!("/senderId?limit={}&offset={offset}", limit + 1);
        Ok(ApiRequest::get(path))
    },
    read: |arguments, answer| {
        let page = Page::read(arguments).ok()?;
        let Value::Array(senders) = answer.list()? else {
            return None;
        };
        let (senders, next) = page.cut(senders);
        Some(json!({ "senders": senders, NEXT_CURSOR: next }))
    },
};

fn notification_schema() -> Value {
    json!({ "type": "string", "format": "uri", "description": "Gets each change of the status." })
}

fn registered_schema() -> Value {
    json!({
        "senderId": { "type": "integer" },
        "status": { "type": "string" },
        "next": { "type": "string" },
    })
}

fn register(arguments: &Arguments, kind: SenderKind) -> ApiRequest {
    let mut body = body_without(arguments, &["type"]);
    body.insert("type".to_owned(), kind.name().into());
    ApiRequest::post("/senderId", Value::Object(body))
}

/// REST answers with the ID alone, as plain text.
fn registered(answer: &Answer<'_>, state: SenderState, next: &str) -> Option<Value> {
    let id: u64 = std::str::from_utf8(answer.response.body())
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(json!({ "senderId": id, "status": state.name(), "next": next }))
}
