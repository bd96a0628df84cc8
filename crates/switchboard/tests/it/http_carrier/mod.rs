//! Carriers that are called by HTTP: the real program against a scripted provider.

mod bad_providers;
mod bad_reports;
mod commands;
mod descriptions;
mod looked_up;
mod lookups;
mod lost_answers;
mod more_presets;
mod presets;
mod sdks;
mod signing;
mod stored;

use std::time::Duration;

use serde_json::{Value, json};
use testkit::http::Response;
use testkit::receiver::{ReceivedRequest, Receiver, Reply, Request};
use testkit::{Backend, TEST_TIMEOUT};

use crate::chain::wait_for_reported_states;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, sms_with, wait_for};

/// Must never be shown.
pub(crate) const SECRET: &str = "hunter2-provider";

on_both_backends!(
    a_message_is_sent_and_its_report_ends_it,
    a_report_before_the_answer_counts,
    a_refusal_is_mapped_and_refunded,
    messages_of_a_carrier_that_is_denied_go_to_the_next,
    a_text_reaches_its_account,
);

/// The configuration of a carrier, with more settings of its own and more tables.
pub(crate) fn carrier(name: &str, url: &str, more: &str, tables: &str) -> String {
    format!(
        r#"
[[carrier]]
name = "{name}"
kind = "http"
{more}
[carrier.request]
url = "{url}"
headers = {{ Authorization = "Bearer {{{{ secret.key }}}}", "Idempotency-Key" = "{{{{ id }}}}" }}
json = {{ to = "{{{{ to }}}}", from = "{{{{ from }}}}", text = "{{{{ text }}}}", callback = "{{{{ report_url }}}}", parts = "{{{{ parts }}}}" }}
[carrier.secret]
key = "{SECRET}"
[carrier.response]
id = "/messages/0/id"
error = "/code"
errors = {{ "17" = 53 }}
[carrier.report]
id = "/id"
state = "/status"
delivered = ["delivered"]
failed = ["failed", "undelivered"]
expired = ["expired"]
error = "/errorCode"
errors = {{ "27" = 43 }}
{tables}
"#
    )
}

pub(crate) fn provider(script: impl Fn(&Request<'_>) -> Reply + Send + Sync + 'static) -> Receiver {
    Receiver::builder().script(script).start()
}

pub(crate) fn taken() -> Reply {
    Reply::answer(200, r#"{"messages":[{"id":"SM1"}]}"#)
}

pub(crate) fn start(backend: Backend, config: impl Into<String>) -> Service {
    Service::with(backend, |builder| builder.config(config))
}

fn send(service: &Service, receiver: &Receiver, fields: &Value) -> String {
    let mut body = sms_with(fields);
    body["dlrUrl"] = json!(receiver.url("/dlr"));
    service.accept(&body).remove(0)
}

/// Waits until the provider has got this many requests, and returns the last.
pub(crate) fn wait_for_request(provider: &Receiver, count: usize) -> ReceivedRequest {
    let requests = wait_for("the request at the provider", || {
        Some(provider.received()).filter(|requests| requests.len() >= count)
    });
    requests.into_iter().next_back().expect("a request")
}

/// The path of a URL of the service.
pub(crate) fn path<'a>(service: &Service, url: &'a str) -> &'a str {
    url.strip_prefix(&service.server.url("")).expect(url)
}

pub(crate) fn callback(request: &ReceivedRequest) -> String {
    let body = request.json();
    body["callback"].as_str().expect("a URL").to_owned()
}

/// Posts JSON as the provider does.
pub(crate) fn post(service: &Service, path: &str, body: &Value) -> Response {
    let headers = [("Content-Type", "application/json")];
    service.raw("POST", path, &headers, body.to_string().as_bytes())
}

fn check_nothing_secret_is_logged(service: &Service) {
    let output = service.server.output();
    for secret in [SECRET, "/reports/", "/inbound/"] {
        assert!(!output.contains(secret), "{secret}: {output}");
    }
}

fn a_message_is_sent_and_its_report_ends_it(backend: Backend) {
    let (provider, receiver) = (provider(|_| taken()), Receiver::start());
    let service = start(backend, carrier("beta", &provider.url("/send"), "", ""));
    let text = "A \"quoted\" text of two parts. ".repeat(8);
    let delivered = send(&service, &receiver, &json!({ "message": text }));
    let request = wait_for_request(&provider, 1);
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {SECRET}").as_str())
    );
    assert_eq!(request.header("idempotency-key"), Some(delivered.as_str()));
    let url = callback(&request);
    let expected = json!({
        "to": "+37120000001", "from": "Acme", "text": text, "parts": 2, "callback": url,
    });
    assert_eq!(request.json(), expected);
    let own = path(&service, &url).to_owned();

    let failed = send(&service, &receiver, &json!({ "to": "+37120000002" }));
    let other = callback(&wait_for_request(&provider, 2));
    let other = path(&service, &other);
    let report = json!({ "id": "SM1", "status": "delivered" });
    let (start, proof) = own.rsplit_once('/').expect("a path");
    let (other_start, other_proof) = other.rsplit_once('/').expect("a path");
    for forged in [
        format!("{start}/{other_proof}"),
        format!("{other_start}/{proof}"),
        format!("{start}/{}", "0".repeat(32)),
    ] {
        assert_eq!(post(&service, &forged, &report).status, 403, "{forged}");
    }
    // A report may repeat, and says nothing about other messages.
    for _ in 0..3 {
        let response = post(&service, &own, &report);
        assert_eq!((response.status, response.text().as_str()), (200, "OK"));
    }
    assert_eq!(
        post(&service, &own, &json!({ "status": "queued" })).status,
        200
    );
    assert_eq!(post(&service, &own, &json!({ "state": "x" })).status, 400);
    let report = b"status=undelivered&errorCode=27";
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(service.raw("POST", other, &headers, report).status, 200);
    let mut expected = [(delivered, 1, 0), (failed, 2, 43)];
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, 2), expected);
    assert_eq!(provider.count(), 2);
    service.check_health();
    check_nothing_secret_is_logged(&service);
}

