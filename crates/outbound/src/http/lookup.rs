//! Reads what a provider knows about a subscriber.

use domain::message::lookup::{HomeOperator, Subscriber};
use domain::ports::{HomeNetwork, NumberLocator};
use domain::{Code, Msisdn, Network};
use serde_json::Value;

use super::fields::{Fields, Pointer};
use super::rule::CodeTable;

/// Where the result of a lookup has what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupRules {
    /// Whether the subscriber can be reached: true or false, or one of `present_values`.
    pub present: Pointer,
    /// In any case. Empty: the value is true or false.
    pub present_values: Vec<String>,
    pub ported: Option<Pointer>,
    pub network: NetworkRules,
    /// The network that first had the number.
    pub original_network: Option<Pointer>,
    /// The provider's code of a failure.
    pub error: Option<Pointer>,
    pub errors: CodeTable,
    /// The code if the subscriber is not present and `errors` does not have the provider's code.
    pub other_error: Option<Code>,
}

/// The network that serves the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkRules {
    Unknown,
    /// MCC and MNC in one value.
    Whole(Pointer),
    Apart {
        mcc: Pointer,
        mnc: Pointer,
    },
}

/// The result of a lookup, without what the reference data knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LookupResult {
    code: Code,
    network: Option<Network>,
    is_ported: bool,
    original: Option<Network>,
}

impl LookupRules {
    /// What the provider found; `None` if it says neither whether the subscriber can be reached nor an error.
    pub(super) fn read(&self, fields: &Fields) -> Option<LookupResult> {
        let theirs = self.error.as_ref().and_then(|error| fields.text(error));
        let mapped = theirs
            .as_deref()
            .and_then(|theirs| self.errors.find(theirs));
        let code = match self.is_present(fields) {
            Some(true) => Code::FINE,
            Some(false) => mapped.or(self.other_error).unwrap_or(Code::ABSENT),
            None => {
                theirs?;
                let other = self.other_error.unwrap_or(Code::SYSTEM_FAILURE);
                mapped.unwrap_or(other)
            }
        };
        let original = self.original_network.as_ref();
        let original = original.and_then(|it| read_network(&fields.text(it)?));
        Some(LookupResult {
            code,
            network: self.network.read(fields),
            is_ported: self.ported.as_ref().is_some_and(|it| is_true(fields, it)),
            original,
        })
    }

    fn is_present(&self, fields: &Fields) -> Option<bool> {
        let value = fields.get(&self.present)?;
        if value.is_null() {
            return None;
        }
        if self.present_values.is_empty() {
            return truth(&value);
        }
        let text = fields.text(&self.present)?;
        let mut values = self.present_values.iter();
        Some(values.any(|it| it.eq_ignore_ascii_case(&text)))
    }
}

impl NetworkRules {
    pub(super) fn read(&self, fields: &Fields) -> Option<Network> {
        match self {
            Self::Unknown => None,
            Self::Whole(pointer) => read_network(&fields.text(pointer)?),
            Self::Apart { mcc, mnc } => {
                let (mcc, mnc) = (fields.text(mcc)?, fields.text(mnc)?);
                // Numbers instead of texts have lost their leading zeros.
                Network::new(&format!("{mcc:0>3}"), &format!("{mnc:0>2}"))
            }
        }
    }
}

impl LookupResult {
    /// The subscriber, with what the reference data knows about its networks. `number` is the one that was asked for,
    /// if it is known.
    pub(super) fn subscriber(
        &self,
        number: Option<&Msisdn>,
        numbers: &dyn NumberLocator,
    ) -> Subscriber {
        let serving = self.network.and_then(|it| numbers.operator_of(it));
        let operator = serving.as_ref().and_then(|it| it.operator.as_ref());
        let first = self.original.and_then(|it| numbers.operator_of(it));
        let first = first.or_else(|| number.map(|number| numbers.locate(number)));
        Subscriber {
            code: self.code,
            imsi: None,
            country: serving.as_ref().and_then(|it| it.country),
            operator: operator.map(|it| it.id),
            network: self.network,
            ported_from: self.is_ported.then(|| home_operator(first)),
        }
    }
}

/// A port is worth reporting even if the first operator is unknown.
fn home_operator(home: Option<HomeNetwork>) -> HomeOperator {
    let operator = home.and_then(|home| home.operator);
    operator.unwrap_or_else(|| HomeOperator {
        id: 0,
        name: String::new(),
        country: None,
    })
}

/// MCC and MNC in one text: digits, perhaps with something between them.
fn read_network(text: &str) -> Option<Network> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let (mcc, mnc) = digits.split_at_checked(3)?;
    Network::new(mcc, mnc)
}

fn is_true(fields: &Fields, pointer: &Pointer) -> bool {
    fields
        .get(pointer)
        .and_then(|it| truth(&it))
        .unwrap_or(false)
}

