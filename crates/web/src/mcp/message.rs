//! What a JSON-RPC message must look like before the protocol reads it, so that each mistake gets the code that is
//! meant for it.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::shown::Shown;
use http::{HeaderMap, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde_json::{Map, Value, json};

/// The header that names the version of the protocol.
const VERSION_HEADER: &str = "mcp-protocol-version";
/// Where a request of the newer era names it besides.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The versions that are spoken. Older ones know batches or another transport.
pub(super) const VERSIONS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// A message of the right shape.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    /// The message itself, as it was sent where that was right.
    pub(super) body: Bytes,
}

/// What is wrong with a message.
#[derive(Debug)]
pub(super) struct Malformed {
    id: Value,
    status: StatusCode,
    error: ErrorData,
}

impl Malformed {
    /// The request is no message.
    pub(super) fn request(id: Value, message: impl Into<String>) -> Self {
        let error = ErrorData::invalid_request(message.into(), None);
        let status = StatusCode::BAD_REQUEST;
        Self { id, status, error }
    }

    fn json(message: String) -> Self {
        Self {
            id: Value::Null,
            status: StatusCode::BAD_REQUEST,
            error: ErrorData::parse_error(message, None),
        }
    }

    /// The protocol refused the request in plain words.
    pub(super) fn of_protocol(id: Option<Value>, status: StatusCode, message: String) -> Self {
        let code = if status.is_server_error() {
            ErrorCode::INTERNAL_ERROR
        } else {
            ErrorCode::INVALID_REQUEST
        };
        Self {
            id: id.unwrap_or_default(),
            status,
            error: ErrorData::new(code, message, None),
        }
    }
}

impl IntoResponse for Malformed {
    fn into_response(self) -> Response {
        let body = json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error });
        (self.status, axum::Json(body)).into_response()
    }
}

/// Reads one message.
pub(super) fn read(headers: &HeaderMap, body: Bytes) -> Result<Message, Malformed> {
    let value: Value = serde_json::from_slice(&body)
        .map_err(|error| Malformed::json(format!("The body is not JSON: {error}.")))?;
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) => {
            let message = "Batches are not taken; send one message in each request.";
            return Err(Malformed::request(Value::Null, message));
        }
        _ => return Err(Malformed::request(Value::Null, "A message is an object.")),
    };
    let id = read_id(&fields)?;
    let or_null = || id.clone().unwrap_or_default();
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        let message = "The field 'jsonrpc' must be \"2.0\".";
        return Err(Malformed::request(or_null(), message));
    }
    let Some(method) = fields.get("method").and_then(Value::as_str) else {
        let message = if fields.contains_key("result") || fields.contains_key("error") {
            "This server asks its clients nothing, so it takes no responses."
        } else {
            "The field 'method' must be a string."
        };
        return Err(Malformed::request(or_null(), message));
    };
    let method = method.to_owned();
    let wrong = |status, error| Malformed {
        id: or_null(),
        status,
        error,
    };
    if method == "initialize" && version_in_meta(fields.get("params")).is_some() {
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None);
        return Err(wrong(StatusCode::NOT_FOUND, error));
    }
    // A message that asks for something by the wrong words is answered like any other.
    check_params(&method, fields.get("params"))
        .map_err(|message| wrong(StatusCode::OK, ErrorData::invalid_params(message, None)))?;
    check_version(headers, fields.get("params"))
        .map_err(|error| wrong(StatusCode::BAD_REQUEST, error))?;
    // Some clients write an absent object as null, which the protocol's own reader does not know.
    let body = if drop_nulls(&mut fields) {
        Value::Object(fields).to_string().into()
    } else {
        body
    };
    Ok(Message { id, method, body })
}

/// A message without an ID is a notification.
fn read_id(fields: &Map<String, Value>) -> Result<Option<Value>, Malformed> {
    match fields.get("id") {
        None => Ok(None),
        Some(id @ Value::String(_)) => Ok(Some(id.clone())),
        Some(id @ Value::Number(number)) if number.is_i64() => Ok(Some(id.clone())),
        Some(_) => {
            let message = "The field 'id' must be a string or a whole number.";
            Err(Malformed::request(Value::Null, message))
        }
    }
}

fn check_params(method: &str, params: Option<&Value>) -> Result<(), &'static str> {
    let empty = Map::new();
    let params = match params {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(params)) => params,
        Some(_) => return Err("The field 'params' must be an object."),
    };
    let is = |object: &Map<String, Value>, key: &str, fits: fn(&Value) -> bool| {
        object.get(key).is_some_and(fits)
    };
    let may_be = |key: &str, fits: fn(&Value) -> bool| {
        params
            .get(key)
            .is_none_or(|value| value.is_null() || fits(value))
    };
    if !may_be("_meta", Value::is_object) {
        return Err("The field 'params._meta' must be an object.");
    }
    match method {
        "initialize" => {
            let client = params.get("clientInfo").and_then(Value::as_object);
            let named = |client: &Map<String, Value>| {
                is(client, "name", Value::is_string) && is(client, "version", Value::is_string)
            };
            if !is(params, "protocolVersion", Value::is_string) {
                return Err("The field 'params.protocolVersion' must be a string.");
            }
            if !is(params, "capabilities", Value::is_object) {
                return Err("The field 'params.capabilities' must be an object.");
            }
            if !client.is_some_and(named) {
                return Err(
                    "The field 'params.clientInfo' must be an object with 'name' and 'version'.",
                );
            }
        }
        "tools/call" => {
            if !is(params, "name", Value::is_string) {
                return Err("The field 'params.name' must be the name of a tool.");
            }
            if !may_be("arguments", Value::is_object) {
                return Err("The field 'params.arguments' must be an object.");
            }
        }
        "tools/list" if !may_be("cursor", Value::is_string) => {
            return Err("The field 'params.cursor' must be a string.");
        }
        _ => {}
    }
    Ok(())
}

/// Requests of the newer era name their version in their metadata, and shake no hands.
fn version_in_meta(params: Option<&Value>) -> Option<&Value> {
    params?.get("_meta")?.get(VERSION_KEY)
}

/// A version that a request names in its metadata is the protocol's to judge.
fn check_version(headers: &HeaderMap, params: Option<&Value>) -> Result<(), ErrorData> {
    let Some(header) = headers.get(VERSION_HEADER) else {
        return Ok(());
    };
    let text = header.to_str().unwrap_or("");
    if version_in_meta(params).is_some() || VERSIONS.iter().any(|version| version.as_str() == text)
    {
        return Ok(());
    }
    let supported: Vec<&str> = VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let message = format!(
        "The version {} of the protocol is not spoken here.",
        Shown(text)
    );
    let data = json!({ "requested": text, "supported": supported });
    Err(ErrorData::new(
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        message,
        Some(data),
    ))
}

/// Whether there was anything to drop.
fn drop_nulls(fields: &mut Map<String, Value>) -> bool {
    let mut dropped = fields.get("params").is_some_and(Value::is_null);
    if dropped {
        fields.remove("params");
    }
    if let Some(Value::Object(params)) = fields.get_mut("params") {
        for key in ["_meta", "arguments", "cursor"] {
            if params.get(key).is_some_and(Value::is_null) {
                params.remove(key);
                dropped = true;
            }
        }
    }
    dropped
}
