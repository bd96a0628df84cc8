//! Tools for lookups.

use domain::Permission;
use serde_json::{Value, json};

use super::{
    FINAL, Hints, KEY, Tool, WAIT, body_without, in_address, key, key_schema, nullable, wait_schema,
};
use crate::mcp::api::ApiRequest;

pub(super) static LOOKUP_HLR: Tool = Tool {
    name: "lookup_hlr",
    title: "Look a subscriber up (HLR)",
    description: "Asks the home network of a mobile number whether it is in use, which operator it belongs to now and whether it was ported. COSTS MONEY: each query is charged, also when the subscriber is unknown. \
Answers with the ID of the lookup; call get_lookup with it and waitSeconds 30 to read the result, which comes a moment later. A callBackUrl, when one is given, gets the result as JSON too. For what the number's prefix alone tells, get_mobile_prefixes and correct_phone_number are free.\n\n\
Example: {\"msisdn\": \"+37129100000\"}\n\
Example, with the result to an address of the user: {\"msisdn\": \"+37129100000\", \"callBackUrl\": \"https://example.com/hlr\"}",
    scope: Some(Permission::HlrLookup),
    waits: false,
    hints: Hints::SPENDS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "msisdn": { "type": "string", "description": "The subscriber's number in international form.", "examples": ["+37129100000"] },
                "callBackUrl": { "type": "string", "format": "uri", "description": "An http or https address that receives the result, besides get_lookup.", "examples": ["https://example.com/hlr"] },
                "idempotencyKey": key_schema(),
            },
            "required": ["msisdn"],
            "examples": [{ "msisdn": "+37129100000" }],
        })
    },
    output: || json!({ "lookupId": { "type": "integer" } }),
    ask: |arguments| {
        let is_read_later = arguments.get(CALLBACK_URL).is_none_or(Value::is_null);
        let path = if is_read_later {
            "/hlr?callback=none"
        } else {
            "/hlr"
        };
        let body = Value::Object(body_without(arguments, &[KEY]));
        Ok(ApiRequest::post(path, body).with_key(key(arguments)?))
    },
    read: |_, answer| Some(json!({ "lookupId": answer.list()?.get(0)?.as_u64()? })),
};

const CALLBACK_URL: &str = "callBackUrl";

pub(super) static GET_LOOKUP: Tool = Tool {
    name: "get_lookup",
    title: "Read the result of a lookup",
    description: "Tells the result of a lookup that lookup_hlr returned the ID of. Free of charge. \
With waitSeconds the answer comes as soon as there is a result, or after that time without one. When final is false, call it again; do not start another lookup, which would be charged too. \
In result, error 0 means that the subscriber can be reached; other errors say why not: 40 unknown, 41 barred, 43 absent; 50 to 52 mean that no answer could be had, which is refunded. country, operatorId, mcc and mnc are the network that serves the number today; ported is there when the number was ported. get_operator tells the name of an operatorId.\n\n\
Example: {\"id\": 7, \"waitSeconds\": 30}",
    scope: Some(Permission::HlrLookup),
    waits: true,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "id": { "type": "integer", "minimum": 1, "description": "The lookupId that lookup_hlr returned.", "examples": [7] },
                WAIT: wait_schema("How many seconds to wait for the result: 0 to 30. 0 or absent: the answer comes at once."),
            },
            "required": ["id"],
            "examples": [{ "id": 7, WAIT: 30 }],
        })
    },
    output: || {
        json!({
            "id": { "type": "integer" },
            "state": { "type": "string", "enum": ["pending", DONE] },
            FINAL: { "type": "boolean" },
            "result": nullable("object"),
        })
    },
    ask: |arguments| {
        let id = in_address(arguments, "id", "the lookupId that lookup_hlr returned")?;
        Ok(ApiRequest::get(format!("/hlr/{id}")))
    },
    read: |_, answer| {
        let mut lookup = answer.json().filter(Value::is_object)?;
        lookup[FINAL] = json!(lookup["state"] == DONE);
        Some(lookup)
    },
};

/// The state of a lookup that has a result.
const DONE: &str = "done";
