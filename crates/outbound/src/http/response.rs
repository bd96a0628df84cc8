//! Interprets the provider's answer to a message.

use std::time::Duration;

use domain::Code;
use http::StatusCode;

use super::fields::{Fields, Pointer};
use super::rule::{CodeTable, RuleError};

/// How much of a provider's code is shown.
const MAX_SHOWN_CHARS: usize = 32;
/// The longest ID or code in an answer that is text.
const MAX_WORD_BYTES: usize = 256;

/// HTTP statuses, each one status or a class such as `2xx`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statuses(Vec<StatusPattern>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusPattern {
    One(u16),
    /// The first digit.
    Class(u16),
}

impl Statuses {
    /// `key` is the key that they are configured by.
    pub fn parse(key: &str, texts: &[String]) -> Result<Self, RuleError> {
        let pattern = |text: &String| {
            let number = match text.strip_suffix("xx") {
                Some(class) => class
                    .parse()
                    .ok()
                    .filter(|class| (1..=5).contains(class))
                    .map(StatusPattern::Class),
                None => text
                    .parse()
                    .ok()
                    .filter(|status| (100..=599).contains(status))
                    .map(StatusPattern::One),
            };
            let unknown = || {
                RuleError::new(
                    key,
                    format!("'{text}' is no HTTP status; give one such as 429 or 5xx"),
                )
            };
            number.ok_or_else(unknown)
        };
        texts
            .iter()
            .map(pattern)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn has(&self, status: StatusCode) -> bool {
        let number = status.as_u16();
        self.0.iter().any(|pattern| match pattern {
            StatusPattern::One(one) => *one == number,
            StatusPattern::Class(class) => *class == number / 100,
        })
    }

    fn has_exactly(&self, status: StatusCode) -> bool {
        self.0.contains(&StatusPattern::One(status.as_u16()))
    }
}

/// What the answers of a carrier mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseRules {
    pub taken: Statuses,
    pub later: Statuses,
    /// The provider's ID of the message.
    pub id: Option<Pointer>,
    /// In an answer that is text, its ID follows this.
    pub id_after: Option<String>,
    /// The state of the message in an answer that takes the request.
    pub state: Option<Pointer>,
    /// States, in any case, of a message that is refused.
    pub refused: Vec<String>,
    /// An answer that takes the request and begins with one of these texts, in any case, refuses the message.
    pub refused_text: Vec<String>,
    /// The provider's code of a refusal.
    pub error: Option<Pointer>,
    /// In an answer that is text, the code follows this.
    pub error_after: Option<String>,
    pub errors: CodeTable,
}

/// An answer of the provider.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The pause that the provider asks for.
    pub(super) retry_after: Option<Duration>,
    /// `None` if the body can be read neither as JSON nor as a form.
    pub(super) fields: Option<Fields>,
    /// Empty if it is too long.
    pub(super) body: Vec<u8>,
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The provider took the message, with its ID if it gave one.
    Taken(Option<String>),
    /// It asks for a pause.
    Throttled,
    /// It has failed.
    Failed(String),
    /// It does not know us, or does not let us send.
    Denied(String),
    /// It refuses this message.
    Refused { code: Code, theirs: Option<String> },
}

impl ResponseRules {
    pub(super) fn judge(&self, answer: &Answer) -> Verdict {
        let status = answer.status;
        if self.taken.has(status) {
            return if self.is_refused(answer) {
                self.refusal(answer)
            } else {
                Verdict::Taken(answer.find(self.id.as_ref(), self.id_after.as_deref()))
            };
        }
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_denied && !self.later.has_exactly(status) {
            let status = status.as_u16();
            return Verdict::Denied(format!(
                "the provider answers {status}; check the carrier's secret"
            ));
        }
        if self.later.has(status) {
            return if status.is_server_error() {
                Verdict::Failed(format!("the provider answers {}", status.as_u16()))
            } else {
                Verdict::Throttled
            };
        }
        self.refusal(answer)
    }

