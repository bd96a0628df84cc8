//! Tools for messages.

mod preview;

use domain::Permission;
use domain::ports::StateName;
use serde_json::{Value, json};

use super::{
    Arguments, FINAL, Hints, KEY, Tool, WAIT, body_without, in_address, key, key_schema, nullable,
    sometimes, wait_schema,
};
use crate::mcp::api::ApiRequest;
use crate::mcp::envelope::Envelope;

pub(super) static SEND_SMS: Tool = Tool {
    name: "send_sms",
    title: "Send an SMS",
    description: "Sends a text message to one or several mobile numbers. COSTS MONEY: the account is charged for each part and each recipient, and a message cannot be taken back once it is sent. \
A text of up to 160 GSM characters (70 when it has any other character, such as an emoji) is one part; a longer one is split by itself into parts of 153 (67). get_sms_rates tells the price of a part. \
Answers with one message ID for each recipient as soon as the messages are stored; to see whether one arrives, call get_message with its ID and waitSeconds 30. A dlrUrl, when one is given, gets the report too. \
With preview true nothing is sent or charged: the answer tells the parts, what they would cost, and whether the message would be accepted; if not, refusal says why. Of many recipients it has the first 20. \
With testMode \"1\" or \"2\" nothing leaves the service and nothing is charged. \
Give an idempotencyKey, so that a call that is made again after an error does not send twice.\n\n\
Example: {\"to\": \"+37120000001\", \"from\": \"Acme\", \"message\": \"Your table is ready.\"}\n\
Example, to know the price first: {\"to\": \"+37120000001\", \"from\": \"Acme\", \"message\": \"Your table is ready.\", \"preview\": true}\n\
Example, free of charge: {\"to\": \"+37120000001\", \"from\": \"Acme\", \"message\": \"Hello\", \"testMode\": \"1\"}",
    scope: Some(Permission::SmsSend),
    waits: false,
    hints: Hints::SPENDS,
    input: send_input,
    output: || {
        json!({
            "messageIds": { "type": "array", "items": { "type": "string" } },
            "parts": { "type": "integer" },
            "to": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] },
            "sent": sometimes(&preview::sent_schema()),
            "accepted": sometimes(&preview::accepted_schema()),
            "refusal": sometimes(&preview::refusal_schema()),
            "cost": sometimes(&preview::cost_schema()),
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
            "to": recipients("The recipient's number in international form, such as +37120000001; several as a list or separated by commas, at most 1000. Each is charged."),
            "from": {
                "type": "string",
                "description": "The sender that the handset shows: a number, or 1 to 11 Latin letters, digits, spaces and dots; or a registered name.",
                "examples": ["Acme"],
            },
            "message": { "type": "string", "minLength": 1, "description": "The text. A long one is split by itself, and each part is charged." },
            "dlrUrl": { "type": "string", "format": "uri", "description": "An http or https address that receives the delivery report." },
            "priority": { "type": "string", "enum": ["high", "normal", "low"], "description": "high for codes and urgent notices, low for mass messages; normal when absent." },
            "scheduled": { "type": "string", "description": "When to send: ISO 8601 with offset, up to a year ahead.", "examples": ["2030-01-31T09:30:00+02:00"] },
            "udh": { "type": "string", "description": "User data header, each hex pair prefixed with %. Needs coding, and nothing is split then.", "pattern": "^(%[0-9A-Fa-f]{2})+$" },
            "coding": { "type": "integer", "enum": [0, 1, 2], "description": "0 GSM-7, 1 8-bit, 2 UCS-2. Leave it out: the service finds the right one and splits." },
            "preview": { "type": "boolean", "description": "true: send nothing and charge nothing, and tell the parts, the price and whether the message would be accepted." },
            "idempotencyKey": key_schema(),
            "testMode": { "type": "string", "enum": ["1", "2"], "description": "1 emulates a delivery, 2 a failure; nothing leaves the service and nothing is charged." },
            "expireIn": { "type": "integer", "minimum": 360, "maximum": 432_000, "description": "Seconds after which the message is no longer attempted." },
            "correctBy": { "type": "string", "pattern": "^[A-Za-z]{2}$", "description": "ISO 3166-1 alpha-2 country that a local number is completed for.", "examples": ["LV"] },
        },
        "required": ["to", "from", "message"],
        "examples": [{ "to": "+37120000001", "from": "Acme", "message": "Your table is ready." }],
    })
}

pub(super) static GET_MESSAGE: Tool = Tool {
    name: "get_message",
    title: "See whether a message was delivered",
    description: "Tells what became of a message that send_sms returned the ID of. Free of charge. \
Use it after send_sms to see whether the message was delivered: with waitSeconds the answer comes as soon as the message has ended, or after that time with its present state. When final is false, call it again; a phone that is switched off may take hours. \
state is scheduled, queued, sent, delivered, failed, expired or cancelled; when it failed, error is the service's code of the reason. \
To call off a message that is still scheduled, use cancel_message.\n\n\
Example: {\"id\": \"10001\", \"waitSeconds\": 30}\n\
Example, without waiting: {\"id\": \"10001\"}",
    scope: Some(Permission::SmsSend),
    waits: true,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "id": message_id_schema(),
                WAIT: wait_schema("How many seconds to wait for the message to end: 0 to 30. 0 or absent: the answer comes at once."),
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
            "error": nullable("integer"),
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
    description: "Cancels a message that was sent with scheduled and still waits for its time. Free of charge: the price of the message is refunded. \
It cannot be undone. A message that is already on its way, or that was cancelled before, is refused with CONFLICT; get_message returns its state.\n\n\
Example: {\"id\": \"10001\"}",
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
    json!({ "type": "string", "pattern": "^[0-9]+$", "description": "One of the messageIds that send_sms returned.", "examples": ["10001"] })
}
