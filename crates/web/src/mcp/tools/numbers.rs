//! Tools for number data and number correction. All are free of charge.

use domain::{Code, Msisdn, Permission};
use http::HeaderName;
use serde_json::{Map, Value, json};

use super::paging::{CURSOR, LIMIT, NEXT_CURSOR, Page, cursor_schema, limit_schema, next_schema};
use super::{Arguments, Hints, Tool, country_schema, in_address, nullable, operator_id_schema};
use crate::mcp::api::{ApiRequest, segment};
use crate::mcp::envelope::Envelope;

const TOTAL: HeaderName = HeaderName::from_static("x-total-count");
const COUNTRY: &str = "a country code of two letters, such as LV";

pub(super) static GET_OPERATOR: Tool = Tool {
    name: "get_operator",
    title: "Describe a mobile operator",
    description: "Returns the name, country and network codes of a mobile operator. Free of charge.",
    scope: Some(Permission::NumbersRead),
    waits: false,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": { "operatorId": operator_id_schema() },
            "required": ["operatorId"],
            "examples": [{ "operatorId": 1635 }],
        })
    },
    output: || {
        json!({
            "name": { "type": "string" },
            "country": nullable("string"),
            "mcc": nullable("integer"),
            "mnc": { "type": "array", "items": { "type": "string" } },
        })
    },
    ask: |arguments| {
        let id = in_address(arguments, "operatorId", "the ID of an operator")?;
        Ok(ApiRequest::get(format!("/operators/{id}")))
    },
    read: |_, answer| answer.json().filter(Value::is_object),
};

pub(super) static GET_MCC_MNC_LIST: Tool = Tool {
    name: "get_mcc_mnc_list",
    title: "List the mobile networks of a country",
    description: "Lists the mobile networks of a country with their codes and operators, 100 on a page. Free of charge.",
    scope: Some(Permission::NumbersRead),
    waits: false,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "country": country_schema(),
                "Page": { "type": "integer", "minimum": 1, "description": "Default 1." },
            },
            "required": ["country"],
            "examples": [{ "country": "LV" }],
        })
    },
    output: || {
        json!({
            "networks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "country": nullable("string"),
                        "MCC": { "type": "integer" },
                        "MNC": { "type": "string" },
                        "operatorId": { "type": "integer" },
                    },
                },
            },
            "total": { "type": "integer" },
        })
    },
    ask: |arguments| {
        let country = in_address(arguments, "country", COUNTRY)?;
        let page = match arguments.get("Page") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => format!("?Page={}", segment(text)),
            Some(other) => format!("?Page={}", segment(&other.to_string())),
        };
        Ok(ApiRequest::get(format!("/mccmnc/{country}{page}")))
    },
    read: |_, answer| {
        let networks = answer.list()?;
        Some(json!({ "networks": networks, "total": answer.number(&TOTAL)? }))
    },
};

pub(super) static GET_MOBILE_PREFIXES: Tool = Tool {
    name: "get_mobile_prefixes",
    title: "List the mobile prefixes of a country",
    description: "Lists the number ranges of a country's mobile operators, or with number only the range of that number. Free of charge. \
The prefix tells which operator a number was first given to; it may have been ported since, which only lookup_hlr can tell.",
    scope: Some(Permission::NumbersRead),
    waits: false,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "country": country_schema(),
                "number": { "type": "string", "description": "A number in international form: returns only its longest prefix." },
                LIMIT: limit_schema(),
                CURSOR: cursor_schema(),
            },
            "required": ["country"],
            "examples": [{ "country": "LV", "number": "+37129111111" }],
        })
    },
    output: || {
        json!({
            "prefixes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "prefix": { "type": "integer" },
                        "country": nullable("string"),
                        "operatorId": { "type": "integer" },
                    },
                },
            },
            "total": { "type": "integer" },
            NEXT_CURSOR: next_schema(),
        })
    },
    ask: |arguments| {
        let country = in_address(arguments, "country", COUNTRY)?;
        Page::read(arguments)?;
        number(arguments)?;
        Ok(ApiRequest::get(format!("/prefixes/{country}")))
    },
    read: |arguments, answer| {
        let Value::Array(mut prefixes) = answer.list()? else {
            return None;
        };
        if let Some(number) = number(arguments).ok()? {
            prefixes = longest_prefix(prefixes, &number).into_iter().collect();
        }
        let total = prefixes.len();
        let (prefixes, next) = Page::read(arguments).ok()?.of(prefixes);
        Some(json!({ "prefixes": prefixes, "total": total, NEXT_CURSOR: next }))
    },
};

