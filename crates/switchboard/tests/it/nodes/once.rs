//! Several nodes send, charge and report everything once.
//!
//! The test counts what arrives outside. The carrier is a fake upstream that accepts repeated requests and sends each
//! of its reports to two nodes at once. The receiver accepts every report.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::http::{self, Connection};
use testkit::receiver::{ReceivedRequest, Receiver, Reply, Request};
use testkit::{Server, ServerBuilder, TEST_TIMEOUT};
use url::Url;

use super::Cluster;
use crate::rest::service::{ids, in_seconds, wait_for, with_offset};

const ALL_ROLES: &str = "api,auth,mcp,dashboard,worker";
/// The nodes that send. One more node only accepts, so the workers must claim its messages.
const WORKERS: usize = 3;
const ROLES: [&str; WORKERS + 1] = [ALL_ROLES, ALL_ROLES, ALL_ROLES, "api"];
/// Messages that each node schedules for the same moment.
const SCHEDULED: usize = 80;
/// Lookups, spread over the nodes.
const LOOKUPS: usize = 60;
/// Numbers that are each registered by three nodes at once.
const NUMBERS: usize = 20;
const REPORTS: usize = SCHEDULED * ROLES.len() + LOOKUPS;
/// Threads that send reports; as many send the same reports to another node.
const REPORT_THREADS: usize = 4;
/// Long enough to accept all scheduled messages.
const SCHEDULE_DELAY_S: i64 = 5;
/// Slow enough that no node finishes before the others have started.
const UPSTREAM_DELAY: Duration = Duration::from_millis(20);
/// The price of a message.
const PRICE: &str = "0.50";
/// [`super::BALANCE`] after 320 messages at 0.50 and 60 lookups at 0.25.
const BALANCE_LEFT: &str = "999825.00";

/// A fake upstream that accepts and records every request.
struct FakeUpstream {
    receiver: Receiver,
    recorded: Arc<RecordedRequests>,
}

#[derive(Default)]
struct RecordedRequests {
    requests: Mutex<Vec<UpstreamRequest>>,
    added: Condvar,
}

impl FakeUpstream {
    fn start() -> Self {
        let recorded = Arc::<RecordedRequests>::default();
        let log = recorded.clone();
        let on_request = move |request: &Request<'_>| {
            if request.method != "POST" {
                return Reply::ok();
            }
            let request = UpstreamRequest::read(request.body);
            let answer = json!([request.reference()]).to_string();
            log.requests.lock().expect("not poisoned").push(request);
            log.added.notify_all();
            Reply::answer(200, answer).after(UPSTREAM_DELAY)
        };
        Self {
            receiver: Receiver::builder().script(on_request).start(),
            recorded,
        }
    }

    /// Waits for this many requests, and returns all so far.
    fn requests(&self, count: usize) -> Vec<UpstreamRequest> {
        let requests = self.recorded.requests.lock().expect("not poisoned");
        let too_few = |requests: &mut Vec<UpstreamRequest>| requests.len() < count;
        let waited = self
            .recorded
            .added
            .wait_timeout_while(requests, TEST_TIMEOUT, too_few);
        let (requests, _) = waited.expect("not poisoned");
        assert!(
            requests.len() >= count,
            "{} of {count} requests came",
            requests.len()
        );
        requests.clone()
    }
}

/// A request to the upstream. The upstream derives its reference from the ID of the message.
#[derive(Clone)]
struct UpstreamRequest {
    id: String,
    to: String,
    is_lookup: bool,
    is_pin: bool,
    /// The address for its report.
    report: Url,
}

impl UpstreamRequest {
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

    /// The report of the upstream.
    fn report_body(&self) -> Value {
        let mut report = json!({ "id": self.reference(), "error": 0 });
        if !self.is_lookup {
            report["status"] = 1.into();
        }
        report
    }
}

