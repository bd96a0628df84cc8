//! Lookups by a provider.

use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT, temp_dir};

use super::{callback, carrier, path, post, provider, send, start, taken, wait_for_request};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, sms_with, wait_for};

on_both_backends!(
    a_lookup_finds_a_ported_network,
    the_next_message_is_priced_and_routed_by_the_network_of_a_ported_number,
);

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

pub(super) fn look_up(service: &Service, number: &str) -> Value {
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

/// Of the network 24701, as its digits tell.
const PORTED: &str = "+37129100000";

const PRICES: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate
Latvia,LV,LMT,LMT,247,01,0.05
Latvia,LV,Tele2,Tele2,247,02,0.09
Latvia,LV,All,All,247,,0.20
";

fn run(service: &Service, arguments: &[&str]) {
    let output = service.server.cli(arguments);
    assert!(output.status.success(), "{output:?}");
}

/// The network and the price of a message to a number.
fn cost(service: &Service, number: &str) -> (Value, Value) {
    let body = json!({ "to": number, "from": "Acme", "message": "Hi" }).to_string();
    let response = service.call_as(&service.token, "POST", "/sms/cost", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    let cost = &response.json()[0];
    (cost["mccmnc"].clone(), cost["totalPrice"].clone())
}

fn the_next_message_is_priced_and_routed_by_the_network_of_a_ported_number(backend: Backend) {
    let lookups = provider(|_| Reply::answer(200, r#"{"reachable":true,"network":"24702"}"#));
    let [home, ported] = [(), ()].map(|()| provider(|_| taken()));
    let receiver = Receiver::start();
    let names_network = "network = \"/mccmnc\"\n";
    let routes = "
[[route]]
channel = \"hlr\"
carriers = [\"hlr\"]
[[route]]
account = \"main\"
network = \"24702\"
carriers = [\"ported\"]
[[route]]
account = \"main\"
carriers = [\"home\"]
";
    let config = [
        config(&lookups),
        carrier("home", &home.url("/send"), "", names_network),
        carrier("ported", &ported.url("/send"), "", names_network),
        routes.to_owned(),
    ];
    let service = start(backend, config.concat());
    let folder = temp_dir("rates").expect("a temporary folder");
    let file = folder.path().join("list.csv");
    std::fs::write(&file, PRICES).expect("the list is written");
    run(
        &service,
        &["rates", "import", file.to_str().expect("UTF-8")],
    );
    let by_digits = (json!("24701"), json!("0.05"));
    wait_for("the prices", || {
        (cost(&service, PORTED) == by_digits).then_some(())
    });
    assert_eq!(look_up(&service, PORTED)["mnc"], "02");
    // It is known now, but nobody has said that it counts.
    assert_eq!(cost(&service, PORTED), by_digits);
    run(&service, &["account", "set", "main", "ported_numbers=true"]);
    let by_lookup = (json!("24702"), json!("0.09"));
    wait_for("the setting", || {
        (cost(&service, PORTED) == by_lookup).then_some(())
    });
    let before = service.balance();
    // Routes that name an account apply soon after it was created; until then, the message is refused.
    let body = sms_with(&json!({ "to": PORTED, "dlrUrl": receiver.url("/dlr") }));
    let id = wait_for("the routes of the account", || {
        let response = service.send(&body);
        (response.status == 200).then(|| response.json()[0].clone())
    });
    let request = wait_for_request(&ported, 1);
    assert_eq!(
        (before.as_str(), service.balance().as_str()),
        ("99.995", "99.905")
    );

    // The report of the carrier names the network that took it.
    let own = callback(&request);
    let report = json!({ "status": "delivered", "mccmnc": "24705" });
    assert_eq!(post(&service, path(&service, &own), &report).status, 200);
    assert!(receiver.wait_for(1, TEST_TIMEOUT));
    let expected = json!({ "id": id, "status": 1, "error": 0, "mcc": "247", "mnc": "05" });
    assert_eq!(receiver.received()[0].json(), expected);
    // It is another one, so the next message goes by that.
    let by_report = (json!("24705"), json!("0.20"));
    wait_for("the network of the report", || {
        (cost(&service, PORTED) == by_report).then_some(())
    });
    send(&service, &receiver, &json!({ "to": PORTED }));
    let own = callback(&wait_for_request(&home, 1));
    let report = json!({ "status": "delivered" });
    assert_eq!(post(&service, path(&service, &own), &report).status, 200);
    assert!(receiver.wait_for(2, TEST_TIMEOUT));

    // It is stored until it is erased.
    wait_for("the network in the export", || {
        let exported = service.server.cli_json(&["subject", "export", PORTED]);
        (exported["ported"]["network"] == "24705").then_some(())
    });
    // The last callback is noted as answered after the receiver has it.
    wait_for("the erasure", || {
        let erased = service.server.cli(&["subject", "erase", PORTED, "--yes"]);
        erased.status.success().then_some(())
    });
    wait_for("the price by its digits", || {
        (cost(&service, PORTED) == by_digits).then_some(())
    });
}
