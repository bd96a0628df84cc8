//! One node with carriers, accounts and prices of a scenario's own, for scenarios about its queues.

use std::fs;
use std::net::SocketAddr;
use std::time::Instant;

use serde_json::{Value, json};
use testkit::http;
use testkit::{Server, ServerBuilder, TempDir};

use super::books::{self, Administrator, Books};
use super::checker::Verdict;

const RATES: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n\
    Latvia,LV,All,All,247,,0.05\nEstonia,EE,All,All,248,,0.05\n";
/// The most recipients of a request.
const AT_ONCE: usize = 100;
const MOST_ATTEMPTS: &str = "SELECT coalesce(max(attempt), 0) FROM queue";

/// The node.
pub(super) struct LoneNode {
    pub(super) server: Server,
}

/// Somebody who sends.
pub(super) struct Account {
    node: SocketAddr,
    token: String,
}

impl LoneNode {
    pub(super) fn start(builder: ServerBuilder) -> Self {
        let server = builder.start();
        let folder = TempDir::create("rates").expect("a temporary folder");
        let file = folder.path().join("rates.csv");
        fs::write(&file, RATES).expect("the list is written");
        let import = server.cli(&["rates", "import", file.to_str().expect("a plain path")]);
        assert!(import.status.success(), "{import:?}");
        Self { server }
    }

    /// A new account with money and a token.
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

    /// Whether it says that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        let answer = http::request(self.server.addr(), "GET", "/health/ready", &[], b"");
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// What its database holds.
    pub(super) fn books(&self) -> Books {
        match self.server.database_url() {
            Some(url) => {
                let books = Administrator::connect(url).and_then(|reader| reader.read_books());
                books.expect("the database can be read")
            }
            None => books::read_sqlite(&self.file()).expect("the file can be read"),
        }
    }

    /// The highest number of attempts of anything that waits.
    pub(super) fn most_attempts(&self) -> i64 {
        if let Some(url) = self.server.database_url() {
            let rows = Administrator::connect(url).and_then(|reader| reader.query(MOST_ATTEMPTS));
            return rows.expect("a number")[0].get::<_, i32>(0).into();
        }
        let file = rusqlite::Connection::open(self.file()).expect("the file opens");
        let most = file.query_row(MOST_ATTEMPTS, [], |row| row.get(0));
        most.expect("a number")
    }

    fn file(&self) -> std::path::PathBuf {
        self.server.data_dir().join("switchboard.db")
    }
}

impl Account {
    /// Sends a message to each of these numbers; returns when the last was accepted.
    pub(super) fn send(&self, numbers: &[u64], more: &Value) -> Instant {
        for some in numbers.chunks(AT_ONCE) {
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

/// What a scenario without callers found.
pub(super) fn verdict(messages: usize, breaches: Vec<String>) -> Verdict {
    Verdict {
        messages,
        breaches,
        ..Verdict::default()
    }
}
