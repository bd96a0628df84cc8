//! Callbacks in plain words.

use domain::delivery::CallbackKind;
use domain::ports::CallbackState;

pub(super) const fn kind_words(kind: CallbackKind) -> &'static str {
    match kind {
        CallbackKind::Report => "delivery report",
        CallbackKind::Lookup => "lookup result",
        CallbackKind::Sender => "sender notification",
        CallbackKind::Inbound => "inbound message",
    }
}

pub(super) const fn state_word(state: CallbackState) -> &'static str {
    match state {
        CallbackState::Waiting { .. } => "waiting",
        CallbackState::Parked => "parked",
        CallbackState::Done => "received",
    }
}

/// The body of a response as text; `None` if it is blank.
pub(super) fn body_words(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let shown: String = text
        .chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect();
    Some(shown).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_response_body_is_shown_as_text() {
        for (body, expected) in [
            (&b""[..], None),
            (b" \n", None),
            (b"no", Some("no")),
            (b"a\0b\xff", Some("a\u{fffd}b\u{fffd}")),
            (b"<script>", Some("<script>")),
        ] {
            assert_eq!(body_words(body).as_deref(), expected);
        }
    }
}
