//! The tools: descriptions, schemas, the request to REST and the result of each.

mod account;
mod inbox;
pub(super) mod known_arguments;
mod lookups;
mod messages;
mod numbers;
mod paging;
mod rates;
mod senders;
mod verify;

use std::sync::Arc;

use bytes::Bytes;
use domain::Permission;
use http::{HeaderName, HeaderValue, Response};
use rmcp::model::ToolAnnotations;
use serde_json::{Map, Value, json};

pub(super) use messages::preview_of;

use super::api::ApiRequest;
use super::envelope::Envelope;

pub(super) type Arguments = Map<String, Value>;

pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    /// The permission that REST requires; `None` if any valid token will do.
    pub(super) scope: Option<Permission>,
    hints: Hints,
    /// The schema of the arguments.
    input: fn() -> Value,
    /// The schemas of a result's fields. They have no descriptions, because each conversation of a model begins with all
    /// schemas.
    output: fn() -> Value,
    /// The request to REST.
    pub(super) ask: fn(&Arguments) -> Result<ApiRequest, Envelope>,
    /// Builds the result from the answer of REST; `None` for an unexpected answer.
    pub(super) read: fn(&Arguments, &Answer<'_>) -> Option<Value>,
    /// Whether a call may wait until its result is final: it has the argument [`WAIT`], and its result the field
    /// [`FINAL`].
    pub(super) waits: bool,
}

/// Hints for a client that decides whether to ask its user.
#[derive(Debug, Clone, Copy)]
struct Hints {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

impl Hints {
    const READS: Self = Self {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };
    const SPENDS: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
    };
    /// It takes something away, once.
    const REMOVES: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };
    const ADDS: Self = Self {
        read_only: false,
        destructive: false,
        idempotent: false,
        open_world: false,
    };
}

/// Every tool, in the order in which clients show them: first those of the contract.
pub(super) static ALL: [&Tool; 19] = [
    &messages::SEND_SMS,
    &rates::GET_SMS_RATES,
    &senders::REGISTER_SENDER_ID,
    &senders::REGISTER_MSISDN_SENDER,
    &senders::CONFIRM_MSISDN_SENDER,
    &lookups::LOOKUP_HLR,
    &numbers::GET_OPERATOR,
    &numbers::GET_MCC_MNC_LIST,
    &numbers::GET_MOBILE_PREFIXES,
    &numbers::CORRECT_PHONE_NUMBER,
    &messages::GET_MESSAGE,
    &lookups::GET_LOOKUP,
    &messages::CANCEL_MESSAGE,
    &account::GET_ACCOUNT,
    &senders::LIST_SENDERS,
    &inbox::LIST_INBOX,
    &verify::START_VERIFICATION,
    &verify::CHECK_VERIFICATION,
    &verify::GET_VERIFICATION,
];

impl Tool {
    /// As the protocol lists it.
    pub(super) fn listed(&self) -> rmcp::model::Tool {
        let Hints {
            read_only,
            destructive,
            idempotent,
            open_world,
        } = self.hints;
        let annotations = ToolAnnotations::new()
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world);
        let scope = match self.scope {
            Some(scope) => format!("Needs the scope {scope}."),
            None => "Needs no scope.".to_owned(),
        };
        let mut input = (self.input)();
        known_arguments::close(&mut input);
        let mut input = object(input);
        let examples = input.remove("examples");
        let example = examples.as_ref().and_then(|examples| examples.get(0));
        // The description has it, because some clients do not pass the examples of a schema on.
        let example = example.map_or_else(|| "{}".to_owned(), Value::to_string);
        let description = format!("{} {scope}\nExample: {example}", self.description);
        rmcp::model::Tool::new(self.name, description, Arc::new(input))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(result_schema(&(self.output)())))
            .with_annotations(annotations)
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The schema of a result. Clients check the results of failed calls against it, too, and these have only the field
/// `error`. So it requires no fields, and it leaves `error` to the instructions of the server, which describe it once.
fn result_schema(properties: &Value) -> Map<String, Value> {
    object(json!({ "type": "object", "properties": properties }))
}

