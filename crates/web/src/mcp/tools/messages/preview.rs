//! The preview of `send_sms`: what a message would cost, and whether it would be accepted.

use domain::Code;
use http::StatusCode;
use serde_json::{Value, json};

use super::super::{Answer, nullable};
use crate::mcp::envelope::{ErrorCode, is_permanent};

/// How many of the recipients a preview lists.
const MAX_LISTED: usize = 20;

pub(super) fn cost_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "totalPrice": { "type": "string" },
            "currency": { "type": "string" },
            "recipientCount": { "type": "integer" },
            "recipients": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "to": { "type": "string" },
                        "parts": { "type": "integer" },
                        "coding": { "type": "integer" },
                        "countryISO": nullable("string"),
                        "mccmnc": nullable("string"),
                        "pricePerPart": { "type": "string" },
                        "totalPrice": { "type": "string" },
                        "currency": { "type": "string" },
                    },
                },
            },
        },
    })
}

pub(super) fn sent_schema() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn accepted_schema() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn refusal_schema() -> Value {
    nullable("object")
}

/// Builds the result from the answer of REST.
pub(super) fn read(to: &Value, answer: &Answer<'_>) -> Option<Value> {
    let check = answer.json()?;
    let recipients = check["recipients"].as_array()?;
    Some(json!({
        "messageIds": [],
        "sent": false,
        "accepted": check["accepted"].as_bool()?,
        "refusal": read_refusal(&check["refusal"], is_permanent(answer.response.headers()))?,
        "parts": check["parts"].as_u64()?,
        "to": to.as_array().map_or_else(|| to.clone(), |to| json!(first(to))),
        "cost": {
            "totalPrice": check["totalPrice"].as_str()?,
            "currency": check["currency"].as_str()?,
            "recipientCount": recipients.len(),
            "recipients": first(recipients),
        },
    }))
}

fn first(list: &[Value]) -> &[Value] {
    &list[..list.len().min(MAX_LISTED)]
}

/// As sending the message would report it.
fn read_refusal(refusal: &Value, is_permanent: bool) -> Option<Value> {
    if refusal.is_null() {
        return Some(Value::Null);
    }
    let status = u16::try_from(refusal["status"].as_u64()?).ok()?;
    let code = ErrorCode::from_status(StatusCode::from_u16(status).ok()?);
    let number = refusal["error"].as_u64();
    let service_code = number.and_then(|number| Code::new(u16::try_from(number).ok()?));
    let is_temporary = service_code.is_some_and(Code::is_temporary);
    Some(json!({
        "code": code.name(),
        "message": refusal["message"].as_str()?,
        "retryable": is_temporary && !is_permanent,
        "service_error_code": service_code.map(Code::number),
    }))
}
