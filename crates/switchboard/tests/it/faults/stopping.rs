//! The process is asked to end while callers send.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use testkit::Backend;
use testkit::http::Connection;

use super::crowd::Crowd;
use super::dice::Dice;
use super::ledger::Ledger;
use super::raw::Held;
use super::signal;
use super::subject::{Shape, Subject};
use super::waiting::wait_until;
use super::way::{Bounds, Way};

const CALLERS: usize = 64;
const STOPS: usize = 4;
const READY: &[u8] = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";

crate::rest::on_both_backends!(
    what_was_taken_is_answered,
    a_request_under_way_is_answered_after_the_signal,
    what_is_under_way_is_finished_or_goes_on_after_the_restart,
);

/// HTTP leaves one gap: a request may cross with the closing of its idle connection. Such a request gets no answer, and
/// then it must not have been taken either. So what is stored is exactly what was answered.
fn what_was_taken_is_answered(backend: Backend) {
    let mut subject = Subject::start(backend);
    let ledger: Arc<Ledger> = Arc::default();
    let crowd = Crowd::enter(&subject.sender(Shape::Keyed), CALLERS, &ledger);
    ledger.wait_for_accepted(1000);
    let status = subject.server.terminate();
    crowd.wait();
    assert!(status.success(), "{status}: {}", subject.server.output());

    subject.server.restart();
    ledger.check(&subject, &mut Dice::throw());
    let entries = ledger.entries();
    let answered: BTreeSet<u64> = entries.accepted.keys().copied().collect();
    let stored: BTreeSet<u64> = subject.stored().into_keys().collect();
    let silently: Vec<_> = stored.difference(&answered).collect();
    assert!(silently.is_empty(), "taken, not answered: {silently:?}");
}

fn a_request_under_way_is_answered_after_the_signal(backend: Backend) {
    let mut subject = Subject::start(backend);
    let addr = subject.server.addr();
    let sender = subject.sender(Shape::Keyed);
    let under_way: Vec<Held> = (0..8).map(|number| Held::begin(&sender, number)).collect();
    let mut asking: Vec<Connection> = (0..8).map(|_| half_a_question(addr)).collect();

    signal::send("TERM", subject.server.pid());
    wait_until("no more connections are taken", || {
        TcpStream::connect(addr).is_err()
    });
    for connection in &mut asking {
        assert!(!says_ready(connection), "it is not ready while it stops");
    }
    for (number, held) in under_way.into_iter().enumerate() {
        let answer = held.finish_and_close();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{number}: {answer}");
    }
    let status = subject.wait_for_its_end();
    assert!(status.success(), "{status}: {}", subject.server.output());

    subject.server.restart();
    assert_eq!(subject.stored().len(), 8);
}

/// A service that stops in order has stored what the network answered, so nothing is sent again.
fn what_is_under_way_is_finished_or_goes_on_after_the_restart(backend: Backend) {
    let mut way = Way::start(backend);
    for _ in 0..STOPS {
        let crowd = way.crowd(CALLERS);
        way.wait_for_answered(200);
        way.stop(crowd);
    }
    way.check(Bounds::default());
}

fn half_a_question(addr: SocketAddr) -> Connection {
    let mut connection = Connection::open(addr).expect("the service takes connections");
    connection
        .send(&READY[..READY.len() / 2])
        .expect("it reads");
    connection
}

/// A connection on which nothing was read yet may be closed without an answer.
fn says_ready(connection: &mut Connection) -> bool {
    let asked = connection.send(&READY[READY.len() / 2..]);
    let answer = asked.and_then(|()| connection.read_response());
    answer.is_ok_and(|answer| answer.status != 503)
}
