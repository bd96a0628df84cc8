//! Requests with random damage, the same in every run: each is answered, none by a failure of the service.

use testkit::Backend;
use testkit::http::{Connection, encode};

use super::service::{Service, check, sms_with, tomorrow};
use serde_json::json;

/// What damage tends to bring out: the ends of things, and what parsers treat specially.
const SPLINTERS: &[&[u8]] = &[
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
const HEAD_SPLINTERS: &[&[u8]] = &[
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

/// A small generator of its own: damage must not change with a library's version.
struct Dice(u64);

impl Dice {
    /// A number below `end`.
    fn roll(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }

    fn damage(&mut self, bytes: &mut Vec<u8>, splinters: &[&[u8]]) {
        for _ in 0..=self.roll(3) {
            let at = self.roll(bytes.len());
            let upto = (at + 1 + self.roll(8)).min(bytes.len());
            let splinter = splinters[self.roll(splinters.len())];
            match self.roll(6) {
                0 => bytes.truncate(at + 1),
                1 => drop(bytes.drain(at..upto)),
                2 => bytes[at] ^= 1 << self.roll(8),
                3 => bytes.extend_from_within(at..upto),
                4 => drop(bytes.splice(at..upto, splinter.iter().copied())),
                _ => drop(bytes.splice(at..at, splinter.iter().copied())),
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

/// On both stores, since some of the damaged bodies are still good and are stored.
fn damaged_bodies_are_answered(backend: Backend) {
    let service = Service::start(backend);
    let mut dice = Dice(0x5eed_0001);
    let good = full_body();
    let headers = [
        ("X-Service-Token", service.token.as_str()),
        ("Content-Type", "application/json"),
    ];
    let mut connection = Connection::open(service.server.addr()).expect("the server accepts");
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..500 {
        let mut body = good.clone();
        dice.damage(&mut body, SPLINTERS);
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
    let mut dice = Dice(0x5eed_0002);
    let body = full_body();
    let headers = [
        ("X-Service-Token", service.token.as_str()),
        ("Content-Type", "application/json"),
    ];
    for round in 0..300 {
        let mut head = encode(service.server.addr(), "POST", "/sms?x=y", &headers, &body);
        head.truncate(head.len() - body.len());
        dice.damage(&mut head, HEAD_SPLINTERS);
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
