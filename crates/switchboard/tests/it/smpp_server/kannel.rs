//! Kannel as a client, set up by its user guide.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use testkit::http::Connection;
use testkit::kannel::{Kannel, KannelOptions};
use testkit::receiver::Receiver;
use testkit::{Backend, Server, TestDatabase};

use super::{CONFIG, create_user, smpp_address, start};
use crate::rest::service::{binary, wait_for};

/// Set for the run with many messages.
const LONG_VARIABLE: &str = "SWITCHBOARD_TEST_LONG";
const MESSAGES: usize = 200;
const MANY_MESSAGES: usize = 20_000;

/// The reports that Kannel makes about its messages, by their number.
struct Reports {
    receiver: Receiver,
    counts: Arc<Mutex<BTreeMap<usize, usize>>>,
}

impl Reports {
    fn start() -> Self {
        let counts = Arc::<Mutex<BTreeMap<usize, usize>>>::default();
        let counted = counts.clone();
        let receiver = Receiver::builder().on_request(move |path, _| {
            // The last segment is 1: delivered.
            let number = path.strip_prefix("/report/").expect("our path");
            let number = number.strip_suffix("/1").expect("delivered");
            let number = number.parse().expect("a number");
            let mut counts = counted.lock().expect("no holder panics");
            *counts.entry(number).or_default() += 1;
        });
        Self {
            receiver: receiver.start(),
            counts,
        }
    }

    fn send(&self, kannel: &Kannel, messages: Range<usize>) {
        let mut connection = Connection::open(kannel.addr()).expect("it listens");
        for number in messages {
            let url = self.receiver.url(&format!("/report/{number}/%d"));
            let path = Kannel::sending_path("+447700900000", &url);
            let answer = connection.request("GET", &path, &[], b"");
            let answer = answer.expect("an answer");
            assert_eq!(answer.status, 202, "{}", answer.text());
        }
    }

    /// Waits until this many messages are reported; returns how many reports came for a message that had one.
    fn wait_for(&self, messages: usize) -> usize {
        wait_for("the reports", || {
            let counts = self.counts.lock().expect("no holder panics");
            let reports: usize = counts.values().sum();
            (counts.len() >= messages).then(|| reports - counts.len())
        })
    }
}

fn start_kannel(server: &Server, servers: &[std::net::SocketAddr]) -> Kannel {
    let password = create_user(server, "kannel", &[]);
    let options = KannelOptions {
        servers,
        system_id: "kannel",
        password: &password,
        window: 100,
        with_spool: false,
    };
    Kannel::start(&options).expect("it starts")
}

#[test]
fn kannel_gets_a_receipt_for_each_message() {
    let (service, address) = start(Backend::Sqlite, "");
    let kannel = start_kannel(&service.server, &[address]);
    let reports = Reports::start();
    reports.send(&kannel, 0..MESSAGES);
    assert_eq!(reports.wait_for(MESSAGES), 0, "none came twice");
    drop(kannel);
    service.check_health();
}

/// Kannel sends a message again if its answer was lost, so some may be stored and delivered twice; none is lost.
#[test]
fn kannel_gets_every_receipt_while_a_node_is_killed() {
    if std::env::var_os(LONG_VARIABLE).is_none() {
        println!("this takes minutes and runs only with {LONG_VARIABLE}=1");
        return;
    }
    let database = TestDatabase::create_blocking();
    let start = || {
        Server::builder(binary(), Backend::Sqlite)
            .env("SWITCHBOARD_DATABASE__URL", database.url())
            .config(CONFIG)
            .start()
    };
    let [mut first, second] = [start(), start()];
    let credited = second.cli(&["account", "credit", "main", "1000000"]);
    assert!(credited.status.success(), "{credited:?}");
    let servers = [smpp_address(&first), smpp_address(&second)];
    let kannel = start_kannel(&first, &servers);
    let reports = Reports::start();
    reports.send(&kannel, 0..MANY_MESSAGES / 2);
    reports.wait_for(MANY_MESSAGES / 8);
    first.kill9();
    reports.send(&kannel, MANY_MESSAGES / 2..MANY_MESSAGES);
    let repeated = reports.wait_for(MANY_MESSAGES);
    println!("{MANY_MESSAGES} messages reported, {repeated} reports more than once");
}
