//! More requests than the service may accept.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use testkit::http::{self, Response};
use testkit::load::{self, Load, Requests, RunLimit};
use testkit::{Backend, TEST_TIMEOUT};

use super::answer_log::{AnswerLog, is_refusal};
use super::callers::Callers;
use super::faulty_disk::{DiskFault, FaultyDisk};
use super::pending_request::PendingRequest;
use super::rng::Rng;
use super::test_service::{RequestKind, TestService, builder};

const IN_FLIGHT: u64 = 4;

crate::rest::on_both_backends!(
    requests_beyond_the_in_flight_limit_are_told_to_retry,
    many_connections_at_once_are_all_served,
);

fn requests_beyond_the_in_flight_limit_are_told_to_retry(backend: Backend) {
    let limit = IN_FLIGHT.to_string();
    let service = TestService::from(builder(backend).env("SWITCHBOARD_LIMITS__IN_FLIGHT", limit));
    let sender = service.sender(RequestKind::Keyed);
    let answer_log: Arc<AnswerLog> = Arc::default();
    let begin = |_| PendingRequest::begin(&sender, answer_log.next_request().number);
    let in_flight: Vec<PendingRequest> = (0..IN_FLIGHT).map(begin).collect();
    let surplus = sender.send(IN_FLIGHT);
    assert!(is_refusal(&surplus), "{surplus:?}");
    for pending in in_flight {
        assert_eq!(pending.finish(), "HTTP/1.1 200 OK");
    }

    // Callers that never wait keep the service busy with refusals, but some requests are always accepted.
    let callers = Callers::start(&sender, 16, &answer_log);
    answer_log.wait_for_accepted(200);
    callers.stop();
    assert_eq!(answer_log.entries().unanswered, Vec::<u64>::new());
    answer_log.check(&service, &mut Rng::seeded());
}

fn many_connections_at_once_are_all_served(backend: Backend) {
    const CONNECTIONS: usize = 256;
    let service = TestService::start(backend);
    let sender = service.sender(RequestKind::Plain);
    let report = load::run(
        service.server.addr(),
        Load {
            connections: CONNECTIONS,
            warm_up: Duration::ZERO,
            limit: RunLimit::Count(4 * CONNECTIONS as u64),
            requests: Requests::Generated(Box::new(move |number, request| {
                request.extend_from_slice(&sender.encode(number));
            })),
            on_answer: None,
        },
    );
    assert!(report.is_clean(CONNECTIONS), "{report:?}");
}

/// While the disk blocks the writer, the queue fills up. Further requests are refused at once, and the queued ones are
/// stored when the disk is back.
#[test]
fn a_full_queue_refuses_at_once_and_stores_what_it_accepted() {
    const REQUESTS: u64 = 24;
    const QUEUE: usize = 2;
    let disk = FaultyDisk::new();
    let server = disk
        .server()
        .env("SWITCHBOARD_LIMITS__ACCEPT_QUEUE", QUEUE.to_string());
    let service = TestService::from(server);
    let sender = service.sender(RequestKind::Keyed);
    assert_eq!(sender.send(0).status, 200, "IDs are reserved beforehand");
    disk.begin(DiskFault::SyncHangs);
    let (answers, answered) = mpsc::channel::<Response>();
    for number in 1..=REQUESTS {
        let (sender, answers) = (sender.clone(), answers.clone());
        thread::spawn(move || answers.send(sender.send(number)));
    }
    drop(answers);
    // All but the requests that are being written (two batches, each at most a queue of them) and the queued ones.
    for _ in 0..usize::try_from(REQUESTS).expect("few") - 3 * QUEUE {
        let answer = answered
            .recv_timeout(TEST_TIMEOUT)
            .expect("refused at once");
        assert!(is_refusal(&answer), "{answer:?}");
    }
    let health = http::request(sender.addr, "GET", "/health/live", &[], b"");
    assert_eq!(health.expect("an answer").status, 200);
    disk.end(DiskFault::SyncHangs);
    let late: Vec<u16> = answered.iter().map(|answer| answer.status).collect();
    let accepted = late.iter().filter(|status| **status == 200).count();
    assert!(accepted >= QUEUE, "{late:?}");
    assert_eq!(service.stored().len(), 1 + accepted);
}
