//! Parses the texts from handsets that the upstream sends, leniently.

use domain::inbound::assembly::WholeText;
use domain::inbound::number::InboundNumber;
use domain::message::text::{Coding, Udh, is_gsm7};
use domain::ports::ForwardedText;
use serde_json::{Map, Value};

use super::verdict::read_reference;
use crate::texts::sender;

/// A text as the upstream sends it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReceivedText {
    /// The upstream's ID of it.
    pub(super) id: String,
    /// When the upstream received it, as it writes times. With an empty database, an upstream uses its IDs again.
    pub(super) received: String,
    /// `None` if the upstream has erased it: there is nothing to store.
    pub(super) text: Option<ForwardedText>,
}

/// The body is not a text from a handset. The text tells the upstream's operators what is wrong.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotAText {
    #[error("The body is not a JSON object.")]
    NotAnObject,
    #[error("The field 'id' is missing or not an ID.")]
    Id,
    #[error("The field '{0}' is missing or not a text.")]
    Missing(&'static str),
    #[error("The field 'to' is not a number that messages can be sent to.")]
    Recipient,
    #[error("The field 'coding' is not 0, 1 or 2.")]
    Coding,
    #[error("The field 'message' is not written in hexadecimal digits, as 'coding' 1 needs.")]
    NotHex,
    #[error("The field 'udh' is not a header.")]
    Header,
    #[error("The field 'parts' is not a number from 1 to 255.")]
    Parts,
}

impl ReceivedText {
    pub(super) fn read(carrier: &str, body: &[u8]) -> Result<Self, NotAText> {
        let fields: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| NotAText::NotAnObject)?;
        let id = fields.get("id").and_then(read_reference);
        let id = id.ok_or(NotAText::Id)?;
        let received = text(&fields, "received").unwrap_or_default();
        let from = text(&fields, "from").ok_or(NotAText::Missing("from"))?;
        let to = text(&fields, "to").ok_or(NotAText::Missing("to"))?;
        let message = fields.get("message").and_then(Value::as_str);
        let message = message.ok_or(NotAText::Missing("message"))?.to_owned();
        if from.is_empty() || to.is_empty() {
            return Ok(Self {
                id,
                received,
                text: None,
            });
        }
        let to = InboundNumber::from_address(&to, to.starts_with('+'));
        let forwarded = ForwardedText {
            carrier: carrier.to_owned(),
            from: sender(&from),
            to: to.map_err(|_| NotAText::Recipient)?,
            whole: WholeText {
                coding: coding(&fields, &message)?,
                text: message,
                is_incomplete: fields.get("incomplete") == Some(&Value::Bool(true)),
            },
            udh: header(&fields)?,
            parts: parts(&fields)?,
        };
        Ok(Self {
            id,
            received,
            text: Some(forwarded),
        })
    }
}

fn coding(fields: &Map<String, Value>, message: &str) -> Result<Coding, NotAText> {
    let coding = match given(fields, "coding") {
        None if message.chars().all(is_gsm7) => Coding::Gsm7,
        None => Coding::Ucs2,
        Some(value) => {
            let number = value.as_u64().and_then(|number| u8::try_from(number).ok());
            let coding = number.and_then(Coding::from_number);
            coding.ok_or(NotAText::Coding)?
        }
    };
    let is_hex = message.len().is_multiple_of(2) && message.bytes().all(|b| b.is_ascii_hexdigit());
    if coding == Coding::Binary && !is_hex {
        return Err(NotAText::NotHex);
    }
    Ok(coding)
}

fn header(fields: &Map<String, Value>) -> Result<Option<Udh>, NotAText> {
    let Some(value) = given(fields, "udh") else {
        return Ok(None);
    };
    let header = value.as_str().and_then(|written| written.parse().ok());
    header.map(Some).ok_or(NotAText::Header)
}

