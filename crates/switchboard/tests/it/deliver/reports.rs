//! Delivery reports: one for each final state, signed.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::{ReceivedRequest, Receiver};

use super::fixture::{
    callbacks, payload, payload_to, send, send_with, start, state, wait_for_reports,
};
use crate::rest::service::{Service, in_seconds, sms_with, utc, wait_for};

/// Its arguments are `whsec_…` and the signed text. It uses other programs, so that it cannot share our mistakes.
const SIGN: &str = r#"
    key=$(printf %s "${0#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
    printf %s "$1" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64
"#;

pub(crate) fn signature(secret: &str, signed: &str) -> String {
    let output = Command::new("sh")
        .args(["-euc", SIGN, secret, signed])
        .output()
        .expect("a shell");
    assert!(output.status.success(), "this needs openssl: {output:?}");
    let base64 = String::from_utf8(output.stdout).expect("text");
    format!("v1,{}", base64.trim())
}

/// Creates an account; returns a token and the secret that signs its reports.
pub(crate) fn signing_account(service: &Service) -> (String, String) {
    let account = service.server.cli_json(&[
        "account",
        "create",
        "--name",
        "signed",
        "--balance",
        "10",
        "--json",
    ]);
    let secret = account["callbackSecret"].as_str().expect("a secret");
    assert!(secret.starts_with("whsec_"), "{secret}");
    let token = service.create_token("signed", &[]).token;
    (token, secret.to_owned())
}

pub(crate) fn check_headers(report: &ReceivedRequest, secret: &str) -> String {
    let header = |name| {
        report
            .header(name)
            .unwrap_or_else(|| panic!("no {name}: {report:?}"))
    };
    assert_eq!(header("content-type"), "application/json");
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let seconds: i64 = timestamp.parse().expect("seconds");
    let now = in_seconds(0).as_second();
    assert!((now - 60..=now + 1).contains(&seconds), "{seconds}: {now}");
    let signed = format!("{id}.{timestamp}.{}", report.text());
    assert_eq!(header("webhook-signature"), signature(secret, &signed));
    id.to_owned()
}

/// Checks the exact payload, the signature, the status of the message and the recorded attempt.
fn a_delivery_is_reported_and_signed(backend: Backend) {
    let service = start(backend);
    let receiver = Receiver::start();
    let (token, secret) = signing_account(&service);
    let url = receiver.url("/dlr?for=me");
    let body = sms_with(&json!({ "dlrUrl": url })).to_string();
    let answer = service.call_as(&token, "POST", "/sms", body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.json()[0].as_str().expect("an ID").to_owned();

    let report = wait_for_reports(&receiver, 1).remove(0);
    assert_eq!(
        (report.method.as_str(), report.path.as_str()),
        ("POST", "/dlr?for=me")
    );
    assert_eq!(report.text(), payload(&id, 1, 0));
    let callback = check_headers(&report, &secret);

    let path = format!("/sms/status/{id}");
    let status = service.call_as(&token, "GET", &path, b"").json();
    let date = status["dlrDate"].as_str().expect("a time").to_owned();
    assert!(
        date >= utc(in_seconds(-60)) && date <= utc(in_seconds(1)),
        "{date}"
    );
    let expected = json!({
        "id": id, "status": 1, "error": 0, "dlrDate": date, "state": "delivered", "parts": 1, "mcc": "247", "mnc": "02",
    });
    assert_eq!(status, expected, "the state is final before it is reported");

    wait_for("the end of the callback", || {
        callbacks(&service, &[]).is_empty().then_some(())
    });
    let [logged] = &callbacks(&service, &["--all"])[..] else {
        panic!("one callback");
    };
    assert_eq!(logged["id"].to_string(), callback);
    assert_eq!(
        (&logged["state"], &logged["tries"], &logged["payload"]),
        (&json!("received"), &json!(1), &json!(report.text()))
    );
    let last = &logged["last"];
    assert_eq!(
        (&last["reason"], &last["status"], &last["body"]),
        (&json!("received"), &json!(200), &json!("OK"))
    );
    assert_eq!(last["address"], json!(receiver.addr().to_string()));
}

/// The magic numbers of the simulator, with the status and error that must be reported for each.
fn magic_numbers(service: &Service) -> Vec<(String, u8, u64)> {
    let list = service.server.cli_json(&["simulator", "numbers", "--json"]);
    let list = list.as_array().expect("a list");
    assert!(list.len() > 50, "{}", list.len());
    let listed = list
        .iter()
        .filter(|magic| magic["channel"] == "sms" && magic["outcome"] != "expired");
    let expected_state = |magic: &Value| {
        let number = magic["number"].as_str().expect("a number").to_owned();
        let code = magic["code"].as_u64().expect("a code");
        assert_eq!(number, format!("+447700900{code:03}"));
        (number, if code == 0 { 1 } else { 2 }, code)
    };
    let unlisted = ["+447700900018", "+447700900800", "+447700901043"];
    listed
        .map(expected_state)
        .chain(unlisted.map(|number| (number.to_owned(), 1, 0)))
        .collect()
}

/// All magic numbers, except the one that expires: it has no final state when all others do.
fn every_magic_number_ends_with_its_code(backend: Backend) {
    let service = start(backend);
    let receiver = Receiver::start();
    let silent = send_with(
        &service,
        &receiver.url("/silent"),
        &json!({"to": "+447700900002", "expireIn": 360}),
    );
    let mut expected = BTreeMap::new();
    for (number, status, error) in magic_numbers(&service) {
        let path = format!("/{}", &number[1..]);
        let id = send_with(&service, &receiver.url(&path), &json!({ "to": number }));
        expected.insert(path, (id, status, error));
    }
    let reports = wait_for_reports(&receiver, expected.len());
    for report in &reports {
        let path = &report.path;
        let Some((id, status, error)) = expected.remove(path) else {
            panic!("not expected, or twice: {path}: {}", report.text());
        };
        let number = path.replacen('/', "+", 1);
        assert_eq!(
            report.text(),
            payload_to(&number, &id, status, error),
            "{path}"
        );
        let status_body = service.get(&format!("/sms/status/{id}")).json();
        let state = if status == 1 { "delivered" } else { "failed" };
        assert_eq!(
            (
                &status_body["status"],
                &status_body["error"],
                &status_body["state"]
            ),
            (&json!(status), &json!(error), &json!(state)),
            "{path}"
        );
    }
    assert_eq!(state(&service, &silent), "sent");
    let status_body = service.get(&format!("/sms/status/{silent}")).json();
    assert_eq!(
        status_body["status"],
        Value::Null,
        "it has no final state yet: {status_body}"
    );
}

fn recipients(body: &Value) -> Vec<String> {
    let text = |to: &Value| to.as_str().expect("a number").to_owned();
    match &body["to"] {
        Value::Array(several) => several.iter().map(text).collect(),
        one => vec![text(one)],
    }
}

/// Status and error.
type FinalState = (u8, u64);

/// One report for each message, for any number of parts and recipients.
fn each_message_is_reported_once(backend: Backend) {
    let service = start(backend);
    let cases: [(&str, Value, &[FinalState]); 6] = [
        ("emulated delivery", json!({"testMode": "1"}), &[(1, 0)]),
        ("emulated failure", json!({"testMode": "2"}), &[(2, 43)]),
        (
            "emulated delivery to a number that fails",
            json!({"testMode": 1, "to": "+447700900040"}),
            &[(1, 0)],
        ),
        (
            "several recipients",
            json!({"to": ["+37120000001", "+447700900012", "+447700900020", "+37120000002"]}),
            &[(1, 0), (2, 12), (2, 20), (1, 0)],
        ),
        (
            "three parts",
            json!({"message": "a".repeat(2 * 153 + 1)}),
            &[(1, 0)],
        ),
        (
            "three parts that fail",
            json!({"message": "ä€".repeat(70), "to": "+447700900008"}),
            &[(2, 8)],
        ),
    ];
    for (case, fields, final_states) in cases {
        let receiver = Receiver::start();
        let mut body = sms_with(&fields);
        body["dlrUrl"] = json!(receiver.url("/dlr"));
        let ids = service.accept(&body);
        let mut expected: Vec<String> = ids
            .iter()
            .zip(final_states)
            .zip(recipients(&body))
            .map(|((id, (status, error)), to)| payload_to(&to, id, *status, *error))
            .collect();
        wait_for_reports(&receiver, expected.len());
        // A second report for one of them would come before the report of a message that is sent now.
        let last = send(&service, &receiver.url("/dlr"));
        expected.push(payload(&last, 1, 0));
        let reports = wait_for_reports(&receiver, expected.len());
        let mut reports: Vec<String> = reports.iter().map(ReceivedRequest::text).collect();
        reports.sort();
        expected.sort();
        assert_eq!(reports, expected, "{case}");
    }
}

crate::rest::on_both_backends!(
    a_delivery_is_reported_and_signed,
    every_magic_number_ends_with_its_code,
    each_message_is_reported_once,
);
