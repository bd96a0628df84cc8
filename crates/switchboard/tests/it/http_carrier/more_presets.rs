//! The presets of other providers, scripted by their documentation: three send by one service, one
//! sends Viber messages, two look numbers up.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT};

use super::lookups::look_up;
use super::signing::{self, Headers};
use super::{
    SECRET, add_number, check_nothing_secret_is_logged, inbound_path, path, provider, send, start,
    wait_for_request,
};
use crate::chain::passing::approve_sender;
use crate::chain::{SENDER, wait_for_reported_states};
use crate::rest::service::{Service, ids, wait_for};

/// A provider that sends SMS.
struct Provider {
    name: &'static str,
    server: Receiver,
    /// The recipient whose messages go to it.
    to: &'static str,
    path: &'static str,
    authorization: String,
    /// The request for this ID and report URL.
    request: fn(&str, &Value) -> Value,
    /// Where the request has the report URL.
    report_url: &'static str,
    /// Its reports, in order. The last one ends the message.
    reports: Vec<Value>,
    ends: (u64, u64),
    text: Value,
    sign: fn(&[u8]) -> Headers,
}

fn providers() -> [Provider; 3] {
    [
        Provider {
            name: "vonage",
            server: provider(|_| Reply::answer(202, r#"{"message_uuid":"aaaa-1"}"#)),
            to: "+37120000001",
            path: "/v1/messages",
            authorization: format!("Basic {}", STANDARD.encode(format!("user:{SECRET}"))),
            request: |id, url| {
                json!({
                    "channel": "sms", "message_type": "text", "to": "37120000001", "from": "Acme", "text": "Hello",
                    "client_ref": id, "webhook_url": url, "webhook_version": "v1",
                })
            },
            report_url: "/webhook_url",
            reports: vec![
                json!({ "message_uuid": "aaaa-1", "status": "submitted" }),
                json!({ "message_uuid": "aaaa-1", "status": "delivered" }),
            ],
            ends: (1, 0),
            text: json!({
                "message_uuid": "bbbb-2", "to": "37120000009", "from": "37120000001", "text": "Hi", "channel": "sms",
                "message_type": "text",
            }),
            sign: |body| signing::vonage(SECRET, body, 300),
        },
        Provider {
            name: "telnyx",
            server: provider(|_| Reply::answer(200, r#"{"data":{"id":"cccc-3"}}"#)),
            to: "+37060000001",
            path: "/v2/messages",
            authorization: format!("Bearer {SECRET}"),
            request: |_, url| {
                json!({
                    "to": "+37060000001", "from": "Acme", "text": "Hello", "webhook_url": url,
                    "use_profile_webhooks": false,
                })
            },
            report_url: "/webhook_url",
            reports: vec![
                json!({ "data": {
                    "event_type": "message.sent", "payload": { "id": "cccc-3", "to": [{ "status": "sent" }] },
                } }),
                json!({ "data": {
                    "event_type": "message.finalized",
                    "payload": {
                        "id": "cccc-3", "to": [{ "status": "delivery_failed" }], "errors": [{ "code": "40008" }],
                    },
                } }),
            ],
            ends: (2, 43),
            text: json!({ "data": {
                "event_type": "message.received",
                "payload": {
                    "id": "dddd-4", "from": { "phone_number": "+37060000001" },
                    "to": [{ "phone_number": "+37120000009" }], "text": "Hi",
                },
            } }),
            sign: |body| signing::telnyx(7, body, 0),
        },
        Provider {
            name: "infobip",
            server: provider(|request| {
                let is_refused = String::from_utf8_lossy(request.body).contains("37250000002");
                let status = if is_refused {
                    json!({ "groupName": "REJECTED", "name": "REJECTED_SENDER" })
                } else {
                    json!({ "groupName": "PENDING", "name": "PENDING_ACCEPTED" })
                };
                let answer = json!({ "messages": [{ "messageId": "1", "status": status }] });
                Reply::answer(200, answer.to_string())
            }),
            to: "+37250000001",
            path: "/sms/3/messages",
            authorization: format!("App {SECRET}"),
            request: |id, url| {
                json!({ "messages": [{
                    "sender": "Acme", "destinations": [{ "to": "37250000001", "messageId": id }],
                    "content": { "text": "Hello" },
                    "webhooks": { "delivery": { "url": url }, "contentType": "application/json" },
                }] })
            },
            report_url: "/messages/0/webhooks/delivery/url",
            reports: vec![json!({ "results": [{
                "messageId": "1", "mccMnc": "24801", "status": { "groupName": "UNDELIVERABLE" },
                "error": { "name": "EC_ABSENT_SUBSCRIBER" },
            }] })],
            ends: (2, 43),
            text: infobip_texts(&["ee5"]),
            sign: |_| Vec::new(),
        },
    ]
}

fn infobip_texts(ids: &[&str]) -> Value {
    let text = |id: &&str| json!({ "messageId": id, "from": "37250000001", "to": "37120000009", "text": "Hi" });
    let results: Vec<Value> = ids.iter().map(text).collect();
    json!({ "messageCount": ids.len(), "pendingMessageCount": 0, "results": results })
}

fn config(providers: &[Provider]) -> String {
    let public = signing::telnyx_key(7);
    let tables = |provider: &Provider| {
        let name = provider.name;
        let secrets = match name {
            "vonage" => format!(
                "api_key = \"user\"\napi_secret = \"{SECRET}\"\nsignature_secret = \"{SECRET}\""
            ),
            "telnyx" => format!("api_key = \"{SECRET}\"\npublic_key = \"{public}\""),
            _ => format!("api_key = \"{SECRET}\""),
        };
        let url = provider.server.url("");
        let prefix = &provider.to[..4];
        format!(
            "[[carrier]]\nname = \"{name}\"\nkind = \"http\"\npreset = \"{name}\"\nbase_url = \"{url}\"\n\
             [carrier.secret]\n{secrets}\n[[route]]\nprefix = \"{prefix}\"\ncarriers = [\"{name}\"]\n"
        )
    };
    providers.iter().map(tables).collect()
}

/// Posts as the provider does, by a signature of these bytes.
fn post(service: &Service, provider: &Provider, path: &str, body: &Value, signed: &[u8]) -> u16 {
    let signature = (provider.sign)(signed);
    let signature = signature
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    let kind = [("Content-Type", "application/json")];
    let headers: Vec<_> = kind.into_iter().chain(signature).collect();
    let body = body.to_string();
    service.raw("POST", path, &headers, body.as_bytes()).status
}

#[test]
fn providers_send_report_and_receive() {
    let providers = providers();
    let service = start(Backend::Sqlite, config(&providers));
    let inbox = Receiver::start();
    add_number(&service, "+37120000009", &inbox);
    for (index, provider) in providers.iter().enumerate() {
        let (name, receiver) = (provider.name, Receiver::start());
        let id = send(&service, &receiver, &json!({ "to": provider.to }));
        let request = wait_for_request(&provider.server, 1);
        assert_eq!(request.path, provider.path, "{name}");
        let authorization = provider.authorization.as_str();
        assert_eq!(request.header("authorization"), Some(authorization));
        let body = request.json();
        let url = body.pointer(provider.report_url).expect(name);
        assert_eq!(body, (provider.request)(&id, url), "{name}");
        let address = path(&service, url.as_str().expect("a URL"));
        let is_signed = !(provider.sign)(b"").is_empty();
        for report in &provider.reports {
            let bytes = report.to_string();
            if is_signed {
                let forged = post(&service, provider, address, report, b"something else");
                assert_eq!(forged, 403, "{name}");
            }
            for _ in 0..2 {
                let status = post(&service, provider, address, report, bytes.as_bytes());
                assert_eq!(status, 200, "{name}: {report}");
            }
        }
        let (state, error) = provider.ends;
        let expected = [(id, state, error)];
        assert_eq!(wait_for_reported_states(&receiver, 1), expected, "{name}");

        let address = inbound_path(&service, name);
        let bytes = provider.text.to_string();
        if is_signed {
            let forged = post(&service, provider, &address, &provider.text, b"");
            assert_eq!(forged, 403, "{name}");
        }
        for _ in 0..2 {
            let status = post(
                &service,
                provider,
                &address,
                &provider.text,
                bytes.as_bytes(),
            );
            assert_eq!(status, 204, "{name}");
        }
        assert!(inbox.wait_for(index + 1, TEST_TIMEOUT), "{name}");
        assert_eq!(inbox.received()[index].json()["from"], provider.to);
    }
    assert_eq!(inbox.count(), providers.len());

    // Several texts in one request: all are stored, or none.
    let address = inbound_path(&service, "infobip");
    let mut unreadable = infobip_texts(&["ee6", "ee7"]);
    unreadable["results"][1]["to"] = json!("Acme");
    let refused = super::post(&service, &address, &unreadable);
    assert_eq!(refused.status, 400, "{}", refused.text());
    for _ in 0..2 {
        let texts = infobip_texts(&["ee5", "ee6", "ee7"]);
        assert_eq!(super::post(&service, &address, &texts).status, 204);
    }
    assert!(inbox.wait_for(providers.len() + 2, TEST_TIMEOUT));
    let stored = service.get("/sms/inbox").json();
    let stored = stored.as_array().map(Vec::len);
    assert_eq!(stored, Some(providers.len() + 2));

    // A refusal inside an answer that takes the request.
    let receiver = Receiver::start();
    let id = send(&service, &receiver, &json!({ "to": "+37250000002" }));
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 2, 15)]);
    check_nothing_secret_is_logged(&service);
}

/// Sends a Viber message, and returns its ID.
fn send_viber(service: &Service, receiver: &Receiver, fields: &Value) -> String {
    let mut body = json!({
        "to": "+37120000001", "from": SENDER, "message": "On its way", "dlrUrl": receiver.url("/dlr"),
    });
    let fields = fields.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(fields);
    let body = body.to_string();
    let response = service.call_as(&service.token, "POST", "/viber", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    ids(&response).remove(0)
}

#[test]
fn a_provider_sends_viber_messages() {
    let infobip = provider(|request| {
        let is_refused = String::from_utf8_lossy(request.body).contains("37120000002");
        let group = if is_refused { "REJECTED" } else { "PENDING" };
        let status = json!({ "groupName": group, "name": "REJECTED_SENDER" });
        let answer = json!({ "messages": [{ "messageId": "1", "status": status }] });
        Reply::answer(200, answer.to_string())
    });
    let url = infobip.url("");
    let name = "infobip-viber";
    let service = start(
        Backend::Sqlite,
        format!(
            "[[carrier]]\nname = \"{name}\"\nkind = \"http\"\npreset = \"{name}\"\nbase_url = \"{url}\"\n\
             [carrier.secret]\napi_key = \"{SECRET}\"\n"
        ),
    );
    approve_sender(&service);
    let receiver = Receiver::start();
    let id = send_viber(&service, &receiver, &json!({}));
    let request = wait_for_request(&infobip, 1);
    assert_eq!(request.path, "/viber/2/messages");
    let authorization = format!("App {SECRET}");
    let given = request.header("authorization");
    assert_eq!(given, Some(authorization.as_str()));
    let body = request.json();
    let url = &body["messages"][0]["webhooks"]["delivery"]["url"];
    let expected = json!({ "messages": [{
        "sender": SENDER, "destinations": [{ "to": "37120000001", "messageId": id }],
        "content": { "type": "TEXT", "text": "On its way" },
        "webhooks": { "delivery": { "url": url }, "contentType": "application/json" },
    }] });
    assert_eq!(body, expected);
    let report =
        json!({ "results": [{ "messageId": "1", "status": { "groupName": "DELIVERED" } }] });
    let address = path(&service, url.as_str().expect("a URL"));
    assert_eq!(super::post(&service, address, &report).status, 200);
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);

    // A refusal inside an answer that takes the request, and a button, for which the request has no place.
    let button = json!({ "action": { "url": "https://example.com/order", "title": "Follow it" } });
    for (fields, error) in [
        (json!({ "to": "+37120000002" }), 8),
        (json!({ "im": button }), 20),
    ] {
        let receiver = Receiver::start();
        let id = send_viber(&service, &receiver, &fields);
        assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 2, error)]);
    }
    assert_eq!(infobip.count(), 2);
    check_nothing_secret_is_logged(&service);
}

