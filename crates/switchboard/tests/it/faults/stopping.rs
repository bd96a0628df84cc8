//! The process is asked to stop while callers send.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use testkit::Backend;
use testkit::http::Connection;

use super::answer_log::AnswerLog;
use super::callers::Callers;
use super::end_to_end::{DuplicateLimits, EndToEndTest};
use super::pending_request::PendingRequest;
use super::rng::Rng;
use super::signal;
use super::test_service::{RequestKind, TestService};
use super::waiting::wait_until;

const CALLERS: usize = 64;
const STOPS: usize = 4;
const READY: &[u8] = b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";

crate::rest::on_both_backends!(
    every_stored_message_was_answered,
    a_request_in_flight_is_answered_after_the_signal,
    messages_in_progress_finish_or_continue_after_the_restart,
);

/// HTTP leaves one gap: a client may send a request while the server closes the idle connection. Such a request gets no
/// answer and must not be stored. So exactly the answered messages are stored.
fn every_stored_message_was_answered(backend: Backend) {
    let mut service = TestService::start(backend);
    let answer_log: Arc<AnswerLog> = Arc::default();
    let callers = Callers::start(&service.sender(RequestKind::Keyed), CALLERS, &answer_log);
    answer_log.wait_for_accepted(1000);
    let status = service.server.terminate();
    callers.join();
    assert!(status.success(), "{status}: {}", service.server.output());

    service.server.restart();
    answer_log.check(&service, &mut Rng::seeded());
    let entries = answer_log.entries();
    let answered: BTreeSet<u64> = entries.accepted.keys().copied().collect();
    let stored: BTreeSet<u64> = service.stored().into_keys().collect();
    let unanswered: Vec<_> = stored.difference(&answered).collect();
    assert!(
        unanswered.is_empty(),
        "stored, not answered: {unanswered:?}"
    );
}

fn a_request_in_flight_is_answered_after_the_signal(backend: Backend) {
    let mut service = TestService::start(backend);
    let addr = service.server.addr();
    let sender = service.sender(RequestKind::Keyed);
    let in_flight: Vec<PendingRequest> = (0..8)
        .map(|number| PendingRequest::begin(&sender, number))
        .collect();
    let mut half_sent: Vec<Connection> = (0..8).map(|_| send_half_a_request(addr)).collect();

    signal::send("TERM", service.server.pid());
    wait_until("no more connections are accepted", || {
        TcpStream::connect(addr).is_err()
    });
    for connection in &mut half_sent {
        assert!(!says_ready(connection), "it is not ready while it stops");
    }
    for (number, pending) in in_flight.into_iter().enumerate() {
        let answer = pending.finish_and_close();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{number}: {answer}");
    }
    let status = service.wait_for_exit();
    assert!(status.success(), "{status}: {}", service.server.output());

    service.server.restart();
    assert_eq!(service.stored().len(), 8);
}

/// A graceful stop stores the answers of the network, so nothing is sent again.
fn messages_in_progress_finish_or_continue_after_the_restart(backend: Backend) {
    let mut test = EndToEndTest::start(backend);
    for _ in 0..STOPS {
        let callers = test.callers(CALLERS);
        test.wait_for_answered(200);
        test.stop(callers);
    }
    test.check(DuplicateLimits::default());
}

fn send_half_a_request(addr: SocketAddr) -> Connection {
    let mut connection = Connection::open(addr).expect("the service takes connections");
    connection
        .send(&READY[..READY.len() / 2])
        .expect("it reads");
    connection
}

/// Whether the rest of the request is answered with "ready". The service may also close the connection without an
/// answer if it has read nothing yet.
fn says_ready(connection: &mut Connection) -> bool {
    let asked = connection.send(&READY[READY.len() / 2..]);
    let answer = asked.and_then(|()| connection.read_response());
    answer.is_ok_and(|answer| answer.status != 503)
}
