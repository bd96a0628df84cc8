//! The notification about a sender ID that changed its state.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::{SenderRecord, SenderState};

/// The payload of the notification; `sender` has the current state.
pub fn notification(sender: &SenderRecord, previous: SenderState, at: Timestamp) -> String {
    let mut payload = format!(r#"{{"id":{},"name":"#, sender.id);
    push_text(&mut payload, &sender.name.to_string());
    let (kind, state) = (sender.name.kind().name(), sender.state.name());
    let previous = previous.name();
    write!(
        payload,
        r#","type":"{kind}","status":"{state}","previousStatus":"{previous}","reason":"#
    )
    .expect("a string takes everything");
    match &sender.reason {
        Some(reason) => push_text(&mut payload, reason),
        None => payload.push_str("null"),
    }
    write!(payload, r#","timestamp":"{at}"}}"#).expect("a string takes everything");
    payload
}

/// Appends a JSON string.
fn push_text(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\0'..='\u{1f}' | '\u{7f}' => {
                write!(json, "\\u{:04x}", u32::from(character)).expect("a string takes everything");
            }
            _ => json.push(character),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::{AccountId, SenderId};
    use crate::sender::{SenderKind, SenderName};

    fn sender(name: &SenderName, reason: Option<&str>) -> SenderRecord {
        SenderRecord {
            id: SenderId::new(7).expect("in range"),
            account: AccountId::new(1).expect("in range"),
            name: name.clone(),
            category: None,
            description: None,
            notification_url: None,
            state: SenderState::Rejected,
            reason: reason.map(str::to_owned),
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_notification_has_the_documented_fields() {
        let at: Timestamp = "2030-01-31T09:30:00Z".parse().expect("a time");
        for (kind, name, reason, expected) in [
            (
                SenderKind::AlphaNumeric,
                "A&B #1!",
                Some("a \"brand\" of\nothers \\ ы"),
                r#"{"id":7,"name":"A&B #1!","type":"AlphaNumeric","status":"rejected","previousStatus":"pending","reason":"a \"brand\" of\u000aothers \\ ы","timestamp":"2030-01-31T09:30:00Z"}"#,
            ),
            (
                SenderKind::Msisdn,
                "37120000001",
                None,
                r#"{"id":7,"name":"+37120000001","type":"MSISDN","status":"rejected","previousStatus":"pending","reason":null,"timestamp":"2030-01-31T09:30:00Z"}"#,
            ),
        ] {
            let name = SenderName::parse(kind, name).expect(name);
            let payload = notification(&sender(&name, reason), SenderState::Pending, at);
            assert_eq!(payload, expected);
        }
    }

    proptest! {
        #[test]
        fn a_text_stays_one_json_string(text in any::<String>()) {
            let mut json = String::new();
            push_text(&mut json, &text);
            let inner = &json[1..json.len() - 1];
            prop_assert!(inner.bytes().all(|byte| byte >= b' '));
            let mut escaped = false;
            for character in inner.chars() {
                prop_assert!(escaped || character != '"');
                escaped = character == '\\' && !escaped;
            }
            prop_assert!(!escaped, "the closing quote is not escaped");
        }
    }
}
