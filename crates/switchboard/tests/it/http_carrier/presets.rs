//! The presets, against providers that are scripted by their documentation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use testkit::http::Response;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT};

use super::{
    add_number, check_nothing_secret_is_logged, inbound_path, path, provider, send, signing, start,
    wait_for_request,
};
use crate::chain::wait_for_reported_states;
use crate::rest::on_both_backends;
use crate::rest::service::Service;
use crate::smpp::octets::hex;

on_both_backends!(
    twilio_sends_reports_and_receives,
    a_phone_sends_reports_and_receives,
);

pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields).finish()
}

/// Posts a form, signed as Twilio signs.
pub(super) fn post_form(
    service: &Service,
    key: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> Response {
    let signed = signing::twilio(key, &service.server.url(path), fields);
    let (name, signature) = &signed[0];
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        (*name, signature.as_str()),
    ];
    service.raw("POST", path, &headers, form(fields).as_bytes())
}

fn twilio_sends_reports_and_receives(backend: Backend) {
    let (sid, token) = ("AC0123", "hunter2-provider");
    let twilio = provider(|_| Reply::answer(201, r#"{"sid":"SM1","status":"queued"}"#));
    let receiver = Receiver::start();
    let config = format!(
        "[[carrier]]\nname = \"twilio\"\nkind = \"http\"\npreset = \"twilio\"\nbase_url = \"{}\"\n\
         [carrier.secret]\naccount_sid = \"{sid}\"\nauth_token = \"{token}\"\n",
        twilio.url("")
    );
    let service = start(backend, config);
    let id = send(
        &service,
        &receiver,
        &json!({ "from": "+37120000009", "message": "Hi & bye" }),
    );
    let request = wait_for_request(&twilio, 1);
    assert_eq!(request.path, "/2010-04-01/Accounts/AC0123/Messages.json");
    let basic = format!("Basic {}", STANDARD.encode(format!("{sid}:{token}")));
    assert_eq!(request.header("authorization"), Some(basic.as_str()));
    let form: Vec<(String, String)> = url::form_urlencoded::parse(&request.body)
        .into_owned()
        .collect();
    let field = |name: &str| {
        let found = form.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(field("To"), Some("+37120000001"));
    assert_eq!(field("From"), Some("+37120000009"));
    assert_eq!(field("Body"), Some("Hi & bye"));
    let url = field("StatusCallback").expect("a URL");
    let address = path(&service, url);

    let report = |status| {
        [
            ("MessageSid", "SM1"),
            ("MessageStatus", status),
            ("ErrorCode", "30003"),
        ]
    };
    let forged = post_form(&service, "wrong", address, &report("delivered"));
    assert_eq!(forged.status, 403);
    for status in ["queued", "sent", "undelivered", "undelivered"] {
        assert_eq!(
            post_form(&service, token, address, &report(status)).status,
            200
        );
    }
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 2, 43)]);

    let inbox = Receiver::start();
    add_number(&service, "+37120000009", &inbox);
    let text = [
        ("MessageSid", "SM2"),
        ("From", "+37120000001"),
        ("To", "+37120000009"),
        ("Body", " Hello "),
    ];
    let address = inbound_path(&service, "twilio");
    assert_eq!(post_form(&service, "wrong", &address, &text).status, 403);
    let stored = post_form(&service, token, &address, &text);
    assert_eq!((stored.status, stored.text().as_str()), (204, ""));
    assert!(inbox.wait_for(1, TEST_TIMEOUT));
    assert_eq!(inbox.received()[0].json()["message"], " Hello ");
    check_nothing_secret_is_logged(&service);
}

/// Posts an event, signed as the app signs: by the body and a time.
pub(super) fn post_event(service: &Service, key: &str, path: &str, event: &Value) -> Response {
    let (body, time) = (event.to_string(), "1731672000");
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let signature = hmac::sign(&key, format!("{body}{time}").as_bytes());
    let signature = hex(signature.as_ref());
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Signature", signature.as_str()),
        ("X-Timestamp", time),
    ];
    service.raw("POST", path, &headers, body.as_bytes())
}

fn a_phone_sends_reports_and_receives(backend: Backend) {
    let key = "hunter2-provider";
    let phone = provider(|_| Reply::answer(202, r#"{"id":"1","state":"Pending"}"#));
    let receiver = Receiver::start();
    let config = format!(
        "[[carrier]]\nname = \"phone\"\nkind = \"http\"\npreset = \"android-sms-gateway\"\nbase_url = \"{}\"\n\
         [carrier.secret]\nusername = \"me\"\npassword = \"x\"\nsigning_key = \"{key}\"\n",
        phone.url("")
    );
    let service = start(backend, config);
    let id = send(&service, &receiver, &json!({}));
    let request = wait_for_request(&phone, 1);
    assert_eq!(request.path, "/messages");
    let body = request.json();
    let expected = json!({
        "id": id, "phoneNumbers": ["+37120000001"], "textMessage": { "text": "Hello" }, "ttl": body["ttl"],
        "withDeliveryReport": true,
    });
    assert_eq!(body, expected);
    assert!(body["ttl"].is_number());

    let address = inbound_path(&service, "phone");
    let event = |event: &str| json!({ "event": event, "id": event, "payload": { "messageId": id, "recipient": "+37120000001" } });
    assert_eq!(
        post_event(&service, "wrong", &address, &event("sms:failed")).status,
        403
    );
    for name in ["sms:sent", "sms:delivered", "sms:delivered"] {
        assert_eq!(
            post_event(&service, key, &address, &event(name)).status,
            200,
            "{name}"
        );
    }
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);

    let inbox = Receiver::start();
    add_number(&service, "+37120000009", &inbox);
    let text = json!({
        "event": "sms:received", "id": "Ey6ECgOkVVFjz3CL48B8C",
        "payload": { "messageId": "abc", "message": "Hi", "sender": "+37120000001", "recipient": "+37120000009" },
    });
    for _ in 0..2 {
        assert_eq!(post_event(&service, key, &address, &text).status, 204);
    }
    assert!(inbox.wait_for(1, TEST_TIMEOUT));
    assert_eq!(inbox.received()[0].json()["message"], "Hi");
    let stored = service.get("/sms/inbox").json();
    assert_eq!(stored.as_array().map(Vec::len), Some(1), "{stored}");
    check_nothing_secret_is_logged(&service);
}
