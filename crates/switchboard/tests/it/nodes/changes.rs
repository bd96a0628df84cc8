//! What is changed by way of one node counts on all others within a second.
//!
//! Each change is made on the first node, or by a command beside it, while the second has what was before in its memory,
//! and is then looked for on the second again and again. The times are printed; what fails a test is that a change is not
//! seen at all.

use std::cell::RefCell;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::http::{self, Response};
use testkit::{Backend, Server};

use super::rules::{SIMULATOR, config_of, route};
use crate::faults::signal;
use crate::oauth::site::{REDIRECT, Site, params};
use crate::rest::service::{binary, sms_with, wait_for};

const NUMBER: &str = "+37120000007";
/// A name that may be used only when it is approved.
const NAME: &str = "A&B-Co #1!";
/// Enough that no loop of looks runs out of it.
const BALANCE: &str = "1000000";
const PRICES: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\r\n";

/// Two nodes, and how long the second took to see what changed on the first.
struct Pair {
    // Dropped before the first, whose database it is on.
    second: Server,
    first: Site,
    took: RefCell<Vec<(&'static str, Duration, Duration)>>,
}

impl Pair {
    /// The second has neither rules nor prices of its own.
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
            took: RefCell::default(),
        };
        pair.command(&["account", "credit", "main", BALANCE]);
        pair
    }

    fn token(&self) -> &str {
        &self.first.service.token
    }

    /// A command beside the first node.
    fn command(&self, arguments: &[&str]) {
        let ran = self.first.service.server.cli(arguments);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{arguments:?}: {said}");
    }

    /// What a token is answered by the second node.
    fn asks(&self, token: &str, method: &str, path: &str, body: &Value) -> Response {
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

    /// The status of a message that is sent by the second node.
    fn sends(&self, fields: &Value) -> u16 {
        let body = sms_with(fields);
        self.asks(self.token(), "POST", "/sms", &body).status
    }

    /// What a message costs by the second node.
    fn price(&self) -> Value {
        let asked = self.asks(self.token(), "POST", "/sms/cost", &sms_with(&json!({})));
        assert_eq!(asked.status, 200, "{}", asked.text());
        asked.json()[0]["pricePerPart"].clone()
    }

    /// Makes a change, and waits until the second node has seen it, which it must not have before.
    fn sees(&self, what: &'static str, change: impl FnOnce(), is_seen: impl Fn() -> bool) {
        assert!(!is_seen(), "{what}: so it was before");
        let began = Instant::now();
        change();
        let changed = Instant::now();
        wait_for(what, || is_seen().then_some(()));
        let mut took = self.took.borrow_mut();
        took.push((what, changed.elapsed(), began.elapsed()));
    }

    fn report(&self) {
        eprintln!("seen by the other node: after the answer, after the question");
        for (what, answered, asked) in &*self.took.borrow() {
            let (answered, asked) = (answered.as_millis(), asked.as_millis());
            eprintln!("{what:40} {answered:5} ms {asked:5} ms");
        }
    }
}

#[test]
fn who_may_call_is_followed_by_every_node() {
    let pair = Pair::start();
    let opens = |token: &str| pair.asks(token, "GET", "/token", &Value::Null).status;
    let service = &pair.first.service;

    let made = service.create_token("main", &[]);
    pair.sees(
        "a token is revoked",
        || pair.command(&["token", "revoke", &made.id]),
        || opens(&made.token) == 401,
    );
    let client = pair.first.register(REDIRECT);
    for (what, is_all) in [
        ("an OAuth access token is given back", false),
        ("an OAuth grant is given back", true),
    ] {
        let given = pair.first.tokens(&client);
        let token = if is_all {
            &given.refresh
        } else {
            &given.access
        };
        let form = params(&[("token", token), ("client_id", &client)]);
        pair.sees(
            what,
            || assert_eq!(pair.first.send("/oauth/revoke", &form).status, 200),
            || opens(&given.access) == 401,
        );
    }
    for (what, word, status) in [
        ("an account is suspended", "suspend", 403),
        ("an account is let in again", "resume", 200),
    ] {
        pair.sees(
            what,
            || pair.command(&["account", word, "main"]),
            || opens(pair.token()) == status,
        );
    }
    pair.report();
}

