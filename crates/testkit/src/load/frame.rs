//! Where an answer starts and ends.

use crate::answer;
use std::io::{self, ErrorKind};
use std::ops::Range;

/// Status and place of the body.
pub(super) type Framed = (u16, Range<usize>);

/// Reads the head, once it is complete.
pub(super) fn frame(received: &[u8]) -> io::Result<Option<Framed>> {
    let Some(start) = answer::head_end(received) else {
        return Ok(None);
    };
    let head = &received[..start];
    let status = answer::status(head).ok_or_else(|| invalid("no status"))?;
    let length = match answer::content_length(head) {
        Some(length) => length,
        None if status == 204 => 0,
        None => return Err(invalid("no content-length")),
    };
    Ok(Some((status, start..start.saturating_add(length))))
}

pub(super) fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("unreadable answer: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{Framed, frame};

    #[test]
    fn answers_are_framed_by_their_length() {
        let cases: [(&str, &[u8], Option<Framed>); 4] = [
            (
                "whole",
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                Some((200, 38..40)),
            ),
            (
                "body to come",
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n",
                Some((200, 38..40)),
            ),
            (
                "no content",
                b"HTTP/1.1 204 No\r\n\r\n",
                Some((204, 19..19)),
            ),
            ("half a head", b"HTTP/1.1 200 OK\r\ncontent-le", None),
        ];
        for (case, bytes, expected) in cases {
            assert_eq!(frame(bytes).expect(case), expected, "{case}");
        }
        assert!(
            frame(b"HTTP/1.1 200 OK\r\n\r\n").is_err(),
            "a body without a length"
        );
        assert!(frame(b"nonsense\r\n\r\n").is_err(), "not HTTP");
    }
}