/// The answer of REST, and settings for the result.
pub(super) struct Answer<'a> {
    pub(super) response: &'a Response<Bytes>,
    pub(super) amount_header: &'a HeaderName,
    pub(super) currency: &'a str,
}

impl Answer<'_> {
    fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.response.body()).ok()
    }

    fn list(&self) -> Option<Value> {
        self.json().filter(Value::is_array)
    }

    fn number(&self, header: &HeaderName) -> Option<u64> {
        self.response
            .headers()
            .get(header)?
            .to_str()
            .ok()?
            .parse()
            .ok()
    }
}

/// An argument for a path: text or a whole number.
fn in_address(arguments: &Arguments, name: &str, what: &str) -> Result<String, Envelope> {
    match arguments.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(super::api::segment(text)),
        Some(Value::Number(number)) => Ok(super::api::segment(&number.to_string())),
        Some(Value::Null) | None => Err(Envelope::invalid(format!(
            "The argument '{name}' is missing; give {what}."
        ))),
        Some(_) => Err(Envelope::invalid(format!(
            "Invalid value for the argument '{name}'; give {what}."
        ))),
    }
}

/// The idempotency key of every tool that costs money.
fn key_schema() -> Value {
    json!({
        "type": "string",
        "pattern": "^[!-~]{1,255}$",
        "description": "A new UUID for each request of the user. For 24 hours, a call that repeats it does and charges nothing.",
    })
}

/// The argument of [`key_schema`].
fn key(arguments: &Arguments) -> Result<Option<HeaderValue>, Envelope> {
    let invalid = || {
        Envelope::invalid(format!(
            "Invalid value for the argument '{KEY}'; give 1 to 255 visible ASCII characters."
        ))
    };
    match arguments.get(KEY) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let key = HeaderValue::from_str(text).map_err(|_| invalid())?;
            Ok(Some(key))
        }
        Some(_) => Err(invalid()),
    }
}

/// The argument of [`key_schema`].
const KEY: &str = "idempotencyKey";

/// The argument of tools that wait: how long.
pub(super) const WAIT: &str = "waitSeconds";
pub(super) const MAX_WAIT_S: u64 = 30;
/// The field of their results: whether it changes no more.
pub(super) const FINAL: &str = "final";

fn wait_schema() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": MAX_WAIT_S, "description": "How long to wait until final is true. Default 0." })
}

/// The argument of [`wait_schema`]; 0 when it is absent.
pub(super) fn wait_s(arguments: &Arguments) -> Result<u64, Envelope> {
    let what = format!("a whole number from 0 to {MAX_WAIT_S}");
    let seconds = whole(arguments, WAIT, 0, MAX_WAIT_S, &what)?;
    Ok(seconds.unwrap_or(0))
}

/// An optional whole number, or its digits.
fn whole(
    arguments: &Arguments,
    name: &str,
    min: u64,
    max: u64,
    what: &str,
) -> Result<Option<u64>, Envelope> {
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.parse().ok(),
        Some(_) => None,
    };
    let number = number.filter(|number| (min..=max).contains(number));
    let invalid = || {
        let message = format!("Invalid value for the argument '{name}'; give {what}.");
        Envelope::invalid(message)
    };
    number.map(Some).ok_or_else(invalid)
}

fn body_without(arguments: &Arguments, names: &[&str]) -> Map<String, Value> {
    let others = arguments.iter();
    let others = others.filter(|(name, _)| !names.contains(&name.as_str()));
    others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A value that may be null. Many clients do not support a list of types.
fn nullable(kind: &str) -> Value {
    json!({ "anyOf": [{ "type": kind }, { "type": "null" }] })
}

fn country_schema() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z]{2}$", "description": "ISO 3166-1 alpha-2." })
}

fn operator_id_schema() -> Value {
    json!({ "type": "integer", "minimum": 1, "description": "From get_mcc_mnc_list, get_mobile_prefixes or get_lookup." })
}

#[cfg(test)]
mod tests {
    #[test]
    fn zz_dump() {
        let all: Vec<_> = super::ALL.iter().map(|tool| tool.listed()).collect();
        std::fs::write("/tmp/mcp_tools.json", serde_json::to_string(&all).unwrap()).unwrap();
    }
}