fn truth(value: &Value) -> Option<bool> {
    let text = match value {
        Value::Bool(truth) => return Some(*truth),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_ascii_lowercase(),
        _ => return None,
    };
    match text.as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::Country;

    use super::*;

    struct Numbers;

    fn home(id: u32, name: &str) -> HomeNetwork {
        let country = Country::parse("LV").ok();
        HomeNetwork {
            country,
            operator: Some(HomeOperator {
                id,
                name: name.to_owned(),
                country,
            }),
            network: None,
        }
    }

    impl NumberLocator for Numbers {
        fn locate(&self, _: &Msisdn) -> HomeNetwork {
            home(1, "By prefix")
        }

        fn operator_of(&self, network: Network) -> Option<HomeNetwork> {
            match network.mnc().as_str() {
                "01" => Some(home(2, "One")),
                "02" => Some(home(3, "Two")),
                _ => None,
            }
        }

        fn other_operator(&self, _: &HomeNetwork) -> Option<HomeNetwork> {
            None
        }
    }

    fn rules() -> LookupRules {
        let pointer = |text| Pointer::parse("lookup.present", text).expect("a pointer");
        let errors = BTreeMap::from([("9".to_owned(), 1)]);
        LookupRules {
            present: pointer("/reachable"),
            present_values: Vec::new(),
            ported: Some(pointer("/ported")),
            network: NetworkRules::Whole(pointer("/network")),
            original_network: Some(pointer("/original")),
            error: Some(pointer("/error")),
            errors: CodeTable::parse("lookup.errors", &errors).expect("codes"),
            other_error: None,
        }
    }

    fn found(rules: &LookupRules, body: &str) -> Option<Subscriber> {
        let fields = Fields::read(None, body.as_bytes()).expect(body);
        let number = Msisdn::parse("+37120000001").expect("a number");
        Some(rules.read(&fields)?.subscriber(Some(&number), &Numbers))
    }

    #[test]
    fn results_are_read_and_completed() {
        let served = |code, network: &str, operator| Subscriber {
            code: Code::new(code).expect("a code"),
            imsi: None,
            country: Country::parse("LV").ok(),
            operator: Some(operator),
            network: read_network(network),
            ported_from: None,
        };
        let nothing = |code| Some(Subscriber::unknown(Code::new(code).expect("a code")));
        let from = |home: HomeNetwork, subscriber| {
            Some(Subscriber {
                ported_from: home.operator,
                ..subscriber
            })
        };
        for (body, expected) in [
            (
                r#"{"reachable":true,"network":"24701"}"#,
                Some(served(0, "24701", 2)),
            ),
            (
                r#"{"reachable":"yes","network":"247-02"}"#,
                Some(served(0, "24702", 3)),
            ),
            (
                r#"{"reachable":true,"network":"24702","ported":true,"original":24701}"#,
                from(home(2, "One"), served(0, "24702", 3)),
            ),
            (
                r#"{"reachable":true,"network":"24702","ported":"1"}"#,
                from(home(1, "By prefix"), served(0, "24702", 3)),
            ),
            (r#"{"reachable":false}"#, nothing(43)),
            ("reachable=0&error=9", nothing(1)),
            ("reachable=0&error=10", nothing(43)),
            (r#"{"error":9}"#, nothing(1)),
            (r#"{"reachable":null,"error":10}"#, nothing(8)),
            (r#"{"reachable":true,"network":"x"}"#, nothing(0)),
            (r#"{"reachable":"maybe"}"#, None),
            (r#"{"id":"7"}"#, None),
        ] {
            assert_eq!(found(&rules(), body), expected, "{body}");
        }
    }

    #[test]
    fn a_network_may_be_in_two_values() {
        let pointer = |text| Pointer::parse("lookup.mcc", text).expect("a pointer");
        let rules = LookupRules {
            network: NetworkRules::Apart {
                mcc: pointer("/mcc"),
                mnc: pointer("/mnc"),
            },
            present_values: vec!["active".to_owned()],
            ..rules()
        };
        for (body, code, network) in [
            (
                r#"{"reachable":"Active","mcc":247,"mnc":1}"#,
                0,
                Some("24701"),
            ),
            (
                r#"{"reachable":"absent","mcc":"247","mnc":"02"}"#,
                43,
                Some("24702"),
            ),
            (r#"{"reachable":"active","mcc":"247"}"#, 0, None),
            (r#"{"reachable":true,"mcc":"2470","mnc":"1"}"#, 43, None),
        ] {
            let found = found(&rules, body).expect(body);
            assert_eq!(found.code.number(), code, "{body}");
            assert_eq!(found.network, network.and_then(read_network), "{body}");
        }
    }

    #[test]
    fn a_failure_of_the_provider_is_no_absent_subscriber() {
        let rules = LookupRules {
            other_error: Code::new(51),
            ..rules()
        };
        for (body, code) in [
            ("reachable=1&error=10", 0),
            ("reachable=0", 51),
            ("reachable=0&error=10", 51),
            ("reachable=0&error=9", 1),
            ("error=10", 51),
            ("error=9", 1),
        ] {
            let found = found(&rules, body).expect(body);
            assert_eq!(found.code.number(), code, "{body}");
        }
        assert_eq!(found(&rules, "id=7"), None);
    }

    #[test]
    fn an_unknown_first_operator_is_still_a_port() {
        let fields = Fields::read(None, br#"{"reachable":1,"ported":true}"#).expect("JSON");
        let result = rules().read(&fields).expect("a result");
        let ported_from = result.subscriber(None, &Numbers).ported_from;
        assert_eq!(ported_from.map(|it| it.id), Some(0));
    }
}
