//! The errors of operations in the OpenAPI document: those that every operation has, with headers and examples.

use serde_json::{Map, Value, json};

const JSON: &str = "application/json";
const NUMBERS: &str =
    "Invalid value for the query parameter 'limit': '0'; give a whole number from 1 to 1000.";
const RECIPIENT: &str = "Invalid value for field 'to': it is missing; give the recipient's number.";
const KEY_CONFLICT: &str =
    "The Idempotency-Key was used before with another body; use a new key for a new request.";

/// Errors that every operation may answer with: status, name and description.
const COMMON: [(&str, &str, &str); 3] = [
    (
        "429",
        "TooManyRequests",
        "The account made more requests in a second than it may, or too many wrong tokens came from this address; \
         `Retry-After` says when to try again.",
    ),
    (
        "500",
        "InternalError",
        "The service failed. With an `Idempotency-Key` the request can be repeated safely.",
    ),
    (
        "503",
        "Unavailable",
        "Overloaded or without its database; `Retry-After` says when to try again.",
    ),
];

/// Headers of answers: name, type and description.
const HEADERS: [(&str, &str, &str); 6] = [
    (
        "ETag",
        "string",
        "The version of the answer, for `If-None-Match`.",
    ),
    (
        "RateLimit",
        "string",
        "How many requests the account may still make now; absent if it has no rate limit.",
    ),
    (
        "RateLimit-Policy",
        "string",
        "The account's rate limit; absent if it has none.",
    ),
    (
        "Retry-After",
        "integer",
        "In how many seconds to try again; absent if waiting does not help.",
    ),
    (
        "X-Error-Code",
        "integer",
        "The service error code; absent if the catalogue has none for this error.",
    ),
    (
        "X-Required-Permission",
        "string",
        "The permission that the token lacks; absent if the error has another reason.",
    ),
];

/// Adds them to every operation of a document.
pub(super) fn describe(document: &mut Value) {
    let headers = HEADERS.map(|(name, kind, description)| {
        let header = json!({ "schema": { "type": kind }, "description": description });
        (name.to_owned(), header)
    });
    document["components"]["headers"] = Map::from_iter(headers).into();
    let common = COMMON.map(|(status, name, description)| {
        let schema = json!({ "$ref": "#/components/schemas/Failure" });
        let mut response = json!({
            "description": description,
            "content": { JSON: { "schema": schema } },
        });
        describe_error(&mut response, status, "");
        (name.to_owned(), response)
    });
    document["components"]["responses"] = Map::from_iter(common).into();
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.filter_map(|(_, path)| path.as_object_mut());
    for (_, operation) in operations.flatten() {
        describe_operation(operation);
    }
}

fn describe_operation(operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let id = id.to_owned();
    let Some(responses) = operation["responses"].as_object_mut() else {
        return;
    };
    let is_cached = responses.contains_key("304");
    for (status, response) in responses.iter_mut() {
        if status.starts_with('4') || status.starts_with('5') {
            describe_error(response, status, &id);
        } else if is_cached {
            add_headers(response, &["ETag"]);
        }
    }
    for (status, name, _) in COMMON {
        let shared = json!({ "$ref": format!("#/components/responses/{name}") });
        responses.entry(status).or_insert(shared);
    }
}

fn describe_error(response: &mut Value, status: &str, operation: &str) {
    let message = match status {
        "403" => permission(response["description"].as_str().unwrap_or_default()),
        _ => example(status, operation).to_owned(),
    };
    response["content"][JSON]["example"] = json!({ "message": message });
    let headers: &[&str] = match status {
        "400" | "500" => &["X-Error-Code"],
        "403" => &["X-Error-Code", "X-Required-Permission"],
        "409" if matches!(operation, "registerSender" | "sendCode") => &["Retry-After"],
        "429" => &["Retry-After", "RateLimit", "RateLimit-Policy"],
        "503" => &["Retry-After"],
        _ => &[],
    };
    add_headers(response, headers);
}

fn add_headers(response: &mut Value, names: &[&str]) {
    for name in names {
        let header = json!({ "$ref": format!("#/components/headers/{name}") });
        response["headers"][name] = header;
    }
}

