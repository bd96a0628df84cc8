//! Several nodes on one `PostgreSQL`, from outside.

mod changes;
mod listing;
mod once;
mod pooler;
mod roles;
mod rolling;
mod rules;
mod stored_carriers;
mod takeover;
mod waiting;

use serde_json::{Value, json};
use testkit::http::{self, Response};
use testkit::{Backend, Server, ServerBuilder, TestDatabase};

use crate::rest::service::{binary, ids, wait_for};

/// Enough for any test.
const BALANCE: &str = "1000000.00";

/// Nodes on one database, and a token of an account.
struct Cluster {
    // Dropped before the database.
    nodes: Vec<Server>,
    token: String,
    database: TestDatabase,
}

impl Cluster {
    /// Starts one node for each configuration.
    fn start<const N: usize>(configure: [fn(ServerBuilder) -> ServerBuilder; N]) -> Self {
        Self::start_each(configure)
    }

    /// [`Self::start`] for closures that capture values.
    fn start_each(
        configure: impl IntoIterator<Item = impl FnOnce(ServerBuilder) -> ServerBuilder>,
    ) -> Self {
        let mut cluster = Self {
            nodes: Vec::new(),
            token: String::new(),
            database: TestDatabase::create_blocking(),
        };
        for configure in configure {
            cluster.add(configure);
        }
        let account = ["account", "create", "--name", "acme", "--balance", BALANCE];
        cluster.cli(&[&account[..], &["--json"]].concat());
        let token = cluster.cli(&["token", "create", "--account", "acme", "--json"]);
        token["token"]
            .as_str()
            .expect("a token")
            .clone_into(&mut cluster.token);
        cluster
    }

    fn add(&mut self, configure: impl FnOnce(ServerBuilder) -> ServerBuilder) {
        let builder = Server::builder(binary(), Backend::Sqlite)
            .env("SWITCHBOARD_DATABASE__URL", self.database.url());
        self.nodes.push(configure(builder).start());
    }

    fn cli(&self, arguments: &[&str]) -> Value {
        self.nodes[0].cli_json(arguments)
    }

    /// Runs a command that must succeed.
    fn run_command(&self, arguments: &[&str]) {
        let ran = self.nodes[0].cli(arguments);
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{arguments:?}: {stderr}");
    }

    /// Sets one price for all of Latvia.
    fn set_price(&self, channel: &str, price: &str) {
        let list = format!(
            "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\r\nLatvia,LV,All,All,247,,{price}\r\n"
        );
        let folder = self.nodes[0].data_dir();
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("prices.csv");
        std::fs::write(&path, list).expect("the folder is there");
        let path = path.to_str().expect("a plain path");
        self.run_command(&["rates", "import", path, "--channel", channel]);
    }

    fn list_nodes(&self) -> Vec<Value> {
        let list = self.cli(&["node", "list", "--json"]);
        list.as_array().expect("a list").clone()
    }

    fn call(&self, node: usize, method: &str, path: &str, body: &[u8]) -> Response {
        let headers = [
            ("X-Service-Token", self.token.as_str()),
            ("Content-Type", "application/json"),
        ];
        http::request(self.nodes[node].addr(), method, path, &headers, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a message through a node that must accept it.
    fn send(&self, node: usize, body: &Value) -> String {
        let answer = self.call(node, "POST", "/sms", body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        ids(&answer).remove(0)
    }

    fn state(&self, node: usize, id: &str) -> String {
        let answer = self.call(node, "GET", &format!("/sms/status/{id}"), b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let state = answer.json()["state"].clone();
        state.as_str().expect("a word").to_owned()
    }

    /// Waits until a message has ended, and returns its state.
    fn wait_for_end(&self, node: usize, id: &str) -> String {
        wait_for("the message ends", || {
            let state = self.state(node, id);
            let is_open = ["scheduled", "queued", "sent"].contains(&state.as_str());
            (!is_open).then_some(state)
        })
    }
}

fn sms(text: &str) -> Value {
    json!({ "to": "+37120000001", "from": "Acme", "message": text })
}
