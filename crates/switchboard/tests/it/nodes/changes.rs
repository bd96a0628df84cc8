//! Changes on one node take effect on all others within a second.
//!
//! Each change is made on the first node, or by a command, while the second node has the old state in its memory. The
//! test then polls the second node. It prints how long each change took, and fails only if a change never takes effect.

use std::cell::RefCell;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::http::{self, Response};
use testkit::{Backend, Server};

use super::rules::{SIMULATOR, config_file, route};
use crate::faults::signal;
use crate::oauth::site::{REDIRECT, Site, params};
use crate::rest::service::{binary, sms_with, wait_for};

const NUMBER: &str = "+37120000007";
/// A sender that needs approval.
const NAME: &str = "A&B-Co #1!";
/// Enough for any number of polls.
const BALANCE: &str = "1000000";
const PRICES: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\r\n";

/// Two nodes, and how long changes on the first took to reach the second.
struct Pair {
    // Dropped before the first node, which owns the database.
    second: Server,
    first: Site,
    /// For each change: the time since it was made, and since it was requested.
    delays: RefCell<Vec<(&'static str, Duration, Duration)>>,
}

impl Pair {
    /// The second node has no rules or prices of its own.
    fn start() -> Self {
        let rules = [SIMULATOR, &route("LV", "simulator")].concat();
        let first = Site::with(Backend::Postgres, |builder| {
            builder
                .config(rules)
                .env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
        });
        let url = first.service.server.database_url().expect("PostgreSQL");
        let second = Server::builder(binary(), Backend::Sqlite)
            .config(SIMULATOR)
            .env("SWITCHBOARD_DATABASE__URL", url)
            .start();
        let pair = Self {
            second,
            first,
            delays: RefCell::default(),
        };
        pair.run_command(&["account", "credit", "main", BALANCE]);
        pair
    }

    fn token(&self) -> &str {
        &self.first.service.token
    }

    /// Runs a command on the first node, which must succeed.
    fn run_command(&self, arguments: &[&str]) {
        let ran = self.first.service.server.cli(arguments);
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{arguments:?}: {stderr}");
    }

