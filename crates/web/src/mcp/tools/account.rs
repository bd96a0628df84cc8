//! The tool for the account itself.

use serde_json::{Value, json};

use super::{Hints, Tool, nullable};
use crate::mcp::api::ApiRequest;

pub(super) static GET_ACCOUNT: Tool = Tool {
    name: "get_account",
    title: "Read the balance and what this token may do",
    description: "Returns the balance, the limits of the account, and what this token may do: permissions, ips (empty means anywhere) and expires. Free of charge. \
Use it before something expensive, or if a call was refused for lack of money or permission.",
    scope: None,
    waits: false,
    hints: Hints::READS,
    input: || json!({ "type": "object", "properties": {} }),
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
