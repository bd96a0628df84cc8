//! Callbacks in plain words.

use domain::delivery::CallbackKind;
use domain::ports::CallbackState;

/// What a callback tells.
pub(super) const fn kind_words(kind: CallbackKind) -> &'static str {
    match kind {
        CallbackKind::Report => "delivery report",
        CallbackKind::Lookup => "lookup result",
        CallbackKind::Sender => "sender notification",
    }
}

/// Where it stands, by one word.
pub(super) const fn state_word(state: CallbackState) -> &'static str {
    match state {
        CallbackState::Waiting { .. } => "waiting",
        CallbackState::Parked => "parked",
        CallbackState::Done => "received",
    }
}

/// What a receiver answered, as text; `None` when that was nothing.
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
    fn an_answer_is_shown_as_text_whatever_it_is() {
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
