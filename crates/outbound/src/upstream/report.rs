//! Parses the upstream's callbacks, leniently.

use domain::message::lookup::{HomeOperator, MAX_IMSI, Subscriber};
use domain::{Code, Country, Network, Outcome};
use serde_json::{Map, Value};

use super::verdict::read_reference;

/// The longest operator name that is passed on.
const MAX_NAME_CHARS: usize = 200;

/// A callback from the upstream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The upstream's ID of the message.
    pub(super) reference: String,
    /// The network that it names.
    pub(super) network: Option<Network>,
    pub(super) content: ReportContent,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReportContent {
    /// The message has reached a final state.
    Ended(Outcome),
    Seen,
    InTransit,
    /// The result of a lookup.
    LookedUp(Subscriber),
}

/// The body is not a report. The text tells the upstream's operators what is wrong.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotAReport {
    #[error("The body is not a JSON object.")]
    NotAnObject,
    #[error("The field 'id' is missing or not an ID.")]
    Id,
    #[error("The field 'status' is not a number.")]
    Status,
    #[error(
        "Neither the field 'status' nor 'error' is there; give 'status' for a message, 'error' for a lookup."
    )]
    Neither,
}

impl Report {
    /// Parses a body. With a `status` it is about a message, without about a lookup.
    pub(super) fn read(body: &[u8]) -> Result<Self, NotAReport> {
        let fields: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| NotAReport::NotAnObject)?;
        let reference = fields.get("id").and_then(read_reference);
        let error = number(&fields, "error");
        let content = match (fields.get("status"), fields.get("error")) {
            (None | Some(Value::Null), None | Some(Value::Null)) => {
                return Err(NotAReport::Neither);
            }
            (None | Some(Value::Null), _) => {
                ReportContent::LookedUp(read_subscriber(&fields, error))
            }
            _ => {
                let status = number(&fields, "status").ok_or(NotAReport::Status)?;
                read_status(status, error)
            }
        };
        Ok(Self {
            reference: reference.ok_or(NotAReport::Id)?,
            network: read_network(&fields),
            content,
        })
    }
}

fn read_status(status: u64, error: Option<u64>) -> ReportContent {
    match status {
        1 => ReportContent::Ended(Outcome::Delivered),
        2 => ReportContent::Ended(Outcome::Failed(
            read_code(error)
                .filter(|code| *code != Code::FINE)
                .unwrap_or(Code::UNKNOWN),
        )),
        3 => ReportContent::Seen,
        16 => ReportContent::Ended(Outcome::Expired),
        _ => ReportContent::InTransit,
    }
}

/// The codes are the same on both sides; `None` if this side does not know the number.
fn read_code(error: Option<u64>) -> Option<Code> {
    u16::try_from(error?).ok().and_then(Code::new)
}

fn read_subscriber(fields: &Map<String, Value>, error: Option<u64>) -> Subscriber {
    let ported = fields.get("ported").and_then(Value::as_array);
    let origin = ported.and_then(|list| list.first()?.as_object());
    Subscriber {
        code: read_code(error).unwrap_or(Code::UNKNOWN),
        imsi: number(fields, "imsi").filter(|imsi| (1..=MAX_IMSI).contains(imsi)),
        country: country(fields),
        operator: operator_id(fields),
        network: read_network(fields),
        ported_from: origin.map(|origin| HomeOperator {
            // A port is worth reporting even if the former operator is unknown.
            id: operator_id(origin).unwrap_or(0),
            name: text(origin, "operator")
                .unwrap_or_default()
                .chars()
                .take(MAX_NAME_CHARS)
                .collect(),
            country: country(origin),
        }),
    }
}

fn country(fields: &Map<String, Value>) -> Option<Country> {
    text(fields, "country").and_then(|code| Country::parse(&code).ok())
}

fn operator_id(fields: &Map<String, Value>) -> Option<u32> {
    number(fields, "operatorId").and_then(|id| id.try_into().ok())
}

/// Numbers instead of strings have lost their leading zeros.
fn read_network(fields: &Map<String, Value>) -> Option<Network> {
    let (mcc, mnc) = (text(fields, "mcc")?, text(fields, "mnc")?);
    Network::new(&format!("{mcc:0>3}"), &format!("{mnc:0>2}"))
}

