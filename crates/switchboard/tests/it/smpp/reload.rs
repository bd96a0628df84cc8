//! Carriers change while the service runs.

use std::fs;
use std::time::Duration;

use serde_json::json;
use testkit::Backend;
use testkit::node::{NodeEvent, NodeSmsc};
use testkit::receiver::Receiver;
use testkit::smsc::{Act, Smsc};

use super::{carrier, send, start, wait_for_submits};
use crate::chain::reported;
use crate::faults::signal;
use crate::rest::service::{Service, wait_for};

const FOLLOWED: &str = "carriers and routes are as the configuration says now";
const NOT_FOLLOWED: &str = "carriers and routes stay as they were";

/// So many messages wait for the carrier that is removed, and its window has room for so many parts.
const MESSAGES: usize = 10;
const WINDOW: usize = 3;

/// Changes the file, tells the service, and waits until it says so.
fn reload(service: &Service, config: &str, says: &str) {
    let count = || service.server.output().matches(says).count();
    let before = count();
    let file = service.server.data_dir().with_file_name("switchboard.toml");
    fs::write(file, config).expect("the configuration");
    signal::send("HUP", service.server.pid());
    wait_for(says, || (count() > before).then_some(()));
}

/// Latvia by the first, Lithuania by the second.
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

fn binds(smsc: &NodeSmsc) -> usize {
    let is_bind = |event: &NodeEvent| matches!(event, NodeEvent::Bind { .. });
    smsc.events().iter().filter(|event| is_bind(event)).count()
}

fn has_unbound(smsc: &NodeSmsc) -> bool {
    let is_unbind = |event: &NodeEvent| matches!(event, NodeEvent::Unbind { .. });
    smsc.events().iter().any(is_unbind)
}

/// What did not change stays bound; what is gone is unbound, not just cut off; what is new is used.
#[test]
fn a_changed_file_touches_only_what_changed() {
    let [alpha, beta, gamma] = std::array::from_fn(|_| NodeSmsc::start(&[]));
    let stays = carrier("alpha", alpha.addr(), "");
    let before = stays.clone() + &carrier("beta", beta.addr(), "") + &by_country("alpha", "beta");
    let service = start(Backend::Sqlite, before.clone());
    let receiver = Receiver::start();
    send_both(&service, &receiver);
    wait_for_submits(&alpha, 1);
    wait_for_submits(&beta, 1);
    assert_eq!(reported(&receiver, 2).len(), 2);

    let after = carrier("gamma", gamma.addr(), "") + &stays + &by_country("alpha", "gamma");
    reload(&service, &after, FOLLOWED);
    wait_for("the unbind", || has_unbound(&beta).then_some(()));
    send_both(&service, &receiver);
    wait_for_submits(&alpha, 2);
    wait_for_submits(&gamma, 1);
    assert_eq!(reported(&receiver, 4).len(), 4);

    let broken = [
        ("no TOML", "[[carrier]\n".to_owned()),
        (
            "an unknown setting",
            format!("{after}\n[server]\nlisten_to = 1\n"),
        ),
        (
            "a route to nobody",
            stays.clone() + &by_country("alpha", "beta"),
        ),
        (
            "no cost list",
            before.replace("name = \"beta\"", "name = \"beta\"\ncosts = \"none.csv\""),
        ),
    ];
    for (number, (case, config)) in (3..).zip(broken) {
        reload(&service, &config, NOT_FOLLOWED);
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

/// What waits for a carrier that is gone goes by the new routes; what is with it is settled there.
#[test]
fn what_waits_for_a_removed_carrier_goes_by_another() {
    let slow = Smsc::builder().on_submit(|_| vec![Act::Wait(Duration::from_secs(1)), Act::Answer]);
    let slow = slow.start();
    let quick = NodeSmsc::start(&[]);
    let service = start(
        Backend::Sqlite,
        carrier("slow", slow.addr(), &format!("window = {WINDOW}")),
    );
    let receiver = Receiver::start();
    // Two parts each: the first message is with the carrier, the second has one of the two places that it needs.
    let fields = json!({"message": "a".repeat(200)});
    for _ in 0..MESSAGES {
        send(&service, &receiver, &fields);
    }
    wait_for("the first part", || (slow.seen().taken > 0).then_some(()));
    reload(&service, &carrier("quick", quick.addr(), ""), FOLLOWED);
    let sent = wait_for("all are sent", || {
        let sent = (slow.seen().taken, quick.submits().len());
        (sent.0 + sent.1 >= 2 * MESSAGES).then_some(sent)
    });
    assert!(sent.1 > 0, "{sent:?}");
    wait_for("the end of the old one", || {
        let seen = slow.seen();
        (seen.unbinds == 1 && seen.closed == 1).then_some(())
    });
    assert_eq!(
        slow.seen().taken + quick.submits().len(),
        2 * MESSAGES,
        "none went twice"
    );
}
