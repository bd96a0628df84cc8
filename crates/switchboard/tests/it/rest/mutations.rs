//! Randomly damaged requests, the same in every run. Each is answered, and none with a 5xx status.

use testkit::Backend;
use testkit::http::{Connection, encode};

use super::service::{Service, check, sms_with, tomorrow};
use serde_json::json;

/// Byte sequences that parsers treat specially.
const FRAGMENTS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"\\u0000",
    b"\\ud800",
    b"\0",
    b"\xff",
    b"\xf0\x9f\x98\x80",
    b"%00",
    b"+",
    b"9223372036854775808",
    b"\r\n",
    b" ",
    b"\"to\":",
    b"2",
];
const HEAD_FRAGMENTS: &[&[u8]] = &[
    b"\r\n",
    b"\r",
    b"\n",
    b" ",
    b":",
    b"\0",
    b"\xff",
    b"%",
    b"%ff",
    b"/",
    b"?",
    b"#",
    b"1",
    b"-",
    b",",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 3\r\n",
    b"Expect: 100-continue\r\n",
    b"HTTP/1.0",
];

/// A small random number generator, so that the damage does not change with the version of a library.
struct Rng(u64);

impl Rng {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }

    fn damage(&mut self, bytes: &mut Vec<u8>, fragments: &[&[u8]]) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            let upto = (at + 1 + self.below(8)).min(bytes.len());
            let fragment = fragments[self.below(fragments.len())];
            match self.below(6) {
                0 => bytes.truncate(at + 1),
                1 => drop(bytes.drain(at..upto)),
                2 => bytes[at] ^= 1 << self.below(8),
                3 => bytes.extend_from_within(at..upto),
                4 => drop(bytes.splice(at..upto, fragment.iter().copied())),
                _ => drop(bytes.splice(at..at, fragment.iter().copied())),
            }
            if bytes.is_empty() {
                bytes.push(b'x');
            }
        }
    }
}

/// A body with every field, so that damage meets each of them.
fn full_body() -> Vec<u8> {
    let body = sms_with(&json!({
        "to": ["+37120000001", 37_120_000_002_u64], "dlrUrl": "https://example.com/dlr", "priority": "low",
        "scheduled": tomorrow(), "udh": "%05%00%03%2A%02%01", "coding": 0, "testMode": "1", "expireIn": 3600,
        "correctBy": "LV",
    }));
    body.to_string().into_bytes()
}

/// On both stores, since some damaged bodies are still valid and are stored.
fn damaged_bodies_are_answered(backend: Backend) {
    let service = Service::start(backend);
    let mut rng = Rng(0x5eed_0001);
    let good = full_body();
    let headers = [
        ("X-Service-Token", service.token.as_str()),
        ("Content-Type", "application/json"),
    ];
    let mut connection = Connection::open(service.server.addr()).expect("the server accepts");
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..500 {
        let mut body = good.clone();
        rng.damage(&mut body, FRAGMENTS);
        let case = format!("round {round}: {}", String::from_utf8_lossy(&body));
        let response = connection.request("POST", "/sms", &headers, &body);
        let response = response.unwrap_or_else(|error| panic!("{case}: {error}"));
        check(&case, &response);
        match response.status {
            200 => accepted += 1,
            400 => refused += 1,
            other => panic!("{case}: {other} {}", response.text()),
        }
    }
    assert!(
        accepted > 10 && refused > 100,
        "{accepted} accepted, {refused} refused"
    );
    service.check_health();
}

on_both_backends!(damaged_bodies_are_answered);

#[test]
fn damaged_requests_are_answered() {
    let service = Service::start(Backend::Sqlite);
    let mut rng = Rng(0x5eed_0002);
    let body = full_body();
    let headers = [
        ("X-Service-Token", service.token.as_str()),
        ("Content-Type", "application/json"),
    ];
    for round in 0..300 {
        let mut head = encode(service.server.addr(), "POST", "/sms?x=y", &headers, &body);
        head.truncate(head.len() - body.len());
        rng.damage(&mut head, HEAD_FRAGMENTS);
        let request = [&head[..], &body].concat();
        let case = format!("round {round}: {}", String::from_utf8_lossy(&request));
        let mut connection = Connection::open(service.server.addr()).expect("the server accepts");
        connection
            .send(&request)
            .unwrap_or_else(|error| panic!("{case}: {error}"));
        connection
            .finish_sending()
            .unwrap_or_else(|error| panic!("{case}: {error}"));
        let response = connection.read_response();
        let response = response.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(
            (200..500).contains(&response.status),
            "{case}: {}",
            response.status
        );
    }
    service.check_health();
}