    /// Calls the second node with a token.
    fn call_second(&self, token: &str, method: &str, path: &str, body: &Value) -> Response {
        let headers = [
            ("X-Service-Token", token),
            ("Content-Type", "application/json"),
        ];
        let body = match method {
            "GET" => String::new(),
            _ => body.to_string(),
        };
        http::request(self.second.addr(), method, path, &headers, body.as_bytes())
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a message through the second node, and returns the status of the answer.
    fn send_status(&self, fields: &Value) -> u16 {
        let body = sms_with(fields);
        self.call_second(self.token(), "POST", "/sms", &body).status
    }

    /// The price of a message at the second node.
    fn price(&self) -> Value {
        let response = self.call_second(self.token(), "POST", "/sms/cost", &sms_with(&json!({})));
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()[0]["pricePerPart"].clone()
    }

    /// Makes a change, and waits until it takes effect on the second node.
    fn wait_until_in_effect(
        &self,
        what: &'static str,
        change: impl FnOnce(),
        is_in_effect: impl Fn() -> bool,
    ) {
        assert!(!is_in_effect(), "{what}: in effect before the change");
        let began = Instant::now();
        change();
        let changed = Instant::now();
        wait_for(what, || is_in_effect().then_some(()));
        let mut delays = self.delays.borrow_mut();
        delays.push((what, changed.elapsed(), began.elapsed()));
    }

    fn print_delays(&self) {
        eprintln!("in effect on the other node: after the change, after the request");
        for (what, since_change, since_request) in &*self.delays.borrow() {
            let (since_change, since_request) =
                (since_change.as_millis(), since_request.as_millis());
            eprintln!("{what:40} {since_change:5} ms {since_request:5} ms");
        }
    }
}

#[test]
fn revoked_access_takes_effect_on_every_node() {
    let pair = Pair::start();
    let token_status = |token: &str| {
        pair.call_second(token, "GET", "/token", &Value::Null)
            .status
    };
    let service = &pair.first.service;

    let made = service.create_token("main", &[]);
    pair.wait_until_in_effect(
        "a token is revoked",
        || pair.run_command(&["token", "revoke", &made.id]),
        || token_status(&made.token) == 401,
    );
    let client = pair.first.register(REDIRECT);
    for (what, is_grant) in [
        ("an OAuth access token is revoked", false),
        ("an OAuth grant is revoked", true),
    ] {
        let tokens = pair.first.tokens(&client);
        let token = if is_grant {
            &tokens.refresh
        } else {
            &tokens.access
        };
        let form = params(&[("token", token), ("client_id", &client)]);
        pair.wait_until_in_effect(
            what,
            || assert_eq!(pair.first.send("/oauth/revoke", &form).status, 200),
            || token_status(&tokens.access) == 401,
        );
    }
    for (what, word, status) in [
        ("an account is suspended", "suspend", 403),
        ("an account is resumed", "resume", 200),
    ] {
        pair.wait_until_in_effect(
            what,
            || pair.run_command(&["account", word, "main"]),
            || token_status(pair.token()) == status,
        );
    }
    pair.print_delays();
}

#[test]
fn opt_outs_and_blocks_take_effect_on_every_node() {
    let pair = Pair::start();
    let token = pair.token();
    // A refused message has ended when it is accepted.
    let refused_with = |code: u16| {
        let body = sms_with(&json!({ "to": NUMBER }));
        let sent = pair.call_second(token, "POST", "/sms", &body).json();
        let path = format!("/sms/status/{}", sent[0].as_str().expect("an ID"));
        pair.call_second(token, "GET", &path, &Value::Null).json()["error"] == code
    };
    let first = &pair.first.service;
    let change = |method: &str, path: &str, body: &str| {
        let changed = first.call_as(token, method, path, body.as_bytes());
        assert_eq!(changed.status, 200, "{}", changed.text());
    };
    let entry = json!({ "number": NUMBER }).to_string();
    pair.wait_until_in_effect(
        "an opt-out is added",
        || change("POST", "/optOuts", &entry),
        || refused_with(27),
    );
    pair.wait_until_in_effect(
        "… removed",
        || change("DELETE", &format!("/optOuts/{NUMBER}"), ""),
        || !refused_with(27),
    );
    pair.wait_until_in_effect(
        "a number is blocked",
        || pair.run_command(&["block", "add", "--number", NUMBER]),
        || refused_with(21),
    );
    pair.print_delays();
}

/// Each limit is set and removed again.
#[test]
fn account_limits_take_effect_on_every_node() {
    let pair = Pair::start();
    for (what, rule, remove) in [
        ("allowed countries", "countries=EE", "countries=all"),
        ("a daily cap", "daily_cap=0.01", "daily_cap=off"),
        (
            "a limit for each recipient",
            "per_recipient_hour=1",
            "per_recipient_hour=off",
        ),
        (
            "approved senders only",
            "approved_senders_only=true",
            "approved_senders_only=false",
        ),
    ] {
        let set = |rule: &str| pair.run_command(&["account", "set", "main", rule]);
        pair.wait_until_in_effect(what, || set(rule), || pair.send_status(&json!({})) == 403);
        pair.wait_until_in_effect(
            "… removed",
            || set(remove),
            || pair.send_status(&json!({})) == 200,
        );
    }
    let left = pair.first.service.balance();
    let take = format!("-{left}");
    let send_status = || pair.send_status(&json!({}));
    for (what, arguments, status) in [
        (
            "an empty balance",
            ["account", "credit", "main", &take],
            403,
        ),
        (
            "credit for an empty balance",
            ["account", "set", "main", "credit_limit=10.00"],
            200,
        ),
    ] {
        pair.wait_until_in_effect(
            what,
            || pair.run_command(&arguments),
            || send_status() == status,
        );
    }
    pair.print_delays();
}

#[test]
fn sender_changes_take_effect_on_every_node() {
    let pair = Pair::start();
    let service = &pair.first.service;
    let register = |body: &Value| -> String {
        let body = body.to_string();
        let registered = service.call_as(pair.token(), "POST", "/senderId", body.as_bytes());
        assert_eq!(registered.status, 200, "{}", registered.text());
        registered.text()
    };
    let name = register(&json!({
        "name": NAME, "type": "AlphaNumeric", "category": "Company", "categoryDescription": "our own name",
    }));
    for (what, word, status) in [
        ("a name is approved", "approve", 200),
        ("a name is revoked", "revoke", 400),
    ] {
        pair.wait_until_in_effect(
            what,
            || pair.run_command(&["sender", word, &name]),
            || pair.send_status(&json!({ "from": NAME })) == status,
        );
    }

    let only = ["account", "set", "main", "approved_senders_only=true"];
    pair.run_command(&only);
    let number_status = || pair.send_status(&json!({ "from": NUMBER }));
    wait_for("the rule is in effect", || {
        (number_status() == 403).then_some(())
    });
    let number = register(&json!({ "name": NUMBER, "type": "MSISDN" }));
    let inbox = ["simulator", "inbox", "--number", NUMBER, "--json"];
    let pin = wait_for("the PIN", || {
        let newest = service.server.cli_json(&inbox)[0]["message"].clone();
        newest.as_str().map(|text| text[..5].to_owned())
    });
    let confirm = || {
        let path = format!("/senderId/confirm/{number}");
        let code = json!({ "code": pin }).to_string();
        let confirmed = service.call_as(pair.token(), "POST", &path, code.as_bytes());
        assert_eq!(confirmed.status, 200, "{}", confirmed.text());
    };
    pair.wait_until_in_effect("a number is confirmed", confirm, || number_status() == 200);
    let revoke = || pair.run_command(&["sender", "revoke", &number]);
    pair.wait_until_in_effect("a number is revoked", revoke, || number_status() == 403);
    let own = |arguments: &[&str]| {
        let command = ["number", arguments[0], "--number", NUMBER];
        pair.run_command(&[&command, &arguments[1..]].concat());
    };
    let add = || own(&["add", "--account", "main"]);
    pair.wait_until_in_effect("an own number", add, || number_status() == 200);
    let remove = || own(&["remove"]);
    pair.wait_until_in_effect("… removed", remove, || number_status() == 403);
    pair.print_delays();
}

#[test]
fn imports_and_published_routes_take_effect_on_every_node() {
    let pair = Pair::start();
    let server = &pair.first.service.server;
    let rules = [
        SIMULATOR,
        &route("LV", "simulator"),
        &route("LT", "simulator"),
    ];
    let publish = || {
        fs::write(config_file(server), rules.concat()).expect("the file is there");
        signal::send("HUP", server.pid());
    };
    let to_lithuania = json!({ "to": "+37061200001" });
    pair.wait_until_in_effect("routes", publish, || pair.send_status(&to_lithuania) == 200);

    let to_estonia = json!({ "to": "+37251200001" });
    let change = |arguments: &[&str]| pair.run_command(&[&["route"], arguments].concat());
    pair.wait_until_in_effect(
        "a stored route",
        || change(&["set", "estonia", "country=EE", "carriers=simulator"]),
        || pair.send_status(&to_estonia) == 200,
    );
    pair.wait_until_in_effect(
        "… removed",
        || change(&["remove", "estonia"]),
        || pair.send_status(&to_estonia) != 200,
    );

    let folder = server.data_dir().join("import");
    fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("the folder is there");
        path.to_str().expect("a plain path").to_owned()
    };
    for (what, price, more) in [
        ("the price list", "0.4242", &[][..]),
        ("prices of an account", "0.2121", &["--account", "main"]),
    ] {
        let row = format!("Latvia,LV,All other carriers,All other carriers,247,,{price}\r\n");
        let list = write("rates.csv", &[PRICES, &row].concat());
        pair.wait_until_in_effect(
            what,
            || pair.run_command(&[&["rates", "import", &list], more].concat()),
            || pair.price() == price,
        );
    }

    let network = &pair.call_second(pair.token(), "GET", "/mccmnc/LV", &Value::Null);
    let path = format!("/operators/{}", network.json()[0]["operatorId"]);
    let exported = folder.join("reference");
    let exported = exported.to_str().expect("a plain path");
    pair.run_command(&["reference", "export", exported]);
    let file = folder.join("reference/operators.csv");
    let operators = fs::read_to_string(&file).expect("it was written");
    let renamed = operators.replace(",LV,LMT\n", ",LV,LMT Group\n");
    fs::write(&file, renamed).expect("it is there");
    pair.wait_until_in_effect(
        "reference data",
        || pair.run_command(&["reference", "import", exported]),
        || {
            pair.call_second(pair.token(), "GET", &path, &Value::Null)
                .json()["name"]
                == "LMT Group"
        },
    );
    pair.print_delays();
}