#[test]
fn providers_look_numbers_up() {
    let infobip = provider(|request| {
        let body = String::from_utf8_lossy(request.body);
        let (state, error) = match body {
            body if body.contains("37120000002") => ("UNDELIVERABLE", "EC_UNKNOWN_SUBSCRIBER"),
            body if body.contains("37120000003") => ("REJECTED", "NO_ERROR"),
            body if body.contains("37120000004") => ("EXPIRED", "NO_ERROR"),
            _ => ("DELIVERED", "NO_ERROR"),
        };
        let result = json!({
            "to": "37120000001", "mccMnc": "24702", "ported": true, "roaming": false,
            "status": { "groupName": state }, "error": { "name": error },
        });
        Reply::answer(200, json!({ "results": [result] }).to_string())
    });
    let neutrino = provider(|request| {
        let status = match String::from_utf8_lossy(request.body) {
            body if body.contains("37120000002") => "absent",
            body if body.contains("37120000003") => "failed",
            body if body.contains("37120000004") => "something new",
            _ => "ok",
        };
        let answer = json!({ "hlr-status": status, "mcc": "247", "mnc": "02", "is-ported": true, "is-roaming": false });
        Reply::answer(200, answer.to_string())
    });
    for (name, server, secrets, absent) in [
        ("infobip-lookup", &infobip, "", 40),
        ("neutrino", &neutrino, "user_id = \"me\"\n", 43),
    ] {
        let url = server.url("");
        let service = start(
            Backend::Sqlite,
            format!(
                "[[carrier]]\nname = \"{name}\"\nkind = \"http\"\npreset = \"{name}\"\nbase_url = \"{url}\"\n\
                 [carrier.secret]\n{secrets}api_key = \"{SECRET}\"\n"
            ),
        );
        let found = look_up(&service, "+37120000001");
        let got = ["error", "mcc", "mnc"].map(|field| found[field].clone());
        assert_eq!(
            got,
            [json!(0), json!("247"), json!("02")],
            "{name}: {found}"
        );
        assert_eq!(look_up(&service, "+37120000002")["error"], absent, "{name}");
        // Where the provider knows nothing about the subscriber, nobody pays.
        let balance = service.balance();
        for number in ["+37120000003", "+37120000004"] {
            assert_eq!(look_up(&service, number)["error"], 51, "{name}");
        }
        wait_for("the refunds", || {
            (service.balance() == balance).then_some(())
        });
        check_nothing_secret_is_logged(&service);
    }
    let request = wait_for_request(&infobip, 4);
    assert_eq!(request.path, "/number/1/query");
    let authorization = format!("App {SECRET}");
    assert_eq!(
        request.header("authorization"),
        Some(authorization.as_str())
    );
    let request = wait_for_request(&neutrino, 4);
    assert_eq!(request.path, "/hlr-lookup");
    assert_eq!(request.header("user-id"), Some("me"));
    assert_eq!(request.header("api-key"), Some(SECRET));
}
