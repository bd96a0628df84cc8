//! Checks the form of a JSON-RPC message before `rmcp` reads it, so that each mistake gets the right error code.

use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::quoted::Quoted;
use http::{HeaderMap, StatusCode};
use requests::RefusalNote;
use rmcp::model::{
    CallToolRequestParams, ErrorCode, ErrorData, InitializeRequestParams, PaginatedRequestParams,
    ProtocolVersion,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::doubled::Doubled;

/// The header that names the version of the protocol.
const VERSION_HEADER: &str = "mcp-protocol-version";
/// Requests of newer versions name it here, too.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// In newer versions it replaces the handshake.
const DISCOVER: &str = "server/discover";

/// Supported versions. Older ones have batches or another transport.
pub(super) const VERSIONS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    /// An argument of a tool call that appears twice. The tool refuses it.
    pub(super) doubled: Option<String>,
    /// The message, corrected where necessary.
    pub(super) body: Bytes,
}

#[derive(Debug)]
pub(super) struct Malformed {
    id: Option<Value>,
    status: StatusCode,
    error: ErrorData,
}

impl Malformed {
    pub(super) fn request(id: Option<Value>, message: impl Into<String>) -> Self {
        let error = ErrorData::invalid_request(message.into(), None);
        let status = StatusCode::BAD_REQUEST;
        Self { id, status, error }
    }

    fn json(message: String) -> Self {
        Self {
            id: None,
            status: StatusCode::BAD_REQUEST,
            error: ErrorData::parse_error(message, None),
        }
    }

    /// `rmcp` refused the request in plain text.
    pub(super) fn from_protocol(id: Option<Value>, status: StatusCode, message: String) -> Self {
        let (status, code) = if status.is_server_error() {
            (status, ErrorCode::INTERNAL_ERROR)
        } else {
            (StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST)
        };
        Self {
            id,
            status,
            error: ErrorData::new(code, message, None),
        }
    }
}

impl IntoResponse for Malformed {
    fn into_response(self) -> Response {
        let note = RefusalNote {
            tool: None,
            // Some errors of JSON-RPC have the status 200.
            status: if self.status.is_success() {
                StatusCode::BAD_REQUEST
            } else {
                self.status
            },
            error: None,
            message: self.error.message.to_string(),
        };
        let mut body = json!({ "jsonrpc": "2.0", "error": self.error });
        // An unreadable ID is left out, because it must not be null.
        if let Some(id) = self.id {
            body["id"] = id;
        }
        (self.status, Extension(note), axum::Json(body)).into_response()
    }
}

/// Reads one message.
pub(super) fn read(headers: &HeaderMap, body: Bytes) -> Result<Message, Malformed> {
    let value: Value = serde_json::from_slice(&body)
        .map_err(|error| Malformed::json(format!("The body is not JSON: {error}.")))?;
    let doubled = Doubled::find(&body)
        .map_err(|error| Malformed::json(format!("The body is not JSON: {error}.")))?;
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) => {
            let message = "Batches are not taken; send one message in each request.";
            return Err(Malformed::request(None, message));
        }
        _ => return Err(Malformed::request(None, "A message is an object.")),
    };
    let id = read_id(&fields)?;
    if let Some(key) = doubled.elsewhere {
        let message = format!("The key {} appears twice in one object.", Quoted(&key));
        return Err(Malformed::request(id, message));
    }
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        let message = "The field 'jsonrpc' must be \"2.0\".";
        return Err(Malformed::request(id, message));
    }
    let Some(method) = fields.get("method").and_then(Value::as_str) else {
        let message = if fields.contains_key("result") || fields.contains_key("error") {
            "This server asks its clients nothing, so it takes no responses."
        } else {
            "The field 'method' must be a string."
        };
        return Err(Malformed::request(id, message));
    };
    let method = method.to_owned();
    let params = fields.get("params");
    check_content(headers, &method, params, id.is_none()).map_err(|(status, error)| Malformed {
        id: id.clone(),
        status,
        error,
    })?;
    // Some clients send null for an absent object, which `rmcp` does not accept.
    let body = if drop_nulls(&mut fields) {
        Value::Object(fields).to_string().into()
    } else {
        body
    };
    Ok(Message {
        id,
        method,
        doubled: doubled.argument,
        body,
    })
}

/// A message without an ID is a notification.
fn read_id(fields: &Map<String, Value>) -> Result<Option<Value>, Malformed> {
    match fields.get("id") {
        None => Ok(None),
        Some(id @ Value::String(_)) => Ok(Some(id.clone())),
        Some(id @ Value::Number(number)) if number.is_i64() => Ok(Some(id.clone())),
        Some(_) => {
            let message = "The field 'id' must be a string or a whole number.";
            Err(Malformed::request(None, message))
        }
    }
}

