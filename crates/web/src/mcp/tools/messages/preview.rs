//! The preview of `send_sms`: what a message would cost, and whether it would be accepted.

use domain::Code;
use http::StatusCode;
use serde_json::{Value, json};

use super::super::{Answer, nullable};
use crate::mcp::envelope::ErrorCode;

pub(super) fn cost_schema() -> Value {
    json!({
        "type": "object",
        "description": "Only after a preview: what sending it would cost.",
        "properties": {
            "totalPrice": { "type": "string", "description": "The price of all parts to all recipients, a decimal." },
            "currency": { "type": "string", "description": "The currency of every price." },
            "recipients": {
                "type": "array",
                "description": "Each recipient, in their order.",
                "items": {
                    "type": "object",
                    "properties": {
                        "to": { "type": "string", "description": "The number, with a leading plus sign." },
                        "parts": { "type": "integer" },
                        "coding": { "type": "integer", "description": "0 GSM-7, 1 8-bit, 2 UCS-2." },
                        "countryISO": nullable("string", "ISO 3166-1 alpha-2."),
                        "mccmnc": nullable("string", "The network, where the prefix tells."),
                        "pricePerPart": { "type": "string", "description": "A decimal." },
                        "totalPrice": { "type": "string", "description": "A decimal." },
                        "currency": { "type": "string" },
                    },
                },
            },
        },
        "required": ["totalPrice", "currency", "recipients"],
    })
}

pub(super) fn sent_schema() -> Value {
    json!({ "type": "boolean", "description": "Only after a preview: always false." })
}

pub(super) fn accepted_schema() -> Value {
    json!({ "type": "boolean", "description": "Only after a preview: whether the message would be accepted now." })
}

pub(super) fn refusal_schema() -> Value {
    nullable(
        "object",
        "Only after a preview: why the message would be refused, with the fields of an error; null if it would be accepted.",
    )
}

/// Builds the result from the answer of REST.
pub(super) fn read(to: &Value, answer: &Answer<'_>) -> Option<Value> {
    let check = answer.json()?;
    Some(json!({
        "messageIds": [],
        "sent": false,
        "accepted": check["accepted"].as_bool()?,
        "refusal": read_refusal(&check["refusal"])?,
        "parts": check["parts"].as_u64()?,
        "to": to,
        "cost": {
            "totalPrice": check["totalPrice"].as_str()?,
            "currency": check["currency"].as_str()?,
            "recipients": check["recipients"].as_array()?,
        },
    }))
}

/// As sending the message would report it.
fn read_refusal(refusal: &Value) -> Option<Value> {
    if refusal.is_null() {
        return Some(Value::Null);
    }
    let status = u16::try_from(refusal["status"].as_u64()?).ok()?;
    let code = ErrorCode::from_status(StatusCode::from_u16(status).ok()?);
    let number = refusal["error"].as_u64();
    let service_code = number.and_then(|number| Code::new(u16::try_from(number).ok()?));
    Some(json!({
        "code": code.name(),
        "message": refusal["message"].as_str()?,
        "retryable": service_code.is_some_and(Code::is_temporary),
        "service_error_code": service_code.map(Code::number),
    }))
}