    /// Whether an answer that takes the request refuses the message.
    fn is_refused(&self, answer: &Answer) -> bool {
        let state = answer.find(self.state.as_ref(), None);
        state.is_some_and(|state| self.is_refused_state(&state))
            || answer.begins_with_one_of(&self.refused_text)
    }

    pub(super) fn is_refused_state(&self, state: &str) -> bool {
        let mut refused = self.refused.iter();
        refused.any(|it| it.eq_ignore_ascii_case(state))
    }

    fn refusal(&self, answer: &Answer) -> Verdict {
        self.refuse(answer.find(self.error.as_ref(), self.error_after.as_deref()))
    }

    pub(super) fn refuse(&self, theirs: Option<String>) -> Verdict {
        Verdict::Refused {
            code: self.errors.code(theirs.as_deref()),
            theirs: theirs.map(|theirs| shown(&theirs)),
        }
    }
}

impl Answer {
    /// The value at the pointer, else what follows `after` in the text.
    fn find(&self, pointer: Option<&Pointer>, after: Option<&str>) -> Option<String> {
        let at_pointer = pointer.and_then(|pointer| self.fields.as_ref()?.text(pointer));
        at_pointer.or_else(|| word_after(after?, &String::from_utf8_lossy(&self.body)))
    }

    fn begins_with_one_of(&self, starts: &[String]) -> bool {
        let body = self.body.trim_ascii_start();
        let begins = |start: &String| {
            let beginning = body.get(..start.len());
            beginning.is_some_and(|it| it.eq_ignore_ascii_case(start.as_bytes()))
        };
        starts.iter().any(begins)
    }
}

/// The word that follows `after`, up to white space or a character that separates values.
fn word_after(after: &str, text: &str) -> Option<String> {
    let (_, rest) = text.split_once(after)?;
    let rest = rest.trim_start_matches([' ', '\t']);
    let is_end = |c: char| c.is_whitespace() || c.is_control() || ",;|<\"'".contains(c);
    let word = rest.split(is_end).next()?;
    (1..=MAX_WORD_BYTES)
        .contains(&word.len())
        .then(|| word.to_owned())
}

