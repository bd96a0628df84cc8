//! Tools for messages, lookups and prices.

mod preview;

use domain::Permission;
use http::HeaderName;
use serde_json::{Value, json};

use super::{
    Answer, Arguments, Hints, KEY, Tool, body_without, key, key_schema, nullable, sometimes,
};
use crate::mcp::api::ApiRequest;
use crate::mcp::envelope::Envelope;

const DEMONSTRATION: HeaderName = HeaderName::from_static("x-demonstration-prices");

pub(super) static SEND_SMS: Tool = Tool {
    name: "send_sms",
    title: "Send an SMS",
    description: "Sends a text message to one or several mobile numbers. COSTS MONEY: the account is charged for each part and each recipient, and a message cannot be taken back once it is sent. \
A text of up to 160 GSM characters (70 when it has any other character, such as an emoji) is one part; a longer one is split by itself into parts of 153 (67). get_sms_rates tells the price of a part. \
Answers with one message ID for each recipient as soon as the messages are stored; whether they arrive is reported to dlrUrl, when one is given. \
With preview true nothing is sent or charged: the answer tells the parts and what they would cost. \
With testMode \"1\" or \"2\" nothing leaves the service and nothing is charged. \
Give an idempotencyKey, so that a call that is made again after an error does not send twice.\n\n\
Example: {\"to\": \"+37120000001\", \"from\": \"Acme\", \"message\": \"Your table is ready.\"}\n\
Example, to know the price first: {\"to\": \"+37120000001\", \"from\": \"Acme\", \"message\": \"Your table is ready.\", \"preview\": true}\n\
Example, free of charge: {\"to\": \"+37120000001\", \"from\": \"Acme\", \"message\": \"Hello\", \"testMode\": \"1\"}",
    scope: Permission::SmsSend,
    hints: Hints::SPENDS,
    input: send_input,
    output: || {
        json!({
            "messageIds": { "type": "array", "items": { "type": "string" }, "description": "One ID for each recipient, in their order. None after a preview: nothing was sent." },
            "parts": { "type": "integer", "description": "The number of SMS parts over all recipients; each is charged." },
            "to": recipients("The recipients, as they were given."),
            "cost": sometimes(&preview::cost_schema()),
        })
    },
    ask: |arguments| {
        let body = Value::Object(body_without(arguments, &[PREVIEW, KEY]));
        let key = key(arguments)?;
        if is_preview(arguments)? {
            return Ok(ApiRequest::post("/sms/cost", body));
        }
        Ok(ApiRequest::post("/sms", body).with_key(key))
    },
    read: |arguments, answer| {
        let to = recipients_as_text(arguments);
        if is_preview(arguments).ok()? {
            return preview::read(&to, answer);
        }
        Some(json!({
            "messageIds": answer.list()?,
            "parts": answer.number(answer.amount_header)?,
            "to": to,
        }))
    },
};

const PREVIEW: &str = "preview";

/// Other values are an error, because the caller may have meant that nothing should be sent.
fn is_preview(arguments: &Arguments) -> Result<bool, Envelope> {
    match arguments.get(PREVIEW) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(is_preview)) => Ok(*is_preview),
        Some(_) => Err(Envelope::invalid(format!(
            "Invalid value for the argument '{PREVIEW}'; give true or false."
        ))),
    }
}

/// The recipients as given; numbers become texts.
fn recipients_as_text(arguments: &Arguments) -> Value {
    let text = |value: &Value| match value {
        Value::Number(number) => Value::String(number.to_string()),
        other => other.clone(),
    };
    match arguments.get("to") {
        Some(Value::Array(list)) => list.iter().map(text).collect(),
        Some(one) => text(one),
        None => Value::Null,
    }
}

/// One number or a list. Many clients do not support a list of types, so each form has its own.
fn recipients(description: &str) -> Value {
    json!({
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "maxItems": 1000 }],
        "description": description,
    })
}

fn send_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "to": recipients("The recipient's number in international form, such as +37120000001; several as a list or separated by commas, at most 1000. Each is charged."),
            "from": {
                "type": "string",
                "description": "The sender that the handset shows: a number, or 1 to 11 Latin letters, digits, spaces and dots; or a registered name.",
                "examples": ["Acme"],
            },
            "message": { "type": "string", "minLength": 1, "description": "The text. A long one is split by itself, and each part is charged." },
            "dlrUrl": { "type": "string", "format": "uri", "description": "An http or https address that receives the delivery report." },
            "priority": { "type": "string", "enum": ["high", "normal", "low"], "description": "high for codes and urgent notices, low for mass messages; normal when absent." },
            "scheduled": { "type": "string", "description": "When to send: ISO 8601 with offset, up to a year ahead.", "examples": ["2030-01-31T09:30:00+02:00"] },
            "udh": { "type": "string", "description": "User data header, each hex pair prefixed with %. Needs coding, and nothing is split then.", "pattern": "^(%[0-9A-Fa-f]{2})+$" },
            "coding": { "type": "integer", "enum": [0, 1, 2], "description": "0 GSM-7, 1 8-bit, 2 UCS-2. Leave it out: the service finds the right one and splits." },
            "preview": { "type": "boolean", "description": "true: send nothing and charge nothing, and tell the parts and the price." },
            "idempotencyKey": key_schema(),
            "testMode": { "type": "string", "enum": ["1", "2"], "description": "1 emulates a delivery, 2 a failure; nothing leaves the service and nothing is charged." },
            "expireIn": { "type": "integer", "minimum": 360, "maximum": 432_000, "description": "Seconds after which the message is no longer attempted." },
            "correctBy": { "type": "string", "pattern": "^[A-Za-z]{2}$", "description": "ISO 3166-1 alpha-2 country that a local number is completed for.", "examples": ["LV"] },
        },
        "required": ["to", "from", "message"],
        "examples": [{ "to": "+37120000001", "from": "Acme", "message": "Your table is ready." }],
    })
}

