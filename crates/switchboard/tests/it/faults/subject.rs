//! The service under test, with an account that may send, and what it has stored.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::process::ExitStatus;

use domain::Clock;
use domain::clock::SystemClock;
use testkit::http::{self, Connection, Response};
use testkit::{Backend, Server, ServerBuilder};

use super::waiting::wait_until;
use crate::rest::service::binary;

const PAGE: usize = 1000;
/// Enough that no test runs out of it.
const BALANCE: &str = "1000000.00";

/// A running service and a token for it.
pub(super) struct Subject {
    pub(super) server: Server,
    pub(super) token: String,
    /// The day of all scheduled messages: the same for all, so that a repeated order is the same to the byte.
    day: String,
}

/// What the service says of a message: its state, and status and error once it has ended.
pub(super) type State = (String, Option<(u64, u64)>);

/// How an order is made from its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Most are scheduled, so that they can be listed; some are to be sent at once.
    Plain,
    /// Scheduled, and with an idempotency key.
    Keyed,
}

/// Of plain orders, one in so many is to be sent at once.
const UNSCHEDULED: u64 = 16;

/// Sends orders; each caller has its own.
#[derive(Clone)]
pub(super) struct Sender {
    pub(super) addr: SocketAddr,
    token: String,
    scheduled: String,
    shape: Shape,
}

impl Subject {
    pub(super) fn start(backend: Backend) -> Self {
        Self::from(builder(backend))
    }

    pub(super) fn sender(&self, shape: Shape) -> Sender {
        Sender {
            addr: self.server.addr(),
            token: self.token.clone(),
            scheduled: self.day.clone(),
            shape,
        }
    }

    /// What is stored and scheduled: ID and number of each.
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
                (number_of(id), number_of(number))
            }));
            if page.len() < PAGE {
                return stored;
            }
        }
    }

    /// Those of these messages that the service does not know.
    pub(super) fn unknown(&self, ids: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut connection = Connection::open(self.server.addr()).expect("the service is up");
        let mut is_unknown = |id: &u64| {
            let status = self.get(&mut connection, &format!("/sms/status/{id}"));
            assert!(matches!(status.status, 200 | 404), "{}", status.text());
            status.status == 404
        };
        ids.filter(|id| is_unknown(id)).collect()
    }

    /// Where a message stands: its state, and status and error once it has ended. `None`: it is unknown.
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

    /// [`Self::state`] of a lookup, in the same words: an answer is a delivery.
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

    /// What `/health/ready` says.
    pub(super) fn readiness(&self) -> u16 {
        http::request(self.server.addr(), "GET", "/health/ready", &[], b"")
            .expect("the service is up")
            .status
    }

    /// Waits until the process ends without being told to.
    pub(super) fn wait_for_its_end(&mut self) -> ExitStatus {
        let stat = format!("/proc/{}/stat", self.server.pid());
        wait_until("the service ends by itself", || {
            let stat = fs::read_to_string(&stat).expect("nobody has waited for the process yet");
            let (_, state) = stat.rsplit_once(") ").expect("a name in brackets");
            state.starts_with('Z')
        });
        // It is dead: the signal changes nothing, and the status is the one that it ended with.
        self.server.terminate()
    }

    fn get(&self, connection: &mut Connection, path: &str) -> Response {
        connection
            .request("GET", path, &[("X-Service-Token", &self.token)], b"")
            .expect("an answer")
    }
}

/// A service on this backend, for tests that set more than that.
pub(super) fn builder(backend: Backend) -> ServerBuilder {
    Server::builder(binary(), backend)
}

impl From<ServerBuilder> for Subject {
    fn from(builder: ServerBuilder) -> Self {
        let server = builder.start();
        let account = ["account", "create", "--name", "crowd", "--balance", BALANCE];
        server.cli_json(&[&account[..], &["--json"]].concat());
        let token = server.cli_json(&["token", "create", "--account", "crowd", "--json"]);
        let token = token["token"].as_str().expect("a token").to_owned();
        let day = SystemClock.now() + jiff::SignedDuration::from_hours(24 * 200);
        let day = day.strftime("%Y-%m-%dT00:00:00Z").to_string();
        Self { server, token, day }
    }
}

impl Sender {
    /// The bytes of an order.
    pub(super) fn encode(&self, number: u64) -> Vec<u8> {
        self.encode_with(number, &[])
    }

    /// The bytes of an order with more headers.
    pub(super) fn encode_with(&self, number: u64, more: &[(&str, &str)]) -> Vec<u8> {
        let key = format!("key-{number}");
        let mut headers = vec![
            ("X-Service-Token", self.token.as_str()),
            ("Content-Type", "application/json"),
        ];
        if self.shape == Shape::Keyed {
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
        if self.shape == Shape::Keyed || !number.is_multiple_of(UNSCHEDULED) {
            body["scheduled"] = self.scheduled.as_str().into();
        }
        body.to_string()
    }

    /// Sends an order on a connection of its own.
    pub(super) fn send(&self, number: u64) -> Response {
        let mut connection = Connection::open(self.addr).expect("the service is up");
        connection.send(&self.encode(number)).expect("it reads");
        connection.read_response().expect("an answer")
    }
}

/// The one ID in the answer to an order.
pub(super) fn id_of(answer: &Response) -> u64 {
    match answer.json().as_array().map(Vec::as_slice) {
        Some([id]) => number_of(id.as_str().expect("an ID as a string")),
        _ => panic!("not one ID: {}", answer.text()),
    }
}

fn number_of(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}
