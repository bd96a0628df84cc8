//! The service under test, with an account that may send.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::process::ExitStatus;

use domain::Clock;
use engine::clock::SystemClock;
use testkit::http::{self, Connection, Response};
use testkit::{Backend, Server, ServerBuilder};

use super::waiting::wait_until;
use crate::rest::service::binary;

const PAGE: usize = 1000;
/// Enough that no test runs out of it.
const BALANCE: &str = "1000000.00";

/// A running service and a token for it.
pub(super) struct TestService {
    pub(super) server: Server,
    pub(super) token: String,
    /// The time of all scheduled messages. It is always the same, so that a repeated request has the same bytes.
    scheduled_at: String,
}

/// The state of a message, with status and error once it has ended.
pub(super) type State = (String, Option<(u64, u64)>);

/// How a request is made from its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// Most are scheduled, so that they can be listed; some are sent at once.
    Plain,
    /// Scheduled, and with an idempotency key.
    Keyed,
}

/// One in this many plain requests is sent at once.
const UNSCHEDULED_ONE_IN: u64 = 16;

#[derive(Clone)]
pub(super) struct RequestSender {
    pub(super) addr: SocketAddr,
    token: String,
    scheduled: String,
    kind: RequestKind,
}

impl TestService {
    pub(super) fn start(backend: Backend) -> Self {
        Self::from(builder(backend))
    }

    pub(super) fn sender(&self, kind: RequestKind) -> RequestSender {
        RequestSender {
            addr: self.server.addr(),
            token: self.token.clone(),
            scheduled: self.scheduled_at.clone(),
            kind,
        }
    }

    /// The scheduled messages that are stored: the number of each ID.
    pub(super) fn stored(&self) -> HashMap<u64, u64> {
        let mut connection = Connection::open(self.server.addr()).expect("the service is up");
        let mut stored = HashMap::new();
        loop {
            let path = format!("/sms?scheduled&limit={PAGE}&offset={}", stored.len());
            let page = self.get(&mut connection, &path);
            assert_eq!(page.status, 200, "{}", page.text());
            let page = page.json();
            let page = page.as_array().expect("a list");
            stored.extend(page.iter().map(|record| {
                let text = record["message"].as_str().expect("a text");
                let number = text.strip_prefix("number ").expect("a text of a test");
                let id = record["id"].as_str().expect("an ID as a string");
                (parse_number(id), parse_number(number))
            }));
            if page.len() < PAGE {
                return stored;
            }
        }
    }

    /// Returns the IDs that the service does not know.
    pub(super) fn unknown(&self, ids: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut connection = Connection::open(self.server.addr()).expect("the service is up");
        let mut is_unknown = |id: &u64| {
            let status = self.get(&mut connection, &format!("/sms/status/{id}"));
            assert!(matches!(status.status, 200 | 404), "{}", status.text());
            status.status == 404
        };
        ids.filter(|id| is_unknown(id)).collect()
    }

    /// The state of a message; `None` if it is unknown.
    pub(super) fn state(&self, connection: &mut Connection, id: u64) -> Option<State> {
        let answer = self.get(connection, &format!("/sms/status/{id}"));
        assert!(matches!(answer.status, 200 | 404), "{}", answer.text());
        if answer.status == 404 {
            return None;
        }
        let answer = answer.json();
        let state = answer["state"].as_str().expect("a word").to_owned();
        let end = answer["status"].as_u64().zip(answer["error"].as_u64());
        Some((state, end))
    }

    /// The state of a lookup, as [`Self::state`] would return it: an answer counts as a delivery.
    pub(super) fn lookup_state(&self, connection: &mut Connection, id: u64) -> Option<State> {
        let answer = self.get(connection, &format!("/hlr/{id}"));
        assert!(matches!(answer.status, 200 | 404), "{}", answer.text());
        if answer.status == 404 {
            return None;
        }
        let answer = answer.json();
        let state = answer["state"].as_str().expect("a word").to_owned();
        let end = answer["result"]["error"].as_u64();
        Some((
            state,
            end.map(|error| (if error == 0 { 1 } else { 2 }, error)),
        ))
    }

    /// The status of `/health/ready`.
    pub(super) fn ready_status(&self) -> u16 {
        http::request(self.server.addr(), "GET", "/health/ready", &[], b"")
            .expect("the service is up")
            .status
    }

    /// Waits until the process ends by itself.
    pub(super) fn wait_for_exit(&mut self) -> ExitStatus {
        let stat = format!("/proc/{}/stat", self.server.pid());
        wait_until("the service ends by itself", || {
            let stat = fs::read_to_string(&stat).expect("nobody has waited for the process yet");
            let (_, state) = stat.rsplit_once(") ").expect("a name in brackets");
            state.starts_with('Z')
        });
        // The process is dead: the signal has no effect, and this returns its exit status.
        self.server.terminate()
    }

    fn get(&self, connection: &mut Connection, path: &str) -> Response {
        connection
            .request("GET", path, &[("X-Service-Token", &self.token)], b"")
            .expect("an answer")
    }
}

/// A service on this backend, for tests that change more settings.
pub(super) fn builder(backend: Backend) -> ServerBuilder {
    Server::builder(binary(), backend)
}

impl From<ServerBuilder> for TestService {
    fn from(builder: ServerBuilder) -> Self {
        let server = builder.start();
        let account = ["account", "create", "--name", "acme", "--balance", BALANCE];
        server.cli_json(&[&account[..], &["--json"]].concat());
        let token = server.cli_json(&["token", "create", "--account", "acme", "--json"]);
        let token = token["token"].as_str().expect("a token").to_owned();
        let scheduled_at = SystemClock.now() + jiff::SignedDuration::from_hours(24 * 200);
        let scheduled_at = scheduled_at.strftime("%Y-%m-%dT00:00:00Z").to_string();
        Self {
            server,
            token,
            scheduled_at,
        }
    }
}

impl RequestSender {
    /// The bytes of a request.
    pub(super) fn encode(&self, number: u64) -> Vec<u8> {
        self.encode_with(number, &[])
    }

    /// The bytes of a request with more headers.
    pub(super) fn encode_with(&self, number: u64, more: &[(&str, &str)]) -> Vec<u8> {
        let key = format!("key-{number}");
        let mut headers = vec![
            ("X-Service-Token", self.token.as_str()),
            ("Content-Type", "application/json"),
        ];
        if self.kind == RequestKind::Keyed {
            headers.push(("Idempotency-Key", &key));
        }
        headers.extend_from_slice(more);
        let body = self.body(number);
        http::encode(self.addr, "POST", "/sms", &headers, body.as_bytes())
    }

    fn body(&self, number: u64) -> String {
        let mut body = serde_json::json!({
            "to": "+37120000001",
            "from": "Faults",
            "message": format!("number {number}"),
        });
        if self.kind == RequestKind::Keyed || !number.is_multiple_of(UNSCHEDULED_ONE_IN) {
            body["scheduled"] = self.scheduled.as_str().into();
        }
        body.to_string()
    }

    /// Sends a request on a new connection.
    pub(super) fn send(&self, number: u64) -> Response {
        let mut connection = Connection::open(self.addr).expect("the service is up");
        connection.send(&self.encode(number)).expect("it reads");
        connection.read_response().expect("an answer")
    }
}

/// The single ID in an answer.
pub(super) fn id_of(answer: &Response) -> u64 {
    match answer.json().as_array().map(Vec::as_slice) {
        Some([id]) => parse_number(id.as_str().expect("an ID as a string")),
        _ => panic!("not one ID: {}", answer.text()),
    }
}

fn parse_number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}
