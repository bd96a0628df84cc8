//! The process is killed repeatedly while it works.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use testkit::Backend;

use super::answer_log::AnswerLog;
use super::callers::Callers;
use super::rng::Rng;
use super::test_service::{RequestKind, TestService, id_of};

const CALLERS: usize = 64;
/// The process is killed after fewer answers than this.
const MAX_ANSWERS: u64 = 3000;
/// A random delay on top, so that the kill hits any part of a commit.
const MAX_DELAY: Duration = Duration::from_millis(3);

crate::rest::on_both_backends!(
    every_answered_id_survives_kill_9,
    a_repeated_request_is_stored_once,
);

fn every_answered_id_survives_kill_9(backend: Backend) {
    let mut rng = Rng::seeded();
    let mut service = TestService::start(backend);
    let answer_log = Arc::default();
    for _ in 0..cycles(backend) {
        crash(&mut service, RequestKind::Plain, &answer_log, &mut rng);
        answer_log.check(&service, &mut rng);
    }
}

/// A caller that got no answer cannot know whether its message was stored. When it repeats the request with the same
/// key, exactly one message is stored.
fn a_repeated_request_is_stored_once(backend: Backend) {
    let mut rng = Rng::seeded();
    let mut service = TestService::start(backend);
    let answer_log: Arc<AnswerLog> = Arc::default();
    for _ in 0..cycles(backend) / 2 {
        crash(&mut service, RequestKind::Keyed, &answer_log, &mut rng);
        answer_log.check(&service, &mut rng);
    }
    let before = numbers(&service);
    let sender = service.sender(RequestKind::Keyed);
    let unanswered: BTreeSet<u64> = answer_log.entries().unanswered.iter().copied().collect();
    let stored = unanswered.iter().filter(|n| before.contains_key(n)).count();
    println!(
        "{} requests to repeat, {stored} of them stored",
        unanswered.len()
    );
    for number in unanswered {
        let (first, second) = (sender.send(number), sender.send(number));
        let id = id_of(&first);
        assert_eq!(id, id_of(&second), "number {number} repeated");
        let earlier = before.get(&number).map_or(id, |ids| ids[0]);
        assert_eq!(id, earlier, "number {number} was stored before the crash");
    }
    let all = numbers(&service);
    assert!(
        all.keys().copied().eq(0..answer_log.request_count()),
        "every number is stored"
    );
    let several: Vec<_> = all.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(several.is_empty(), "stored more than once: {several:?}");
}

fn cycles(backend: Backend) -> usize {
    match backend {
        Backend::Sqlite => 6,
        Backend::Postgres => 4,
    }
}

/// Kills the process at a random moment while callers send, and starts it again on the same data.
fn crash(service: &mut TestService, kind: RequestKind, answer_log: &Arc<AnswerLog>, rng: &mut Rng) {
    let callers = Callers::start(&service.sender(kind), CALLERS, answer_log);
    let answers = usize::try_from(rng.below(MAX_ANSWERS)).expect("a few thousand");
    let goal = answer_log.entries().answers() + answers;
    answer_log.wait_until("it is time for the crash", |entries| {
        entries.answers() >= goal
    });
    thread::sleep(rng.duration_below(MAX_DELAY)); // tidy: the moment of the crash is meant to be random
    service.server.kill9();
    callers.join();
    assert!(
        answer_log.entries().refused.is_empty(),
        "refused without a reason"
    );
    service.server.restart();
}

/// The IDs under which each number is stored.
fn numbers(service: &TestService) -> BTreeMap<u64, Vec<u64>> {
    let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (id, number) in service.stored() {
        numbers.entry(number).or_default().push(id);
    }
    numbers
}
