//! Messages and lookups that go through both services.

use serde_json::json;
use testkit::Backend;
use testkit::receiver::Receiver;

use super::{Chain, SENDER, wait_for_reported_states};
use crate::rest::service::{Service, wait_for};

/// Codes and parts come from the network; each service has its own IDs and balances.
fn messages_pass_both_services_and_are_reported_once(backend: Backend) {
    let chain = Chain::start(backend);
    let receiver = Receiver::start();
    let text = "A text of three parts. ".repeat(18);
    let long = chain.send(&receiver, &json!({"message": text}));
    let absent = chain.send(&receiver, &json!({"to": "+447700900043"}));
    let no_route = chain.send(&receiver, &json!({"to": "+447700900020"}));
    let coded = chain.send(
        &receiver,
        &json!({"to": "+37120000002", "message": "Hi", "coding": 2, "udh": "%05%00%03%2A%02%01"}),
    );
    // A second report on one of those would come before the report on this one.
    let mut expected = vec![
        (long.clone(), 1, 0),
        (absent, 2, 43),
        (no_route, 2, 20),
        (coded, 1, 0),
    ];
    assert_eq!(wait_for_reported_states(&receiver, 4).len(), 4);
    expected.push((chain.send(&receiver, &json!({})), 1, 0));
    expected.sort();
    assert_eq!(wait_for_reported_states(&receiver, 5), expected);

    let status = chain.front.get(&format!("/sms/status/{long}")).json();
    assert_eq!(
        (&status["state"], &status["parts"]),
        (&json!("delivered"), &json!(3))
    );
    let inbox = ["simulator", "inbox", "--number", "+37120000001", "--json"];
    let inbox = chain.upstream.server.cli_json(&inbox);
    let texts: Vec<_> = inbox
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| message["message"].clone())
        .collect();
    assert_eq!(texts.len(), 2, "each arrived once: {inbox}");
    assert!(texts.contains(&json!(text)), "{inbox}");
    // The upstream refunds messages that no network accepted, and so does the front service.
    assert_eq!(chain.front.balance(), chain.upstream.balance());
    for service in [&chain.front, &chain.upstream] {
        service.check_health();
        let output = service.server.output();
        assert!(!output.contains("/reports/"), "{output}");
    }
    let output = chain.front.server.output();
    assert!(!output.contains(&chain.upstream.token), "{output}");
}

/// Registers and approves [`SENDER`].
pub(crate) fn approve_sender(service: &Service) {
    let body = json!({"name": SENDER, "type": "AlphaNumeric", "category": "Brand", "categoryDescription": "our own name"});
    let registered = service.call_as(
        &service.token,
        "POST",
        "/senderId",
        body.to_string().as_bytes(),
    );
    assert_eq!(registered.status, 200, "{}", registered.text());
    let approve = ["sender", "approve", &registered.text()];
    let approved = service.server.cli(&approve);
    assert!(approved.status.success(), "{approved:?}");
}

fn a_viber_message_is_reported_as_seen_through_both_services(backend: Backend) {
    let chain = Chain::start(backend);
    approve_sender(&chain.front);
    approve_sender(&chain.upstream);
    let receiver = Receiver::start();
    let body = json!({
        "to": "+37120000001", "from": SENDER, "message": "Your order is on its way", "dlrUrl": receiver.url("/dlr"),
        "im": {"action": {"url": "https://example.com/order", "title": "Follow it"}},
    });
    let id = chain.accept("/viber", &body)[0]
        .as_str()
        .expect("an ID")
        .to_owned();
    let expected = [(id.clone(), 1, 0), (id, 3, 0)];
    assert_eq!(wait_for_reported_states(&receiver, 2), expected);
}

fn a_lookup_is_answered_through_both_services(backend: Backend) {
    let chain = Chain::start(backend);
    let receiver = Receiver::start();
    let networks = chain.upstream.get("/mccmnc/LV").json();
    for (number, expected) in [
        (
            "+37129100000",
            json!({"error": 0, "imsi": 247_017_129_100_000_u64, "country": "LV",
                "operatorId": networks[0]["operatorId"], "mcc": "247", "mnc": "01"}),
        ),
        ("+447700900050", json!({"error": 50})),
    ] {
        let body = json!({"msisdn": number, "callBackUrl": receiver.url("/hlr")});
        let id = chain.accept("/hlr", &body)[0].as_u64().expect("an ID");
        let result = wait_for("the result", || {
            let status = chain.front.get(&format!("/hlr/{id}")).json();
            (status["state"] == "done").then(|| status["result"].clone())
        });
        let mut expected = expected;
        expected["id"] = json!(id.to_string());
        assert_eq!(result, expected, "{number}");
        wait_for("the callback", || {
            let requests = receiver.received();
            requests
                .iter()
                .any(|one| one.json() == result)
                .then_some(())
        });
    }
    assert_eq!(receiver.count(), 2, "one report for each lookup");
    assert_eq!(chain.front.balance(), chain.upstream.balance());
}

crate::rest::on_both_backends!(
    messages_pass_both_services_and_are_reported_once,
    a_viber_message_is_reported_as_seen_through_both_services,
    a_lookup_is_answered_through_both_services,
);
