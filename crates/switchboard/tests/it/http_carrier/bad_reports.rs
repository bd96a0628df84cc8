//! Reports and texts that no provider should send: none is stored, and none changes another message.

use serde_json::json;
use testkit::receiver::Receiver;
use testkit::{Backend, TEST_TIMEOUT};

use super::{
    add_number, callback, carrier, check_nothing_secret_is_logged, inbound_path, path, post,
    provider, send, start, taken, wait_for_request,
};
use crate::chain::wait_for_reported_states;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(
    bad_reports_change_nothing,
    the_first_final_report_counts,
    bad_texts_are_not_stored,
);

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

const INBOUND: &str =
    "[carrier.inbound]\nfrom = \"/from\"\nto = \"/to\"\ntext = \"/text\"\nid = \"/id\"\n";

fn post_as(service: &Service, path: &str, kind: &str, body: &[u8]) -> u16 {
    let headers = [("Content-Type", kind)];
    service.raw("POST", path, &headers, body).status
}

fn state(service: &Service, id: &str) -> String {
    let status = service.get(&format!("/sms/status/{id}")).json();
    status["state"].as_str().expect("a state").to_owned()
}

fn bad_reports_change_nothing(backend: Backend) {
    let (provider, receiver) = (provider(|_| taken()), Receiver::start());
    let service = start(backend, carrier("beta", &provider.url("/send"), "", ""));
    let id = send(&service, &receiver, &json!({}));
    let other = send(&service, &receiver, &json!({ "to": "+37120000002" }));
    wait_for_request(&provider, 2);
    let urls: Vec<String> = provider.received().iter().map(callback).collect();
    let own = |id: &str| {
        let is_own = |url: &&String| url.contains(&format!("/reports/{id}/"));
        let url = urls.iter().find(is_own).expect("its URL");
        path(&service, url).to_owned()
    };
    for id in [&id, &other] {
        wait_for("it is sent", || {
            (state(&service, id) == "sent").then_some(())
        });
    }
    let deep = "[".repeat(20_000);
    let huge = format!(r#"{{"status":"delivered","x":"{}"}}"#, "x".repeat(100_000));
    let cases: [(&str, &str, &[u8], u16); 15] = [
        ("empty", JSON, b"", 400),
        ("half of it", JSON, br#"{"status":"deliv"#, 400),
        ("HTML", "text/html", b"<html>delivered</html>", 400),
        ("HTML as JSON", JSON, b"<html>delivered</html>", 400),
        ("no UTF-8", JSON, b"{\"status\":\"\xFF\xFE\"}", 400),
        ("too deep", JSON, deep.as_bytes(), 400),
        ("huge", JSON, huge.as_bytes(), 400),
        ("a list", JSON, br#"[{"status":"delivered"}]"#, 400),
        ("a word", JSON, br#""delivered""#, 400),
        ("no state", JSON, br#"{"state":"delivered"}"#, 400),
        ("null", JSON, br#"{"status":null}"#, 400),
        ("an object", JSON, br#"{"status":{"a":"delivered"}}"#, 400),
        ("another field of a form", FORM, b"state=delivered", 400),
        // States that no list has: the message is on its way.
        ("a number", JSON, br#"{"status":1}"#, 200),
        ("another state", JSON, br#"{"status":"DELIVERED!"}"#, 200),
    ];
    for (name, kind, body, expected) in cases {
        assert_eq!(post_as(&service, &own(&id), kind, body), expected, "{name}");
        assert_eq!(state(&service, &id), "sent", "{name}");
    }
    // A report about one message that names another one is about the one of its address.
    let named = json!({ "id": other, "status": "delivered" });
    assert_eq!(post(&service, &own(&id), &named).status, 200);
    let expected = [(id.clone(), 1, 0)];
    assert_eq!(wait_for_reported_states(&receiver, 1), expected);
    assert_eq!(state(&service, &other), "sent");
    let failed = json!({ "status": "failed", "errorCode": 27 });
    assert_eq!(post(&service, &own(&other), &failed).status, 200);
    let mut expected = [(id, 1, 0), (other, 2, 43)];
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, 2), expected);
    service.check_health();
    check_nothing_secret_is_logged(&service);
}

/// The provider contradicts itself, and repeats everything.
fn the_first_final_report_counts(backend: Backend) {
    let (provider, receiver) = (provider(|_| taken()), Receiver::start());
    let service = start(backend, carrier("beta", &provider.url("/send"), "", ""));
    let before = service.balance();
    let orders = [
        (["delivered", "failed", "expired"], 1, 0),
        (["failed", "delivered", "expired"], 2, 8),
        (["expired", "delivered", "failed"], 16, 2),
    ];
    let mut expected = Vec::new();
    for (index, (states, status, error)) in orders.iter().enumerate() {
        let to = json!({ "to": format!("+3712000000{index}") });
        let id = send(&service, &receiver, &to);
        let url = callback(&wait_for_request(&provider, index + 1));
        let address = path(&service, &url);
        let charged = service.balance();
        assert_ne!(charged, before);
        for state in states.iter().flat_map(|state| [state; 2]) {
            let report = json!({ "status": state });
            assert_eq!(post(&service, address, &report).status, 200, "{state}");
        }
        expected.push((id, *status, *error));
        expected.sort();
        assert_eq!(wait_for_reported_states(&receiver, index + 1), expected);
    }
    assert_eq!(provider.count(), orders.len(), "nothing is sent again");
    assert_eq!(receiver.count(), orders.len(), "nothing is reported again");
    service.check_health();
}

fn bad_texts_are_not_stored(backend: Backend) {
    let (provider, inbox) = (provider(|_| taken()), Receiver::start());
    let service = start(
        backend,
        carrier("beta", &provider.url("/send"), "", INBOUND),
    );
    add_number(&service, "1234", &inbox);
    let address = inbound_path(&service, "beta");
    let huge =
        json!({ "id": "1", "from": "37120000001", "to": "1234", "text": "x".repeat(200_000) });
    let huge = huge.to_string();
    let cases: [(&str, &str, &[u8], u16); 8] = [
        ("empty", JSON, b"", 400),
        ("half of it", JSON, br#"{"id":"1","from":"371"#, 400),
        ("HTML", "text/html", b"<html></html>", 400),
        ("huge", JSON, huge.as_bytes(), 400),
        (
            "no text",
            JSON,
            br#"{"id":"1","from":"37120000001","to":"1234"}"#,
            400,
        ),
        (
            "a list as the sender",
            JSON,
            br#"{"id":"1","from":["37120000001"],"to":"1234","text":"x"}"#,
            400,
        ),
        (
            "an object as the text",
            JSON,
            br#"{"id":"1","from":"37120000001","to":"1234","text":{"a":"x"}}"#,
            400,
        ),
        (
            "a word as the recipient",
            JSON,
            br#"{"id":"1","from":"37120000001","to":"a b","text":"x"}"#,
            400,
        ),
    ];
    for (name, kind, body, expected) in cases {
        assert_eq!(post_as(&service, &address, kind, body), expected, "{name}");
    }
    // The ID of a text that was refused is free.
    let good = json!({ "id": "1", "from": "37120000001", "to": "1234", "text": "Hello" });
    assert_eq!(post(&service, &address, &good).status, 204);
    assert!(inbox.wait_for(1, TEST_TIMEOUT));
    assert_eq!(inbox.received()[0].json()["message"], "Hello");
    let stored = service.get("/sms/inbox").json();
    assert_eq!(stored.as_array().map(Vec::len), Some(1), "{stored}");
    check_nothing_secret_is_logged(&service);
}