/// Each with what takes it back again.
#[test]
fn limits_of_an_account_are_followed_by_every_node() {
    let pair = Pair::start();
    for (what, rule, back) in [
        ("a list of countries", "countries=EE", "countries=all"),
        ("a cap for the day", "daily_cap=0.01", "daily_cap=off"),
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
        let set = |rule: &str| pair.command(&["account", "set", "main", rule]);
        pair.sees(what, || set(rule), || pair.sends(&json!({})) == 403);
        pair.sees(
            "… taken back",
            || set(back),
            || pair.sends(&json!({})) == 200,
        );
    }
    let left = pair.first.service.balance();
    let take = format!("-{left}");
    let sends = || pair.sends(&json!({}));
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
        pair.sees(what, || pair.command(&arguments), || sends() == status);
    }
    pair.report();
}

#[test]
fn senders_are_followed_by_every_node() {
    let pair = Pair::start();
    let service = &pair.first.service;
    let register = |body: &Value| -> String {
        let body = body.to_string();
        let taken = service.call_as(pair.token(), "POST", "/senderId", body.as_bytes());
        assert_eq!(taken.status, 200, "{}", taken.text());
        taken.text()
    };
    let name = register(&json!({
        "name": NAME, "type": "AlphaNumeric", "category": "Company", "categoryDescription": "our own name",
    }));
    for (what, word, status) in [
        ("a name is approved", "approve", 200),
        ("a name is revoked", "revoke", 400),
    ] {
        pair.sees(
            what,
            || pair.command(&["sender", word, &name]),
            || pair.sends(&json!({ "from": NAME })) == status,
        );
    }

    let only = ["account", "set", "main", "approved_senders_only=true"];
    pair.command(&only);
    let sends = || pair.sends(&json!({ "from": NUMBER }));
    wait_for("the rule is followed", || (sends() == 403).then_some(()));
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
    pair.sees("a number is confirmed", confirm, || sends() == 200);
    let revoke = || pair.command(&["sender", "revoke", &number]);
    pair.sees("a number is revoked", revoke, || sends() == 403);
    pair.report();
}

#[test]
fn what_is_imported_or_published_is_followed_by_every_node() {
    let pair = Pair::start();
    let server = &pair.first.service.server;
    let rules = [
        SIMULATOR,
        &route("LV", "simulator"),
        &route("LT", "simulator"),
    ];
    let publish = || {
        fs::write(config_of(server), rules.concat()).expect("the file is there");
        signal::send("HUP", server.pid());
    };
    let to_lithuania = json!({ "to": "+37061200001" });
    pair.sees("routes", publish, || pair.sends(&to_lithuania) == 200);

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
        pair.sees(
            what,
            || pair.command(&[&["rates", "import", &list], more].concat()),
            || pair.price() == price,
        );
    }

    let network = &pair.asks(pair.token(), "GET", "/mccmnc/LV", &Value::Null);
    let path = format!("/operators/{}", network.json()[0]["operatorId"]);
    let exported = folder.join("reference");
    let exported = exported.to_str().expect("a plain path");
    pair.command(&["reference", "export", exported]);
    let file = folder.join("reference/operators.csv");
    let operators = fs::read_to_string(&file).expect("it was written");
    let renamed = operators.replace(",LV,LMT\n", ",LV,LMT Group\n");
    fs::write(&file, renamed).expect("it is there");
    pair.sees(
        "reference data",
        || pair.command(&["reference", "import", exported]),
        || pair.asks(pair.token(), "GET", &path, &Value::Null).json()["name"] == "LMT Group",
    );
    pair.report();
}
