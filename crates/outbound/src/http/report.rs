//! Reads a provider's report about a message.

use domain::{Code, Outcome};

use super::fields::{Fields, Pointer};
use super::lookup::NetworkRules;
use super::rule::CodeTable;

/// Where a report has what, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportRules {
    /// The provider's ID of the message. It is only logged, because the URL names the message.
    pub id: Option<Pointer>,
    pub state: Pointer,
    /// States, in any case. All others are on the way.
    pub delivered: Vec<String>,
    pub failed: Vec<String>,
    pub expired: Vec<String>,
    pub seen: Vec<String>,
    /// The provider's code of a failure.
    pub error: Option<Pointer>,
    pub errors: CodeTable,
    /// The network that took the message.
    pub network: NetworkRules,
    /// Reports come to the URL for inbound messages, and `id` is our own ID of the message.
    pub is_shared: bool,
    /// Where a request has a list of reports. The other pointers are relative to one of them.
    pub list: Option<Pointer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportContent {
    /// The message has reached a final state.
    Ended(Outcome),
    Seen,
    InTransit,
}

impl ReportRules {
    /// What a report says; `None` if it has no state.
    pub(super) fn read(&self, fields: &Fields) -> Option<ReportContent> {
        let state = fields.text(&self.state)?;
        let is_one_of = |states: &[String]| states.iter().any(|it| it.eq_ignore_ascii_case(&state));
        Some(if is_one_of(&self.delivered) {
            ReportContent::Ended(Outcome::Delivered)
        } else if is_one_of(&self.failed) {
            ReportContent::Ended(Outcome::Failed(self.code(fields)))
        } else if is_one_of(&self.expired) {
            ReportContent::Ended(Outcome::Expired)
        } else if is_one_of(&self.seen) {
            ReportContent::Seen
        } else {
            ReportContent::InTransit
        })
    }

    fn code(&self, fields: &Fields) -> Code {
        let theirs = self.error.as_ref().and_then(|error| fields.text(error));
        self.errors.code(theirs.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn rules() -> ReportRules {
        let pointer = |text| Pointer::parse("report.state", text).expect("a pointer");
        let states = |states: &[&str]| states.iter().map(ToString::to_string).collect();
        let errors = BTreeMap::from([("27".to_owned(), 43)]);
        ReportRules {
            id: Some(pointer("/id")),
            state: pointer("/status"),
            delivered: states(&["delivered"]),
            failed: states(&["failed", "undelivered"]),
            expired: states(&["expired"]),
            seen: states(&["read"]),
            error: Some(pointer("/errorCode")),
            errors: CodeTable::parse("report.errors", &errors).expect("codes"),
            network: NetworkRules::Unknown,
            is_shared: false,
            list: None,
        }
    }

    #[test]
    fn states_and_errors_are_read_by_their_tables() {
        let ended = |outcome| Some(ReportContent::Ended(outcome));
        let failed = |code| ended(Outcome::Failed(Code::new(code).expect("a code")));
        for (body, expected) in [
            (r#"{"status":"delivered"}"#, ended(Outcome::Delivered)),
            (r#"{"status":" DELIVERED "}"#, ended(Outcome::Delivered)),
            ("status=delivered&id=7", ended(Outcome::Delivered)),
            ("status=undelivered&errorCode=27", failed(43)),
            (r#"{"status":"failed","errorCode":27}"#, failed(43)),
            (r#"{"status":"failed","errorCode":"27"}"#, failed(43)),
            (r#"{"status":"failed","errorCode":28}"#, failed(8)),
            (r#"{"status":"failed","errorCode":null}"#, failed(8)),
            (r#"{"status":"failed"}"#, failed(8)),
            (
                r#"{"status":"expired","errorCode":27}"#,
                ended(Outcome::Expired),
            ),
            (r#"{"status":"read"}"#, Some(ReportContent::Seen)),
            (r#"{"status":"queued"}"#, Some(ReportContent::InTransit)),
            (r#"{"status":1}"#, Some(ReportContent::InTransit)),
            (r#"{"status":null}"#, None),
            (r#"{"status":["delivered"]}"#, None),
            (r#"{"state":"delivered"}"#, None),
            ("[]", None),
            ("status=", None),
        ] {
            let fields = Fields::read(None, body.as_bytes()).expect(body);
            assert_eq!(rules().read(&fields), expected, "{body}");
        }
    }
}