pub(super) static LOOKUP_HLR: Tool = Tool {
    name: "lookup_hlr",
    title: "Look a subscriber up (HLR)",
    description: "Asks the home network of a mobile number whether it is in use, which operator it belongs to now and whether it was ported. COSTS MONEY: each query is charged, also when the subscriber is unknown. \
Answers with the ID of the lookup; the result is sent to callBackUrl as JSON a moment later. For what the number's prefix alone tells, get_mobile_prefixes and correct_phone_number are free.\n\n\
Example: {\"msisdn\": \"+37129100000\", \"callBackUrl\": \"https://example.com/hlr\"}",
    scope: Permission::HlrLookup,
    hints: Hints::SPENDS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "msisdn": { "type": "string", "description": "The subscriber's number in international form.", "examples": ["+37129100000"] },
                "callBackUrl": { "type": "string", "format": "uri", "description": "An http or https address that receives the result.", "examples": ["https://example.com/hlr"] },
                "idempotencyKey": key_schema(),
            },
            "required": ["msisdn", "callBackUrl"],
            "examples": [{ "msisdn": "+37129100000", "callBackUrl": "https://example.com/hlr" }],
        })
    },
    output: || json!({ "lookupId": { "type": "integer", "description": "The result names it as id." } }),
    ask: |arguments| {
        let body = Value::Object(body_without(arguments, &[KEY]));
        Ok(ApiRequest::post("/hlr", body).with_key(key(arguments)?))
    },
    read: |_, answer| Some(json!({ "lookupId": answer.list()?.get(0)?.as_u64()? })),
};

pub(super) static GET_SMS_RATES: Tool = Tool {
    name: "get_sms_rates",
    title: "Read SMS prices",
    description: "Tells what one SMS part costs this account, by country and network. Free of charge. \
The whole list has thousands of rows: give a country, an operator, or both. A row whose Operator is \"All\" is the price for every network of the country, \"All other carriers\" for those that have no row of their own.\n\n\
Example: {\"country\": \"LV\"}\n\
Example: {\"country\": \"LV\", \"operator\": \"LMT\"}",
    scope: Permission::SmsRates,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "country": { "type": "string", "description": "Only this country: ISO 3166-1 alpha-2, or its name.", "examples": ["LV", "Latvia"] },
                "operator": { "type": "string", "description": "Only operators and networks whose name holds this text, in any case.", "examples": ["LMT"] },
            },
            "examples": [{ "country": "LV" }],
        })
    },
    output: || {
        json!({
            "rates": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "CountryName": { "type": "string" },
                        "CountryCode": { "type": "string", "description": "ISO 3166-1 alpha-2." },
                        "Operator": { "type": "string" },
                        "Network": { "type": "string" },
                        "MCC": nullable("integer", "Mobile country code."),
                        "MNC": nullable("string", "Mobile network code."),
                        "Rate": { "type": "string", "description": "The price of one part, a decimal." },
                    },
                },
            },
            "currency": { "type": "string", "description": "The currency of every rate." },
            "demonstration": { "type": "boolean", "description": "True when the prices are made up, because nobody has imported real ones." },
        })
    },
    ask: |arguments| {
        for name in ["country", "operator"] {
            filter(arguments, name)?;
        }
        Ok(ApiRequest::get("/rates"))
    },
    read: read_rates,
};

/// An optional text; null and empty mean absent.
fn filter<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, Envelope> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(Envelope::invalid(format!(
            "Invalid value for the argument '{name}'; give a text."
        ))),
    }
}

fn read_rates(arguments: &Arguments, answer: &Answer<'_>) -> Option<Value> {
    let Value::Array(mut rates) = answer.list()? else {
        return None;
    };
    if let Some(country) = filter(arguments, "country").ok()? {
        let wanted = country.to_lowercase();
        let is_it = |value: &Value| value.as_str().is_some_and(|v| v.to_lowercase() == wanted);
        rates.retain(|rate| is_it(&rate["CountryCode"]) || is_it(&rate["CountryName"]));
    }
    if let Some(operator) = filter(arguments, "operator").ok()? {
        let wanted = operator.to_lowercase();
        let holds = |value: &Value| {
            value
                .as_str()
                .is_some_and(|v| v.to_lowercase().contains(&wanted))
        };
        rates.retain(|rate| holds(&rate["Operator"]) || holds(&rate["Network"]));
    }
    Some(json!({
        "rates": rates,
        "currency": answer.currency,
        "demonstration": answer.response.headers().contains_key(DEMONSTRATION),
    }))
}
