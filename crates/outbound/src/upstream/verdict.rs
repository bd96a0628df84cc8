//! What an answer of the upstream means.

use std::time::Duration;

use domain::Code;
use http::StatusCode;
use serde_json::Value;

use super::link::Reply;

/// The most names that one answer may give: a text has no more parts.
const MAX_REFERENCES: usize = 255;
/// The longest name of a message that is taken from the upstream.
pub(super) const MAX_REFERENCE_BYTES: usize = 64;
/// So much of what the upstream says is shown to people.
const MAX_SHOWN_CHARS: usize = 200;
/// So many digits in a row may be somebody's number.
const NUMBER_DIGITS: usize = 7;
/// The pause when it asks for one and does not say how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// What follows for a message, and for the upstream's health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It took the message; these are its names.
    Taken(Vec<String>),
    /// It took it at an earlier try, whose answer was lost, and with it the name.
    TakenBefore,
    /// It will not take this message.
    Declined,
    /// It does not take messages as things are, for a reason that does not lie in the link.
    Blocked(String),
    /// It does not know us.
    BadToken,
    /// It asks for a pause.
    Throttled(Duration),
    /// It has failed; with a pause if it asks for one.
    Failed(String, Option<Duration>),
}

impl Verdict {
    /// Why the message is tried again, or elsewhere.
    pub(super) const fn code(&self) -> Code {
        match self {
            Self::Taken(_) | Self::TakenBefore => Code::FINE,
            Self::Declined => Code::NO_ROUTE,
            Self::Blocked(_) => Code::ROUTE_DOWN,
            Self::Throttled(_) => Code::THROTTLED,
            Self::BadToken | Self::Failed(..) => Code::LINK_DOWN,
        }
    }
}

/// Judges the answer to a message. `is_repeated`: it was handed over before, and that answer is not known.
pub(super) fn judge(reply: &Reply, is_repeated: bool) -> Verdict {
    let status = reply.status;
    match status {
        status if status.is_success() => read_references(&reply.body).map_or_else(
            || {
                let why = format!("the upstream answers {} without an ID", status.as_u16());
                Verdict::Failed(why, None)
            },
            Verdict::Taken,
        ),
        StatusCode::UNAUTHORIZED => Verdict::BadToken,
        // The same key with another body: the time that is left has changed since the first try. At the first try it
        // is some other conflict, and must not pass for that one the next time.
        StatusCode::CONFLICT if is_repeated => Verdict::TakenBefore,
        StatusCode::BAD_REQUEST
        | StatusCode::CONFLICT
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY => Verdict::Declined,
        StatusCode::TOO_MANY_REQUESTS => {
            Verdict::Throttled(reply.retry_after.unwrap_or(DEFAULT_PAUSE))
        }
        status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            Verdict::Failed(answer_text(reply), reply.retry_after)
        }
        _ => Verdict::Blocked(answer_text(reply)),
    }
}

/// The status, and what it says about it.
pub(super) fn answer_text(reply: &Reply) -> String {
    let status = reply.status.as_u16();
    match shown_message(&reply.body) {
        None => format!("the upstream answers {status}"),
        Some(message) => format!("the upstream answers {status}: {message}"),
    }
}

/// Strings, as the contract has them, or numbers.
fn read_references(body: &[u8]) -> Option<Vec<String>> {
    let list: Vec<Value> = serde_json::from_slice(body).ok()?;
    if !(1..=MAX_REFERENCES).contains(&list.len()) {
        return None;
    }
    list.iter().map(read_reference).collect()
}

/// A name that the upstream gives to a message.
pub(super) fn read_reference(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let is_fit = (1..=MAX_REFERENCE_BYTES).contains(&text.len())
        && !text.starts_with(super::OWN_NAME)
        && text.bytes().all(|b| b.is_ascii_graphic());
    is_fit.then_some(text)
}

