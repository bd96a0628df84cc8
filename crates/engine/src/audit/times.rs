//! Times in the texts of entries. They are recorded in UTC; pages show them in the reader's zone.

use std::ops::Range;

use domain::Timestamp;

const SHORTEST_LEN: usize = "2026-11-25T13:37:08Z".len();

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPart<'a> {
    Text(&'a str),
    Time(Timestamp),
}

/// Splits a text at its times.
pub fn split_times(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((place, time)) = find_time(rest) {
        if place.start > 0 {
            parts.push(TextPart::Text(&rest[..place.start]));
        }
        parts.push(TextPart::Time(time));
        rest = &rest[place.end..];
    }
    if !rest.is_empty() {
        parts.push(TextPart::Text(rest));
    }
    parts
}

fn find_time(text: &str) -> Option<(Range<usize>, Timestamp)> {
    let ends_word = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | ':' | '.');
    let mut start = 0;
    for word in text.split_inclusive(ends_word) {
        let time = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if time.len() >= SHORTEST_LEN
            && time.ends_with('Z')
            && let Ok(found) = time.parse()
        {
            return Some((start..start + time.len(), found));
        }
        start += word.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_a_text() {
        for (text, expected) in [
            ("", ""),
            ("for 3 days", "for 3 days"),
            ("until 2026-11-25T13:37:08.946432281Z", "until [13:37:08]"),
            ("2026-11-25T13:37:08Z", "[13:37:08]"),
            (
                "from 2026-11-25T13:37:08Z, until 2026-11-25T14:00:00.5Z, also received ones",
                "from [13:37:08], until [14:00:00], also received ones",
            ),
            ("ä (2026-11-25T13:37:08Z). ö", "ä ([13:37:08]). ö"),
            ("2026-99-25T13:37:08Z", "2026-99-25T13:37:08Z"),
            ("x2026-11-25T13:37:08Z", "x2026-11-25T13:37:08Z"),
        ] {
            let shown = split_times(text).into_iter().map(|part| match part {
                TextPart::Text(text) => text.to_owned(),
                TextPart::Time(time) => time.strftime("[%H:%M:%S]").to_string(),
            });
            assert_eq!(shown.collect::<String>(), expected, "{text:?}");
        }
    }
}
