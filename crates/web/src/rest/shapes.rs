//! Shapes of values that requests may write in several ways: a number where digits are expected, and digits where a
//! number is expected.

use domain::Channel;
use domain::opt_out::Via;
use domain::ports::StateName;
use domain::sender::{Category, SenderKind, SenderState};
use domain::verify::VerificationState;
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// One phone number: 7 to 15 digits, with common separators.
const NUMBER: &str = "^[ ().-]*[+]?[ ().-]*([1-9][ ().-]*)([0-9][ ().-]*){6,14}$";
/// Several of them, separated by commas.
const NUMBERS: &str = "^[ ().-]*[+]?[ ().-]*([1-9][ ().-]*)([0-9][ ().-]*){6,14}(,[ ().-]*[+]?[ ().-]*([1-9][ ().-]*)([0-9][ ().-]*){6,14})*$";
/// A number, a plain name, or an approved name.
const SENDER: &str =
    "^([+]?[1-9][0-9]{6,14}|(?=.*[A-Za-z0-9])([A-Za-z0-9 .]{1,11}|[A-Za-z0-9 .&#!_-]{3,11}))$";
const SENDER_NAME: &str = "^(?=.*[A-Za-z0-9])[A-Za-z0-9 .&#!_-]{3,11}$";
/// Lines of text without control characters.
const PRINTABLE: &str = "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$";
/// 360 to 432000.
const EXPIRE_IN: &str = "^0*(3[6-9][0-9]|[4-9][0-9]{2}|[1-9][0-9]{3,4}|[1-3][0-9]{5}|4[0-2][0-9]{4}|43[01][0-9]{3}|432000)$";
/// 60 to 3600.
const CODE_LIFETIME: &str = "^0*([6-9][0-9]|[1-9][0-9]{2}|[12][0-9]{3}|3[0-5][0-9]{2}|3600)$";

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident => $schema:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    read($schema)
                }
            }

            impl ToSchema for $name {}
        )*
    };
}

