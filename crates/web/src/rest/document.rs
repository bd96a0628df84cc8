//! The OpenAPI document: its frame, and the shapes that requests are described by.

use axum::Router;
use serde::Serialize;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use super::{docs_page, operations};

/// The prefix of headers in the source; the configured prefix replaces it.
const PREFIX: &str = "X-Service-";

/// The OpenAPI 3.1 document, read off the routes, with headers that start with `header_prefix`.
fn document(header_prefix: &str) -> Document {
    let document = operations().into_openapi();
    let text = serde_json::to_string(&document).expect("a document is JSON");
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
    security(("token" = [])),
    modifiers(&TokenHeader),
    tags(
        (name = "SMS", description = "Sending SMS, scheduled ones included, and asking what became of them."),
        (name = "Opt-outs", description = "Recipients that the account must not write to."),
        (name = "Verify", description = "One-time codes: sending them, and checking what people enter."),
        (name = "Viber", description = "Sending Viber messages."),
        (name = "Messages", description = "The messages of all channels."),
        (name = "Senders", description = "Registering and confirming the names and numbers that messages come from."),
        (name = "Numbers", description = "Operators, networks, prefixes, prices, and the correction of numbers."),
        (name = "Token", description = "What the caller may do."),
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
    #[schema(
        example = "Invalid value for field 'expireIn': 100 is below 360; give 360 to 432000 seconds."
    )]
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
    /// The originator: a number of 7 to 15 digits, 1 to 11 Latin letters, digits, spaces and dots, or an approved sender
    /// name, which may also hold `- _ & # !`.
    #[schema(example = "Switchboard")]
    from: String,
    /// The text. Split by itself into at most 255 parts, unless `coding` is given.
    #[schema(example = "Hello from Switchboard")]
    message: String,
    /// Where the delivery report is sent: an http or https address.
    #[schema(rename = "dlrUrl", format = "uri")]
    dlr_url: Option<String>,
    priority: Option<PriorityName>,
    /// When to send, ISO 8601 with offset: up to a year ahead.
    #[schema(example = "2030-01-31T09:30:00+02:00")]
    scheduled: Option<String>,
    /// User data header, each hex pair prefixed with `%`. Needs `coding`, and nothing is split then.
    #[schema(example = "%05%00%03%2A%02%01", pattern = "^(%[0-9A-Fa-f]{2})+$")]
    udh: Option<String>,
    /// 0 GSM-7, 1 8-bit, 2 UCS-2. Given, nothing is split.
    #[schema(minimum = 0, maximum = 2)]
    coding: Option<u8>,
    /// `1` emulates a delivery, `2` a failure; nothing leaves the service and nothing is charged.
    #[schema(rename = "testMode", pattern = "^[12]$")]
    test_mode: Option<String>,
    /// Seconds after which the message is no longer attempted; 259200 when absent.
    #[schema(rename = "expireIn", minimum = 360, maximum = 432_000)]
    expire_in: Option<u32>,
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
    /// The recipient's number in international format.
    #[schema(example = "+37120000001")]
    number: String,
    /// Only messages from this sender are stopped; without it, those of all senders of the account. Case matters.
    #[schema(example = "Acme")]
    sender: Option<String>,
}

/// A name or number to register. JSON null means absent; unknown fields are ignored.
#[derive(ToSchema)]
#[schema(example = json!({"name": "Acme", "type": "AlphaNumeric", "category": "Company", "categoryDescription": "The name of our company"}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently, field by field"
)]
pub(super) struct SenderRequest {
    /// 3 to 11 Latin letters, digits, spaces, dots and `- _ & # !`; for a number, the number in international format.
    #[schema(example = "Acme")]
    name: String,
    #[schema(rename = "type")]
    kind: SenderKindName,
    category: Option<CategoryName>,
    /// What entitles the account to the name, for the reviewer: 1 to 1000 characters. Required for a name, as `category` is.
    #[schema(rename = "categoryDescription", max_length = 1000)]
    category_description: Option<String>,
    /// Where changes of the sender's status are told: an http or https address.
    #[schema(rename = "notificationUrl", format = "uri")]
    notification_url: Option<String>,
}

/// A name, which is reviewed, or a number, which is confirmed by the PIN that is sent to it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the body for the document")]
pub(super) enum SenderKindName {
    AlphaNumeric,
    #[schema(rename = "MSISDN")]
    Msisdn,
}

/// What a name stands for.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the body for the document")]
pub(super) enum CategoryName {
    Company,
    Product,
    Brand,
    Shortcode,
    Landline,
    Other,
}

/// The PIN that was sent to a number.
#[derive(ToSchema)]
#[schema(example = json!({"code": "12345"}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently"
)]
pub(super) struct ConfirmRequest {
    /// Five digits.
    #[schema(example = "12345", pattern = "^[0-9]{5}$")]
    code: String,
}

/// A code to send. JSON null means absent; unknown fields are ignored.
#[derive(ToSchema)]
#[schema(example = json!({"to": "+37120000001", "message": "{code} is your code for Acme."}))]
#[expect(
    dead_code,
    reason = "describes the body for the document; the operation reads it leniently, field by field"
)]
pub(super) struct VerifyRequest {
    /// The number that gets the code: E.164 digits with or without a plus sign.
    #[schema(example = "+37120000001")]
    to: String,
    /// The originator, as for an SMS; when absent, that of the service.
    #[schema(example = "Switchboard")]
    from: Option<String>,
    /// The number of digits; 6 when absent.
    #[schema(minimum = 4, maximum = 10)]
    length: Option<u8>,
    /// Seconds for which the code is valid; 600 when absent.
    #[schema(rename = "expireIn", minimum = 60, maximum = 3600)]
    expire_in: Option<u32>,
    /// The text, with `{code}` where the code belongs.
    #[schema(example = "{code} is your code for Acme.")]
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
    /// The digits.
    #[schema(example = "123456", pattern = "^[0-9]{4,10}$")]
    code: String,
}

/// One number, several separated by commas, or a list of at most 1000: E.164 digits with or without a plus sign.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(example = "+37120000001")]
#[expect(dead_code, reason = "describes the body for the document")]
pub(super) enum Recipients {
    One(String),
    Several(Vec<String>),
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
