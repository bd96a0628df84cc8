//! Lookups from outside: the answer, the callback, the price.

use serde_json::{Value, json};
use testkit::receiver::Receiver;
use testkit::{Backend, TEST_TIMEOUT};

use super::service::{Service, message, wait_for};

fn look_up(service: &Service, number: &str, url: &str) -> u64 {
    let body = json!({"msisdn": number, "callBackUrl": url}).to_string();
    let response = service.call_as(&service.token, "POST", "/hlr", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    let ids = response.json();
    assert_eq!(ids.as_array().map(Vec::len), Some(1), "{ids}");
    ids[0].as_u64().expect("a number")
}

/// Waits for the result of a lookup.
fn result(service: &Service, id: u64) -> Value {
    wait_for("the result", || {
        let status = service.get(&format!("/hlr/{id}")).json();
        (status["state"] == "done").then(|| status["result"].clone())
    })
}

fn a_lookup_is_answered_and_reported(backend: Backend) {
    let service = Service::start(backend);
    let receiver = Receiver::start();
    let url = receiver.url("/hlr");
    let id = look_up(&service, "+37129100000", &url);
    let lmt = service.get("/mccmnc/LV").json()[0]["operatorId"].clone();
    let expected = json!({"id": id.to_string(), "error": 0, "imsi": 247_017_129_100_000_u64, "country": "LV",
        "operatorId": lmt, "mcc": "247", "mnc": "01"});
    assert_eq!(result(&service, id), expected);
    assert!(receiver.wait_for(1, TEST_TIMEOUT));
    assert_eq!(receiver.received()[0].json(), expected);
    assert_eq!(service.balance(), "99.995");

    let ported = look_up(&service, "+447700900800", &url);
    let ported = result(&service, ported);
    let origin = &ported["ported"][0];
    assert_eq!(
        (&origin["operator"], &origin["country"]),
        (&json!("O2 (UK)"), &json!("GB")),
        "{ported}"
    );
    assert_ne!(origin["operatorId"], ported["operatorId"]);
    assert_eq!(
        (&ported["error"], &ported["country"]),
        (&json!(0), &json!("GB"))
    );

    // An absent subscriber is an answer and is charged. A lookup without an answer is refunded.
    for (number, error, left) in [
        ("+447700900043", 43, "99.985"),
        ("+447700900050", 50, "99.985"),
        ("+447700900040", 40, "99.98"),
    ] {
        let id = look_up(&service, number, &url);
        let reported = result(&service, id);
        assert_eq!(
            (&reported["error"], &reported["id"]),
            (&json!(error), &json!(id.to_string())),
            "{reported}"
        );
        assert_eq!(reported.get("imsi"), None, "{reported}");
        assert_eq!(service.balance(), left, "{number}");
    }
    assert!(service.server.cli(&["account", "check"]).status.success());
}

fn a_lookup_without_a_callback_is_only_read(backend: Backend) {
    let service = Service::start(backend);
    let post = |path: &str, body: &Value| {
        service.call_as(&service.token, "POST", path, body.to_string().as_bytes())
    };
    let body = json!({"msisdn": "+37129100000"});
    let response = post("/hlr?callback=none", &body);
    assert_eq!(response.status, 200, "{}", response.text());
    let id = response.json()[0].as_u64().expect("a number");
    assert_eq!(result(&service, id)["error"], 0);
    for (path, named) in [
        ("/hlr", "'callBackUrl'"),
        ("/hlr?none", "'callBackUrl'"),
        ("/hlr?callback=", "'callback'"),
        ("/hlr?callback=no", "'callback'"),
    ] {
        let response = post(path, &body);
        assert_eq!(response.status, 400, "{path}");
        assert!(message(&response).contains(named), "{}", response.text());
    }
    // If a URL is given, it is used.
    let bad = json!({"msisdn": "+37129100000", "callBackUrl": "http://10.0.0.1/"});
    assert_eq!(post("/hlr?callback=none", &bad).status, 400);
    let receiver = Receiver::start();
    let good = json!({"msisdn": "+37129100000", "callBackUrl": receiver.url("/hlr")});
    assert_eq!(post("/hlr?callback=none", &good).status, 200);
    assert!(receiver.wait_for(1, TEST_TIMEOUT));
}

#[test]
fn invalid_lookups_are_refused() {
    let service = Service::start(Backend::Sqlite);
    let url = "http://127.0.0.1:9/hlr";
    for (body, field) in [
        (json!({"callBackUrl": url}), "'msisdn'"),
        (json!({"msisdn": "+37129100000"}), "'callBackUrl'"),
        (json!({"msisdn": "12", "callBackUrl": url}), "'msisdn'"),
        (
            json!({"msisdn": "29100000", "callBackUrl": url}),
            "'msisdn'",
        ),
        (
            json!({"msisdn": ["+37129100000"], "callBackUrl": url}),
            "'msisdn'",
        ),
        (
            json!({"msisdn": "+37129100000", "callBackUrl": "ftp://x"}),
            "'callBackUrl'",
        ),
        (
            json!({"msisdn": "+37129100000", "callBackUrl": "http://10.0.0.1/"}),
            "'callBackUrl'",
        ),
    ] {
        let response = service.call_as(&service.token, "POST", "/hlr", body.to_string().as_bytes());
        assert_eq!(response.status, 400, "{body}");
        assert!(message(&response).contains(field), "{}", response.text());
    }
    let other = service.create_account("other");
    let id = look_up(&service, "+37129100000", url);
    for (token, path) in [
        (&other, format!("/hlr/{id}")),
        (&service.token, "/hlr/99999".to_owned()),
        (&service.token, "/hlr/x".to_owned()),
    ] {
        assert_eq!(
            service.call_as(token, "GET", &path, b"").status,
            404,
            "{path}"
        );
    }
    assert_eq!(
        service.get(&format!("/sms/status/{id}")).status,
        404,
        "a lookup is not a message"
    );
    assert_eq!(service.balance(), "99.995");
}

super::on_both_backends!(
    a_lookup_is_answered_and_reported,
    a_lookup_without_a_callback_is_only_read,
);