shapes! {
    /// A phone number in international form.
    PhoneNumber => json!({
        "description": "7 to 15 digits in international form, with or without a plus sign; separators are dropped.",
        "example": "+37120000001",
        "anyOf": [{ "type": "string", "pattern": NUMBER }, phone_integer()],
    });
    /// The recipients of a message.
    Recipients => json!({
        "description": "One number, several separated by commas, or a list of at most 1000: E.164 digits with or without a plus sign.",
        "example": "+37120000001",
        "anyOf": [
            { "type": "string", "pattern": NUMBERS },
            phone_integer(),
            { "type": "array", "minItems": 1, "maxItems": 1000, "items": PhoneNumber::schema() },
        ],
    });
    /// The originator of a message.
    SenderText => json!({
        "description": "A number of 7 to 15 digits, 1 to 11 Latin letters, digits, spaces and dots, or an approved sender name, which may also hold `- _ & # !`.",
        "example": "Switchboard",
        "anyOf": [
            { "type": "string", "pattern": SENDER },
            { "type": "integer", "minimum": 0, "maximum": 999_999_999_999_999_u64 },
        ],
    });
    /// A time; offsets from UTC go up to 14 hours.
    DateTimeText => json!({
        "type": "string",
        "format": "date-time",
        "pattern": "([Zz]|[+-](0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)$",
        "description": "A time with offset, ISO 8601.",
    });
    /// The state of a message.
    MessageStateName => names("delivered", &StateName::ALL.map(StateName::name));
    /// A channel.
    ChannelName => names("sms", &Channel::ALL.map(Channel::name));
    /// How a recipient came onto the opt-out list.
    OptOutVia => names("api", &Via::ALL.map(Via::name));
    /// A kind of sender.
    SenderKindName => names("AlphaNumeric", &[SenderKind::AlphaNumeric, SenderKind::Msisdn].map(SenderKind::name));
    /// The state of a sender.
    SenderStateName => names("approved", &SenderState::ALL.map(SenderState::name));
    /// The state of a verification.
    VerificationStateName => names("pending", &VerificationState::ALL.map(VerificationState::name));
    /// The state of a lookup.
    LookupStateName => names("done", &["pending", "done"]);
    /// A kind of phone number.
    NumberTypeName => names("mobile", &["mobile", "landline", "unknown"]);
    /// The number of a page.
    PageNumber => json!({ "type": "integer", "minimum": 1 });
    /// A name or number to register.
    SenderRequest => json!({
        "description": "A name, which is reviewed, or a number, which is confirmed by the PIN that is sent to it. JSON null means absent; unknown fields are ignored.",
        "example": {
            "name": "Acme",
            "type": "AlphaNumeric",
            "category": "Company",
            "categoryDescription": "The name of our company",
        },
        "anyOf": [
            {
                "type": "object",
                "title": "Name",
                "required": ["name", "type", "category", "categoryDescription"],
                "properties": {
                    "name": {
                        "description": "3 to 11 Latin letters, digits, spaces, dots and `- _ & # !`.",
                        "anyOf": [
                            { "type": "string", "pattern": SENDER_NAME },
                            { "type": "integer", "minimum": 100, "maximum": 99_999_999_999_u64 },
                        ],
                    },
                    "type": { "type": "string", "enum": ["AlphaNumeric"] },
                    "category": { "type": "string", "enum": Category::ALL.map(Category::name) },
                    "categoryDescription": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 1000,
                        "pattern": PRINTABLE,
                        "description": "What entitles the account to the name, for the reviewer.",
                    },
                    "notificationUrl": notification_url(),
                },
            },
            {
                "type": "object",
                "title": "Number",
                "required": ["name", "type"],
                "properties": {
                    "name": PhoneNumber::schema(),
                    "type": { "type": "string", "enum": ["MSISDN"] },
                    "notificationUrl": notification_url(),
                },
            },
        ],
    });
    /// The emulated end of a message.
    TestModeValue => json!({
        "description": "`1` emulates a delivery, `2` a failure; nothing leaves the service and nothing is charged.",
        "anyOf": [
            { "type": "string", "enum": ["1", "2"] },
            { "type": "integer", "minimum": 1, "maximum": 2 },
        ],
    });
    /// A coding of SMS.
    CodingValue => json!({
        "description": "0 GSM-7, 1 8-bit, 2 UCS-2. Given, nothing is split.",
        "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 2 },
            { "type": "string", "enum": ["0", "1", "2"] },
        ],
    });
    /// A validity period.
    ExpireInValue => json!({
        "description": "Seconds after which the message is no longer attempted; 259200 when absent.",
        "anyOf": [
            { "type": "integer", "minimum": 360, "maximum": 432_000 },
            { "type": "string", "pattern": EXPIRE_IN },
        ],
    });
    /// The number of digits of a one-time code.
    CodeLength => json!({
        "description": "The number of digits; 6 when absent.",
        "anyOf": [
            { "type": "integer", "minimum": 4, "maximum": 10 },
            { "type": "string", "pattern": "^0*([4-9]|10)$" },
        ],
    });
    /// How long a one-time code is valid.
    CodeLifetime => json!({
        "description": "Seconds for which the code is valid; 600 when absent.",
        "anyOf": [
            { "type": "integer", "minimum": 60, "maximum": 3600 },
            { "type": "string", "pattern": CODE_LIFETIME },
        ],
    });
    /// A one-time code.
    CodeValue => json!({
        "description": "The digits that the person entered: 4 to 10.",
        "example": "123456",
        "anyOf": [
            { "type": "string", "pattern": "^[0-9]{4,10}$" },
            { "type": "integer", "minimum": 1000, "maximum": 9_999_999_999_u64 },
        ],
    });
    /// A PIN.
    PinValue => json!({
        "description": "Five digits.",
        "example": "12345",
        "anyOf": [
            { "type": "string", "pattern": "^[0-9]{5}$" },
            { "type": "integer", "minimum": 10_000, "maximum": 99_999 },
        ],
    });
}

fn names(example: &str, names: &[&str]) -> Value {
    json!({ "type": "string", "enum": names, "example": example })
}

fn phone_integer() -> Value {
    json!({ "type": "integer", "minimum": 1_000_000, "maximum": 999_999_999_999_999_u64 })
}

fn notification_url() -> Value {
    json!({
        "type": ["string", "null"],
        "format": "uri",
        "maxLength": 2048,
        "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://",
        "description": "The URL that is called when the sender's status changes: http or https.",
    })
}

fn read(schema: Value) -> RefOr<Schema> {
    serde_json::from_value(schema).expect("a schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stay_as_they_are_written() {
        for (name, schema) in [
            (PhoneNumber::name(), PhoneNumber::schema()),
            (Recipients::name(), Recipients::schema()),
            (SenderText::name(), SenderText::schema()),
            (SenderRequest::name(), SenderRequest::schema()),
            (TestModeValue::name(), TestModeValue::schema()),
            (CodingValue::name(), CodingValue::schema()),
            (ExpireInValue::name(), ExpireInValue::schema()),
            (CodeLength::name(), CodeLength::schema()),
            (CodeLifetime::name(), CodeLifetime::schema()),
            (CodeValue::name(), CodeValue::schema()),
            (PinValue::name(), PinValue::schema()),
        ] {
            let schema = serde_json::to_value(schema).expect("JSON");
            let kinds = schema["anyOf"].as_array().expect("several forms");
            assert!(kinds.len() > 1, "{name}: {schema}");
            let typed = |kind: &Value| kind["type"].is_string();
            assert!(kinds.iter().all(typed), "{name}: {schema}");
        }
    }
}
