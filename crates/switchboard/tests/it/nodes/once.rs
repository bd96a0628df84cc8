//! Whatever the number of nodes: each thing is sent, charged and reported once.
//!
//! What counts is what arrives outside. The carrier is an upstream of the test, which takes the same thing as often as it
//! comes; it brings each of its reports to two nodes at once. The caller's receiver takes whatever is reported.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::http::{self, Connection};
use testkit::receiver::{Received, Receiver, Reply, Request};
use testkit::{PATIENCE, Server, ServerBuilder};
use url::Url;

use super::Cluster;
use crate::rest::service::{ids, in_seconds, wait_for, with_offset};

const ALL: &str = "api,auth,mcp,dashboard,worker";
/// The nodes that send; the one behind them only accepts, so that whatever comes by it is claimed by one of them.
const WORKERS: usize = 3;
const ROLES: [&str; WORKERS + 1] = [ALL, ALL, ALL, "api"];
/// Scheduled for one moment, by each node.
const SCHEDULED: usize = 80;
/// Spread over the nodes.
const LOOKUPS: usize = 60;
/// Numbers, each registered by three nodes at once.
const NUMBERS: usize = 20;
const REPORTED: usize = SCHEDULED * ROLES.len() + LOOKUPS;
/// So many at once bring reports, and as many the same ones to another node.
const BRINGERS: usize = 4;
/// Long enough to accept all that is scheduled.
const AHEAD_S: i64 = 5;
/// So long a carrier takes: nobody is done before the others have begun.
const CARRIER_TAKES: Duration = Duration::from_millis(20);
/// Of a message.
const PRICE: &str = "0.50";
/// What 320 messages at 0.50 and 60 lookups at 0.25 leave of [`super::BALANCE`].
const LEFT: &str = "999825.00";

/// Takes whatever comes, and writes it down.
struct Upstream {
    receiver: Receiver,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken {
    orders: Mutex<Vec<Order>>,
    added: Condvar,
}

impl Upstream {
    fn start() -> Self {
        let taken = Arc::<Taken>::default();
        let book = taken.clone();
        let take = move |request: &Request<'_>| {
            if request.method != "POST" {
                return Reply::ok();
            }
            let order = Order::read(request.body);
            let answer = json!([order.reference()]).to_string();
            book.orders.lock().expect("not poisoned").push(order);
            book.added.notify_all();
            Reply::answer(200, answer).after(CARRIER_TAKES)
        };
        Self {
            receiver: Receiver::builder().script(take).start(),
            taken,
        }
    }

    /// What was taken so far, once it is so much.
    fn orders(&self, count: usize) -> Vec<Order> {
        let orders = self.taken.orders.lock().expect("not poisoned");
        let few = |orders: &mut Vec<Order>| orders.len() < count;
        let waited = self.taken.added.wait_timeout_while(orders, PATIENCE, few);
        let (orders, _) = waited.expect("not poisoned");
        assert!(orders.len() >= count, "{} of {count} sent", orders.len());
        orders.clone()
    }
}

/// What the upstream was asked to do. It names it after the message's own ID.
#[derive(Clone)]
struct Order {
    id: String,
    to: String,
    is_lookup: bool,
    is_pin: bool,
    /// Where its report goes.
    report: Url,
}

impl Order {
    fn read(body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).expect("JSON");
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let is_lookup = body.get("msisdn").is_some();
        let report = text("dlrUrl").or_else(|| text("callBackUrl"));
        let report = Url::parse(&report.expect("an address")).expect("a URL");
        let mut segments = report.path_segments().expect("a path");
        Self {
            id: segments.nth(3).expect("the message").to_owned(),
            to: text("to").or_else(|| text("msisdn")).expect("a number"),
            is_lookup,
            is_pin: text("message").is_some_and(|text| text.contains("confirmation code")),
            report,
        }
    }

    fn reference(&self) -> String {
        format!("up{}", self.id)
    }

    /// The upstream's report on it.
    fn outcome(&self) -> Value {
        let mut report = json!({ "id": self.reference(), "error": 0 });
        if !self.is_lookup {
            report["status"] = 1.into();
        }
        report
    }
}

