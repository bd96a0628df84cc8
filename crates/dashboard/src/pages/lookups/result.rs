//! The result of a lookup, in words.

use domain::Code;
use domain::message::code::Entry;
use domain::message::outcome::Outcome;
use domain::number::country::Country;
use numbering::reference::{OperatorId, Reference};
use serde::Deserialize;

/// The report of a lookup, as the API sends it.
#[derive(Deserialize)]
struct Report {
    error: u16,
    imsi: Option<u64>,
    country: Option<String>,
    #[serde(rename = "operatorId")]
    operator: Option<u32>,
    mcc: Option<String>,
    mnc: Option<String>,
    #[serde(default)]
    ported: Vec<Ported>,
}

#[derive(Deserialize)]
struct Ported {
    operator: String,
    country: Option<String>,
}

pub(super) struct Answer {
    pub(super) is_reached: bool,
    pub(super) title: String,
    pub(super) hint: Option<&'static str>,
    pub(super) is_refunded: bool,
    pub(super) operator: Option<String>,
    pub(super) country: Option<String>,
    pub(super) network: Option<String>,
    pub(super) ported_from: Option<String>,
    pub(super) imsi: Option<u64>,
    pub(super) code: u16,
    /// The report as JSON.
    pub(super) report: String,
}

impl Answer {
    pub(super) fn read(text: &str, reference: &Reference) -> Option<Self> {
        let report: Report = serde_json::from_str(text).ok()?;
        let code = Code::new(report.error).unwrap_or(Code::UNKNOWN);
        let is_reached = code == Code::FINE;
        let entry = code.entry();
        let ported = report.ported.into_iter().next();
        Some(Self {
            is_reached,
            title: title(code, entry),
            hint: (!is_reached).then_some(entry.hint),
            is_refunded: code.is_no_lookup(),
            operator: report.operator.and_then(|id| operator_name(reference, id)),
            country: report.country.map(|code| country_name(&code)),
            network: report
                .mcc
                .zip(report.mnc)
                .map(|(mcc, mnc)| format!("{mcc} {mnc}")),
            ported_from: ported.map(|ported| match ported.country {
                Some(country) => format!("{}, {}", ported.operator, country_name(&country)),
                None => ported.operator,
            }),
            imsi: report.imsi,
            code: report.error,
            report: text.to_owned(),
        })
    }
}

fn title(code: Code, entry: &Entry) -> String {
    match code {
        Code::FINE => "The number is in use and can be reached.".to_owned(),
        code if code.is_no_lookup() => {
            format!("There is no answer: {}.", entry.words)
        }
        _ => format!("It cannot be reached now: {}.", entry.words),
    }
}

/// The outcome for lists.
pub(super) fn answer_words(outcome: Outcome) -> &'static str {
    match outcome.code() {
        Code::FINE => "can be reached",
        code => code.entry().words,
    }
}

fn operator_name(reference: &Reference, id: u32) -> Option<String> {
    let operator = reference.operator(OperatorId::new(id)?)?;
    Some(operator.name.to_string())
}

fn country_name(code: &str) -> String {
    Country::parse(code).map_or_else(
        |_| code.to_owned(),
        |country| country.short_name().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_become_words() {
        let reference = Reference::embedded();
        for (report, title, network, ported, is_refunded) in [
            (
                r#"{"id":"7","error":0,"imsi":1,"country":"GB","operatorId":992,"mcc":"234","mnc":"00","ported":[{"operatorId":1049,"operator":"O2 (UK)","country":"GB"}]}"#,
                "in use and can be reached",
                Some("234 00"),
                Some("O2 (UK)"),
                false,
            ),
            (
                r#"{"id":"7","error":43}"#,
                "the subscriber is absent",
                None,
                None,
                false,
            ),
            (
                r#"{"id":"7","error":50}"#,
                "There is no answer",
                None,
                None,
                true,
            ),
        ] {
            let answer = Answer::read(report, &reference).expect(report);
            assert!(answer.title.contains(title), "{}", answer.title);
            assert_eq!(answer.network.as_deref(), network);
            let from = answer
                .ported_from
                .as_deref()
                .and_then(|from| from.split(',').next());
            assert_eq!(from, ported);
            assert_eq!(answer.is_refunded, is_refunded);
        }
        assert!(Answer::read("no report", &reference).is_none());
    }
}