/// The `message` of an error, fit to be logged: one short line, and no number of anybody's in it.
fn shown_message(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = body.get("message")?.as_str()?.trim();
    let mut shown = String::new();
    let mut digits = 0;
    for character in text.chars().take(MAX_SHOWN_CHARS) {
        digits = if character.is_ascii_digit() {
            digits + 1
        } else {
            0
        };
        match digits {
            _ if character.is_control() => shown.push(' '),
            NUMBER_DIGITS => {
                // All but the first three go.
                shown.truncate(shown.len() + 4 - NUMBER_DIGITS);
                shown.push('…');
            }
            digits if digits > NUMBER_DIGITS => {}
            _ => shown.push(character),
        }
    }
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply {
            status: StatusCode::from_u16(status).expect("a status"),
            retry_after: None,
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn each_answer_has_its_meaning() {
        let taken =
            |names: &[&str]| Verdict::Taken(names.iter().map(ToString::to_string).collect());
        let without_id =
            |status| Verdict::Failed(format!("the upstream answers {status} without an ID"), None);
        let failed = |text: &str| Verdict::Failed(text.to_owned(), None);
        let blocked = |text: &str| Verdict::Blocked(text.to_owned());
        let many = format!("[{}]", vec!["1"; 256].join(","));
        let message = r#"{"message":"No."}"#;
        for (status, body, expected) in [
            (200, r#"["10001"]"#, taken(&["10001"])),
            (200, "[10001]", taken(&["10001"])),
            (200, r#"["a","b","c"]"#, taken(&["a", "b", "c"])),
            (201, r#"["10001"]"#, taken(&["10001"])),
            (200, "[]", without_id(200)),
            (200, "<html>", without_id(200)),
            (200, r#"["",""]"#, without_id(200)),
            (200, r#"["@7"]"#, without_id(200)),
            (200, r#"[["1"]]"#, without_id(200)),
            (200, r#"{"id":"1"}"#, without_id(200)),
            (200, &many, without_id(200)),
            (204, "", without_id(204)),
            (400, message, Verdict::Declined),
            (413, "", Verdict::Declined),
            (422, "", Verdict::Declined),
            (401, message, Verdict::BadToken),
            (403, message, blocked("the upstream answers 403: No.")),
            (404, "", blocked("the upstream answers 404")),
            (301, "", blocked("the upstream answers 301")),
            (429, "", Verdict::Throttled(DEFAULT_PAUSE)),
            (408, "", failed("the upstream answers 408")),
            (500, message, failed("the upstream answers 500: No.")),
            (501, "", failed("the upstream answers 501")),
            (503, "[]", failed("the upstream answers 503")),
        ] {
            assert_eq!(
                judge(&reply(status, body), true),
                expected,
                "{status} {body}"
            );
        }
    }

    #[test]
    fn a_conflict_is_a_repetition_only_where_there_was_a_first_try() {
        let conflict = reply(409, r#"{"message":"Other body."}"#);
        assert_eq!(judge(&conflict, true), Verdict::TakenBefore);
        assert_eq!(judge(&conflict, false), Verdict::Declined);
    }

    #[test]
    fn a_pause_is_as_long_as_asked_for() {
        for (status, expected) in [
            (429, Verdict::Throttled(Duration::from_secs(7))),
            (
                503,
                Verdict::Failed(
                    "the upstream answers 503".to_owned(),
                    Some(Duration::from_secs(7)),
                ),
            ),
        ] {
            let reply = Reply {
                retry_after: Some(Duration::from_secs(7)),
                ..reply(status, "")
            };
            assert_eq!(judge(&reply, false), expected, "{status}");
        }
    }

    #[test]
    fn what_is_shown_is_short_and_names_nobody() {
        let long = "é".repeat(300);
        let cut = "é".repeat(200);
        for (message, shown) in [
            (
                "The balance does not cover 0.05 EUR.",
                "The balance does not cover 0.05 EUR.",
            ),
            ("Not to +37120000001, no.", "Not to +371…, no."),
            ("1234567", "123…"),
            ("123456", "123456"),
            ("a\nb\u{7}c", "a b c"),
            (&long, &cut),
        ] {
            let body = serde_json::json!({ "message": message }).to_string();
            assert_eq!(shown_message(body.as_bytes()).as_deref(), Some(shown));
        }
        for body in ["", "{}", r#"{"message":7}"#, r#"{"message":"  "}"#, "[1]"] {
            assert_eq!(shown_message(body.as_bytes()), None, "{body}");
        }
    }
}
