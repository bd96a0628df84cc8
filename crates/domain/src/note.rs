//! A note that somebody adds to a decision.

use std::str::FromStr;

pub const MAX_NOTE_CHARS: usize = 200;

/// One line of text, short enough for a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a note is one line of at most {MAX_NOTE_CHARS} characters")]
pub struct NotANote;

impl Note {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Note {
    type Err = NotANote;

    fn from_str(text: &str) -> Result<Self, NotANote> {
        if text.chars().count() > MAX_NOTE_CHARS || text.chars().any(char::is_control) {
            return Err(NotANote);
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_short_line() {
        for (text, is_note) in [
            ("", true),
            ("invoice 7, paid", true),
            (&*"ä".repeat(MAX_NOTE_CHARS), true),
            (&*"ä".repeat(MAX_NOTE_CHARS + 1), false),
            ("two\nlines", false),
        ] {
            assert_eq!(text.parse::<Note>().is_ok(), is_note, "{text:?}");
        }
    }
}
