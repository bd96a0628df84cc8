//! The preview of `send_sms`: what a message would cost.

use domain::Money;
use serde_json::{Value, json};

use super::super::{Answer, nullable};

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

/// Builds the result from the estimates of REST.
pub(super) fn read(to: &Value, answer: &Answer<'_>) -> Option<Value> {
    let estimates = answer.list()?;
    let (mut parts, mut total) = (0, Money::ZERO);
    for estimate in estimates.as_array()? {
        parts += estimate["parts"].as_u64()?;
        total = total.plus(estimate["totalPrice"].as_str()?.parse().ok()?);
    }
    Some(json!({
        "messageIds": [],
        "parts": parts,
        "to": to,
        "cost": {
            "totalPrice": total.to_string(),
            "currency": answer.currency,
            "recipients": estimates,
        },
    }))
}
