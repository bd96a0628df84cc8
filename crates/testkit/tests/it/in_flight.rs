//! The limit for work in flight, with the receiver as the server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use testkit::http;
use testkit::load::{self, InFlightLimit, Load, Requests, RunLimit};
use testkit::receiver::{Receiver, Reply};

fn load(receiver: &Receiver, limit: RunLimit) -> Load {
    Load {
        connections: 8,
        warm_up: Duration::ZERO,
        limit,
        requests: Requests::Fixed(http::encode(receiver.addr(), "POST", "/", &[], b"x")),
        on_answer: None,
    }
}

#[test]
fn no_more_requests_are_in_flight_than_allowed() {
    for limit in [1, 5, 64] {
        let receiver = Receiver::start();
        let in_flight = Arc::new(InFlightLimit::new(limit));
        let (in_progress, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (accepted, work) = mpsc::channel();
        let mut counted = load(&receiver, RunLimit::Count(1_000));
        let (started, highest) = (Arc::clone(&in_progress), Arc::clone(&peak));
        counted.on_answer = Some(Box::new(move |_| {
            let now = started.fetch_add(1, Ordering::SeqCst) + 1;
            highest.fetch_max(now, Ordering::SeqCst);
            accepted.send(()).expect("the worker listens");
        }));
        let worker_limit = Arc::clone(&in_flight);
        let worker = thread::spawn(move || {
            for () in work {
                in_progress.fetch_sub(1, Ordering::SeqCst);
                worker_limit.release();
            }
        });
        let report = load::run_limited(receiver.addr(), counted, in_flight);
        worker.join().expect("the worker ends with the load");
        assert_eq!((report.answers(), report.wrong), (1_000, 0), "{limit}");
        assert!(peak.load(Ordering::SeqCst) <= limit, "{limit}");
    }
}

#[test]
fn work_that_never_ends_stops_the_requests_but_not_the_run() {
    let receiver = Receiver::start();
    let timed = load(&receiver, RunLimit::Elapsed(Duration::from_secs(1)));
    let report = load::run_limited(receiver.addr(), timed, Arc::new(InFlightLimit::new(20)));
    assert_eq!(report.answers(), 20);
}

#[test]
fn a_refused_request_takes_no_permit() {
    let receiver = Receiver::builder()
        .script(|_| Reply::answer(503, "full"))
        .start();
    let counted = load(&receiver, RunLimit::Count(100));
    let report = load::run_limited(receiver.addr(), counted, Arc::new(InFlightLimit::new(1)));
    assert_eq!(report.wrong, 100);
}
