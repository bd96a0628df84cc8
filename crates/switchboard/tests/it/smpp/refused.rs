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

#[test]
fn config_check_connects_to_the_carriers_of_a_configuration() {
    let smsc = NodeJsSmsc::start(&["--password", PASSWORD]);
    let wrong = NodeJsSmsc::start(&["--password", "another"]);
    let upstream = Service::start(Backend::Sqlite);
    let service = start(Backend::Sqlite, "");
    let other = |name: &str, token: &str| {
        let url = format!("http://{}", upstream.server.addr());
        format!(
            "[[carrier]]\nkind = \"upstream\"\nname = \"{name}\"\nurl = \"{url}\"\ntoken = \"{token}\"\n"
        )
    };
    let carriers = [
        carrier("alpha", smsc.addr(), ""),
        carrier("beta", wrong.addr(), ""),
        other("gamma", &upstream.token),
        other("delta", "of-nobody"),
    ];
    let file = service.server.data_dir().with_file_name("switchboard.toml");
    for (carriers, fails) in [(&carriers[..], true), (&carriers[..1], false)] {
        std::fs::write(&file, carriers.concat()).expect("written");
        let output = service.server.cli(&["config", "check", "--connect"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), !fails, "{text}");
        assert!(text.contains("carrier 'alpha' (smpp): works ("), "{text}");
        for expected in [
            format!("carrier 'beta' (smpp): failed: {REFUSED}").as_str(),
            "carrier 'gamma' (upstream): works (",
            "carrier 'delta' (upstream): failed: the upstream refuses the token; check carrier.token",
            "2 of 4 carriers cannot be reached",
        ] {
            assert_eq!(text.contains(expected), fails, "{expected}: {text}");
        }
        assert!(
            !text.contains(PASSWORD) && !text.contains(&upstream.token),
            "{text}"
        );
    }
    let is_left = |event: &NodeJsEvent| {
        !matches!(
            event,
            NodeJsEvent::Bind { .. } | NodeJsEvent::Unbind { .. } | NodeJsEvent::Close { .. }
        )
    };
    assert!(!smsc.events().iter().any(is_left), "{:?}", smsc.events());
}
