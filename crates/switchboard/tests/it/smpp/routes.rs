//! Which carrier of a route gets a message.

use std::fs;

use serde_json::json;
use testkit::nodejs_smsc::NodeJsSmsc;
use testkit::receiver::Receiver;
use testkit::smsc::Smsc;
use testkit::{Backend, temp_dir};

use super::{carrier, carrier_list, send, start, wait_for_submits};
use crate::chain::wait_for_reported_states;
use crate::rest::service::{Service, sms_with, wait_for};

fn wait_for_health(service: &Service, carrier: usize, health: &str) {
    wait_for(health, || {
        (carrier_list(service)[carrier]["health"] == health).then_some(())
    });
}

#[test]
fn the_second_carrier_takes_over_while_the_first_is_down() {
    let mut first = NodeJsSmsc::start(&[]);
    let second = NodeJsSmsc::start(&[]);
    let config = carrier("alpha", first.addr(), "") + &carrier("beta", second.addr(), "");
    let service = start(
        Backend::Sqlite,
        config + "[[route]]\ncarriers = [\"alpha\", \"beta\"]\n",
    );
    let receiver = Receiver::start();
    wait_for_health(&service, 0, "up");
    wait_for_health(&service, 1, "up");
    send(&service, &receiver, &json!({}));
    assert_eq!(wait_for_submits(&first, 1).len(), 1);
    // A message whose answer is lost with the SMSC may go to the second carrier, so wait for the report.
    wait_for_reported_states(&receiver, 1);

    first.kill9();
    for number in 1..=10 {
        send(&service, &receiver, &json!({}));
        assert_eq!(wait_for_submits(&second, number).len(), number);
    }
    wait_for_health(&service, 0, "down");
    let note = carrier_list(&service)[0]["note"].clone();
    let note = note.as_str().expect("a reason").to_owned();
    assert!(note.contains("refused") || note.contains("lost"), "{note}");

    first.restart(&[]);
    wait_for_health(&service, 0, "up");
    send(&service, &receiver, &json!({}));
    assert_eq!(wait_for_submits(&first, 2).len(), 2);
    let reports = wait_for_reported_states(&receiver, 12);
    assert!(
        reports
            .iter()
            .all(|(_, status, error)| (*status, *error) == (1, 0)),
        "{reports:?}"
    );
    assert_eq!(second.submits().len(), 10);
}

/// A service with two SMSCs that only count.
struct Pair {
    smscs: [Smsc; 2],
    service: Service,
}

impl Pair {
    fn start(settings: [&str; 2], routes: &str) -> Self {
        let smscs = [Smsc::start(), Smsc::start()];
        let config = carrier("alpha", smscs[0].addr(), settings[0])
            + &carrier("beta", smscs[1].addr(), settings[1])
            + routes;
        let service = start(Backend::Sqlite, config);
        for number in [0, 1] {
            wait_for_health(&service, number, "up");
        }
        Self { smscs, service }
    }

    /// Sends to all of these numbers, and returns how many messages each SMSC has got so far.
    fn send(&self, to: &[String]) -> [usize; 2] {
        let before: usize = self.submit_counts().iter().sum();
        self.service.accept(&sms_with(&json!({ "to": to })));
        wait_for("all are sent", || {
            Some(self.submit_counts())
                .filter(|submit_counts| submit_counts.iter().sum::<usize>() == before + to.len())
        })
    }

    fn submit_counts(&self) -> [usize; 2] {
        [0, 1].map(|number| self.smscs[number].log().submit_count)
    }
}

/// Distinct numbers with this start.
fn numbers(start: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{start}{number:05}"))
        .collect()
}

#[test]
fn each_carrier_gets_its_share() {
    let routes = "[[route]]\ncarriers = [\"alpha\", \"beta\"]\nby = \"share\"\nweights = [3, 1]\n";
    let pair = Pair::start(["", ""], routes);
    let [alpha, beta] = pair.send(&numbers("+371200", 400));
    // Three of four, within the limits of chance.
    assert!((265..=335).contains(&alpha), "{alpha} and {beta}");
}

/// Other messages in between do not change the shares of a route.
#[test]
fn shares_do_not_depend_on_other_traffic() {
    let routes = "[[route]]\nprefix = \"371\"\ncarriers = [\"alpha\", \"beta\"]\nby = \"share\"\nweights = [1, 1]\n\
                  [[route]]\ncarriers = [\"beta\"]\n";
    let pair = Pair::start(["", ""], routes);
    let mixed: Vec<_> = numbers("+371200", 200)
        .into_iter()
        .zip(numbers("+370600", 200))
        .flat_map(|(shared, other)| [shared, other])
        .collect();
    let [alpha, beta] = pair.send(&mixed);
    assert!((65..=135).contains(&alpha), "{alpha} and {beta}");
}

#[test]
fn the_cheapest_carrier_comes_first() {
    let folder = temp_dir("costs").expect("a temporary folder");
    let header = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n";
    let row = |country: &str, mcc: u16, rate: &str| {
        format!("{country},All other carriers,All other carriers,{mcc},,{rate}\n")
    };
    let alpha = row("Latvia,LV", 247, "0.01") + &row("Lithuania,LT", 246, "0.02");
    let beta = row("Latvia,LV", 247, "0.02")
        + &row("Lithuania,LT", 246, "0.01")
        + &row("Estonia,EE", 248, "9");
    let costs = [("alpha.csv", alpha), ("beta.csv", beta)].map(|(name, rows)| {
        let path = folder.path().join(name);
        fs::write(&path, format!("{header}{rows}")).expect("a file");
        format!("costs = \"{}\"", path.display())
    });
    let routes = "[[route]]\ncarriers = [\"alpha\", \"beta\"]\nby = \"cost\"\n";
    let pair = Pair::start([&costs[0], &costs[1]], routes);
    assert_eq!(pair.send(&numbers("+371200", 30)), [30, 0], "Latvia");
    assert_eq!(pair.send(&numbers("+370600", 20)), [30, 20], "Lithuania");
    assert_eq!(
        pair.send(&numbers("+37251", 10)),
        [30, 30],
        "only one carrier has a price"
    );
    assert_eq!(
        pair.send(&numbers("+3069000", 5)),
        [35, 30],
        "no carrier has a price"
    );
}
