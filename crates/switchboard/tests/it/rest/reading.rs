//! The scheduled list, the status of a message, and cancelling it.

use serde_json::{Value, json};
use testkit::Backend;

use super::service::{
    Service, in_seconds, message, sms, sms_with, tomorrow, utc, wait_for, with_offset,
};

/// The simulated network accepts messages to this number and never reports on them.
const SILENT: &str = "+447700900002";

fn schedule(service: &Service, seconds: i64, to: &str) -> String {
    let at = with_offset(in_seconds(seconds), 1);
    service.accept(&sms_with(&json!({"to": to, "scheduled": at})))[0].clone()
}

fn listed(service: &Service, query: &str) -> Vec<String> {
    let response = service.get(&format!("/sms?scheduled{query}"));
    assert_eq!(response.status, 200, "{query}: {}", response.text());
    let records = response.json();
    let records = records.as_array().expect("a list");
    let id = |record: &Value| record["id"].as_str().expect("a string").to_owned();
    records.iter().map(id).collect()
}

/// Ascending by time, then ID; in pages; only for its own account.
fn the_scheduled_list_is_ordered_and_private(backend: Backend) {
    let service = Service::start(backend);
    let other = service.create_account("other");
    assert_eq!(service.get("/sms?scheduled").json(), json!([]));
    let last = schedule(&service, 9000, "+37120000009");
    let first = schedule(&service, 7000, "+37120000007");
    let at = with_offset(in_seconds(8000), -3);
    let same = service.accept(&sms_with(
        &json!({"to": ["+37120000002", "+37120000001"], "scheduled": at}),
    ));
    service.accept(&sms());
    let all = [first, same[0].clone(), same[1].clone(), last];
    let cases = [
        ("everything", "", &all[..]),
        ("a value that does not matter", "=false", &all[..]),
        ("the first", "&limit=1", &all[..1]),
        ("some in the middle", "&limit=2&offset=1", &all[1..3]),
        ("without a limit", "&offset=3", &all[3..]),
        ("past the end", "&offset=4", &[]),
        ("far past the end", "&offset=9007199254740991", &[]),
        ("the most", "&limit=1000", &all[..]),
        ("an unknown parameter", "&colour=red", &all[..]),
    ];
    for (case, query, expected) in cases {
        assert_eq!(listed(&service, query), expected, "{case}");
    }
    assert_eq!(
        service.scheduled_as(&other),
        Vec::<Value>::new(),
        "another account sees nothing"
    );
}

/// Field by field, while a message waits.
fn records_have_the_shape_of_the_contract(backend: Backend) {
    let service = Service::start(backend);
    let at = in_seconds(3600);
    let body = json!({"to": "37120000001", "from": 37_167_000_001_u64, "message": "Hello", "scheduled": with_offset(at, 2)});
    let id = &service.accept(&body)[0];
    let expected = json!([{
        "id": id, "scheduled": utc(at), "from": "+37167000001", "to": "+37120000001", "message": "Hello", "dlrUrl": null,
    }]);
    assert_eq!(service.get("/sms?scheduled").json(), expected);
    let status = |state: &str, parts: u8| {
        json!({
            "id": id, "status": null, "error": null, "dlrDate": null, "state": state, "parts": parts, "mcc": "247",
            "mnc": "02",
        })
    };
    assert_eq!(
        service.get(&format!("/sms/status/{id}")).json(),
        status("scheduled", 1)
    );
    let long = &service.accept(&sms_with(&json!({
        "message": "a".repeat(161), "scheduled": tomorrow(),
    })))[0];
    let mut expected = status("scheduled", 2);
    expected["id"] = json!(long);
    assert_eq!(service.get(&format!("/sms/status/{long}")).json(), expected);
}