/// A provider's code, made safe to log.
pub(super) fn shown(theirs: &str) -> String {
    let visible = theirs.chars().filter(|c| !c.is_control());
    visible.take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn statuses(texts: &[&str]) -> Statuses {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        Statuses::parse("response.taken", &texts).expect("statuses")
    }

    fn rules() -> ResponseRules {
        let errors = BTreeMap::from([("21211".to_owned(), 1), ("30".to_owned(), 31)]);
        ResponseRules {
            taken: statuses(&["2xx", "409"]),
            later: statuses(&["429", "5xx"]),
            id: Pointer::parse("response.id", "/messages/0/id").ok(),
            id_after: None,
            state: Pointer::parse("response.state", "/messages/0/state").ok(),
            refused: vec!["rejected".to_owned()],
            refused_text: Vec::new(),
            error_after: None,
            error: Pointer::parse("response.error", "/code").ok(),
            errors: CodeTable::parse("response.errors", &errors).expect("codes"),
        }
    }

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            retry_after: None,
            fields: Fields::read(None, body.as_bytes()),
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn each_answer_has_its_meaning() {
        let taken = |id: Option<&str>| Verdict::Taken(id.map(str::to_owned));
        let failed = |status| Verdict::Failed(format!("the provider answers {status}"));
        let refused = |code, theirs: Option<&str>| Verdict::Refused {
            code: Code::new(code).expect("a code"),
            theirs: theirs.map(str::to_owned),
        };
        for (status, body, expected) in [
            (200, r#"{"messages":[{"id":"SM1"}]}"#, taken(Some("SM1"))),
            (202, r#"{"messages":[{"id":17}]}"#, taken(Some("17"))),
            (200, r#"{"messages":[]}"#, taken(None)),
            (200, r#"{"messages":[{"state":"queued"}]}"#, taken(None)),
            (
                200,
                r#"{"messages":[{"id":"1","state":"REJECTED"}],"code":30}"#,
                refused(31, Some("30")),
            ),
            (200, "<html>", taken(None)),
            (204, "", taken(None)),
            (409, "", taken(None)),
            (429, "", Verdict::Throttled),
            (500, "", failed(500)),
            (503, "<html>", failed(503)),
            (400, r#"{"code":21211}"#, refused(1, Some("21211"))),
            (400, r#"{"code":"30"}"#, refused(31, Some("30"))),
            (400, r#"{"code":99}"#, refused(8, Some("99"))),
            (400, "nonsense", refused(8, None)),
            (404, "", refused(8, None)),
            (301, "", refused(8, None)),
            (302, r#"{"code":"a\nb"}"#, refused(8, Some("ab"))),
        ] {
            assert_eq!(
                rules().judge(&answer(status, body)),
                expected,
                "{status} {body}"
            );
        }
    }

    #[test]
    fn an_answer_may_be_text() {
        let rules = ResponseRules {
            id_after: Some("ID:".to_owned()),
            refused_text: vec!["ERR".to_owned(), "<error".to_owned()],
            error_after: Some("ERR: ".to_owned()),
            ..rules()
        };
        let taken = |id: Option<&str>| Verdict::Taken(id.map(str::to_owned));
        let refused = |code, theirs: Option<&str>| Verdict::Refused {
            code: Code::new(code).expect("a code"),
            theirs: theirs.map(str::to_owned),
        };
        let long = format!("ID: {}", "x".repeat(300));
        for (status, body, expected) in [
            (200, "ID: 7f-1\nTo: 371", taken(Some("7f-1"))),
            (200, "OK ID:7|371", taken(Some("7"))),
            (200, "<r>ID:7</r>", taken(Some("7"))),
            (200, "ID: \n7", taken(None)),
            (200, "ID:", taken(None)),
            (200, "OK", taken(None)),
            (200, long.as_str(), taken(None)),
            // Only the beginning says whether it is refused.
            (200, "ID: 7 ERR: 30", taken(Some("7"))),
            (200, r#"{"messages":[{"id":"SM1"}]} "#, taken(Some("SM1"))),
            (200, "ERR: 30, no route", refused(31, Some("30"))),
            (200, " err: 30", refused(8, None)),
            (200, "ERR", refused(8, None)),
            (200, "<ERROR code='1'/>", refused(8, None)),
            (400, "ERR: 21211", refused(1, Some("21211"))),
        ] {
            assert_eq!(
                rules.judge(&answer(status, body)),
                expected,
                "{status} {body}"
            );
        }
    }

    #[test]
    fn a_provider_that_denies_us_is_misconfigured_unless_told_otherwise() {
        for status in [401, 403] {
            let denied = rules().judge(&answer(status, ""));
            let why = format!("the provider answers {status}; check the carrier's secret");
            assert_eq!(denied, Verdict::Denied(why));
        }
        let later = ResponseRules {
            later: statuses(&["403"]),
            ..rules()
        };
        assert_eq!(later.judge(&answer(403, "")), Verdict::Throttled);
        let class = ResponseRules {
            later: statuses(&["4xx"]),
            ..rules()
        };
        assert!(matches!(class.judge(&answer(403, "")), Verdict::Denied(_)));
        let taken = ResponseRules {
            taken: statuses(&["403"]),
            ..rules()
        };
        assert_eq!(taken.judge(&answer(403, "")), Verdict::Taken(None));
    }

    #[test]
    fn only_statuses_are_accepted() {
        for text in ["", "ok", "20", "2x", "0xx", "6xx", "600", "99", "xx"] {
            let error = Statuses::parse("response.taken", &[text.to_owned()]).expect_err(text);
            let expected =
                format!("response.taken: '{text}' is no HTTP status; give one such as 429 or 5xx");
            assert_eq!(error.to_string(), expected);
        }
    }
}
