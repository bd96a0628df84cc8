//! The tool for the account itself.

use serde_json::{Value, json};

use super::{Hints, Tool, nullable};
use crate::mcp::api::ApiRequest;

pub(super) static GET_ACCOUNT: Tool = Tool {
    name: "get_account",
    title: "Read the balance and what this token may do",
    description: "Tells what the account may still spend (balance), its limits, and what this token may do (permissions; ips, empty for anywhere; expires). Free of charge. \
Use it before something expensive, when a call was refused for lack of money or permission, or when the user asks what is left. Without a permission in permissions, the tools of that scope are refused.\n\n\
Example: {}",
    scope: None,
    waits: false,
    hints: Hints::READS,
    input: || json!({ "type": "object", "properties": {}, "examples": [{}] }),
    output: || {
        let list = || json!({ "type": "array", "items": { "type": "string" } });
        json!({
            "account": { "type": "string" },
            "name": { "type": "string" },
            "permissions": list(),
            "ips": list(),
            "expires": nullable("string"),
            "currency": { "type": "string" },
            "balance": { "type": "string" },
            "limits": {
                "type": "object",
                "properties": {
                    "creditLimit": { "type": "string" },
                    "dailyCap": nullable("string"),
                    "leftToday": nullable("string"),
                    "clientDailyCap": nullable("string"),
                    "clientLeftToday": nullable("string"),
                    "perRecipientHour": nullable("integer"),
                    "countries": list(),
                    "approvedSendersOnly": { "type": "boolean" },
                    "requestsPerSecond": nullable("integer"),
                },
            },
        })
    },
    ask: |_| Ok(ApiRequest::get("/token?limits")),
    read: |_, answer| answer.json().filter(Value::is_object),
};
