//! Rolling restarts while callers send: no request fails.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use testkit::ServerBuilder;
use testkit::balancer::Balancer;
use testkit::http::{self, Connection};

use super::{Cluster, sms};
use crate::faults::signal;
use crate::rest::service::{ids, wait_for};

const CALLERS: usize = 4;
const ROUNDS: usize = 3;

fn draining(builder: ServerBuilder) -> ServerBuilder {
    builder
        .env("SWITCHBOARD_LIMITS__DRAIN_SECONDS", "1")
        .env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
}

/// Sends until `stop` is set, and returns the IDs of its messages. It panics on any answer but 200.
fn caller(
    addr: SocketAddr,
    token: String,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
) -> JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let headers = [
            ("X-Service-Token", token.as_str()),
            ("Content-Type", "application/json"),
        ];
        let body = sms("while nodes come and go").to_string();
        let mut sent = Vec::new();
        let mut kept: Option<Connection> = None;
        while !stop.load(Ordering::Acquire) {
            let mut connection = kept
                .take()
                .unwrap_or_else(|| Connection::open(addr).expect("the balancer is up"));
            let answer = connection
                .request("POST", "/sms", &headers, body.as_bytes())
                .unwrap_or_else(|error| panic!("after {} messages: {error}", sent.len()));
            assert_eq!(answer.status, 200, "{}", answer.text());
            sent.extend(ids(&answer));
            answered.fetch_add(1, Ordering::Relaxed);
            if answer.header("connection") != Some("close") {
                kept = Some(connection);
            }
        }
        sent
    })
}

#[test]
fn no_request_fails_while_nodes_are_restarted_in_turn() {
    let mut cluster = Cluster::start([draining, draining]);
    let addrs: Vec<_> = cluster.nodes.iter().map(testkit::Server::addr).collect();
    let balancer = Balancer::start(&addrs).expect("a free port");
    let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let token = cluster.token.clone();
            caller(balancer.addr(), token, stop.clone(), answered.clone())
        })
        .collect();
    for _ in 0..ROUNDS {
        for number in 0..cluster.nodes.len() {
            let before = answered.load(Ordering::Relaxed);
            cluster.nodes[number].restart();
            balancer.replace(number, cluster.nodes[number].addr());
            wait_for("the node is used again, and callers continue", || {
                let after = answered.load(Ordering::Relaxed);
                (balancer.all_ready() && after > before + CALLERS).then_some(())
            });
        }
    }
    stop.store(true, Ordering::Release);
    let sent = callers.into_iter().flat_map(|caller| {
        caller
            .join()
            .expect("every request of every caller was answered 200")
    });
    let sent: Vec<String> = sent.collect();
    for (number, id) in sent.iter().enumerate() {
        let node = number % cluster.nodes.len();
        assert_eq!(cluster.wait_for_end(node, id), "delivered", "{id}");
    }
}

#[test]
fn a_draining_node_still_answers_and_a_second_signal_stops_it() {
    const DRAIN_TIME: Duration = Duration::from_mins(10);
    let mut cluster = Cluster::start([|builder: ServerBuilder| {
        builder.env("SWITCHBOARD_LIMITS__DRAIN_SECONDS", "600")
    }]);
    let addr = cluster.nodes[0].addr();
    let mut kept = Connection::open(addr).expect("it is up");
    let first = kept.request("GET", "/health/live", &[], b"");
    assert_eq!(first.expect("an answer").header("connection"), None);
    let began = Instant::now();
    signal::send("TERM", cluster.nodes[0].pid());
    wait_for("the node says that it is not ready", || {
        let answer = http::request(addr, "GET", "/health/ready", &[], b"").expect("it answers");
        (answer.status == 503).then_some(())
    });
    cluster.send(0, &sms("as usual"));
    let last = kept.request("GET", "/health/live", &[], b"");
    assert_eq!(last.expect("an answer").header("connection"), Some("close"));
    let status = cluster.nodes[0].terminate();
    assert!(status.success(), "{}", cluster.nodes[0].output());
    assert!(
        began.elapsed() < DRAIN_TIME,
        "it waited for the whole drain time"
    );
}
