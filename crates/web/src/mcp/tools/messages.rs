//! Tools for messages.

mod preview;

use domain::Permission;
use domain::ports::StateName;
use serde_json::{Value, json};

use super::{
    Arguments, FINAL, Hints, KEY, Tool, WAIT, body_without, in_address, key, key_schema, nullable,
    wait_schema,
};
use crate::mcp::api::ApiRequest;
use crate::mcp::envelope::Envelope;

pub(super) static SEND_SMS: Tool = Tool {
    name: "send_sms",
    title: "Send an SMS",
    description: "Sends a text message to one or more mobile numbers. COSTS MONEY: each part and each recipient is charged, and a message that was sent cannot be taken back. \
A part has up to 160 GSM characters, or 70 if any other character occurs, such as an emoji. Longer texts are split into parts of 153 (67). \
Returns one message ID for each recipient. To see whether a message arrives, call get_message with its ID and waitSeconds 30.",
    scope: Some(Permission::SmsSend),
    waits: false,
    hints: Hints::SPENDS,
    input: send_input,
    output: || {
        json!({
            "messageIds": { "type": "array", "items": { "type": "string" } },
            "parts": { "type": "integer" },
            "to": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] },
            "sent": preview::sent_schema(),
            "accepted": preview::accepted_schema(),
            "refusal": preview::refusal_schema(),
            "cost": preview::cost_schema(),
        })
    },
    ask: |arguments| {
        let body = Value::Object(body_without(arguments, &[PREVIEW, KEY]));
        let key = key(arguments)?;
        if is_preview(arguments)? {
            return Ok(ApiRequest::post("/sms/check", body));
        }
        Ok(ApiRequest::post("/sms", body).with_key(key))
    },
    read: |arguments, answer| {
        let to = recipients_as_text(arguments);
        if is_preview(arguments).ok()? {
            return preview::read(&to, answer);
        }
        Some(json!({
            "messageIds": answer.list()?,
            "parts": answer.number(answer.amount_header)?,
            "to": to,
        }))
    },
};

const PREVIEW: &str = "preview";

/// Other values are an error, because the caller may have meant that nothing should be sent.
fn is_preview(arguments: &Arguments) -> Result<bool, Envelope> {
    match arguments.get(PREVIEW) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(is_preview)) => Ok(*is_preview),
        Some(_) => Err(Envelope::invalid(format!(
            "Invalid value for the argument '{PREVIEW}'; give true or false."
        ))),
    }
}

/// The arguments that preview this call, if it would send a message that costs money.
pub(in crate::mcp) fn preview_of(tool: &Tool, arguments: &Arguments) -> Option<Arguments> {
    let is_test = arguments
        .get("testMode")
        .is_some_and(|mode| !mode.is_null());
    if tool.name != SEND_SMS.name || is_test || is_preview(arguments).unwrap_or(true) {
        return None;
    }
    let mut preview = arguments.clone();
    preview.insert(PREVIEW.to_owned(), Value::Bool(true));
    Some(preview)
}

/// The recipients as given; numbers become texts.
fn recipients_as_text(arguments: &Arguments) -> Value {
    let text = |value: &Value| match value {
        Value::Number(number) => Value::String(number.to_string()),
        other => other.clone(),
    };
    match arguments.get("to") {
        Some(Value::Array(list)) => list.iter().map(text).collect(),
        Some(one) => text(one),
        None => Value::Null,
    }
}

/// One number or a list. Many clients do not support a list of types, so each form has its own.
fn recipients(description: &str) -> Value {
    json!({
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "maxItems": 1000 }],
        "description": description,
    })
}

