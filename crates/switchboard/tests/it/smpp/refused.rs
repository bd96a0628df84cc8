//! An SMSC that does not let us in.

use serde_json::json;
use testkit::Backend;
use testkit::node::{NodeEvent, NodeSmsc};
use testkit::receiver::Receiver;

use super::{PASSWORD, carrier, carrier_list, send, start};
use crate::chain::reported;
use crate::rest::service::{Service, wait_for};

crate::rest::on_both_backends!(a_refused_bind_says_what_to_check_and_messages_wait);

const REFUSED: &str =
    "bind refused: ESME_RINVPASWD (0x0000000E), wrong password; check system_id and password";

fn a_refused_bind_says_what_to_check_and_messages_wait(backend: Backend) {
    let mut smsc = NodeSmsc::start(&["--password", "another"]);
    let service = start(backend, carrier("alpha", smsc.addr(), ""));
    let receiver = Receiver::start();
    let id = send(&service, &receiver, &json!({}));
    let shown = wait_for("the carrier's note", || {
        let shown = carrier_list(&service).remove(0);
        (shown["note"] == REFUSED).then_some(shown)
    });
    let state = (&shown["health"], &shown["linksUp"], &shown["links"]);
    assert_eq!(state, (&json!("down"), &json!(0), &json!(1)), "{shown}");
    assert_eq!(state_of(&service, &id), "queued");
    for entry in smsc.events() {
        assert!(
            matches!(
                entry,
                NodeEvent::Bind { status: 0xE, .. } | NodeEvent::Close { .. }
            ),
            "{entry:?}"
        );
    }

    smsc.restart(&["--password", PASSWORD]);
    assert_eq!(reported(&receiver, 1), [(id, 1, 0)]);
    let list = wait_for("the carrier is up", || {
        let list = carrier_list(&service);
        (list[0]["health"] == "up").then_some(list)
    });
    assert_eq!(list[0]["note"], json!(null), "{list:?}");
    let table = service.server.cli(&["carrier", "list"]);
    let told =
        [&table.stdout, &table.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    for told in [told.concat(), service.server.output()] {
        assert!(!told.contains(PASSWORD), "{told}");
    }
    service.check_health();
}

fn state_of(service: &Service, id: &str) -> String {
    let status = service.get(&format!("/sms/status/{id}")).json();
    status["state"].as_str().expect("a state").to_owned()
}
