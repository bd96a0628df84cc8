//! The tool for prices.

use domain::Permission;
use http::HeaderName;
use serde_json::{Value, json};

use super::paging::{CURSOR, LIMIT, NEXT_CURSOR, Page, cursor_schema, limit_schema, next_schema};
use super::{Answer, Arguments, Hints, Tool, nullable};
use crate::mcp::api::ApiRequest;
use crate::mcp::envelope::Envelope;

const DEMONSTRATION: HeaderName = HeaderName::from_static("x-demonstration-prices");

pub(super) static GET_SMS_RATES: Tool = Tool {
    name: "get_sms_rates",
    title: "Read SMS prices",
    description: "Returns what one SMS part costs this account, by country and network. Free of charge. \
The whole list has thousands of rows, so give a country or an operator. Operator \"All\" means every network of the country, \"All other carriers\" those without a row. If demonstration is true, the prices are made up.",
    scope: Some(Permission::SmsRates),
    waits: false,
    hints: Hints::READS,
    input: || {
        json!({
            "type": "object",
            "properties": {
                "country": { "type": "string", "description": "ISO 3166-1 alpha-2, or the name." },
                "operator": { "type": "string", "description": "A part of the name of an operator or network." },
                LIMIT: limit_schema(),
                CURSOR: cursor_schema(),
            },
            "examples": [{ "country": "LV", "operator": "LMT" }],
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
                        "CountryCode": { "type": "string" },
                        "Operator": { "type": "string" },
                        "Network": { "type": "string" },
                        "MCC": nullable("integer"),
                        "MNC": nullable("string"),
                        "Rate": { "type": "string" },
                    },
                },
            },
            "total": { "type": "integer" },
            NEXT_CURSOR: next_schema(),
            "currency": { "type": "string" },
            "demonstration": { "type": "boolean" },
        })
    },
    ask: |arguments| {
        for name in ["country", "operator"] {
            filter(arguments, name)?;
        }
        Page::read(arguments)?;
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
    let total = rates.len();
    let (rates, next) = Page::read(arguments).ok()?.of(rates);
    Some(json!({
        "rates": rates,
        "total": total,
        NEXT_CURSOR: next,
        "currency": answer.currency,
        "demonstration": answer.response.headers().contains_key(DEMONSTRATION),
    }))
}
