//! Third-party clients connect by OAuth: from the 401 to a tool call, with a person who approves only one scope.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use url::Url;

use super::clients::{node, package, python, run, script};
use super::start;
use crate::people::client::Client;
use crate::people::{invite, joined, path};

fn oauth_tokens(tokens: &Value) -> Vec<(&str, &Value)> {
    let tokens = tokens.as_array().expect("tokens");
    let of_oauth_clients = tokens.iter().filter_map(|token| {
        let name = token["name"].as_str()?;
        name.starts_with("oauth:")
            .then_some((name, &token["permissions"]))
    });
    of_oauth_clients.collect()
}

/// Lets a client connect, with a person who approves only rates.
fn check_connecting(name: &str, command: Command, mut instructions: Value) {
    let service = start();
    instructions["url"] = json!(service.server.url("/mcp"));
    let invitation = path(&invite(&service, "ann@example.com", &[]));
    instructions["invitation"] = json!(service.server.url(&invitation));
    instructions["password"] = json!("a horse that is correct");
    instructions["approve"] = json!(["sms:rates"]);
    instructions["calls"] = json!([
        ["get_sms_rates", { "country": "LV" }],
        ["send_sms", { "to": "+37120000001", "from": "Acme", "message": "Hi" }],
    ]);
    let report = run(command, &instructions);
    assert_eq!(report["client"], name, "{report}");
    assert_eq!(report["scope"], "sms:rates", "{report}");
    let page = report["shown"].as_str().expect("a page");
    for text in [name, "127.0.0.1:33418", "sms:send", "costs money"] {
        assert!(page.contains(text), "{text}: {page}");
    }

    let results = report["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "rates, and nothing else: {report}");
    assert!(results[0]["structuredContent"]["rates"].is_array());
    let again = report["askedAgain"].as_str().unwrap_or_default();
    let asks_for_more = again.contains("sms:send");
    // The older SDK only refreshes its token, and reports the refusal.
    let refusal = report["refusals"][0].as_str().unwrap_or_default();
    assert!(asks_for_more || refusal.contains("403"), "{report}");

    let listed = service.server.cli_json(&["token", "list", "--json"]);
    let permissions = json!(["sms:rates"]);
    let expected = ["access", "refresh"].map(|kind| format!("oauth:{kind}:{name}"));
    let expected = expected.iter().map(|name| (name.as_str(), &permissions));
    assert_eq!(oauth_tokens(&listed), expected.collect::<Vec<_>>());
}

#[test]
fn the_sdk_for_python_connects_by_oauth_with_the_approved_scope() {
    check_connecting("Python SDK", python("connect.py"), json!({}));
}

#[test]
fn the_sdks_for_typescript_connect_by_oauth_with_the_approved_scope() {
    for sdk in [1, 2] {
        let mut command = node();
        command.arg(script("connect.mjs"));
        check_connecting("TypeScript SDK", command, json!({ "sdk": sdk }));
    }
}

/// The path and query of a URL.
fn path_and_query(url: &Url) -> String {
    url[url::Position::BeforePath..].to_owned()
}

/// Follows a redirect to the client that listens on this machine, as a browser would.
fn follow_redirect(answer: &Url) {
    let address = answer.socket_addrs(|| None).expect("an address");
    let mut stream = TcpStream::connect(&address[..]).expect("the client listens");
    let request = format!(
        "GET {} HTTP/1.0\r\nHost: {}\r\n\r\n",
        path_and_query(answer),
        address[0]
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[test]
fn the_conformance_suite_passes_against_the_authorization_server() {
    let service = start();
    let mut browser = joined(&service, "ann@example.com", &[]);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port();
    let callback = format!("http://127.0.0.1:{port}/callback");
    let client = Client::with(&service, "Suite", &callback);

    let mut suite = package("conformance");
    suite.args(["authorization", "--url", &service.server.url("")]);
    suite.args(["--client-id", &client.id]);
    suite.args(["--resource", &service.server.url("/mcp")]);
    suite.args(["--port", &port.to_string()]);
    let mut suite = suite.stdout(Stdio::piped()).spawn().expect("it starts");
    let output = BufReader::new(suite.stdout.take().expect("piped"));
    let mut lines = output.lines().map_while(Result::ok);
    let authorize = lines.find(|line| line.contains("/oauth/authorize?"));
    let authorize: Url = authorize
        .expect("an address")
        .trim()
        .parse()
        .expect("a URL");
    lines
        .find(|line| line.contains("Callback server started"))
        .expect("it waits for the answer");

    let redirect = browser.get(&path_and_query(&authorize));
    let consent: Url = redirect
        .header("location")
        .expect("a page")
        .parse()
        .expect("a URL");
    browser.get(&path_and_query(&consent));
    let answered = browser.submit(&[("scope", "sms:rates"), ("decision", "approve")]);
    let answer = answered.header("location").expect("a location");
    follow_redirect(&answer.parse().expect("a URL"));

    let output_lines: Vec<String> = lines.collect();
    suite.wait().expect("it ends");
    let total = output_lines.iter().find(|line| line.starts_with("Total:"));
    assert_eq!(
        total.map(String::as_str),
        Some("Total: 3 passed, 0 failed"),
        "{output_lines:?}"
    );
}
