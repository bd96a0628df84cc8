//! Carriers change while the service runs.

use std::fs;
use std::time::Duration;

use serde_json::json;
use testkit::Backend;
use testkit::nodejs_smsc::{NodeJsEvent, NodeJsSmsc};
use testkit::receiver::Receiver;
use testkit::smsc::{Action, Smsc};

use super::{carrier, send, start, wait_for_submits};
use crate::chain::wait_for_reported_states;
use crate::faults::signal;
use crate::rest::service::{Service, wait_for};

const APPLIED: &str = "carriers and routes are as the configuration says now";
const NOT_APPLIED: &str = "carriers and routes stay as they were";

/// Messages that wait for the carrier that is removed, and its window in parts.
const MESSAGES: usize = 10;
const WINDOW: usize = 3;

/// Changes the configuration file, sends SIGHUP, and waits until the service logs `says`.
fn reload(service: &Service, config: &str, says: &str) {
    let count = || service.server.output().matches(says).count();
    let before = count();
    let file = service.server.data_dir().with_file_name("switchboard.toml");
    fs::write(file, config).expect("the configuration");
    signal::send("HUP", service.server.pid());
    wait_for(says, || (count() > before).then_some(()));
}

/// Routes Latvia to the first carrier, Lithuania to the second.
fn by_country(first: &str, second: &str) -> String {
    format!(
        "[[route]]\nprefix = \"371\"\ncarriers = [\"{first}\"]\n\n[[route]]\nprefix = \"370\"\ncarriers = [\"{second}\"]\n"
    )
}

/// Sends one message to each country.
fn send_both(service: &Service, receiver: &Receiver) {
    for to in ["+37120000001", "+37060000001"] {
        send(service, receiver, &json!({ "to": to }));
    }
}

fn binds(smsc: &NodeJsSmsc) -> usize {
    let is_bind = |event: &NodeJsEvent| matches!(event, NodeJsEvent::Bind { .. });
    smsc.events().iter().filter(|event| is_bind(event)).count()
}

fn has_unbound(smsc: &NodeJsSmsc) -> bool {
    let is_unbind = |event: &NodeJsEvent| matches!(event, NodeJsEvent::Unbind { .. });
    smsc.events().iter().any(is_unbind)
}

/// Unchanged carriers stay bound, removed ones are unbound gracefully, new ones are used.
#[test]
fn a_reload_affects_only_changed_carriers() {
    let [alpha, beta, gamma] = std::array::from_fn(|_| NodeJsSmsc::start(&[]));
    let unchanged = carrier("alpha", alpha.addr(), "");
    let before =
        unchanged.clone() + &carrier("beta", beta.addr(), "") + &by_country("alpha", "beta");
    let service = start(Backend::Sqlite, before.clone());
    let receiver = Receiver::start();
    send_both(&service, &receiver);
    wait_for_submits(&alpha, 1);
    wait_for_submits(&beta, 1);
    assert_eq!(wait_for_reported_states(&receiver, 2).len(), 2);

    let after = carrier("gamma", gamma.addr(), "") + &unchanged + &by_country("alpha", "gamma");
    reload(&service, &after, APPLIED);
    wait_for("the unbind", || has_unbound(&beta).then_some(()));
    send_both(&service, &receiver);
    wait_for_submits(&alpha, 2);
    wait_for_submits(&gamma, 1);
    assert_eq!(wait_for_reported_states(&receiver, 4).len(), 4);

    let broken = [
        ("no TOML", "[[carrier]\n".to_owned()),
        (
            "an unknown setting",
            format!("{after}\n[server]\nlisten_to = 1\n"),
        ),
        (
            "a route to an unknown carrier",
            unchanged.clone() + &by_country("alpha", "beta"),
        ),
        (
            "no cost list",
            before.replace("name = \"beta\"", "name = \"beta\"\ncosts = \"none.csv\""),
        ),
    ];
    for (number, (case, config)) in (3..).zip(broken) {
        reload(&service, &config, NOT_APPLIED);
        send_both(&service, &receiver);
        assert_eq!(wait_for_submits(&alpha, number).len(), number, "{case}");
        assert_eq!(
            wait_for_submits(&gamma, number - 1).len(),
            number - 1,
            "{case}"
        );
    }
    assert_eq!([&alpha, &beta, &gamma].map(binds), [1, 1, 1]);
    assert_eq!(
        [&alpha, &beta, &gamma].map(has_unbound),
        [false, true, false]
    );
    assert_eq!(beta.submits().len(), 1);
    service.check_health();
}

/// Messages that wait for a removed carrier take the new routes; messages in its window are settled there.
#[test]
fn messages_that_wait_for_a_removed_carrier_go_by_another() {
    let slow =
        Smsc::builder().on_submit(|_| vec![Action::Wait(Duration::from_secs(1)), Action::Answer]);
    let slow = slow.start();
    let quick = NodeJsSmsc::start(&[]);
    let service = start(
        Backend::Sqlite,
        carrier("slow", slow.addr(), &format!("window = {WINDOW}")),
    );
    let receiver = Receiver::start();
    // Two parts each: the window holds the first message, and one of the two parts of the second.
    let fields = json!({"message": "a".repeat(200)});
    for _ in 0..MESSAGES {
        send(&service, &receiver, &fields);
    }
    wait_for("the first part", || {
        (slow.log().submit_count > 0).then_some(())
    });
    reload(&service, &carrier("quick", quick.addr(), ""), APPLIED);
    let sent = wait_for("all are sent", || {
        let sent = (slow.log().submit_count, quick.submits().len());
        (sent.0 + sent.1 >= 2 * MESSAGES).then_some(sent)
    });
    assert!(sent.1 > 0, "{sent:?}");
    wait_for("the old carrier is unbound", || {
        let log = slow.log();
        (log.unbinds == 1 && log.closed == 1).then_some(())
    });
    assert_eq!(
        slow.log().submit_count + quick.submits().len(),
        2 * MESSAGES,
        "some parts were sent twice"
    );
}
