//! The tool for the account itself.

use serde_json::{Value, json};

use super::{Hints, Tool, nullable};
use crate::mcp::api::ApiRequest;

pub(super) static GET_ACCOUNT: Tool = Tool {
    name: "get_account",
    title: "Read the balance and what this token may do",
    description: "Tells the account's balance, its limits, and what this token may do. Free of charge. \
Use it before something expensive, when a call was refused for lack of money or permission, or when the user asks what is left. Without a permission in permissions, the tools of that scope are refused.\n\n\
Example: {}",
    scope: None,
    waits: false,
    hints: Hints::READS,
    input: || json!({ "type": "object", "properties": {}, "examples": [{}] }),
    output: || {
        let list = |description: &str| json!({ "type": "array", "items": { "type": "string" }, "description": description });
        json!({
            "account": { "type": "string", "description": "The account's name." },
            "name": { "type": "string", "description": "What the token is called." },
            "permissions": list("What the token may do, by scope."),
            "ips": list("The networks that the token may be used from; empty means from anywhere."),
            "expires": nullable("string", "When the token expires, RFC 3339; null when it does not."),
            "currency": { "type": "string", "description": "The currency of every amount." },
            "balance": { "type": "string", "description": "What the account may still spend, a decimal." },
            "limits": {
                "type": "object",
                "properties": {
                    "creditLimit": { "type": "string", "description": "How far the balance may go below zero, a decimal." },
                    "dailyCap": nullable("string", "The most that may be charged on one UTC day, a decimal; null without a cap."),
                    "leftToday": nullable("string", "How much may still be spent until midnight UTC under the daily cap, as a decimal; null if there is no cap."),
                    "clientDailyCap": nullable("string", "The most that this client may spend on one UTC day, a decimal; null without a cap of its own."),
                    "clientLeftToday": nullable("string", "How much the client may still spend until midnight UTC, a decimal; null if it has no cap."),
                    "perRecipientHour": nullable("integer", "The most messages that one recipient may get within an hour; null without a limit."),
                    "countries": list("The countries that the account may send to, ISO 3166-1 alpha-2; empty means all."),
                    "approvedSendersOnly": { "type": "boolean", "description": "Whether messages must come from an approved sender; list_senders lists them." },
                    "requestsPerSecond": nullable("integer", "The rate limit; null without one."),
                },
            },
        })
    },
    ask: |_| Ok(ApiRequest::get("/token?limits")),
    read: |_, answer| answer.json().filter(Value::is_object),
};
