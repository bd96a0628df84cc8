//! An SMSC that refuses the bind.

use serde_json::json;
use testkit::Backend;
use testkit::nodejs_smsc::{NodeJsEvent, NodeJsSmsc};
use testkit::receiver::Receiver;

use super::{PASSWORD, carrier, carrier_list, send, start};
use crate::chain::wait_for_reported_states;
use crate::rest::service::{Service, wait_for};

crate::rest::on_both_backends!(a_refused_bind_says_what_to_check_and_messages_wait);

const REFUSED: &str =
    "bind refused: ESME_RINVPASWD (0x0000000E), wrong password; check system_id and password";

fn a_refused_bind_says_what_to_check_and_messages_wait(backend: Backend) {
    let mut smsc = NodeJsSmsc::start(&["--password", "another"]);
    let service = start(backend, carrier("alpha", smsc.addr(), ""));
    let receiver = Receiver::start();
    let id = send(&service, &receiver, &json!({}));
    let status = wait_for("the carrier's note", || {
        let status = carrier_list(&service).remove(0);
        (status["note"] == REFUSED).then_some(status)
    });
    let state = (&status["health"], &status["linksUp"], &status["links"]);
    assert_eq!(state, (&json!("down"), &json!(0), &json!(1)), "{status}");
    assert_eq!(message_state(&service, &id), "queued");
    for entry in smsc.events() {
        assert!(
            matches!(
                entry,
                NodeJsEvent::Bind { status: 0xE, .. } | NodeJsEvent::Close { .. }
            ),
            "{entry:?}"
        );
    }

    smsc.restart(&["--password", PASSWORD]);
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);
    let list = wait_for("the carrier is up", || {
        let list = carrier_list(&service);
        (list[0]["health"] == "up").then_some(list)
    });
    assert_eq!(list[0]["note"], json!(null), "{list:?}");
    let table = service.server.cli(&["carrier", "list"]);
    let output =
        [&table.stdout, &table.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    for output in [output.concat(), service.server.output()] {
        assert!(!output.contains(PASSWORD), "{output}");
    }
    service.check_health();
}

fn message_state(service: &Service, id: &str) -> String {
    let status = service.get(&format!("/sms/status/{id}")).json();
    status["state"].as_str().expect("a state").to_owned()
}