fn check_content(
    headers: &HeaderMap,
    method: &str,
    params: Option<&Value>,
    is_notification: bool,
) -> Result<(), (StatusCode, ErrorData)> {
    check_version(headers, params).map_err(|error| (StatusCode::BAD_REQUEST, error))?;
    if method == "initialize" && version_in_meta(params).is_some() {
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None);
        return Err((StatusCode::NOT_FOUND, error));
    }
    let wrong = |is_status: bool, message: String| {
        let status = if is_status {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::OK
        };
        (status, ErrorData::invalid_params(message, None))
    };
    // Missing metadata changes the status only in newer versions.
    let has_metadata = is_newer_version(headers, method);
    check_metadata(method, params)
        .map_err(|message| wrong(has_metadata || is_notification, message.to_owned()))?;
    // A request with wrong parameters gets a JSON-RPC error; a notification can only get a status.
    check_params(method, params).map_err(|message| wrong(is_notification, message))
}

fn check_metadata(method: &str, params: Option<&Value>) -> Result<(), &'static str> {
    let absent = |value: Option<&Value>| value.is_none_or(Value::is_null);
    if !absent(params) && !params.is_some_and(Value::is_object) {
        return Err("The field 'params' must be an object.");
    }
    let metadata = params.and_then(|params| params.get("_meta"));
    if !absent(metadata) && !metadata.is_some_and(Value::is_object) {
        return Err("The field 'params._meta' must be an object.");
    }
    if method == DISCOVER && version_in_meta(params).is_none() {
        return Err(
            "The field 'params._meta' must name the version of the protocol and the client's capabilities.",
        );
    }
    Ok(())
}

fn check_params(method: &str, params: Option<&Value>) -> Result<(), String> {
    let empty = Map::new();
    let params = params.and_then(Value::as_object).unwrap_or(&empty);
    check_fields(method, params)?;
    // `rmcp` reports invalid parameters as an unknown method.
    match method {
        "initialize" => check_type::<InitializeRequestParams>(params),
        "tools/call" => check_type::<CallToolRequestParams>(params),
        "tools/list" => check_type::<PaginatedRequestParams>(params),
        _ => Ok(()),
    }
}

fn check_type<'de, T: Deserialize<'de>>(params: &'de Map<String, Value>) -> Result<(), String> {
    let read = T::deserialize(params).map(|_| ());
    read.map_err(|error| format!("The field 'params' cannot be read: {error}."))
}

/// Clear messages for the most important fields.
fn check_fields(method: &str, params: &Map<String, Value>) -> Result<(), &'static str> {
    let is = |object: &Map<String, Value>, key: &str, fits: fn(&Value) -> bool| {
        object.get(key).is_some_and(fits)
    };
    let may_be = |key: &str, fits: fn(&Value) -> bool| {
        params
            .get(key)
            .is_none_or(|value| value.is_null() || fits(value))
    };
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

/// Requests of newer versions name their version in the metadata and have no handshake.
fn version_in_meta(params: Option<&Value>) -> Option<&Value> {
    params?.get("_meta")?.get(VERSION_KEY)
}

/// Whether header or method show a newer version.
fn is_newer_version(headers: &HeaderMap, method: &str) -> bool {
    let header = headers.get(VERSION_HEADER);
    let is_newer = |version: &&ProtocolVersion| !version.has_initialize();
    let mut newer = VERSIONS.iter().filter(is_newer);
    method == DISCOVER || newer.any(|version| header.is_some_and(|text| text == version.as_str()))
}

/// `rmcp` checks a version in the metadata.
fn check_version(headers: &HeaderMap, params: Option<&Value>) -> Result<(), ErrorData> {
    let mut given = headers.get_all(VERSION_HEADER).iter();
    let Some(header) = given.next() else {
        return Ok(());
    };
    // A proxy might read the other header and see another request.
    if given.next().is_some() {
        let message = "The header MCP-Protocol-Version is there twice.";
        return Err(ErrorData::header_mismatch(message, None));
    }
    let text = header.to_str().unwrap_or("");
    if version_in_meta(params).is_some() || VERSIONS.iter().any(|version| version.as_str() == text)
    {
        return Ok(());
    }
    let supported: Vec<&str> = VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let message = format!(
        "The version {} of the protocol is not spoken here.",
        Quoted(text)
    );
    let data = json!({ "requested": text, "supported": supported });
    Err(ErrorData::new(
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        message,
        Some(data),
    ))
}

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
