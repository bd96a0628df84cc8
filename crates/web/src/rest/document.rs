//! The OpenAPI document: its frame, and the shapes that requests are described by.

use axum::Router;
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use super::callbacks::Callbacks;
use super::shapes::{
    CodeLength, CodeLifetime, CodeValue, CodingValue, DateTimeText, ExpireInValue, PhoneNumber,
    PinValue, Recipients, SenderText, TestModeValue,
};
use super::{docs_page, errors, operations};

/// The prefix of headers in the source; the configured prefix replaces it.
const PREFIX: &str = "X-Service-";

/// The OpenAPI 3.1 document, read off the routes, with headers that start with `header_prefix`. It stays JSON: the code
/// that reads it back into utoipa's types is 1 % of the program.
fn document(header_prefix: &str) -> Value {
    let document = operations().into_openapi();
    let mut document = serde_json::to_value(&document).expect("a document is JSON");
    errors::describe(&mut document);
    let text = document.to_string();
    let text = text.replace(PREFIX, &format!("{header_prefix}-"));
    serde_json::from_str(&text).expect("a header's name needs no escapes")
}

/// The document at `/openapi.json`, and the page for people at `/docs`.
pub fn document_router(header_prefix: &str) -> Router {
    docs_page::router(document(header_prefix))
}

/// The document without operations.
pub(super) fn frame() -> Document {
    Frame::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Switchboard",
        description = "Send messages and read them back. Every request carries an API token in the header `X-Service-Token`; every error is a JSON object with a `message` that says what to change.",
    ),
    servers((url = "/", description = "The server that this document comes from.")),
    security(("token" = [])),
    modifiers(&TokenHeader, &Callbacks),
    tags(
        (name = "SMS", description = "Sending SMS, scheduled ones included, and asking what became of them."),
        (name = "Opt-outs", description = "Recipients that the account must not write to."),
        (name = "Verify", description = "One-time codes: sending them, and checking what people enter."),
        (name = "Viber", description = "Sending Viber messages."),
        (name = "Messages", description = "The messages of all channels."),
        (name = "Senders", description = "Registering and confirming the names and numbers that messages come from."),
        (name = "Numbers", description = "Operators, networks, prefixes, prices, and the correction of numbers."),
        (name = "Token", description = "What the caller may do."),
        (name = "Callbacks", description = "What the service sends to the caller's addresses."),
    ),
)]
struct Frame;

struct TokenHeader;

impl Modify for TokenHeader {
    fn modify(&self, document: &mut Document) {
        let header = ApiKey::Header(ApiKeyValue::new("X-Service-Token"));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::ApiKey(header));
    }
}

/// Every error.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Failure {
    /// What is wrong and what to do.
    message: String,
}

/// A message to send. JSON null means absent; unknown fields are ignored.
#[derive(ToSchema)]
#[schema(example = json!({"to": "+37120000001", "from": "Switchboard", "message": "Hello from Switchboard"}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently, field by field"
)]
pub(super) struct SmsRequest {
    to: Recipients,
    from: SenderText,
    /// The text. Split by itself into at most 255 parts, unless `coding` is given.
    #[schema(
        example = "Hello from Switchboard",
        min_length = 1,
        max_length = 39_015
    )]
    message: String,
    /// Where the delivery report is sent: an http or https address.
    #[schema(
        rename = "dlrUrl",
        format = "uri",
        max_length = 2048,
        pattern = "^[Hh][Tt][Tt][Pp][Ss]?://"
    )]
    dlr_url: Option<String>,
    priority: Option<PriorityName>,
    /// When to send, ISO 8601 with offset: up to a year ahead, such as `2030-01-31T09:30:00+02:00` in 2029.
    #[schema(inline)]
    scheduled: Option<DateTimeText>,
    /// User data header, each hex pair prefixed with `%`. Needs `coding`, and nothing is split then.
    #[schema(example = "%05%00%03%2A%02%01", pattern = "^(%[0-9A-Fa-f]{2})+$")]
    udh: Option<String>,
    coding: Option<CodingValue>,
    #[schema(rename = "testMode")]
    test_mode: Option<TestModeValue>,
    #[schema(rename = "expireIn")]
    expire_in: Option<ExpireInValue>,
    /// ISO 3166-1 alpha-2 country that local recipients are completed for.
    #[schema(rename = "correctBy", example = "LV", pattern = "^[A-Za-z]{2}$")]
    correct_by: Option<String>,
}

/// A recipient for the opt-out list. JSON null means absent; unknown fields are ignored.
#[derive(ToSchema)]
#[schema(example = json!({"number": "+37120000001", "sender": "Acme"}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently, field by field"
)]
pub(super) struct OptOutRequest {
    number: PhoneNumber,
    /// Only messages from this sender are stopped; without it, those of all senders of the account. Case matters.
    sender: Option<SenderText>,
}

/// The PIN that was sent to a number.
#[derive(ToSchema)]
#[schema(example = json!({"code": "12345"}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently"
)]
pub(super) struct ConfirmRequest {
    code: PinValue,
}

/// A code to send. JSON null means absent; unknown fields are ignored.
#[derive(ToSchema)]
#[schema(example = json!({"to": "+37120000001", "message": "{code} is your code for Acme."}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently, field by field"
)]
pub(super) struct VerifyRequest {
    to: PhoneNumber,
    from: Option<SenderText>,
    length: Option<CodeLength>,
    #[schema(rename = "expireIn")]
    expire_in: Option<CodeLifetime>,
    /// The text, with `{code}` where the code belongs.
    #[schema(
        example = "{code} is your code for Acme.",
        pattern = "[{]code[}]",
        max_length = 39_015
    )]
    message: Option<String>,
    /// ISO 3166-1 alpha-2 country that a local number is completed for.
    #[schema(rename = "correctBy", example = "LV", pattern = "^[A-Za-z]{2}$")]
    correct_by: Option<String>,
}

/// What a person entered.
#[derive(ToSchema)]
#[schema(example = json!({"code": "123456"}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently"
)]
pub(super) struct CheckRequest {
    code: CodeValue,
}

/// The lane: `high` for codes and urgent notices, `low` for mass messages.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the body for the document")]
pub(super) enum PriorityName {
    High,
    Normal,
    Low,
}
