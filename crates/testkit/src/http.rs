//! A simple HTTP/1.1 client for tests: blocking, without TLS, and able to misbehave.
//!
//! A library would refuse to send malformed or incomplete requests, and would hide mistakes of the server. Every call
//! has a deadline, so that a server that hangs fails the test.

use crate::TEST_TIMEOUT;
use crate::http_head;
use serde_json::Value;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Far more than any answer of the service has. Limits the memory for a broken one.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// The response of the server.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names in lower case and values, in the order of the response.
    pub headers: Vec<(String, String)>,
    /// The body, with chunks joined.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header with this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The body as text; invalid UTF-8 becomes replacement characters.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; panics with the response if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {} {}", self.status, self.text()))
    }
}

/// Sends one request on a new connection.
pub fn request(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Response> {
    Connection::open(addr)?.request(method, path, headers, body)
}

/// The bytes of a well-formed request. Adds `Host` and, for a body, `Content-Length`, unless `headers` contains them.
pub fn encode(
    host: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Vec<u8> {
    let given = |name: &str| {
        headers
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    let mut push = |name: &str, value: &str| {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    };
    if !given("host") {
        push("Host", &host.to_string());
    }
    if !body.is_empty() && !given("content-length") && !given("transfer-encoding") {
        push("Content-Length", &body.len().to_string());
    }
    for (name, value) in headers {
        push(name, value);
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// A keep-alive connection. Requests may be pipelined: bytes after one response are kept for the next.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    addr: SocketAddr,
    deadline: Duration,
    received: Vec<u8>,
}

impl Connection {
    /// Connects to a server.
    pub fn open(addr: SocketAddr) -> io::Result<Self> {
        Self::open_within(addr, TEST_TIMEOUT)
    }

    /// Connects to a server that may hang. Connecting may take this long, and so may each response.
    pub fn open_within(addr: SocketAddr, deadline: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, deadline)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(TEST_TIMEOUT))?;
        Ok(Self {
            stream,
            addr,
            deadline,
            received: Vec::new(),
        })
    }

    /// Sets how long each later response may take.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Sends a well-formed request (see [`encode`]) and reads its response.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        self.send(&encode(self.addr, method, path, headers, body))?;
        self.read(method == "HEAD")
    }

    /// Sends raw bytes, such as half a request, two requests, or something else than HTTP.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Closes the sending direction; responses can still be read.
    pub fn finish_sending(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Reads one response. Not for `HEAD` requests.
    pub fn read_response(&mut self) -> io::Result<Response> {
        self.read(false)
    }

    /// Waits until the server closes the connection. Returns what it sent before.
    pub fn read_to_close(&mut self) -> io::Result<Vec<u8>> {
        let until = Instant::now() + self.deadline;
        while self.receive(until)? {}
        Ok(std::mem::take(&mut self.received))
    }

    fn read(&mut self, without_body: bool) -> io::Result<Response> {
        let until = Instant::now() + self.deadline;
        let head = self.read_head(until)?;
        let status = http_head::status(&head).ok_or_else(|| malformed("status line", &head))?;
        let body = if without_body || status == 204 || status == 304 {
            Vec::new()
        } else if http_head::header(&head, "transfer-encoding").is_some() {
            self.read_chunks(until)?
        } else if let Some(length) = http_head::content_length(&head) {
            self.take(length, until)?
        } else {
            while self.receive(until)? {}
            std::mem::take(&mut self.received)
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = http_head::headers(&head)
            .map(|(name, value)| (text(name).to_ascii_lowercase(), text(value)))
            .collect();
        Ok(Response {
            status,
            headers,
            body,
        })
    }

    /// Skips interim responses (100 Continue).
    fn read_head(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = http_head::head_end(&self.received) {
                let head: Vec<u8> = self.received.drain(..end).collect();
                if http_head::status(&head).is_none_or(|status| status >= 200) {
                    return Ok(head);
                }
            } else if !self.receive(until)? {
                return Err(closed("before an answer", &self.received));
            }
        }
    }

    fn read_chunks(&mut self, until: Instant) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.take_line(until)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16)
                .map_err(|_| malformed("chunk size", line.as_bytes()))?;
            if size == 0 {
                // Skips trailers up to the empty line; the service never sends any.
                while !self.take_line(until)?.is_empty() {}
                return Ok(body);
            }
            body.extend(self.take(size, until)?);
            self.take_line(until)?;
        }
    }

    fn take_line(&mut self, until: Instant) -> io::Result<String> {
        loop {
            if let Some(end) = self.received.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.received.drain(..end + 2).take(end).collect();
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            if !self.receive(until)? {
                return Err(closed("within a chunk", &self.received));
            }
        }
    }

    fn take(&mut self, length: usize, until: Instant) -> io::Result<Vec<u8>> {
        while self.received.len() < length {
            if !self.receive(until)? {
                return Err(closed("within a body", &self.received));
            }
        }
        Ok(self.received.drain(..length).collect())
    }

    /// Reads at least one byte; `false` if the server has closed the connection.
    fn receive(&mut self, until: Instant) -> io::Result<bool> {
        if self.received.len() > MAX_ANSWER_BYTES {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the answer has no end",
            ));
        }
        let mut buffer = [0; 16 << 10];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    "no answer by the deadline",
                ));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut buffer) {
                Ok(count) => {
                    self.received.extend_from_slice(&buffer[..count]);
                    return Ok(count > 0);
                }
                Err(error) if is_temporary(error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// After these errors the read is repeated. The caller checks the deadline.
fn is_temporary(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn malformed(what: &str, bytes: &[u8]) -> io::Error {
    let shown = String::from_utf8_lossy(bytes);
    io::Error::new(
        ErrorKind::InvalidData,
        format!("malformed {what}: {shown:?}"),
    )
}

fn closed(when: &str, received: &[u8]) -> io::Error {
    let shown = String::from_utf8_lossy(received);
    let text = format!("the server closed the connection {when}; received {shown:?}");
    io::Error::new(ErrorKind::UnexpectedEof, text)
}

#[cfg(test)]
mod tests {
    use super::{Connection, encode};
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener};
    use std::thread;
    use std::time::Duration;

    /// A server that sends fixed bytes and closes the connection. Without bytes, it keeps the connection open.
    fn canned(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("its address");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("one client");
            stream.write_all(answer).expect("the client reads");
            if answer.is_empty() {
                thread::park();
            }
        });
        addr
    }

    #[test]
    fn bodies_are_read_with_any_framing() {
        let cases: [(&str, &[u8], &str); 5] = [
            ("length", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
            (
                "chunks",
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=1\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
                "hello",
            ),
            ("close", b"HTTP/1.0 200 OK\r\n\r\nhello", "hello"),
            ("interim", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", "x"),
            ("none", b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        ];
        for (case, bytes, expected) in cases {
            let mut connection = Connection::open(canned(bytes)).expect("connect");
            let response = connection.read_response().expect(case);
            assert_eq!(response.text(), expected, "{case}");
        }
    }

    #[test]
    fn pipelined_responses_are_separated() {
        let both = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 400 Bad\r\nX-A: b\r\nContent-Length: 1\r\n\r\n2";
        let mut connection = Connection::open(canned(both)).expect("connect");
        assert_eq!(connection.read_response().expect("first").text(), "1");
        let second = connection.read_response().expect("second");
        assert_eq!(
            (second.status, second.header("x-a"), second.text().as_str()),
            (400, Some("b"), "2")
        );
        assert!(connection.read_to_close().expect("then the end").is_empty());
    }

    #[test]
    fn no_response_by_the_deadline_and_an_incomplete_response_are_errors() {
        let mut connection = Connection::open(canned(b"")).expect("connect");
        connection.set_deadline(Duration::from_millis(20));
        let error = connection.read_response().expect_err("silence");
        assert!(error.to_string().contains("deadline"), "{error}");

        let cut = canned(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        let error = Connection::open(cut)
            .expect("connect")
            .read_response()
            .expect_err("cut");
        assert!(error.to_string().contains("within a body"), "{error}");
    }

    #[test]
    fn given_headers_are_never_corrected() {
        let host = SocketAddr::from(([127, 0, 0, 1], 80));
        let encoded = |headers: &[(&str, &str)], body: &[u8]| {
            String::from_utf8(encode(host, "POST", "/x", headers, body)).expect("text")
        };
        assert_eq!(
            encoded(&[("A", "b")], b"hi"),
            "POST /x HTTP/1.1\r\nHost: 127.0.0.1:80\r\nContent-Length: 2\r\nA: b\r\n\r\nhi"
        );
        let wrong = encoded(&[("host", "h"), ("content-length", "99")], b"hi");
        assert_eq!(
            wrong,
            "POST /x HTTP/1.1\r\nhost: h\r\ncontent-length: 99\r\n\r\nhi"
        );
    }
}
