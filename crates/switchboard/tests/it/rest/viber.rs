//! Viber messages from outside: senders, buttons, images, and reports that they were seen.

use serde_json::{Value, json};
use testkit::http::Response;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT};

use super::service::{Service, ids, message, tomorrow, wait_for};

const SENDER: &str = "Acme & Co";

/// A GIF of one pixel with this many frames.
pub(super) fn gif(frames: usize) -> Vec<u8> {
    let mut bytes = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xFF\xFF\xFF".to_vec();
    for _ in 0..frames {
        bytes.extend(b"\x2C\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0");
    }
    bytes.push(0x3B);
    bytes
}

/// A service whose first account may send under [`SENDER`].
fn start(backend: Backend) -> Service {
    let service = Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let body = json!({"name": SENDER, "type": "AlphaNumeric", "category": "Brand", "categoryDescription": "our own name"});
    let registered = service.call_as(
        &service.token,
        "POST",
        "/senderId",
        body.to_string().as_bytes(),
    );
    assert_eq!(registered.status, 200, "{}", registered.text());
    let approved = service
        .server
        .cli(&["sender", "approve", &registered.text()]);
    assert!(approved.status.success(), "{approved:?}");
    service
}

fn viber(fields: &Value) -> Value {
    let mut body =
        json!({"to": "+37120000001", "from": SENDER, "message": "Your order is on its way"});
    let fields = fields.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(fields);
    body
}

fn send(service: &Service, fields: &Value) -> Response {
    let body = viber(fields).to_string();
    service.call_as(&service.token, "POST", "/viber", body.as_bytes())
}

/// Delivered, then seen; charged by the list for Viber; not among the scheduled SMS.
fn a_viber_message_is_delivered_and_seen(backend: Backend) {
    let service = start(backend);
    let images = Receiver::builder()
        .script(|_| Reply::answer(200, gif(1)))
        .start();
    let receiver = Receiver::start();
    let fields = json!({
        "dlrUrl": receiver.url("/dlr"),
        "im": {"action": {"url": "https://example.com/order", "title": "Follow it"}, "image": {"url": images.url("/one.GIF")}},
    });
    let response = send(&service, &fields);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("x-service-amount-sent"), Some("1"));
    let id = ids(&response).remove(0);
    assert!(receiver.wait_for(2, TEST_TIMEOUT));
    let mut reports: Vec<String> = receiver
        .received()
        .iter()
        .map(testkit::receiver::ReceivedRequest::text)
        .collect();
    reports.sort();
    let report =
        |status| format!(r#"{{"id":"{id}","status":{status},"error":0,"mcc":"247","mnc":"02"}}"#);
    assert_eq!(reports, [report(1), report(3)]);
    assert_eq!(
        service.get(&format!("/sms/status/{id}")).json()["state"],
        "delivered"
    );
    assert_eq!(service.balance(), "99.988");

    let later = send(
        &service,
        &json!({"scheduled": tomorrow(), "to": "20000001", "correctBy": "LV"}),
    );
    assert_eq!(later.status, 200, "{}", later.text());
    assert_eq!(
        service.get("/sms?scheduled").json(),
        json!([]),
        "the list has only SMS"
    );
    let listed = service
        .get("/messages?channel=viber&state=scheduled")
        .json();
    assert_eq!(listed[0]["id"], ids(&later)[0], "{listed}");
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let cancelled = service.delete(&format!("/sms/{}", ids(&later)[0]));
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    assert_eq!(service.balance(), "99.988");

    // A recipient who blocked the sender is reported by the network, so the message stays charged.
    let failed = ids(&send(&service, &json!({"to": "+447700900071"}))).remove(0);
    wait_for("the final state", || {
        let status = service.get(&format!("/sms/status/{failed}")).json();
        (status["error"] == 71).then_some(())
    });
    assert_eq!(service.balance(), "99.976");
    assert!(service.server.cli(&["account", "check"]).status.success());
}

#[test]
fn only_an_approved_sender_may_send() {
    let service = start(Backend::Sqlite);
    for from in ["Acme", "+37120000001", "Nobody"] {
        let response = send(&service, &json!({ "from": from }));
        assert_eq!(response.status, 403, "{from}: {}", response.text());
    }
    assert_eq!(service.stored(), 0);
    assert_eq!(send(&service, &json!({"testMode": "1"})).status, 200);
    assert_eq!(service.balance(), "100.00");
}

#[test]
fn invalid_messages_are_refused() {
    let service = start(Backend::Sqlite);
    let files = Receiver::builder().script(|request| match request.path {
        "/moving.gif" => Reply::answer(200, gif(2)),
        "/text.png" => Reply::answer(200, "not an image"),
        "/large.png" => Reply::answer(200, vec![0; 1_048_577]),
        "/good.gif" => Reply::answer(200, gif(1)),
        _ => Reply::answer(404, "nothing"),
    });
    let files = files.start();
    let image = |path: &str| json!({"im": {"image": {"url": files.url(path)}}});
    for (fields, words) in [
        (json!({"message": ""}), "'message'"),
        (json!({"message": "ä".repeat(1001)}), "1001 characters"),
        (json!({"to": "12"}), "'to'"),
        (json!({"correctBy": "XX"}), "'correctBy'"),
        (json!({"im": "x"}), "'im'"),
        (
            json!({"im": {"action": {"url": "https://example.com"}}}),
            "'im.action.title'",
        ),
        (
            json!({"im": {"action": {"title": "Go"}}}),
            "'im.action.url'",
        ),
        (
            json!({"im": {"action": {"url": "ftp://example.com", "title": "Go"}}}),
            "'im.action.url'",
        ),
        (json!({"im": {"image": {}}}), "'im.image.url'"),
        (
            json!({"im": {"image": {"url": "https://example.com/a.jpg"}}}),
            ".jpeg",
        ),
        (
            json!({"im": {"image": {"url": "http://10.0.0.1/a.png"}}}),
            "'im.image.url'",
        ),
        (image("/moving.gif"), "'im.image.url'"),
        (image("/text.png"), "'im.image.url'"),
        (image("/large.png"), "'im.image.url'"),
        (image("/missing.gif"), "404"),
    ] {
        let response = send(&service, &fields);
        assert_eq!(response.status, 400, "{fields}: {}", response.text());
        assert!(message(&response).contains(words), "{}", response.text());
    }
    assert_eq!(service.stored(), 0);
    let thousand = json!({"message": "ä".repeat(1000), "im": image("/good.gif")["im"]});
    assert_eq!(send(&service, &thousand).status, 200);
}

super::on_both_backends!(a_viber_message_is_delivered_and_seen);
