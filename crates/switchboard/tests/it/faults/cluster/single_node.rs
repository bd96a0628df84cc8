//! One node with its own carriers, accounts and prices, for scenarios about its queues.

use std::fs;
use std::net::SocketAddr;
use std::time::Instant;

use serde_json::{Value, json};
use testkit::http;
use testkit::{Server, ServerBuilder, temp_dir};

use super::checker::Verdict;
use super::contents::{self, AdminConnection, DatabaseContents};

const RATES: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n\
    Latvia,LV,All,All,247,,0.05\nEstonia,EE,All,All,248,,0.05\n";
/// Maximum number of recipients of a request.
const MAX_RECIPIENTS: usize = 100;
const MAX_ATTEMPTS: &str = "SELECT coalesce(max(attempt), 0) FROM queue";

pub(super) struct SingleNode {
    pub(super) server: Server,
}

pub(super) struct Account {
    node: SocketAddr,
    token: String,
}

impl SingleNode {
    pub(super) fn start(builder: ServerBuilder) -> Self {
        let server = builder.start();
        let folder = temp_dir("rates").expect("a temporary folder");
        let file = folder.path().join("rates.csv");
        fs::write(&file, RATES).expect("the list is written");
        let import = server.cli(&["rates", "import", file.to_str().expect("a plain path")]);
        assert!(import.status.success(), "{import:?}");
        Self { server }
    }

    /// Creates an account with a balance and a token.
    pub(super) fn account(&self, name: &str) -> Account {
        let balance = ["--balance", "1000000.00", "--json"];
        self.server
            .cli_json(&[&["account", "create", "--name", name], &balance[..]].concat());
        let token: Value = self
            .server
            .cli_json(&["token", "create", "--account", name, "--json"]);
        Account {
            node: self.server.addr(),
            token: token["token"].as_str().expect("a token").to_owned(),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        let answer = http::request(self.server.addr(), "GET", "/health/ready", &[], b"");
        answer.is_ok_and(|answer| answer.status == 200)
    }

    pub(super) fn contents(&self) -> DatabaseContents {
        match self.server.database_url() {
            Some(url) => {
                let contents =
                    AdminConnection::connect(url).and_then(|reader| reader.read_contents());
                contents.expect("the database can be read")
            }
            None => contents::read_sqlite(&self.file()).expect("the file can be read"),
        }
    }

    /// The highest number of attempts of any queued message.
    pub(super) fn max_attempts(&self) -> i64 {
        if let Some(url) = self.server.database_url() {
            let rows = AdminConnection::connect(url).and_then(|reader| reader.query(MAX_ATTEMPTS));
            return rows.expect("a number")[0].get::<_, i32>(0).into();
        }
        let file = rusqlite::Connection::open(self.file()).expect("the file opens");
        let max = file.query_row(MAX_ATTEMPTS, [], |row| row.get(0));
        max.expect("a number")
    }

    fn file(&self) -> std::path::PathBuf {
        self.server.data_dir().join("switchboard.db")
    }
}

impl Account {
    /// Sends a message to each of these numbers. Returns the time at which the last one was accepted.
    pub(super) fn send(&self, numbers: &[u64], more: &Value) -> Instant {
        for some in numbers.chunks(MAX_RECIPIENTS) {
            let to = some.iter().map(|number| format!("+{number}"));
            let mut body = json!({
                "to": to.collect::<Vec<_>>(),
                "from": "Faults",
                "message": "Hello",
            });
            for (field, value) in more.as_object().into_iter().flatten() {
                body[field] = value.clone();
            }
            let headers = [
                ("X-Service-Token", self.token.as_str()),
                ("Content-Type", "application/json"),
            ];
            let body = body.to_string();
            let answer = http::request(self.node, "POST", "/sms", &headers, body.as_bytes());
            let answer = answer.expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        Instant::now()
    }
}

/// The result of a scenario without callers.
pub(super) fn verdict(messages: usize, violations: Vec<String>) -> Verdict {
    Verdict {
        messages,
        violations,
        ..Verdict::default()
    }
}
