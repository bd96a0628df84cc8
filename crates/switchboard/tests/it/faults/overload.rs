//! More comes than the service may take.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use testkit::http::{self, Response};
use testkit::load::{self, Load, Requests, Until};
use testkit::{Backend, PATIENCE};

use super::crowd::Crowd;
use super::dice::Dice;
use super::ledger::{Ledger, is_refusal};
use super::raw::Held;
use super::shim::{Disk, Trouble};
use super::subject::{Shape, Subject, builder};

const IN_FLIGHT: u64 = 4;

crate::rest::on_both_backends!(
    beyond_the_requests_in_flight_callers_are_told_to_come_back,
    many_connections_at_once_are_all_served,
);

fn beyond_the_requests_in_flight_callers_are_told_to_come_back(backend: Backend) {
    let limit = IN_FLIGHT.to_string();
    let subject = Subject::from(builder(backend).env("SWITCHBOARD_LIMITS__IN_FLIGHT", limit));
    let sender = subject.sender(Shape::Keyed);
    let ledger: Arc<Ledger> = Arc::default();
    let begin = |_| Held::begin(&sender, ledger.open().number);
    let in_flight: Vec<Held> = (0..IN_FLIGHT).map(begin).collect();
    let surplus = sender.send(IN_FLIGHT);
    assert!(is_refusal(&surplus), "{surplus:?}");
    for held in in_flight {
        assert_eq!(held.finish(), "HTTP/1.1 200 OK");
    }

    // A crowd that never waits keeps the service busy with refusals, yet someone always gets in.
    let crowd = Crowd::enter(&sender, 16, &ledger);
    ledger.wait_for_accepted(200);
    crowd.leave();
    assert_eq!(ledger.entries().unanswered, Vec::<u64>::new());
    ledger.check(&subject, &mut Dice::throw());
}

fn many_connections_at_once_are_all_served(backend: Backend) {
    const CONNECTIONS: usize = 256;
    let subject = Subject::start(backend);
    let sender = subject.sender(Shape::Plain);
    let report = load::run(
        subject.server.addr(),
        Load {
            connections: CONNECTIONS,
            warm_up: Duration::ZERO,
            until: Until::Count(4 * CONNECTIONS as u64),
            requests: Requests::Made(Box::new(move |number, request| {
                request.extend_from_slice(&sender.encode(number));
            })),
            on_answer: None,
        },
    );
    assert!(report.is_clean(CONNECTIONS), "{report:?}");
}

/// While the disk makes the writer wait, the queue fills up: what is beyond is refused at once, and what waits in it is
/// stored when the disk is back.
#[test]
fn a_full_queue_refuses_at_once_and_keeps_what_it_took() {
    const ORDERS: u64 = 24;
    const QUEUE: usize = 2;
    let disk = Disk::new();
    let server = disk
        .server()
        .env("SWITCHBOARD_LIMITS__ACCEPT_QUEUE", QUEUE.to_string());
    let subject = Subject::from(server);
    let sender = subject.sender(Shape::Keyed);
    assert_eq!(sender.send(0).status, 200, "IDs are reserved beforehand");
    disk.begin(Trouble::SyncHangs);
    let (answers, answered) = mpsc::channel::<Response>();
    for number in 1..=ORDERS {
        let (sender, answers) = (sender.clone(), answers.clone());
        thread::spawn(move || answers.send(sender.send(number)));
    }
    drop(answers);
    // What is being written, at most a queue of it, and what waits.
    for _ in 0..usize::try_from(ORDERS).expect("few") - 2 * QUEUE {
        let answer = answered.recv_timeout(PATIENCE).expect("refused at once");
        assert!(is_refusal(&answer), "{answer:?}");
    }
    let health = http::request(sender.addr, "GET", "/health/live", &[], b"");
    assert_eq!(health.expect("an answer").status, 200);
    disk.end(Trouble::SyncHangs);
    let late: Vec<u16> = answered.iter().map(|answer| answer.status).collect();
    let taken = late.iter().filter(|status| **status == 200).count();
    assert!(taken >= QUEUE, "{late:?}");
    assert_eq!(subject.stored().len(), 1 + taken);
}
