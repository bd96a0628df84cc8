//! Interprets the upstream's answer to a message.

use std::time::Duration;

use domain::Code;
use http::StatusCode;
use serde_json::Value;

use super::client::Reply;

/// The maximum number of IDs in an answer: a text has no more parts.
const MAX_REFERENCES: usize = 255;
/// The longest ID to accept from the upstream.
pub(super) const MAX_REFERENCE_BYTES: usize = 64;
/// How much of the upstream's error text is shown.
const MAX_SHOWN_CHARS: usize = 200;
/// This many digits in a row may be a phone number.
const NUMBER_DIGITS: usize = 7;
/// The pause if the upstream asks for one without a duration.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// What an answer means for the message and for the upstream's health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It accepted the message under these IDs.
    Taken(Vec<String>),
    /// It accepted the message at an earlier attempt whose answer was lost, so its ID is unknown.
    TakenBefore,
    /// It refuses this message.
    Declined,
    /// It accepts no messages at present, for a reason other than the connection.
    Blocked(String),
    /// It does not accept our token.
    BadToken,
    /// It asks for a pause.
    Throttled(Duration),
    /// It has failed, perhaps asking for a pause.
    Failed(String, Option<Duration>),
    /// It may have the message: its answer is lost, or does not say.
    Unknown(String),
}

impl Verdict {
    /// The code of the retry.
    pub(super) const fn code(&self) -> Code {
        match self {
            Self::Taken(_) | Self::TakenBefore => Code::FINE,
            Self::Declined => Code::NO_ROUTE,
            Self::Blocked(_) => Code::ROUTE_DOWN,
            Self::Throttled(_) => Code::THROTTLED,
            Self::BadToken | Self::Failed(..) | Self::Unknown(_) => Code::LINK_DOWN,
        }
    }
}

/// Interprets an answer. `is_repeated`: the message was sent before, without a known answer.
pub(super) fn judge(reply: &Reply, is_repeated: bool) -> Verdict {
    let status = reply.status;
    match status {
        status if status.is_success() => read_references(&reply.body).map_or_else(
            || {
                let why = format!("the upstream answers {} without an ID", status.as_u16());
                Verdict::Unknown(why)
            },
            Verdict::Taken,
        ),
        StatusCode::UNAUTHORIZED => Verdict::BadToken,
        // The same key with another body: the remaining validity has changed since the first attempt. At a first
        // attempt it is another conflict, and must not pass as this one later.
        StatusCode::CONFLICT if is_repeated => Verdict::TakenBefore,
        StatusCode::BAD_REQUEST
        | StatusCode::CONFLICT
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY => Verdict::Declined,
        StatusCode::TOO_MANY_REQUESTS => {
            Verdict::Throttled(reply.retry_after.unwrap_or(DEFAULT_PAUSE))
        }
        // A proxy in front of it passed the request on and lost the answer.
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
            Verdict::Unknown(answer_text(reply))
        }
        status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            Verdict::Failed(answer_text(reply), reply.retry_after)
        }
        _ => Verdict::Blocked(answer_text(reply)),
    }
}

/// The status and its error text.
pub(super) fn answer_text(reply: &Reply) -> String {
    let status = reply.status.as_u16();
    match shown_message(&reply.body) {
        None => format!("the upstream answers {status}"),
        Some(message) => format!("the upstream answers {status}: {message}"),
    }
}

/// Strings as in the REST contract, or numbers.
fn read_references(body: &[u8]) -> Option<Vec<String>> {
    let list: Vec<Value> = serde_json::from_slice(body).ok()?;
    if !(1..=MAX_REFERENCES).contains(&list.len()) {
        return None;
    }
    list.iter().map(read_reference).collect()
}

/// The upstream's ID of a message.
pub(super) fn read_reference(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let is_fit = (1..=MAX_REFERENCE_BYTES).contains(&text.len())
        && !text.starts_with(super::OWN_REFERENCE_PREFIX)
        && text.bytes().all(|b| b.is_ascii_graphic());
    is_fit.then_some(text)
}

/// The `message` of an error, made safe to log: one short line without phone numbers.
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
                // Keeps only the first three digits.
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
        let unknown = |text: &str| Verdict::Unknown(text.to_owned());
        let without_id = |status| unknown(&format!("the upstream answers {status} without an ID"));
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
            (502, "", unknown("the upstream answers 502")),
            (504, "<html>", unknown("the upstream answers 504")),
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
    fn shown_errors_are_short_and_contain_no_numbers() {
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