/// How often each came.
fn tally(of: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in of {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// Returns what came, sorted; nothing may have come again.
fn without_repetition(what: &str, came: impl IntoIterator<Item = String>) -> Vec<String> {
    let came = tally(came);
    let again: Vec<_> = came.iter().filter(|(_, count)| **count > 1).collect();
    let count = again.len();
    assert!(again.is_empty(), "{count} {what} more than once: {again:?}");
    came.into_keys().collect()
}

/// Each of these, and nothing else, came once.
fn each_once(what: &str, expected: &[String], came: impl IntoIterator<Item = String>) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(without_repetition(what, came), expected, "{what}");
}

fn start(upstream: &Upstream) -> Cluster {
    let config = format!(
        "[[carrier]]\nname = \"up\"\nkind = \"upstream\"\nurl = \"{}\"\ntoken = \"theirs\"\n",
        upstream.receiver.url("")
    );
    let cluster = Cluster::of(ROLES.map(|roles| {
        let config = config.clone();
        // So few are held that no node can take all that is due at once.
        move |builder: ServerBuilder| {
            let builder = builder.config(config).arg("--roles").arg(roles);
            builder.env("SWITCHBOARD_LIMITS__HELD_MESSAGES", "60")
        }
    }));
    for (channel, price) in [("hlr", "0.25"), ("sms", PRICE)] {
        cluster.set_price(channel, price);
    }
    // Who has seen the second list has seen the first.
    for node in 0..ROLES.len() {
        wait_for("the prices are known", || {
            let body = super::sms("how much?").to_string();
            let answer = cluster.call(node, "POST", "/sms/cost", body.as_bytes());
            (answer.json()[0]["pricePerPart"] == PRICE).then_some(())
        });
    }
    cluster
}

/// Schedules messages by every node for one moment; their IDs.
fn schedule(cluster: &Cluster, receiver: &Receiver) -> Vec<String> {
    let at = with_offset(in_seconds(AHEAD_S), 0);
    let by_node = |node: usize| {
        let number = |place: usize| format!("+3712{:07}", node * SCHEDULED + place);
        let to: Vec<String> = (0..SCHEDULED).map(number).collect();
        let body = json!({
            "to": to, "from": "Acme", "message": "now", "scheduled": at, "dlrUrl": receiver.url("/dlr"),
        });
        let answer = cluster.call(node, "POST", "/sms", body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        ids(&answer)
    };
    (0..ROLES.len()).flat_map(by_node).collect()
}

/// Asks every node for lookups in turn; their IDs.
fn look_up(cluster: &Cluster, receiver: &Receiver) -> Vec<String> {
    let ask = |place: usize| {
        let number = format!("+371291{place:05}");
        let body = json!({ "msisdn": number, "callBackUrl": receiver.url("/hlr") }).to_string();
        let answer = cluster.call(place % ROLES.len(), "POST", "/hlr", body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()[0].to_string()
    };
    (0..LOOKUPS).map(ask).collect()
}

/// Registers numbers, each by three nodes in the same moment, of which one may take it; the numbers.
fn register(cluster: &Cluster) -> Vec<String> {
    let addrs: Vec<SocketAddr> = cluster.nodes.iter().map(Server::addr).collect();
    let token = cluster.token.as_str();
    let by = |addr: SocketAddr, number: &str| {
        let headers = [
            ("X-Service-Token", token),
            ("Content-Type", "application/json"),
        ];
        let body = json!({ "name": number, "type": "MSISDN" }).to_string();
        let answer = http::request(addr, "POST", "/senderId", &headers, body.as_bytes());
        answer.expect("an answer").status
    };
    let numbers: Vec<String> = (0..NUMBERS).map(|n| format!("+371268{n:05}")).collect();
    for (place, number) in numbers.iter().enumerate() {
        let mut answers: Vec<u16> = thread::scope(|scope| {
            let asked: Vec<_> = (place..place + 3)
                .map(|node| {
                    let addr = addrs[node % addrs.len()];
                    scope.spawn(move || by(addr, number))
                })
                .collect();
            let status = |asked: thread::ScopedJoinHandle<'_, u16>| asked.join().expect("no panic");
            asked.into_iter().map(status).collect()
        });
        answers.sort_unstable();
        assert_eq!(answers, [200, 409, 409], "{number}");
    }
    numbers
}

/// Brings the upstream's reports, each to two nodes at once.
fn report(cluster: &Cluster, orders: &[Order]) {
    let addrs: Vec<SocketAddr> = cluster.nodes[..WORKERS].iter().map(Server::addr).collect();
    let bring = |orders: &[Order], shift: usize| {
        let open = |addr: &SocketAddr| Connection::open(*addr).expect("it is up");
        let mut connections: Vec<Connection> = addrs.iter().map(open).collect();
        for (place, order) in orders.iter().enumerate() {
            let (path, body) = (order.report.path(), order.outcome().to_string());
            let headers = [("Content-Type", "application/json")];
            let connection = &mut connections[(place + shift) % WORKERS];
            // On a slow machine it may be told to come again, and does.
            wait_for("the report is taken", || {
                let answer = connection.request("POST", path, &headers, body.as_bytes());
                let answer = answer.expect("an answer");
                assert!([200, 503].contains(&answer.status), "{}", answer.text());
                (answer.status == 200).then_some(())
            });
        }
    };
    thread::scope(|scope| {
        for part in orders.chunks(orders.len() / BRINGERS + 1) {
            scope.spawn(|| bring(part, 0));
            scope.spawn(|| bring(part, 1));
        }
    });
}

/// Which node sent how many of what was claimed.
fn print_shares(orders: &[Order]) {
    let shares = tally(orders.iter().map(|order| {
        let kind = match order {
            Order { is_pin: true, .. } => "PIN",
            Order {
                is_lookup: true, ..
            } => "lookup",
            _ => "scheduled",
        };
        format!("{kind} by port {}", order.report.port().unwrap_or(0))
    }));
    for (share, count) in shares {
        eprintln!("{count:4} {share}");
    }
}

/// The IDs of what was reported, once so many reports came and none is under way.
fn reported(cluster: &Cluster, receiver: &Receiver, count: usize) -> Vec<String> {
    let came = receiver.wait_for(count, PATIENCE);
    assert!(came, "{} of {count} reports came", receiver.count());
    wait_for("no report is under way", || {
        (cluster.cli(&["callbacks", "list", "--json"]) == json!([])).then_some(())
    });
    receiver.received().iter().map(id_of).collect()
}

fn id_of(report: &Received) -> String {
    report.json()["id"].as_str().expect("an ID").to_owned()
}

#[test]
fn what_many_nodes_could_do_is_done_once() {
    let (upstream, receiver) = (Upstream::start(), Receiver::start());
    let mut cluster = start(&upstream);
    let mut messages = schedule(&cluster, &receiver);
    messages.extend(look_up(&cluster, &receiver));
    let numbers = register(&cluster);

    let all = REPORTED + NUMBERS;
    let orders = upstream.orders(all);
    without_repetition("sent", orders.iter().map(|order| order.id.clone()));
    report(&cluster, &orders);
    each_once(
        "reported",
        &messages,
        reported(&cluster, &receiver, REPORTED),
    );
    // A command queues them for nobody in particular, where a node that stores a report holds it.
    let prefix = receiver.url("/");
    cluster.done(&["callbacks", "replay", "--url", &prefix, "--all"]);
    reported(&cluster, &receiver, 2 * REPORTED);
    let ledger = cluster.cli(&["account", "ledger", "acme", "--limit", "10000", "--json"]);
    let accounts = cluster.cli(&["account", "list", "--json"]);
    cluster.done(&["account", "check"]);
    // What they still have in hand they finish before they end.
    for node in &mut cluster.nodes {
        assert!(node.terminate().success());
    }

    let orders = upstream.orders(all);
    print_shares(&orders);
    let (pins, others): (Vec<Order>, _) = orders.into_iter().partition(|order| order.is_pin);
    each_once("sent", &messages, others.into_iter().map(|order| order.id));
    each_once("PINs", &numbers, pins.into_iter().map(|order| order.to));
    let again = receiver.received().split_off(REPORTED);
    each_once("reported again", &messages, again.iter().map(id_of));
    let ledger = ledger.as_array().expect("a list").iter();
    let entries = ledger.filter(|entry| entry["kind"] != "credit");
    let charged = entries.map(|entry| {
        assert_eq!(entry["kind"], "charge", "{entry}");
        entry["messages"].as_u64().expect("a number")
    });
    assert_eq!(
        charged.sum::<u64>(),
        REPORTED as u64,
        "each is charged once"
    );
    let acme = accounts.as_array().expect("a list").iter();
    let mut acme = acme.filter(|account| account["name"] == "acme");
    assert_eq!(acme.next().expect("the account")["balance"], LEFT);
}
