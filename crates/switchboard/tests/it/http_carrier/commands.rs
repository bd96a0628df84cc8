//! Commands about such carriers.

use std::process::Output;
use std::thread;

use serde_json::json;
use testkit::Backend;
use testkit::receiver::Reply;

use super::{callback, carrier, path, post, provider, start, taken, wait_for_request};

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_carrier_is_tested_with_one_message() {
    let provider = provider(|request| match String::from_utf8_lossy(request.body) {
        body if body.contains("+37120000002") => Reply::answer(400, r#"{"code":17}"#),
        _ => taken(),
    });
    let service = start(
        Backend::Sqlite,
        carrier("beta", &provider.url("/send"), "", ""),
    );
    let balance = service.balance();
    let output = thread::scope(|scope| {
        let tested = scope.spawn(|| {
            let arguments = [
                "carrier",
                "test",
                "beta",
                "--to",
                "+37120000001",
                "--from",
                "Acme",
                "--text",
                "Hi",
            ];
            service.server.cli(&arguments)
        });
        let request = wait_for_request(&provider, 1);
        assert_eq!(request.json()["text"], "Hi");
        let url = callback(&request);
        let report = json!({ "status": "delivered" });
        assert_eq!(post(&service, path(&service, &url), &report).status, 200);
        tested.join().expect("no panic")
    });
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stdout}{stderr}");
    for step in ["sending message", "taken after", "delivered after"] {
        assert!(stdout.contains(step), "{stdout}");
    }
    let refused = service
        .server
        .cli(&["carrier", "test", "beta", "--to", "+37120000002"]);
    let (_, stderr) = texts(&refused);
    assert!(!refused.status.success());
    assert!(
        stderr.contains("the carrier refuses it: 53 (the number is invalid)"),
        "{stderr}"
    );
    let unknown = service
        .server
        .cli(&["carrier", "test", "gamma", "--to", "+37120000002"]);
    assert!(
        texts(&unknown)
            .1
            .contains("there is no carrier 'gamma'; there are beta")
    );
    assert_eq!(service.balance(), balance, "nobody is charged");
}

#[test]
fn presets_are_listed_and_shown() {
    let service = start(Backend::Sqlite, "");
    let list = service
        .server
        .cli_json(&["carrier", "preset", "list", "--json"]);
    let names: Vec<&str> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|preset| preset["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["android-sms-gateway", "twilio"]);
    let shown = service.server.cli(&["carrier", "preset", "show", "twilio"]);
    assert!(
        texts(&shown)
            .0
            .contains("StatusCallback = \"{{ report_url }}\"")
    );
    let unknown = service.server.cli(&["carrier", "preset", "show", "x"]);
    assert!(
        texts(&unknown)
            .1
            .contains("there is no preset 'x'; there are android-sms-gateway, twilio")
    );
}
