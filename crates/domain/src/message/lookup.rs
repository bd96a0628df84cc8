//! HLR lookups: what the home network reports about a subscriber.

use std::fmt::Write as _;

use crate::ids::MessageId;
use crate::message::MessageState;
use crate::message::code::Code;
use crate::message::outcome::Outcome;
use crate::number::country::Country;
use crate::number::network::Network;

/// The largest integer that every JSON parser reads exactly; an IMSI has fifteen digits and is smaller.
pub const MAX_IMSI: u64 = (1 << 53) - 1;

/// A mobile operator in the result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeOperator {
    /// The ID in the reference data.
    pub id: u32,
    pub name: String,
    pub country: Option<Country>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// 0, or why the subscriber cannot be reached.
    pub code: Code,
    pub imsi: Option<u64>,
    /// The country of the mobile operator that serves the number.
    pub country: Option<Country>,
    /// The mobile operator that serves the number, by its ID in the reference data.
    pub operator: Option<u32>,
    pub network: Option<Network>,
    /// The mobile operator that first had the number, if it is another one.
    pub ported_from: Option<HomeOperator>,
}

impl Subscriber {
    /// A subscriber of whom only the error code is known.
    pub const fn unknown(code: Code) -> Self {
        Self {
            code,
            imsi: None,
            country: None,
            operator: None,
            network: None,
            ported_from: None,
        }
    }

    pub fn outcome(&self) -> Outcome {
        if self.code == Code::FINE {
            Outcome::Delivered
        } else {
            Outcome::Failed(self.code)
        }
    }

    /// The payload of the callback, without unknown fields.
    pub fn payload(&self, id: MessageId) -> String {
        let mut json = format!(r#"{{"id":"{id}","error":{}"#, self.code.number());
        let mut add = |text: std::fmt::Arguments<'_>| {
            json.write_fmt(text).expect("a string takes everything");
        };
        if let Some(imsi) = self.imsi {
            add(format_args!(r#","imsi":{imsi}"#));
        }
        if let Some(country) = self.country {
            add(format_args!(r#","country":"{country}""#));
        }
        if let Some(operator) = self.operator {
            add(format_args!(r#","operatorId":{operator}"#));
        }
        if let Some(network) = self.network {
            let (mcc, mnc) = (network.mcc(), network.mnc());
            add(format_args!(r#","mcc":"{mcc:03}","mnc":"{mnc}""#));
        }
        if let Some(origin) = &self.ported_from {
            let country = origin
                .country
                .map_or("null".to_owned(), |country| format!("\"{country}\""));
            let name = json_text(&origin.name);
            let id = origin.id;
            add(format_args!(
                r#","ported":[{{"operatorId":{id},"operator":{name},"country":{country}}}]"#
            ));
        }
        json.push('}');
        json
    }
}

/// The outcome and the payload of a lookup that ended without an answer. An expired lookup counts as a timeout of the
/// home network.
pub fn unanswered(id: MessageId, outcome: Outcome) -> (Outcome, String) {
    let code = match outcome.code() {
        Code::EXPIRED => Code::HLR_TIMEOUT,
        other => other,
    };
    let subscriber = Subscriber::unknown(code);
    (subscriber.outcome(), subscriber.payload(id))
}

fn json_text(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            control if control.is_control() => {
                write!(json, "\\u{:04x}", u32::from(control)).expect("a string takes everything");
            }
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

/// What the API shows of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupRecord {
    pub id: MessageId,
    pub state: MessageState,
    /// The reported JSON. `None` until the lookup ends.
    pub report: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_the_contracts_fields() {
        let id = MessageId::new(7).expect("in range");
        let found = Subscriber {
            code: Code::FINE,
            imsi: Some(247_010_000_000_001),
            country: Country::parse("LV").ok(),
            operator: Some(1635),
            network: Network::new("247", "01"),
            ported_from: None,
        };
        let expected = r#"{"id":"7","error":0,"imsi":247010000000001,"country":"LV","operatorId":1635,"mcc":"247","mnc":"01"}"#;
        assert_eq!(found.payload(id), expected);
        let ported = Subscriber {
            ported_from: Some(HomeOperator {
                id: 9,
                name: "A \"B\" \\ \u{1}".to_owned(),
                country: None,
            }),
            ..Subscriber::unknown(Code::FINE)
        };
        let expected = r#"{"id":"7","error":0,"ported":[{"operatorId":9,"operator":"A \"B\" \\ \u0001","country":null}]}"#;
        assert_eq!(ported.payload(id), expected);
        assert_eq!(
            Subscriber::unknown(Code::ABSENT).payload(id),
            r#"{"id":"7","error":43}"#
        );
    }

    #[test]
    fn an_expired_lookup_counts_as_a_timeout() {
        let id = MessageId::new(7).expect("in range");
        let timeout = Outcome::Failed(Code::HLR_TIMEOUT);
        for (outcome, ended, error) in [
            (Outcome::Delivered, Outcome::Delivered, 0),
            (
                Outcome::Failed(Code::ABSENT),
                Outcome::Failed(Code::ABSENT),
                43,
            ),
            (Outcome::Expired, timeout, 50),
            (Outcome::Failed(Code::EXPIRED), timeout, 50),
        ] {
            let expected = format!(r#"{{"id":"7","error":{error}}}"#);
            assert_eq!(unanswered(id, outcome), (ended, expected));
        }
    }
}