/// What the service says with a status.
fn example(status: &str, operation: &str) -> &'static str {
    match status {
        "400" => invalid(operation),
        "401" => "The API token is not valid: it is unknown, mistyped or revoked.",
        "404" => missing(operation),
        "409" => conflict(operation),
        "429" => match operation {
            "registerSender" => {
                "Too many confirmation codes were sent. A number gets at most 5 in an hour and 10 in a day, and an \
                 account has a daily limit of its own; another one can be asked for in 12 minutes."
            }
            "sendCode" => {
                "Too many codes were sent. A number gets at most 5 in an hour and 10 in a day, and an account has a \
                 daily limit of its own; another one can be asked for in 12 minutes."
            }
            _ => "This account may make 25 requests in a second; try again in a second.",
        },
        "503" => "The service cannot reach or write its database at the moment; try again shortly.",
        _ => {
            "The service failed. Try again; if it goes on, tell its operator the X-Request-Id of this answer."
        }
    }
}

fn invalid(operation: &str) -> &'static str {
    match operation {
        "sendSms" | "checkSms" | "estimateSms" => {
            "Invalid value for field 'expireIn': 100 is below 360; give 360 to 432000 seconds."
        }
        "sendViber" | "sendCode" => RECIPIENT,
        "lookUp" => {
            "Invalid value for field 'callBackUrl': it is missing; give the address for the result."
        }
        "registerSender" => {
            "Invalid value for field 'type': it is missing; give AlphaNumeric or MSISDN."
        }
        "confirmSender" => "The confirmation code is wrong; 4 tries left.",
        "checkCode" => "The code is wrong; 4 tries are left.",
        "addOptOut" => {
            "Invalid value for field 'number': it is missing; give the recipient's number."
        }
        "removeOptOut" => {
            "Invalid value for the number: '12' has 2 digits; give 7 to 15 in international format, such as +37120000001."
        }
        "correctNumbers" | "correctNumbersByGet" => {
            "The body has 10001 items, more than 10000; split the request."
        }
        "listNetworks" => {
            "Invalid value for the query parameter 'Page': '0'; give a whole number from 1."
        }
        "listRates" => "Invalid value for the query parameter 'format': 'xml'; give json or csv.",
        _ => NUMBERS,
    }
}

/// The description of the status names the permissions that are enough.
fn permission(description: &str) -> String {
    let quoted = description.split('`').skip(1).step_by(2);
    let names = quoted.filter(|name| name.contains(':'));
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    if names.is_empty() {
        return "The account is suspended.".to_owned();
    }
    let names = names.join(" or ");
    format!("This API token lacks the permission {names} that this operation needs.")
}

fn missing(operation: &str) -> &'static str {
    match operation {
        "readLookup" => "There is no lookup '7'.",
        "readOperator" => "There is no operator '1635'.",
        "listNetworks" | "listPrefixes" => {
            "'ZZ' is not an ISO 3166-1 alpha-2 country code; give one such as LV."
        }
        "readSender" => "There is no sender '123'.",
        "confirmSender" => "There is no such sender.",
        "readVerification" => "There is no verification '123'.",
        "checkCode" => "There is no such verification.",
        "removeOptOut" => {
            "+37120000001 is not on the opt-out list for sender 'Acme'; GET /optOuts shows the list."
        }
        _ => "There is no message '10001'.",
    }
}

fn conflict(operation: &str) -> &'static str {
    match operation {
        "cancelMessage" => "Message 10001 is sent; only a scheduled message can be cancelled.",
        "registerSender" => {
            "This account has registered the name already, as sender 123, which is pending."
        }
        "confirmSender" => "This sender is approved and waits for no confirmation code.",
        "checkCode" => "This verification is approved already; a code works once.",
        "sendCode" => {
            "The code of verification 123 was sent to this number less than 30 seconds ago; a new one can be asked \
             for 30 seconds after the last."
        }
        "addOptOut" => {
            "The opt-out list of this account has 5000000 entries, which is the limit; remove entries of numbers that \
             you do not write to any more, or ask the operator of this service."
        }
        _ => KEY_CONFLICT,
    }
}