/// Once, by its own account, while it waits.
fn a_scheduled_message_can_be_cancelled(backend: Backend) {
    let service = Service::start(backend);
    let other = service.create_account("other");
    let waiting = schedule(&service, 3600, "+37120000001");
    let kept = schedule(&service, 3600, "+37120000002");
    let sent = service.accept(&sms_with(&json!({"to": SILENT})))[0].clone();
    for (case, method, path) in [
        ("reading another's", "GET", format!("/sms/status/{waiting}")),
        ("cancelling another's", "DELETE", format!("/sms/{waiting}")),
        (
            "cancelling another's that was sent",
            "DELETE",
            format!("/sms/{sent}"),
        ),
    ] {
        let response = service.call_as(&other, method, &path, b"");
        assert_eq!(response.status, 404, "{case}: {}", response.text());
    }
    let response = service.delete(&format!("/sms/{waiting}"));
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(
        response.json(),
        json!({"id": waiting, "status": "cancelled"})
    );
    assert_eq!(listed(&service, ""), [kept]);

    let status = service.get(&format!("/sms/status/{waiting}")).json();
    let date = status["dlrDate"].as_str().expect("a time").to_owned();
    assert!(
        date >= utc(in_seconds(-60)) && date <= utc(in_seconds(60)),
        "{date}"
    );
    let expected = json!({
        "id": waiting, "status": 2, "error": 29, "dlrDate": date, "state": "cancelled", "parts": 1, "mcc": "247",
        "mnc": "02",
    });
    assert_eq!(status, expected);

    wait_for("the message is sent", || {
        let status = service.get(&format!("/sms/status/{sent}")).json();
        (status["state"] == "sent").then_some(())
    });
    for (case, id, word) in [
        ("again", &waiting, "cancelled"),
        ("already on its way", &sent, "sent"),
    ] {
        let response = service.delete(&format!("/sms/{id}"));
        assert_eq!(response.status, 409, "{case}: {}", response.text());
        let text = message(&response);
        assert!(
            text.contains(id.as_str()) && text.contains(word),
            "{case}: {text}"
        );
    }
}

on_both_backends!(
    the_scheduled_list_is_ordered_and_private,
    records_have_the_shape_of_the_contract,
    a_scheduled_message_can_be_cancelled,
);

#[test]
fn an_invalid_id_is_not_found() {
    let service = Service::start(Backend::Sqlite);
    let ids = [
        "1",
        "999999",
        "0",
        "-1",
        "abc",
        "1.0",
        "+1",
        "01",
        "1%20",
        "%00",
        "%ff",
        "..",
        "9007199254740992",
        "9223372036854775808",
        "99999999999999999999999999",
        "1;DROP",
        "%E2%82%AC",
    ];
    for id in ids {
        let status = service.get(&format!("/sms/status/{id}"));
        assert_eq!(status.status, 404, "status {id}: {}", status.text());
        let cancelled = service.delete(&format!("/sms/{id}"));
        assert_eq!(cancelled.status, 404, "cancel {id}: {}", cancelled.text());
    }
}

#[test]
fn invalid_list_parameters_are_refused() {
    let service = Service::start(Backend::Sqlite);
    let cases = [
        ("nothing asked for", "/sms", "'scheduled'"),
        ("something else asked for", "/sms?sent", "'scheduled'"),
        ("no rows", "/sms?scheduled&limit=0", "'limit': '0'"),
        (
            "too many rows",
            "/sms?scheduled&limit=1001",
            "'limit': '1001'; give a whole number from 1 to 1000",
        ),
        (
            "a negative limit",
            "/sms?scheduled&limit=-1",
            "'limit': '-1'",
        ),
        ("no number", "/sms?scheduled&limit=ten", "'limit': 'ten'"),
        ("an empty limit", "/sms?scheduled&limit=", "'limit': ''"),
        (
            "a limit beyond 2^64",
            "/sms?scheduled&limit=18446744073709551617",
            "'limit'",
        ),
        (
            "a negative offset",
            "/sms?scheduled&offset=-1",
            "'offset': '-1'",
        ),
        ("a fraction", "/sms?scheduled&offset=1.5", "'offset': '1.5'"),
        (
            "an offset beyond every ID",
            "/sms?scheduled&offset=9007199254740992",
            "'offset'",
        ),
        ("no text", "/sms?scheduled&offset=%ff", "'offset'"),
    ];
    for (case, path, fragment) in cases {
        let response = service.get(path);
        assert_eq!(response.status, 400, "{case}: {}", response.text());
        assert!(
            message(&response).contains(fragment),
            "{case}: {}",
            response.text()
        );
    }
}