fn send_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "to": recipients("A number in international form, such as +37120000001. Several: a list or separated by commas, at most 1000."),
            "from": { "type": "string", "description": "The sender that the handset shows: a number, a registered name, or 1 to 11 Latin letters, digits, spaces and dots." },
            "message": { "type": "string", "minLength": 1 },
            "dlrUrl": { "type": "string", "format": "uri", "description": "Gets the delivery report." },
            "priority": { "type": "string", "enum": ["high", "normal", "low"], "description": "high for codes and urgent notices, low for mass messages. Default normal." },
            "scheduled": { "type": "string", "description": "When to send, up to a year ahead: ISO 8601 with offset, such as 2030-01-31T09:30:00+02:00." },
            "udh": { "type": "string", "description": "User data header, each hex pair prefixed with %. Needs coding; the text is not split.", "pattern": "^(%[0-9A-Fa-f]{2})+$" },
            "coding": { "type": "integer", "enum": [0, 1, 2], "description": "0 GSM-7, 1 8-bit, 2 UCS-2. Leave it out to let the service choose." },
            "preview": { "type": "boolean", "description": "true: send and charge nothing. Returns the parts, the price (of the first 20 recipients) and whether the message would be accepted; if not, refusal says why." },
            "idempotencyKey": key_schema(),
            "testMode": { "type": "string", "enum": ["1", "2"], "description": "1 emulates a delivery, 2 a failure. Nothing is sent or charged." },
            "expireIn": { "type": "integer", "minimum": 360, "maximum": 432_000, "description": "Seconds until the service stops trying." },
            "correctBy": { "type": "string", "pattern": "^[A-Za-z]{2}$", "description": "The country of local numbers, ISO 3166-1 alpha-2." },
        },
        "required": ["to", "from", "message"],
        "examples": [{ "to": "+37120000001", "from": "Acme", "message": "Your table is ready." }],
    })
}

pub(super) static GET_MESSAGE: Tool = Tool {
    name: "get_message",
    title: "See whether a message was delivered",
    description: "Returns the state of a message that was sent with send_sms. Free of charge. \
With waitSeconds it answers as soon as the message has ended. If final is false, call it again; a phone that is off may take hours. If state is failed, error is the service's code of the reason.",
    scope: Some(Permission::SmsSend),
    waits: true,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "id": message_id_schema(),
                WAIT: wait_schema(),
            },
            "required": ["id"],
            "examples": [{ "id": "10001", WAIT: 30 }],
        })
    },
    output: || {
        json!({
            "id": { "type": "string" },
            "state": { "type": "string", "enum": StateName::ALL.map(StateName::name) },
            FINAL: { "type": "boolean" },
            "status": nullable("integer"),
            // An object if the call failed.
            "error": { "anyOf": [{ "type": "integer" }, { "type": "null" }, { "type": "object" }] },
            "dlrDate": nullable("string"),
            "parts": { "type": "integer" },
            "mcc": nullable("string"),
            "mnc": nullable("string"),
        })
    },
    ask: |arguments| {
        let id = in_address(arguments, "id", MESSAGE_ID)?;
        Ok(ApiRequest::get(format!("/sms/status/{id}")))
    },
    read: |_, answer| {
        let mut message = answer.json().filter(Value::is_object)?;
        message[FINAL] = json!(!message["status"].is_null());
        Some(message)
    },
};

pub(super) static CANCEL_MESSAGE: Tool = Tool {
    name: "cancel_message",
    title: "Cancel a scheduled message",
    description: "Cancels a message that is still scheduled, and refunds its price. Free of charge. \
It cannot be undone. A message in another state is refused with CONFLICT.",
    scope: Some(Permission::SmsSend),
    waits: false,
    hints: Hints::REMOVES,
    input: || {
        json!({
            "type": "object",
            "properties": { "id": message_id_schema() },
            "required": ["id"],
            "examples": [{ "id": "10001" }],
        })
    },
    output: || {
        json!({
            "id": { "type": "string" },
            "status": { "type": "string" },
        })
    },
    ask: |arguments| {
        let id = in_address(arguments, "id", MESSAGE_ID)?;
        Ok(ApiRequest::delete(format!("/sms/{id}")))
    },
    read: |_, answer| answer.json().filter(Value::is_object),
};

const MESSAGE_ID: &str = "an ID that send_sms returned";

fn message_id_schema() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]+$", "description": "One of the messageIds from send_sms." })
}
