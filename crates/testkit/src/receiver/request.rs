//! What comes in.

use crate::answer;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Instant;

/// A whole request, borrowed from the connection's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Where it came from.
    pub peer: SocketAddr,
    /// How many requests had come on this connection before it.
    pub number: usize,
    /// The method, such as `POST`.
    pub method: &'a str,
    /// The path, with its query.
    pub path: &'a str,
    /// Request line and headers.
    pub head: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The first header of that name, in any case of letters; a value that is no text counts as
    /// none.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(answer::header(self.head, name)?).ok()
    }

    /// Whether the sender wants no further answer on this connection.
    pub(super) fn is_last(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// A request that was remembered.
#[derive(Clone, Debug)]
pub struct Received {
    /// When its last byte was read.
    pub at: Instant,
    /// Where it came from.
    pub peer: SocketAddr,
    /// The method, such as `POST`.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Request line and headers, as they came.
    pub head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    pub(super) fn new(request: &Request<'_>, at: Instant) -> Self {
        Self {
            at,
            peer: request.peer,
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            head: request.head.to_vec(),
            body: request.body.to_vec(),
        }
    }

    /// The first header of that name, in any case of letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(answer::header(&self.head, name)?).ok()
    }

    /// The body as text; what is not UTF-8 shows as replacement characters.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; panics with it when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }
}

/// Method and path of a request line.
pub(super) fn request_line(head: &[u8]) -> Option<(&str, &str)> {
    let end = head.windows(2).position(|window| window == b"\r\n")?;
    let line = std::str::from_utf8(&head[..end]).ok()?;
    let mut words = line.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    (version.starts_with("HTTP/1.") && words.next().is_none()).then_some((method, path))
}

#[cfg(test)]
mod tests {
    use super::request_line;

    #[test]
    fn request_lines() {
        let cases = [
            (
                "usual",
                "POST /dlr?a=1 HTTP/1.1\r\nHost: x\r\n\r\n",
                Some(("POST", "/dlr?a=1")),
            ),
            ("1.0", "GET / HTTP/1.0\r\n\r\n", Some(("GET", "/"))),
            ("no version", "GET /\r\n\r\n", None),
            ("a fourth word", "GET / HTTP/1.1 x\r\n\r\n", None),
            ("an answer", "HTTP/1.1 200 OK\r\n\r\n", None),
        ];
        for (case, head, expected) in cases {
            assert_eq!(request_line(head.as_bytes()), expected, "{case}");
        }
    }
}