/// Counts how often each item occurs.
fn tally(items: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in items {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// Checks that no item occurs twice, and returns all items, sorted.
fn assert_no_repetition(what: &str, items: impl IntoIterator<Item = String>) -> Vec<String> {
    let items = tally(items);
    let repeated: Vec<_> = items.iter().filter(|(_, count)| **count > 1).collect();
    let count = repeated.len();
    assert!(
        repeated.is_empty(),
        "{count} {what} more than once: {repeated:?}"
    );
    items.into_keys().collect()
}

/// Checks that exactly the expected items occur, once each.
fn assert_each_once(what: &str, expected: &[String], items: impl IntoIterator<Item = String>) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(assert_no_repetition(what, items), expected, "{what}");
}

fn start(upstream: &FakeUpstream) -> Cluster {
    let config = format!(
        "[[carrier]]\nname = \"up\"\nkind = \"upstream\"\nurl = \"{}\"\ntoken = \"theirs\"\n",
        upstream.receiver.url("")
    );
    let cluster = Cluster::start_each(ROLES.map(|roles| {
        let config = config.clone();
        // A node holds so few messages that it cannot claim all that are due.
        move |builder: ServerBuilder| {
            let builder = builder.config(config).arg("--roles").arg(roles);
            builder.env("SWITCHBOARD_LIMITS__HELD_MESSAGES", "60")
        }
    }));
    for (channel, price) in [("hlr", "0.25"), ("sms", PRICE)] {
        cluster.set_price(channel, price);
    }
    // A node that has the second price list also has the first.
    for node in 0..ROLES.len() {
        wait_for("the prices are known", || {
            let body = super::sms("how much?").to_string();
            let answer = cluster.call(node, "POST", "/sms/cost", body.as_bytes());
            (answer.json()[0]["pricePerPart"] == PRICE).then_some(())
        });
    }
    cluster
}

/// Schedules messages on every node for the same moment, and returns their IDs.
fn schedule(cluster: &Cluster, receiver: &Receiver) -> Vec<String> {
    let at = with_offset(in_seconds(SCHEDULE_DELAY_S), 0);
    let by_node = |node: usize| {
        let number = |index: usize| format!("+3712{:07}", node * SCHEDULED + index);
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

/// Requests lookups from all nodes in turn, and returns their IDs.
fn look_up(cluster: &Cluster, receiver: &Receiver) -> Vec<String> {
    let look_up_number = |index: usize| {
        let number = format!("+371291{index:05}");
        let body = json!({ "msisdn": number, "callBackUrl": receiver.url("/hlr") }).to_string();
        let answer = cluster.call(index % ROLES.len(), "POST", "/hlr", body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()[0].to_string()
    };
    (0..LOOKUPS).map(look_up_number).collect()
}

/// Registers each number on three nodes at once. Only one of them may accept it. Returns the numbers.
fn register(cluster: &Cluster) -> Vec<String> {
    let addrs: Vec<SocketAddr> = cluster.nodes.iter().map(Server::addr).collect();
    let token = cluster.token.as_str();
    let register_on = |addr: SocketAddr, number: &str| {
        let headers = [
            ("X-Service-Token", token),
            ("Content-Type", "application/json"),
        ];
        let body = json!({ "name": number, "type": "MSISDN" }).to_string();
        let answer = http::request(addr, "POST", "/senderId", &headers, body.as_bytes());
        answer.expect("an answer").status
    };
    let numbers: Vec<String> = (0..NUMBERS).map(|n| format!("+371268{n:05}")).collect();
    for (index, number) in numbers.iter().enumerate() {
        let mut answers: Vec<u16> = thread::scope(|scope| {
            let threads: Vec<_> = (index..index + 3)
                .map(|node| {
                    let addr = addrs[node % addrs.len()];
                    scope.spawn(move || register_on(addr, number))
                })
                .collect();
            let status =
                |handle: thread::ScopedJoinHandle<'_, u16>| handle.join().expect("no panic");
            threads.into_iter().map(status).collect()
        });
        answers.sort_unstable();
        assert_eq!(answers, [200, 409, 409], "{number}");
    }
    numbers
}

/// Sends each report of the upstream to two nodes at once.
fn send_reports(cluster: &Cluster, requests: &[UpstreamRequest]) {
    let addrs: Vec<SocketAddr> = cluster.nodes[..WORKERS].iter().map(Server::addr).collect();
    let send_all = |requests: &[UpstreamRequest], shift: usize| {
        let open = |addr: &SocketAddr| Connection::open(*addr).expect("it is up");
        let mut connections: Vec<Connection> = addrs.iter().map(open).collect();
        for (index, request) in requests.iter().enumerate() {
            let (path, body) = (request.report.path(), request.report_body().to_string());
            let headers = [("Content-Type", "application/json")];
            let connection = &mut connections[(index + shift) % WORKERS];
            // On a slow machine the node may answer 503; then the report is sent again.
            wait_for("the report is accepted", || {
                let answer = connection.request("POST", path, &headers, body.as_bytes());
                let answer = answer.expect("an answer");
                assert!([200, 503].contains(&answer.status), "{}", answer.text());
                (answer.status == 200).then_some(())
            });
        }
    };
    thread::scope(|scope| {
        for part in requests.chunks(requests.len() / REPORT_THREADS + 1) {
            scope.spawn(|| send_all(part, 0));
            scope.spawn(|| send_all(part, 1));
        }
    });
}

/// Prints how many requests each node sent.
fn print_shares(requests: &[UpstreamRequest]) {
    let shares = tally(requests.iter().map(|request| {
        let kind = match request {
            UpstreamRequest { is_pin: true, .. } => "PIN",
            UpstreamRequest {
                is_lookup: true, ..
            } => "lookup",
            _ => "scheduled",
        };
        format!("{kind} by port {}", request.report.port().unwrap_or(0))
    }));
    for (share, count) in shares {
        eprintln!("{count:4} {share}");
    }
}

/// Waits until this many reports came and none is pending; returns the IDs of the reported messages.
fn wait_for_reported_ids(cluster: &Cluster, receiver: &Receiver, count: usize) -> Vec<String> {
    let all_came = receiver.wait_for(count, TEST_TIMEOUT);
    assert!(all_came, "{} of {count} reports came", receiver.count());
    wait_for("no report is pending", || {
        (cluster.cli(&["callbacks", "list", "--json"]) == json!([])).then_some(())
    });
    receiver.received().iter().map(id_of).collect()
}

fn id_of(report: &ReceivedRequest) -> String {
    report.json()["id"].as_str().expect("an ID").to_owned()
}

#[test]
fn several_nodes_do_everything_once() {
    let (upstream, receiver) = (FakeUpstream::start(), Receiver::start());
    let mut cluster = start(&upstream);
    let mut messages = schedule(&cluster, &receiver);
    messages.extend(look_up(&cluster, &receiver));
    let numbers = register(&cluster);

    let all = REPORTS + NUMBERS;
    let requests = upstream.requests(all);
    assert_no_repetition("sent", requests.iter().map(|request| request.id.clone()));
    send_reports(&cluster, &requests);
    assert_each_once(
        "reported",
        &messages,
        wait_for_reported_ids(&cluster, &receiver, REPORTS),
    );
    // A node holds the reports that it stores itself. Replayed ones have no owner, so the nodes must claim them.
    let prefix = receiver.url("/");
    cluster.run_command(&["callbacks", "replay", "--url", &prefix, "--all"]);
    wait_for_reported_ids(&cluster, &receiver, 2 * REPORTS);
    let ledger = cluster.cli(&["account", "ledger", "acme", "--limit", "10000", "--json"]);
    let accounts = cluster.cli(&["account", "list", "--json"]);
    cluster.run_command(&["account", "check"]);
    // The nodes finish their work before they stop.
    for node in &mut cluster.nodes {
        assert!(node.terminate().success());
    }

    let requests = upstream.requests(all);
    print_shares(&requests);
    let (pins, others): (Vec<UpstreamRequest>, _) =
        requests.into_iter().partition(|request| request.is_pin);
    assert_each_once(
        "sent",
        &messages,
        others.into_iter().map(|request| request.id),
    );
    assert_each_once("PINs", &numbers, pins.into_iter().map(|request| request.to));
    let repeated = receiver.received().split_off(REPORTS);
    assert_each_once("reported again", &messages, repeated.iter().map(id_of));
    let ledger = ledger.as_array().expect("a list").iter();
    let entries = ledger.filter(|entry| entry["kind"] != "credit");
    let charged = entries.map(|entry| {
        assert_eq!(entry["kind"], "charge", "{entry}");
        entry["messages"].as_u64().expect("a number")
    });
    assert_eq!(charged.sum::<u64>(), REPORTS as u64, "each is charged once");
    let acme = accounts.as_array().expect("a list").iter();
    let mut acme = acme.filter(|account| account["name"] == "acme");
    assert_eq!(acme.next().expect("the account")["balance"], BALANCE_LEFT);
}
