//! Finds the end of an answer.

use crate::http_head;
use std::io::{self, ErrorKind};
use std::ops::Range;

/// The status and the range of the body.
pub(super) type Framed = (u16, Range<usize>);

/// Reads the head; `None` until it is complete.
pub(super) fn frame(received: &[u8]) -> io::Result<Option<Framed>> {
    let Some(start) = http_head::head_end(received) else {
        return Ok(None);
    };
    let head = &received[..start];
    let status = http_head::status(head).ok_or_else(|| invalid("no status"))?;
    let length = match http_head::content_length(head) {
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