fn a_report_before_the_answer_counts(backend: Backend) {
    let (provider, receiver) = (
        provider(|_| taken().after(Duration::from_millis(500))),
        Receiver::start(),
    );
    let service = start(backend, carrier("beta", &provider.url("/send"), "", ""));
    let id = send(&service, &receiver, &json!({}));
    let url = callback(&wait_for_request(&provider, 1));
    let report = json!({ "status": "delivered" });
    assert_eq!(post(&service, path(&service, &url), &report).status, 200);
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);
}

fn a_refusal_is_mapped_and_refunded(backend: Backend) {
    let (provider, receiver) = (
        provider(|request| match request.body {
            body if String::from_utf8_lossy(body).contains("+37120000001") => {
                Reply::answer(400, r#"{"code":17}"#)
            }
            _ => Reply::answer(404, "nonsense"),
        }),
        Receiver::start(),
    );
    let service = start(backend, carrier("beta", &provider.url("/send"), "", ""));
    let before = service.balance();
    let mapped = send(&service, &receiver, &json!({}));
    let other = send(&service, &receiver, &json!({ "to": "+37120000002" }));
    let mut expected = [(mapped, 2, 53), (other, 2, 8)];
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, 2), expected);
    assert_eq!(service.balance(), before);
}

fn messages_of_a_carrier_that_is_denied_go_to_the_next(backend: Backend) {
    let denying = provider(|_| Reply::answer(401, ""));
    let (next, receiver) = (provider(|_| taken()), Receiver::start());
    let config = [
        carrier("beta", &denying.url("/send"), "", ""),
        carrier("gamma", &next.url("/send"), "", ""),
    ];
    let service = start(backend, config.concat());
    let id = send(&service, &receiver, &json!({}));
    let url = callback(&wait_for_request(&next, 1));
    assert!(
        path(&service, &url).starts_with("/carriers/gamma/reports/"),
        "{url}"
    );
    assert_eq!(
        post(
            &service,
            path(&service, &url),
            &json!({ "status": "delivered" })
        )
        .status,
        200
    );
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);
    assert!(
        service
            .server
            .output()
            .contains("the provider answers 401; check the carrier's secret")
    );
    check_nothing_secret_is_logged(&service);
}

/// The address for texts from handsets.
fn inbound_path(service: &Service, name: &str) -> String {
    let list = service.server.cli_json(&["carrier", "list", "--json"]);
    let list = list.as_array().expect("a list");
    let carrier = list.iter().find(|carrier| carrier["name"] == name);
    let url = carrier.expect("the carrier")["inboundUrl"].clone();
    let url = url.as_str().expect("a URL");
    path(service, url).to_owned()
}

fn add_number(service: &Service, number: &str, receiver: &Receiver) {
    let url = receiver.url("/inbound");
    let arguments = [
        "number",
        "add",
        "--number",
        number,
        "--account",
        "main",
        "--url",
        &url,
    ];
    let added = service.server.cli(&arguments);
    assert!(
        added.status.success(),
        "{}",
        String::from_utf8_lossy(&added.stderr)
    );
}

fn a_text_reaches_its_account(backend: Backend) {
    let (provider, receiver) = (provider(|_| taken()), Receiver::start());
    let inbound =
        "[carrier.inbound]\nfrom = \"/from\"\nto = \"/to\"\ntext = \"/text\"\nid = \"/id\"\n";
    let service = start(
        backend,
        carrier("beta", &provider.url("/send"), "", inbound),
    );
    add_number(&service, "1234", &receiver);
    let address = inbound_path(&service, "beta");
    let text = |id: &str, text: &str| json!({ "id": id, "from": "37120000001", "to": "1234", "text": text });
    let forged = format!("/carriers/beta/inbound/{}", "0".repeat(32));
    assert_eq!(post(&service, &forged, &text("1", "forged")).status, 403);
    assert_eq!(
        post(&service, &address, &json!({ "from": "1" })).status,
        400
    );
    // Its repetition is the same text.
    for body in [text("2", "Hello Ж"), text("2", "Hello Ж"), text("3", "Bye")] {
        let response = post(&service, &address, &body);
        assert_eq!((response.status, response.text().as_str()), (204, ""));
    }
    assert!(receiver.wait_for(2, TEST_TIMEOUT));
    let mut texts: Vec<String> = receiver
        .received()
        .iter()
        .map(|request| {
            let body = request.json();
            assert_eq!(
                (&body["from"], &body["to"]),
                (&json!("+37120000001"), &json!("1234"))
            );
            body["message"].as_str().expect("a text").to_owned()
        })
        .collect();
    texts.sort();
    assert_eq!(texts, ["Bye", "Hello Ж"]);
    let inbox = service.get("/sms/inbox").json();
    assert_eq!(inbox.as_array().map(Vec::len), Some(2), "{inbox}");
    check_nothing_secret_is_logged(&service);
}
