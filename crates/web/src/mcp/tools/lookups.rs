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
    description: "Asks the home network of a mobile number whether it is in use, which operator it belongs to now and whether it was ported. COSTS MONEY: each query is charged, also for unknown subscribers. \
Returns the ID of the lookup; call get_lookup with it and waitSeconds 30 to read the result. If the number's prefix is enough, use get_mobile_prefixes, which is free.",
    scope: Some(Permission::HlrLookup),
    waits: false,
    hints: Hints::SPENDS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "msisdn": { "type": "string", "description": "The number in international form." },
                "callBackUrl": { "type": "string", "format": "uri", "description": "Also gets the result." },
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
    description: "Returns the result of a lookup that lookup_hlr started. Free of charge. \
If final is false, call it again; do not start another lookup, which would be charged too. In result, error 0 means that the subscriber can be reached, 40 unknown, 41 barred, 43 absent, and 50 to 52 no answer, which is refunded. country, operatorId, mcc and mnc are the network that serves the number now; ported is present if it was ported.",
    scope: Some(Permission::HlrLookup),
    waits: true,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "id": { "type": "integer", "minimum": 1, "description": "The lookupId from lookup_hlr." },
                WAIT: wait_schema(),
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
