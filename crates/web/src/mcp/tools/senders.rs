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
    description: "Registers an alphanumeric name, such as a company's, for messages to come from. Free of charge. \
A person reviews it, so say what entitles the account to the name; until then its status is pending. If there is a notificationUrl, the service posts each change of the status to it.\n\n\
Example: {\"name\": \"Acme\", \"category\": \"Company\", \"categoryDescription\": \"The name of our company, Acme Ltd.\"}",
    scope: Some(Permission::SenderWrite),
    waits: false,
    hints: Hints::ADDS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 3, "maxLength": 11, "description": "Latin letters, digits, spaces, dots and - _ & # !; some operators show the symbols wrongly.", "examples": ["Acme"] },
                "category": { "type": "string", "enum": ["Company", "Product", "Brand", "Shortcode", "Landline", "Other"], "description": "What the name stands for." },
                "categoryDescription": { "type": "string", "minLength": 1, "maxLength": 1000, "description": "For the reviewer: what entitles the account to the name." },
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
    description: "Registers a mobile number of the user's own for messages to come from. Free of charge. \
The service sends a PIN of 5 digits to that number by SMS; ask the user for it and give it to confirm_msisdn_sender. For a number that still waits for its PIN, calling this again sends a new one, once a minute at most.\n\n\
Example: {\"name\": \"+37120000001\"}",
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
                "name": { "type": "string", "description": "The number in international form.", "examples": ["+37120000001"] },
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
    description: "Confirms a number by the PIN that register_msisdn_sender had sent to it. Free of charge. \
The user reads the PIN on the handset; never guess it: after five wrong ones it is void.\n\n\
Example: {\"senderId\": 123, \"code\": \"12345\"}",
    scope: Some(Permission::SenderWrite),
    waits: false,
    hints: Hints::ADDS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "senderId": { "type": "integer", "minimum": 1, "description": "The ID that register_msisdn_sender returned.", "examples": [123] },
                "code": { "type": "string", "pattern": "^[0-9]{5}$", "description": "The 5 digits of the PIN.", "examples": ["12345"] },
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
    description: "Lists the names and numbers that the account has registered for messages to come from, with the status of each. Free of charge. \
Use it to choose the from of send_sms, or to see whether a registration was approved. Only those whose status is approved may be used where the account is limited to approved senders. Ascending by ID; when nextCursor is not null, call it again with that cursor.\n\n\
Example: {}\n\
Example, the next page: {\"cursor\": \"100\"}",
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
            "examples": [{}],
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
    json!({ "type": "string", "format": "uri", "description": "An http or https address that each change of the status is posted to." })
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