fn parts(fields: &Map<String, Value>) -> Result<u8, NotAText> {
    let Some(value) = given(fields, "parts") else {
        return Ok(1);
    };
    let parts = value.as_u64().and_then(|number| u8::try_from(number).ok());
    parts.filter(|parts| *parts > 0).ok_or(NotAText::Parts)
}

/// A field that is there and not `null`.
fn given<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

/// A string, or a number instead.
fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> Value {
        json!({
            "id": "10001", "from": "+37120000001", "to": "1234", "message": "Yes, please",
            "received": "2030-01-31 07:30:00", "parts": 2, "coding": 0, "udh": null, "mcc": "247", "mnc": "02",
            "keyword": null, "inReplyTo": "9999", "incomplete": false,
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut record = record();
        record[field] = value;
        record
    }

    fn read(record: &Value) -> Result<ReceivedText, NotAText> {
        ReceivedText::read("up", record.to_string().as_bytes())
    }

    fn forwarded(record: &Value) -> ForwardedText {
        let read = read(record).expect("a text");
        read.text.expect("not erased")
    }

    #[test]
    fn every_field_survives() {
        let received = read(&record()).expect("a text");
        assert_eq!(received.id, "10001");
        assert_eq!(received.received, "2030-01-31 07:30:00");
        let text = received.text.expect("not erased");
        assert_eq!(text.carrier, "up");
        assert_eq!((text.from.as_str(), text.parts), ("+37120000001", 2));
        assert_eq!(text.to, InboundNumber::parse("1234").expect("a short code"));
        assert_eq!(text.udh, None);
        let whole = WholeText {
            text: "Yes, please".to_owned(),
            coding: Coding::Gsm7,
            is_incomplete: false,
        };
        assert_eq!(text.whole, whole);

        let mut binary = with("coding", json!(1));
        binary["message"] = json!("00ff");
        assert_eq!(forwarded(&binary).whole.coding, Coding::Binary);
        let gap = with("message", json!("[…]b"));
        assert_eq!(forwarded(&gap).whole.coding, Coding::Gsm7, "as it was told");
        let incomplete = with("incomplete", json!(true));
        assert!(forwarded(&incomplete).whole.is_incomplete);
        let header = forwarded(&with("udh", json!("%03%70%01%09"))).udh;
        assert_eq!(header, Udh::from_bytes(&[3, 0x70, 1, 9]).ok());
    }

    #[test]
    fn a_plain_record_is_enough() {
        let plain =
            json!({ "id": 7, "from": "37120000001", "to": 37_120_000_009_u64, "message": "Да" });
        let text = forwarded(&plain);
        assert_eq!(text.from, "+37120000001");
        assert_eq!(text.to.to_string(), "+37120000009");
        assert_eq!((text.whole.coding, text.parts), (Coding::Ucs2, 1));
    }

    #[test]
    fn what_the_upstream_erased_is_not_stored() {
        for field in ["from", "to"] {
            let erased = read(&with(field, json!(""))).expect("a record");
            assert_eq!(erased.text, None, "{field}");
        }
    }

    #[test]
    fn other_bodies_are_refused() {
        assert_eq!(ReceivedText::read("up", b"[]"), Err(NotAText::NotAnObject));
        for (record, error) in [
            (with("id", json!(null)), NotAText::Id),
            (with("from", json!(null)), NotAText::Missing("from")),
            (with("to", json!([])), NotAText::Missing("to")),
            (with("to", json!("Acme")), NotAText::Recipient),
            (with("message", json!(1)), NotAText::Missing("message")),
            (with("coding", json!(3)), NotAText::Coding),
            (with("coding", json!(1)), NotAText::NotHex),
            (with("udh", json!("%03")), NotAText::Header),
            (with("parts", json!(0)), NotAText::Parts),
            (with("parts", json!(256)), NotAText::Parts),
        ] {
            assert_eq!(read(&record), Err(error), "{record}");
        }
    }
}