/// A string, or a number instead.
fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A non-negative whole number, or its digits.
fn number(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    text(fields, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(number: u16) -> Code {
        Code::new(number).expect("in the catalogue")
    }

    #[test]
    fn messages_end_as_the_upstream_says() {
        let failed = |number| ReportContent::Ended(Outcome::Failed(code(number)));
        for (body, content) in [
            (
                r#"{"id":"7","status":1,"error":0}"#,
                ReportContent::Ended(Outcome::Delivered),
            ),
            (
                r#"{"id":7,"status":"1"}"#,
                ReportContent::Ended(Outcome::Delivered),
            ),
            (
                r#"{"id":"7","status":2,"error":43,"mcc":"247","mnc":"01"}"#,
                failed(43),
            ),
            (r#"{"id":"7","status":"2","error":"20"}"#, failed(20)),
            (r#"{"id":"7","status":2,"error":2}"#, failed(2)),
            (r#"{"id":"7","status":2,"error":18}"#, failed(999)),
            (r#"{"id":"7","status":2,"error":70000}"#, failed(999)),
            (r#"{"id":"7","status":2,"error":-1}"#, failed(999)),
            (r#"{"id":"7","status":2,"error":0}"#, failed(999)),
            (r#"{"id":"7","status":2}"#, failed(999)),
            (r#"{"id":"7","status":2,"error":null}"#, failed(999)),
            (r#"{"id":"7","status":2,"error":{}}"#, failed(999)),
            (
                r#"{"id":"7","status":16,"error":2}"#,
                ReportContent::Ended(Outcome::Expired),
            ),
            (r#"{"id":"7","status":3,"error":0}"#, ReportContent::Seen),
            (
                r#"{"id":"7","status":4,"error":0}"#,
                ReportContent::InTransit,
            ),
            (r#"{"id":"7","status":0}"#, ReportContent::InTransit),
        ] {
            let expected = Report {
                reference: "7".to_owned(),
                network: body
                    .contains("mcc")
                    .then(|| Network::new("247", "01"))
                    .flatten(),
                content,
            };
            assert_eq!(Report::read(body.as_bytes()), Ok(expected), "{body}");
        }
    }

    #[test]
    fn every_code_is_passed_on_as_it_is() {
        for entry in domain::message::code::CATALOGUE
            .iter()
            .filter(|entry| entry.number > 0)
        {
            let body = format!(r#"{{"id":"7","status":2,"error":{}}}"#, entry.number);
            let report = Report::read(body.as_bytes()).expect("a report");
            assert_eq!(
                report.content,
                ReportContent::Ended(Outcome::Failed(code(entry.number)))
            );
        }
    }

    #[test]
    fn lookups_report_what_is_known() {
        let nothing = Subscriber::unknown(Code::FINE);
        let whole = Subscriber {
            code: Code::FINE,
            imsi: Some(247_010_000_000_001),
            country: Country::parse("LV").ok(),
            operator: Some(1635),
            network: Network::new("247", "01"),
            ported_from: Some(HomeOperator {
                id: 9,
                name: "Other".to_owned(),
                country: Country::parse("LT").ok(),
            }),
        };
        for (body, found) in [
            (r#"{"id":"7","error":0}"#, nothing.clone()),
            (
                r#"{"id":7,"error":"43"}"#,
                Subscriber::unknown(Code::ABSENT),
            ),
            (
                r#"{"id":7,"error":"43","status":null}"#,
                Subscriber::unknown(Code::ABSENT),
            ),
            (r#"{"id":7,"error":18}"#, Subscriber::unknown(Code::UNKNOWN)),
            (
                r#"{"id":7,"error":"none"}"#,
                Subscriber::unknown(Code::UNKNOWN),
            ),
            (
                r#"{"id":"7","error":0,"imsi":247010000000001,"country":"LV","operatorId":1635,"mcc":"247","mnc":"01","ported":[{"operatorId":9,"operator":"Other","country":"LT"}]}"#,
                whole.clone(),
            ),
            (
                r#"{"id":7,"error":"0","imsi":"247010000000001","country":"lv","operatorId":"1635","mcc":247,"mnc":1,"ported":[{"operatorId":"9","operator":"Other","country":"LT"},{}]}"#,
                whole,
            ),
            (
                r#"{"id":"7","error":0,"imsi":99999999999999999999,"country":"??","operatorId":-1,"mcc":"2470","mnc":"","ported":[]}"#,
                nothing.clone(),
            ),
            (
                r#"{"id":"7","error":0,"ported":{},"mcc":"247"}"#,
                nothing.clone(),
            ),
            (
                r#"{"id":"7","error":0,"ported":[{}]}"#,
                Subscriber {
                    ported_from: Some(HomeOperator {
                        id: 0,
                        name: String::new(),
                        country: None,
                    }),
                    ..nothing
                },
            ),
        ] {
            let expected = Report {
                reference: "7".to_owned(),
                network: found.network,
                content: ReportContent::LookedUp(found),
            };
            assert_eq!(Report::read(body.as_bytes()), Ok(expected), "{body}");
        }
    }

    #[test]
    fn malformed_reports_have_a_reason() {
        let long = format!(r#"{{"id":"{}","status":1}}"#, "7".repeat(65));
        for (body, why) in [
            ("", NotAReport::NotAnObject),
            ("OK", NotAReport::NotAnObject),
            ("[1]", NotAReport::NotAnObject),
            (r#"{"id":"7"}"#, NotAReport::Neither),
            (
                r#"{"id":"7","status":null,"error":null}"#,
                NotAReport::Neither,
            ),
            (r#"{"id":"7","status":"delivered"}"#, NotAReport::Status),
            (r#"{"id":"7","status":[1]}"#, NotAReport::Status),
            (r#"{"id":"7","status":1.5}"#, NotAReport::Status),
            (r#"{"status":1}"#, NotAReport::Id),
            (r#"{"id":"","status":1}"#, NotAReport::Id),
            (r#"{"id":"@7","status":1}"#, NotAReport::Id),
            (r#"{"id":"7 8","status":1}"#, NotAReport::Id),
            (r#"{"id":{},"error":1}"#, NotAReport::Id),
            (&long, NotAReport::Id),
        ] {
            assert_eq!(Report::read(body.as_bytes()), Err(why), "{body}");
        }
    }
}