/// The argument `number`.
fn number(arguments: &Arguments) -> Result<Option<Msisdn>, Envelope> {
    let text = match arguments.get("number") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let number = Msisdn::parse(&text).map_err(|error| {
        let message = format!("Invalid value for the argument 'number': {error}.");
        Envelope::invalid(message).with_service_code(Code::INVALID_NUMBER)
    });
    number.map(Some)
}

fn longest_prefix(prefixes: Vec<Value>, number: &Msisdn) -> Option<Value> {
    let length = |entry: &Value| {
        let prefix = entry["prefix"].as_u64()?.to_string();
        let is_prefix = number.digits().starts_with(&prefix);
        is_prefix.then_some(prefix.len())
    };
    let entries = prefixes.into_iter();
    let fitting = entries.filter_map(|entry| Some((length(&entry)?, entry)));
    let longest = fitting.max_by_key(|(length, _)| *length);
    longest.map(|(_, entry)| entry)
}

pub(super) static CORRECT_PHONE_NUMBER: Tool = Tool {
    name: "correct_phone_number",
    title: "Correct phone numbers",
    description: "Checks phone numbers and converts them to international form (E.164), as send_sms needs them. Free of charge. \
Give one as Number and CountryIso, or several as numbers. A number that cannot be read has an Error; the others are not affected.",
    scope: Some(Permission::NumbersRead),
    waits: false,
    hints: Hints::READS,
    input: || {
        let number = json!({ "type": "string", "description": "As people write it." });
        let country = json!({ "type": "string", "description": "The country of a local number, ISO 3166-1 alpha-2." });
        json!({
            "type": "object",
            "properties": {
                "Number": number,
                "CountryIso": country,
                "numbers": {
                    "type": "array",
                    "maxItems": 10_000,
                    "description": "Instead of Number and CountryIso.",
                    "items": {
                        "type": "object",
                        "properties": { "Number": { "type": "string" }, "CountryIso": { "type": "string" } },
                        "required": ["Number"],
                    },
                },
            },
            "examples": [{ "Number": "29 111 111", "CountryIso": "LV" }],
        })
    },
    output: || {
        json!({
            "numbers": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "Error": nullable("string"),
                        "Number": nullable("string"),
                        "NumberType": { "type": "string", "enum": ["mobile", "landline", "unknown"] },
                        "CountryIso": nullable("string"),
                        "Mobile": { "type": "boolean" },
                        "NumberE164": nullable("string"),
                    },
                },
            },
        })
    },
    ask: |arguments| Ok(ApiRequest::post("/numberCorrection", items(arguments)?)),
    read: |_, answer| Some(json!({ "numbers": answer.list()? })),
};

/// REST takes a list.
fn items(arguments: &Arguments) -> Result<Value, Envelope> {
    match arguments.get("numbers") {
        Some(list @ Value::Array(_)) => return Ok(list.clone()),
        None | Some(Value::Null) => {}
        Some(_) => {
            return Err(Envelope::invalid(
                "Invalid value for the argument 'numbers'; give a list of objects with Number and CountryIso.",
            ));
        }
    }
    if !arguments.contains_key("Number") {
        return Err(Envelope::invalid(
            "The argument 'Number' is missing; give the number to correct, or several as 'numbers'.",
        ));
    }
    let one = ["Number", "CountryIso", "country"].into_iter();
    let one = one.filter_map(|name| Some((name.to_owned(), arguments.get(name)?.clone())));
    Ok(json!([one.collect::<Map<String, Value>>()]))
}
