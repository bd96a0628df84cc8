//! Answers that never come: each preset sends the message again only if the provider recognises the repetition.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;
use testkit::receiver::{ReceivedRequest, Receiver, Reply};

use super::presets::{post_event, post_form};
use super::signing::{self, Headers};
use super::{SECRET, inbound_path, path, provider, send, start, wait_for_request};
use crate::chain::wait_for_reported_states;
use crate::rest::service::{Service, wait_for};

struct Case {
    preset: &'static str,
    secrets: String,
    /// The answer to the second request, if the provider recognises a repetition.
    again: Option<Reply>,
    /// Reports the message with this ID as delivered.
    deliver: fn(&Service, &ReceivedRequest, &str) -> Response,
}

fn post_signed(
    service: &Service,
    url: &Value,
    body: &Value,
    sign: fn(&[u8]) -> Headers,
) -> Response {
    let body = body.to_string();
    let signed = sign(body.as_bytes());
    let signed = signed.iter().map(|(name, value)| (*name, value.as_str()));
    let kind = [("Content-Type", "application/json")];
    let headers: Vec<_> = kind.into_iter().chain(signed).collect();
    let address = path(service, url.as_str().expect("a URL"));
    service.raw("POST", address, &headers, body.as_bytes())
}

fn cases() -> [Case; 5] {
    let duplicate = json!({ "messages": [{
        "messageId": "1", "status": { "groupName": "REJECTED", "name": "REJECTED_DUPLICATE_MESSAGE_ID" },
    }] });
    let telnyx = signing::telnyx_key(7);
    [
        Case {
            preset: "twilio",
            secrets: format!("account_sid = \"AC0\"\nauth_token = \"{SECRET}\""),
            again: None,
            deliver: |service, request, _| {
                let mut fields = url::form_urlencoded::parse(&request.body);
                let url = fields.find(|(name, _)| name == "StatusCallback");
                let (_, url) = url.expect("a URL");
                let report = [("MessageSid", "SM1"), ("MessageStatus", "delivered")];
                post_form(service, SECRET, path(service, &url), &report)
            },
        },
        Case {
            preset: "vonage",
            secrets: format!(
                "api_key = \"a\"\napi_secret = \"b\"\nsignature_secret = \"{SECRET}\""
            ),
            again: None,
            deliver: |service, request, _| {
                let report = json!({ "message_uuid": "1", "status": "delivered" });
                let sign = |body: &[u8]| signing::vonage(SECRET, body, 300);
                post_signed(service, &request.json()["webhook_url"], &report, sign)
            },
        },
        Case {
            preset: "telnyx",
            secrets: format!("api_key = \"{SECRET}\"\npublic_key = \"{telnyx}\""),
            again: Some(Reply::answer(200, r#"{"data":{"id":"1"}}"#)),
            deliver: |service, request, id| {
                assert_eq!(request.header("idempotency-key"), Some(id));
                let report = json!({ "data": { "payload": { "id": "1", "to": [{ "status": "delivered" }] } } });
                let sign = |body: &[u8]| signing::telnyx(7, body, 0);
                post_signed(service, &request.json()["webhook_url"], &report, sign)
            },
        },
        Case {
            preset: "infobip",
            secrets: format!("api_key = \"{SECRET}\""),
            again: Some(Reply::answer(200, duplicate.to_string())),
            deliver: |service, request, id| {
                let message = &request.json()["messages"][0];
                assert_eq!(message["destinations"][0]["messageId"], id);
                let url = &message["webhooks"]["delivery"]["url"];
                let report = json!({ "results": [
                    { "messageId": id, "status": { "groupName": "PENDING" } },
                    { "messageId": id, "status": { "groupName": "DELIVERED" } },
                ] });
                post_signed(service, url, &report, |_| Vec::new())
            },
        },
        Case {
            preset: "android-sms-gateway",
            secrets: format!("username = \"a\"\npassword = \"b\"\nsigning_key = \"{SECRET}\""),
            again: Some(Reply::answer(
                409,
                r#"{"message":"message already exists"}"#,
            )),
            deliver: |service, request, id| {
                assert_eq!(request.json()["id"], id);
                let event = json!({ "event": "sms:delivered", "payload": { "messageId": id } });
                let address = inbound_path(service, "android-sms-gateway");
                post_event(service, SECRET, &address, &event)
            },
        },
    ]
}

#[test]
fn a_lost_answer_is_neither_a_failure_nor_a_second_message() {
    for case in cases() {
        let (preset, requests) = (case.preset, if case.again.is_some() { 2 } else { 1 });
        let count = Arc::new(AtomicUsize::new(0));
        let server = provider(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            1 => case.again.clone().unwrap_or_else(Reply::hang),
            _ => Reply::hang(),
        });
        let url = server.url("");
        let service = start(
            Backend::Sqlite,
            format!(
                "[[carrier]]\nname = \"{preset}\"\nkind = \"http\"\npreset = \"{preset}\"\nbase_url = \"{url}\"\n\
                 timeout_s = 1\n[carrier.secret]\n{}\n",
                case.secrets
            ),
        );
        let receiver = Receiver::start();
        let id = send(&service, &receiver, &json!({ "from": "+37120000009" }));
        let request = wait_for_request(&server, requests);
        if requests == 1 {
            wait_for("the end of the tries", || {
                let is_over = service.server.output().contains("it is not sent again");
                is_over.then_some(())
            });
        }
        let answer = (case.deliver)(&service, &request, &id);
        assert_eq!(answer.status, 200, "{preset}: {}", answer.text());
        let ended = wait_for_reported_states(&receiver, 1);
        assert_eq!(ended, [(id, 1, 0)], "{preset}");
        let sent = server.received();
        assert_eq!(sent.len(), requests, "{preset}");
        // The phone's gateway gets the remaining time, and goes by the ID alone.
        if preset != "android-sms-gateway" {
            assert_eq!(sent[0].body, sent[requests - 1].body, "{preset}");
        }
        assert_eq!(service.get("/messages").json()[0]["status"], 1, "{preset}");
    }
}
