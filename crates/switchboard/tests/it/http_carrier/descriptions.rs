//! Other descriptions: answers in text and signed requests, reports that must be asked for, several messages in one
//! request. One service sends by all of them.

use std::collections::BTreeSet;

use ring::hmac;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::{ReceivedRequest, Receiver, Reply, Request};

use super::{SECRET, check_nothing_secret_is_logged, path, post, provider, send, start};
use crate::chain::wait_for_reported_states;
use crate::rest::service::{Service, sms_with, wait_for};
use crate::smpp::octets::hex;

/// Answers in text. One recipient is refused.
fn text_provider(request: &Request<'_>) -> Reply {
    if String::from_utf8_lossy(request.body).contains("37120000002") {
        return Reply::answer(200, "ERR: 114, cannot route message");
    }
    Reply::answer(200, "ID: 7f-1\n")
}

/// Gives reports when asked. It does not know the message at first.
fn asked_provider() -> impl Fn(&Request<'_>) -> Reply + Send + Sync {
    let known = std::sync::Mutex::new(BTreeSet::new());
    move |request| {
        if request.method == "POST" {
            let id = if String::from_utf8_lossy(request.body).contains("37060000002") {
                "SM2"
            } else {
                "SM1"
            };
            return Reply::answer(201, json!({ "id": id }).to_string());
        }
        let mut known = known.lock().expect("not poisoned");
        if known.insert(request.path.to_owned()) {
            return Reply::answer(200, r#"{"status":"queued"}"#);
        }
        match request.path {
            "/messages/SM1?key=hunter2-provider" => Reply::answer(200, r#"{"status":"delivered"}"#),
            "/messages/SM2?key=hunter2-provider" => {
                Reply::answer(200, r#"{"status":"failed","errorCode":"27"}"#)
            }
            _ => Reply::answer(400, "no such message"),
        }
    }
}

/// Takes several recipients. One of them is refused.
fn batch_provider(request: &Request<'_>) -> Reply {
    let body: Value = serde_json::from_slice(request.body).expect("JSON");
    let recipients = body["recipients"].as_array().expect("a list");
    let result = |recipient: &Value| {
        let is_refused = recipient["to"] == "37250000002";
        let state = if is_refused { "REJECTED" } else { "OK" };
        json!({ "to": recipient["to"], "id": recipient["ref"], "state": state, "code": 114 })
    };
    let results: Vec<Value> = recipients.iter().rev().map(result).collect();
    Reply::answer(200, json!({ "results": results }).to_string())
}

fn config(text: &Receiver, asked: &Receiver, batch: &Receiver) -> String {
    let (text, asked, batch) = (text.url(""), asked.url(""), batch.url(""));
    format!(
        r#"
[[carrier]]
name = "text"
kind = "http"
base_url = "{text}"
[carrier.request]
url = "/http/send"
headers = {{ "X-Time" = "{{{{ timestamp }}}}" }}
query = {{ api_key = "{{{{ secret.key }}}}" }}
form = {{ to = "{{{{ to_digits }}}}", text = "{{{{ text }}}}", dlr = "{{{{ report_url }}}}" }}
[carrier.request.hmac]
key = "{{{{ secret.key }}}}"
header = "X-Signature"
value = "v1={{{{ signature }}}}"
signed = "{{{{ method }}}} {{{{ path }}}} {{{{ timestamp }}}} {{{{ body }}}}"
[carrier.secret]
key = "{SECRET}"
[carrier.response]
id_after = "ID: "
refused_text = ["ERR"]
error_after = "ERR: "
errors = {{ "114" = 31 }}
[carrier.report]
state = "/status"
delivered = ["delivered"]

[[carrier]]
name = "asked"
kind = "http"
base_url = "{asked}"
[carrier.request]
url = "/messages"
json = {{ to = "{{{{ to_digits }}}}", text = "{{{{ text }}}}" }}
[carrier.secret]
key = "{SECRET}"
[carrier.response]
id = "/id"
[carrier.report]
state = "/status"
delivered = ["delivered"]
failed = ["failed"]
error = "/errorCode"
errors = {{ "27" = 43 }}
[carrier.poll]
interval_s = 1
[carrier.poll.request]
url = "/messages/{{{{ provider_id }}}}"
query = {{ key = "{{{{ secret.key }}}}" }}

[[carrier]]
name = "batch"
kind = "http"
base_url = "{batch}"
window = 4
[carrier.request]
url = "/bulk"
json = {{ text = "{{{{ text }}}}", recipients = "{{{{ items }}}}" }}
[carrier.batch]
size = 2
item = {{ to = "{{{{ to_digits }}}}", ref = "{{{{ id }}}}", dlr = "{{{{ report_url }}}}" }}
results = "/results"
to = "/to"
id = "/id"
state = "/state"
error = "/code"
[carrier.response]
refused = ["REJECTED"]
errors = {{ "114" = 31 }}
[carrier.report]
state = "/status"
delivered = ["delivered"]

[[route]]
prefix = "371"
carriers = ["text"]
[[route]]
prefix = "370"
carriers = ["asked"]
[[route]]
prefix = "372"
carriers = ["batch"]
"#
    )
}

#[test]
fn providers_are_described_by_what_they_do() {
    let text = provider(text_provider);
    let asked = provider(asked_provider());
    let batch = provider(batch_provider);
    let service = start(Backend::Sqlite, config(&text, &asked, &batch));
    let receiver = Receiver::start();
    let polled =
        ["+37060000001", "+37060000002"].map(|to| send(&service, &receiver, &json!({ "to": to })));
    check_text_answers(&service, &text);
    check_batches(&service, &batch);

    let [delivered, failed] = polled;
    let mut expected = [(delivered, 1, 0), (failed, 2, 43)];
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, 2), expected);
    check_nothing_secret_is_logged(&service);
}

/// The answer's text refuses one message and takes the other, and the request is signed.
fn check_text_answers(service: &Service, text: &Receiver) {
    let receiver = Receiver::start();
    let refused = send(service, &receiver, &json!({ "to": "+37120000002" }));
    assert_eq!(wait_for_reported_states(&receiver, 1), [(refused, 2, 31)]);
    let receiver = Receiver::start();
    let taken = send(service, &receiver, &json!({ "to": "+37120000001" }));
    let request = super::wait_for_request(text, 2);
    let target = format!("/http/send?api_key={SECRET}");
    assert_eq!(request.path, target);
    let time = request.header("x-time").expect("a time");
    let signed = format!("POST {target} {time} {}", request.text());
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hex(hmac::sign(&key, signed.as_bytes()).as_ref());
    let expected = format!("v1={signature}");
    assert_eq!(request.header("x-signature"), Some(expected.as_str()));

    let form = request.text();
    let mut fields = url::form_urlencoded::parse(form.as_bytes());
    let (_, url) = fields.find(|(name, _)| name == "dlr").expect("a URL");
    let report = json!({ "status": "delivered" });
    assert_eq!(post(service, path(service, &url), &report).status, 200);
    assert_eq!(wait_for_reported_states(&receiver, 1), [(taken, 1, 0)]);
}

/// All messages of one submission are sent, in requests of at most two, and each has its result.
fn check_batches(service: &Service, batch: &Receiver) {
    let receiver = Receiver::start();
    let to: Vec<String> = (1..=5).map(|n| format!("+3725000000{n}")).collect();
    let body = sms_with(&json!({ "to": to, "dlrUrl": receiver.url("/dlr") }));
    let ids = service.accept(&body);
    let sent: Vec<Value> = wait_for("all messages at the provider", || {
        let requests = batch.received();
        let bodies = requests.iter().map(ReceivedRequest::json);
        let lists = bodies.map(|body| body["recipients"].as_array().expect("a list").clone());
        let lists: Vec<Vec<Value>> = lists.collect();
        assert!(lists.iter().all(|list| (1..=2).contains(&list.len())));
        Some(lists.concat()).filter(|sent| sent.len() == 5)
    });
    for recipient in &sent {
        let id = recipient["ref"].as_str().expect("an ID");
        if id != ids[1] {
            let url = recipient["dlr"].as_str().expect("a URL");
            let report = json!({ "status": "delivered" });
            assert_eq!(post(service, path(service, url), &report).status, 200);
        }
    }
    let mut expected: Vec<_> = ids.iter().map(|id| (id.clone(), 1, 0)).collect();
    expected[1] = (ids[1].clone(), 2, 31);
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, 5), expected);
}
