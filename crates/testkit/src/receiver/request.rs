//! The requests that the receiver gets.

use crate::http_head;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Instant;

/// A complete request, borrowed from the connection's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The address of the caller.
    pub peer: SocketAddr,
    /// The number of earlier requests on this connection.
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
    /// The first header with this name, if it is text. Case is ignored.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(http_head::header(self.head, name)?).ok()
    }

    /// Whether the sender closes the connection after this request.
    pub(super) fn is_last(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// A request in the log.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// When its last byte was read.
    pub at: Instant,
    /// The address of the caller.
    pub peer: SocketAddr,
    /// The method, such as `POST`.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Request line and headers, unchanged.
    pub head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
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

    /// The first header with this name. Case is ignored.
    pub fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(http_head::header(&self.head, name)?).ok()
    }

    /// The body as text; invalid UTF-8 becomes replacement characters.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; panics if it is not JSON.
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
