//! Carriers and routes in the database.

use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, temp_dir};

use super::{SECRET, callback, path, post, provider, send, start, taken, wait_for_request};
use crate::chain::wait_for_reported_states;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(
    carriers_and_routes_are_changed_while_the_service_runs,
    a_message_without_an_answer_from_a_removed_carrier_waits_for_its_report,
);

/// Runs a command that must succeed, and returns what it printed.
fn run(service: &Service, arguments: &[&str]) -> String {
    let output = service.server.cli(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs a command that must fail, and returns the error.
fn refused(service: &Service, arguments: &[&str]) -> String {
    let output = service.server.cli(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The names and sources of the carriers that run.
fn carriers(service: &Service) -> Vec<(Value, Value)> {
    let list = service.server.cli_json(&["carrier", "list", "--json"]);
    let list = list.as_array().expect("a list");
    let running = list.iter().filter(|carrier| carrier["node"].is_u64());
    running
        .map(|carrier| (carrier["name"].clone(), carrier["source"].clone()))
        .collect()
}

fn wait_for_carriers(service: &Service, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, source)| (json!(name), json!(source)))
        .collect();
    wait_for("the carriers", || {
        (carriers(service) == expected).then_some(())
    });
}

fn description(url: &str) -> String {
    format!(
        "kind = \"http\"
[request]
url = \"{url}\"
headers = {{ Authorization = \"Bearer {{{{ secret.key }}}}\" }}
json = {{ to = \"{{{{ to }}}}\", callback = \"{{{{ report_url }}}}\" }}
[report]
state = \"/status\"
delivered = [\"delivered\"]
"
    )
}

fn check_nothing_wrong_is_stored(service: &Service) {
    let error = refused(service, &["carrier", "set", "beta", "kind=http"]);
    assert!(error.contains("request"), "{error}");
    let error = refused(
        service,
        &["carrier", "set", "beta", "kind=smpp", "costs=x.csv"],
    );
    assert!(error.contains("other nodes do not have"), "{error}");
    let error = refused(service, &["route", "set", "all", "carriers=nobody"]);
    assert!(error.contains("no carrier 'nobody'"), "{error}");
    let history = service.server.cli_json(&["carrier", "history", "--json"]);
    assert_eq!(history, json!([]));
}

fn carriers_and_routes_are_changed_while_the_service_runs(backend: Backend) {
    let (beta, receiver) = (provider(|_| taken()), Receiver::start());
    let service = start(backend, "");
    wait_for_carriers(&service, &[("simulator", "file")]);
    let folder = temp_dir("carrier").expect("a temporary folder");
    let file = folder.path().join("beta.toml");
    std::fs::write(&file, description(&beta.url("/send"))).expect("the file is written");
    let file = file.to_str().expect("UTF-8");
    let secret = format!("secret.key={SECRET}");

    check_nothing_wrong_is_stored(&service);
    run(
        &service,
        &["carrier", "set", "beta", "--from", file, &secret],
    );
    wait_for_carriers(&service, &[("beta", "database")]);
    let id = send(&service, &receiver, &json!({}));
    let request = wait_for_request(&beta, 1);
    let bearer = format!("Bearer {SECRET}");
    assert_eq!(request.header("authorization"), Some(bearer.as_str()));
    let report = json!({ "status": "delivered" });
    let url = callback(&request);
    assert_eq!(post(&service, path(&service, &url), &report).status, 200);
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);

    // One setting is changed, and the secret stays, but nobody is shown it.
    run(&service, &["carrier", "set", "beta", "window=7"]);
    let shown = run(&service, &["carrier", "show", "beta"]);
    assert!(
        shown.contains("window = 7") && shown.contains("# from the database"),
        "{shown}"
    );
    run(
        &service,
        &["route", "set", "latvia", "country=LV", "carriers=beta"],
    );
    run(
        &service,
        &[
            "route",
            "set",
            "first",
            "prefix=3712",
            "carriers=beta",
            "--before",
            "latvia",
        ],
    );
    let routes = service.server.cli_json(&["route", "list", "--json"]);
    let names: Vec<&Value> = routes
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["first", "latvia"]);
    assert_eq!(routes[0]["source"], "database");
    // Other countries have no route now.
    wait_for("the routes", || {
        let body = json!({ "to": "+4915112345678", "from": "Acme", "message": "Hi" }).to_string();
        let response = service.call_as(&service.token, "POST", "/sms", body.as_bytes());
        (response.status == 400).then_some(())
    });
    let error = refused(&service, &["carrier", "remove", "beta"]);
    assert!(
        error.contains("the route 'first' uses carrier 'beta'"),
        "{error}"
    );
    run(&service, &["route", "remove", "first"]);
    run(&service, &["carrier", "undo"]);
    let routes = service.server.cli_json(&["route", "list", "--json"]);
    assert_eq!(routes.as_array().map(Vec::len), Some(2), "{routes}");
    run(&service, &["carrier", "undo", "--to", "2"]);
    run(&service, &["carrier", "remove", "beta"]);
    wait_for_carriers(&service, &[("simulator", "file")]);
    let history = service.server.cli_json(&["carrier", "history", "--json"]);
    let changes: Vec<&str> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| entry["change"].as_str().expect("a text"))
        .collect();
    let expected = [
        "carrier.remove carrier beta",
        "carrier.undo version 2 of carriers and routes",
        "carrier.undo version 4 of carriers and routes",
        "route.remove route first",
        "route.set route first",
        "route.set route latvia",
        "carrier.set carrier beta",
        "carrier.set carrier beta",
    ];
    assert_eq!(changes, expected);
    let audit = run(&service, &["audit"]);
    assert!(
        audit.contains("carrier.set") && audit.contains("secret.key"),
        "{audit}"
    );
    let everything = [shown, audit, history.to_string(), service.server.output()];
    for text in &everything {
        assert!(!text.contains(SECRET), "{text}");
    }
}

/// The carrier may have taken it, so no other one gets it.
fn a_message_without_an_answer_from_a_removed_carrier_waits_for_its_report(backend: Backend) {
    let (gone, next) = (provider(|_| Reply::hang()), provider(|_| taken()));
    let receiver = Receiver::start();
    let service = start(backend, "");
    let folder = temp_dir("carrier").expect("a temporary folder");
    let secret = format!("secret.key={SECRET}");
    for (name, provider) in [("gone", &gone), ("next", &next)] {
        let file = folder.path().join(name);
        std::fs::write(&file, description(&provider.url("/send"))).expect("the file is written");
        let file = file.to_str().expect("UTF-8");
        let more = [secret.as_str(), "timeout_s=1", "unknown_tries=100"];
        let set = ["carrier", "set", name, "--from", file];
        run(&service, &[&set[..], &more[..]].concat());
    }
    wait_for_carriers(&service, &[("gone", "database"), ("next", "database")]);
    let id = send(&service, &receiver, &json!({}));
    wait_for_request(&gone, 2);
    run(&service, &["carrier", "remove", "gone"]);
    wait_for("it counts as taken", || {
        let status = service.get(&format!("/sms/status/{id}")).json();
        (status["state"] == "sent").then_some(())
    });
    wait_for_carriers(&service, &[("next", "database")]);
    assert_eq!(next.count(), 0);
}
