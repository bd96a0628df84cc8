//! Tools for one-time codes.

use domain::Permission;
use domain::verify::VerificationState;
use serde_json::{Value, json};

use super::{FINAL, Hints, KEY, Tool, body_without, in_address, key, key_schema};
use crate::mcp::api::ApiRequest;

pub(super) static START_VERIFICATION: Tool = Tool {
    name: "start_verification",
    title: "Send a one-time code",
    description: "Sends a one-time code to a number by SMS, to confirm that a person has it. COSTS MONEY: the message is charged as any other. \
Ask the person for the code and give it to check_verification; the code itself is never shown. A new code replaces a pending one, after 30 seconds at the earliest. A number gets at most 5 codes in an hour and 10 in a day.",
    scope: Some(Permission::VerifySend),
    waits: false,
    hints: Hints::SPENDS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "to": { "type": "string", "description": "The number in international form, or a local one with correctBy." },
                "from": { "type": "string", "description": "The sender, as in send_sms. Default: that of the service." },
                "length": { "type": "integer", "minimum": 4, "maximum": 10, "description": "The number of digits. Default 6." },
                "expireIn": { "type": "integer", "minimum": 60, "maximum": 3600, "description": "Seconds that the code is valid. Default 600." },
                "message": { "type": "string", "pattern": "\\{code\\}", "description": "The text, with {code} where the code belongs." },
                "correctBy": { "type": "string", "pattern": "^[A-Za-z]{2}$", "description": "The country of a local number, ISO 3166-1 alpha-2." },
                KEY: key_schema(),
            },
            "required": ["to"],
            "examples": [{ "to": "+37120000001" }],
        })
    },
    output: || {
        json!({
            "verificationId": { "type": "integer" },
            "to": { "type": "string" },
            "expires": { "type": "string" },
            "next": { "type": "string" },
        })
    },
    ask: |arguments| {
        let body = Value::Object(body_without(arguments, &[KEY]));
        Ok(ApiRequest::post("/verify", body).with_key(key(arguments)?))
    },
    read: |_, answer| {
        let sent = answer.json()?;
        Some(json!({
            "verificationId": sent["id"].as_u64()?,
            "to": sent["to"].as_str()?,
            "expires": sent["expires"].as_str()?,
            "next": "Ask the person for the code that was sent, and call check_verification with this id.",
        }))
    },
};

pub(super) static CHECK_VERIFICATION: Tool = Tool {
    name: "check_verification",
    title: "Check a one-time code",
    description: "Checks the code that a person entered. COSTS MONEY if the account has a price for verifications: the right code is charged once. \
The person reads the code on the handset; never guess it: after five wrong ones the verification fails. A wrong code is INVALID_INPUT; a verification that is no longer pending is a CONFLICT.",
    scope: Some(Permission::VerifySend),
    waits: false,
    hints: Hints {
        open_world: false,
        ..Hints::SPENDS
    },
    input: || {
        json!({
            "type": "object",
            "properties": {
                "id": id_schema(),
                "code": { "type": "string", "pattern": "^[0-9]{4,10}$", "description": "All digits, with leading zeros." },
            },
            "required": ["id", "code"],
            "examples": [{ "id": 123, "code": "123456" }],
        })
    },
    output: || {
        json!({
            "id": { "type": "integer" },
            "status": { "type": "string" },
        })
    },
    ask: |arguments| {
        let id = in_address(arguments, "id", WHICH)?;
        let body = body_without(arguments, &["id"]);
        let path = format!("/verify/{id}/check");
        Ok(ApiRequest::post(path, Value::Object(body)))
    },
    read: |_, answer| {
        let checked = answer.json()?;
        Some(json!({
            "id": checked["id"].as_u64()?,
            "status": checked["status"].as_str()?,
        }))
    },
};

pub(super) static GET_VERIFICATION: Tool = Tool {
    name: "get_verification",
    title: "Read a verification's state",
    description: "Returns the state of a verification. Free of charge. \
expired also means replaced by a newer code; failed means five wrong codes.",
    scope: Some(Permission::VerifySend),
    waits: false,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": { "id": id_schema() },
            "required": ["id"],
            "examples": [{ "id": 123 }],
        })
    },
    output: || {
        json!({
            "id": { "type": "integer" },
            "to": { "type": "string" },
            "status": { "type": "string", "enum": VerificationState::ALL.map(VerificationState::name) },
            "expires": { "type": "string" },
            FINAL: { "type": "boolean" },
        })
    },
    ask: |arguments| {
        let id = in_address(arguments, "id", WHICH)?;
        Ok(ApiRequest::get(format!("/verify/{id}")))
    },
    read: |_, answer| {
        let mut found = answer.json().filter(Value::is_object)?;
        found[FINAL] = json!(found["status"] != VerificationState::Pending.name());
        Some(found)
    },
};

const WHICH: &str = "the verificationId that start_verification returned";

fn id_schema() -> Value {
    json!({ "type": "integer", "minimum": 1, "description": "The verificationId from start_verification." })
}
