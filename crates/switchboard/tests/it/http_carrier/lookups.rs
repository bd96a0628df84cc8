//! Lookups by a provider.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::{Receiver, Reply};

use super::{provider, start};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(a_lookup_finds_a_ported_network);

fn config(provider: &Receiver) -> String {
    format!(
        r#"
[[carrier]]
name = "hlr"
kind = "http"
channels = ["hlr"]
[carrier.request]
method = "GET"
url = "{}"
query = {{ msisdn = "{{{{ to_digits }}}}", callback = "{{{{ report_url }}}}" }}
[carrier.lookup]
present = "/reachable"
ported = "/ported"
network = "/network"
original_network = "/originalNetwork"
"#,
        provider.url("/lookup")
    )
}

fn look_up(service: &Service, number: &str) -> Value {
    let body = json!({ "msisdn": number }).to_string();
    let response = service.call_as(
        &service.token,
        "POST",
        "/hlr?callback=none",
        body.as_bytes(),
    );
    assert_eq!(response.status, 200, "{}", response.text());
    let id = response.json()[0].as_u64().expect("a number");
    wait_for("the result", || {
        let status = service.get(&format!("/hlr/{id}")).json();
        (status["state"] == "done").then(|| status["result"].clone())
    })
}

fn a_lookup_finds_a_ported_network(backend: Backend) {
    let ported = r#"{"reachable":true,"ported":true,"network":"24702","originalNetwork":"24701"}"#;
    let provider = provider(move |request| {
        if request.path.contains("37120000001") {
            Reply::answer(200, ported)
        } else {
            Reply::answer(200, r#"{"reachable":false}"#)
        }
    });
    let service = start(backend, config(&provider));
    let found = look_up(&service, "+37120000001");
    let expected = [json!(0), json!("LV"), json!("247"), json!("02")];
    let got = ["error", "country", "mcc", "mnc"].map(|name| found[name].clone());
    assert_eq!(got, expected, "{found}");
    let networks = service.get("/mccmnc/LV").json();
    let networks = networks.as_array().expect("a list");
    let operator = |mnc: &str| {
        let network = networks.iter().find(|network| network["MNC"] == mnc);
        network.expect("a network")["operatorId"].clone()
    };
    assert_eq!(found["operatorId"], operator("02"), "{found}");
    assert_eq!(found["ported"][0]["operatorId"], operator("01"), "{found}");
    assert_eq!(look_up(&service, "+37120000002")["error"], 43);
}
