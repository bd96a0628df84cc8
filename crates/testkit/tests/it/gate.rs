//! The bound on work under way, with the receiver as the server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use testkit::http;
use testkit::load::{self, Gate, Load, Requests, Until};
use testkit::receiver::{Receiver, Reply};

fn load(receiver: &Receiver, until: Until) -> Load {
    Load {
        connections: 8,
        warm_up: Duration::ZERO,
        until,
        requests: Requests::Fixed(http::encode(receiver.addr(), "POST", "/", &[], b"x")),
        on_answer: None,
    }
}

#[test]
fn no_more_is_asked_than_has_ended() {
    for limit in [1, 5, 64] {
        let receiver = Receiver::start();
        let gate = Arc::new(Gate::new(limit));
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (accepted, work) = mpsc::channel();
        let mut counted = load(&receiver, Until::Count(1_000));
        let (entering, peak) = (Arc::clone(&under_way), Arc::clone(&most));
        counted.on_answer = Some(Box::new(move |_| {
            let now = entering.fetch_add(1, Ordering::SeqCst) + 1;
            peak.fetch_max(now, Ordering::SeqCst);
            accepted.send(()).expect("the worker listens");
        }));
        let worker_gate = Arc::clone(&gate);
        let worker = thread::spawn(move || {
            for () in work {
                under_way.fetch_sub(1, Ordering::SeqCst);
                worker_gate.leave();
            }
        });
        let report = load::run_gated(receiver.addr(), counted, gate);
        worker.join().expect("it ends with the load");
        assert_eq!((report.answers(), report.wrong), (1_000, 0), "{limit}");
        assert!(most.load(Ordering::SeqCst) <= limit, "{limit}");
    }
}

#[test]
fn work_that_never_ends_stops_the_asking_but_not_the_run() {
    let receiver = Receiver::start();
    let timed = load(&receiver, Until::Elapsed(Duration::from_secs(1)));
    let report = load::run_gated(receiver.addr(), timed, Arc::new(Gate::new(20)));
    assert_eq!(report.answers(), 20);
}

#[test]
fn an_answer_that_accepts_nothing_takes_no_place() {
    let receiver = Receiver::builder()
        .script(|_| Reply::answer(503, "full"))
        .start();
    let counted = load(&receiver, Until::Count(100));
    let report = load::run_gated(receiver.addr(), counted, Arc::new(Gate::new(1)));
    assert_eq!(report.wrong, 100);
}
