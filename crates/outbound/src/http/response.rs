//! Interprets the provider's answer to a message.

use std::time::Duration;

use domain::Code;
use http::StatusCode;

use super::fields::{Fields, Pointer};
use super::rule::{CodeTable, RuleError};

/// How much of a provider's code is shown.
const MAX_SHOWN_CHARS: usize = 32;

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
    /// The provider's code of a refusal.
    pub error: Option<Pointer>,
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
        let text = |pointer: Option<&Pointer>| answer.fields.as_ref()?.text(pointer?);
        if self.taken.has(status) {
            return Verdict::Taken(text(self.id.as_ref()));
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
        let theirs = text(self.error.as_ref());
        Verdict::Refused {
            code: self.errors.code(theirs.as_deref()),
            theirs: theirs.map(|theirs| shown(&theirs)),
        }
    }
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
            error: Pointer::parse("response.error", "/code").ok(),
            errors: CodeTable::parse("response.errors", &errors).expect("codes"),
        }
    }

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            retry_after: None,
            fields: Fields::read(None, body.as_bytes()),
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
