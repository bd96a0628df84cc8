//! Rate limits of accounts: REST, MCP and the dashboard.

use serde_json::Value;
use testkit::Backend;
use testkit::http::{Connection, Response, encode};

use super::service::{Service, check, message, sms, wait_for};
use crate::people::joined;

on_both_backends!(rest_answers_429_beyond_the_limit);

const LIST: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"correct_phone_number","arguments":{"Number":"+37120000001","CountryIso":"LV"}}}"#;
/// Requests that are sent together, so that they arrive within a second on a slow machine, too.
const AT_ONCE: usize = 20;

fn limit(service: &Service, rate: u32) {
    let change = format!("requests_per_second={rate}");
    let arguments = ["account", "set", "main", &change, "--json"];
    let set = service.server.cli_json(&arguments);
    assert_eq!(set["requestsPerSecond"], Value::from(rate));
}

/// Sends the same request many times at once, until one is refused.
fn flood(
    service: &Service,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    let addr = service.server.addr();
    let requests = encode(addr, method, path, headers, body).repeat(AT_ONCE);
    wait_for("a request is refused", || {
        let mut connection = Connection::open(addr).expect("the service accepts connections");
        connection.send(&requests).expect("sent");
        (0..AT_ONCE)
            .map(|_| connection.read_response().expect("an answer"))
            .find(|response| response.status == 429)
    })
}

/// Checks the headers of a refusal.
fn check_refusal(response: &Response, rate: u32) {
    assert_eq!(response.header("retry-after"), Some("1"));
    let policy = format!("\"account\";q={rate};w=1");
    assert_eq!(response.header("ratelimit-policy"), Some(policy.as_str()));
    assert_eq!(response.header("ratelimit"), Some("\"account\";r=0;t=1"));
}

fn rest_answers_429_beyond_the_limit(backend: Backend) {
    let service = Service::start(backend);
    let other = service.create_account("other");
    let answer = service.get("/token");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("ratelimit"),
        None,
        "at first there is no limit"
    );

    limit(&service, 2);
    let limited = wait_for("the limit takes effect", || {
        let answer = service.get("/token");
        answer
            .header("ratelimit-policy")
            .is_some()
            .then_some(answer)
    });
    let policy = limited.header("ratelimit-policy");
    assert_eq!(policy, Some("\"account\";q=2;w=1"));
    let token = [("X-Service-Token", service.token.as_str())];
    let refused = flood(&service, "GET", "/token", &token, b"");
    check("GET /token", &refused);
    check_refusal(&refused, 2);
    assert!(message(&refused).contains("2 requests in a second"));
    let answer = service.call_as(&other, "GET", "/token", b"");
    assert_eq!(answer.status, 200, "another account");
    wait_for("the next second", || {
        (service.send(&sms()).status == 200).then_some(())
    });

    limit(&service, 0);
    wait_for("the limit is gone", || {
        let answer = service.get("/token");
        (answer.status == 200 && answer.header("ratelimit").is_none()).then_some(())
    });
}

#[test]
fn mcp_answers_429_and_counts_a_tool_call_once() {
    let service = Service::start(Backend::Sqlite);
    limit(&service, 1);
    let bearer = format!("Bearer {}", service.token);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    for body in [LIST, CALL] {
        let refused = flood(&service, "POST", "/mcp", &headers, body);
        check_refusal(&refused, 1);
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "RATE_LIMITED");
        assert_eq!(error["retryable"], true);
    }
    let called = wait_for("the next second", || {
        let answer = service.raw("POST", "/mcp", &headers, CALL);
        (answer.status == 200).then_some(answer)
    });
    let result = &called.json()["result"];
    assert_eq!(result["isError"], false, "{result}");
}

#[test]
fn the_dashboard_answers_429_and_programs_do_not_use_up_its_limit() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = joined(&service, "ann@example.com", &["--account", "main"]);
    limit(&service, 1);
    // Programs use up their own limit, not that of people.
    let token = [("X-Service-Token", service.token.as_str())];
    flood(&service, "GET", "/token", &token, b"");
    let page = browser.get("/dashboard");
    assert_eq!(page.status, 200, "{}", page.text());

    let session = browser.cookie("switchboard").expect("a session");
    let cookie = format!("switchboard={session}");
    let cookies = [("Cookie", cookie.as_str())];
    let refused = flood(&service, "GET", "/dashboard", &cookies, b"");
    check_refusal(&refused, 1);
    assert!(
        refused.text().contains("Too many requests"),
        "{}",
        refused.text()
    );
}
