//! The process is killed in the middle of its work, again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use testkit::Backend;

use super::crowd::Crowd;
use super::dice::Dice;
use super::ledger::Ledger;
use super::subject::{Shape, Subject, id_of};

const CALLERS: usize = 64;
/// A crash comes after at most so many answers.
const ANSWERS: u64 = 3000;
/// And up to so much later, so that it hits every part of a commit.
const LATER: Duration = Duration::from_millis(3);

crate::rest::on_both_backends!(
    every_answered_id_survives_kill_9,
    a_repeated_request_is_stored_once,
);

fn every_answered_id_survives_kill_9(backend: Backend) {
    let mut dice = Dice::throw();
    let mut subject = Subject::start(backend);
    let ledger = Arc::default();
    for _ in 0..cycles(backend) {
        crash(&mut subject, Shape::Plain, &ledger, &mut dice);
        ledger.check(&subject, &mut dice);
    }
}

/// A caller that got no answer cannot know whether its message was stored. It repeats the request with the same key,
/// and there is one message, whichever it was.
fn a_repeated_request_is_stored_once(backend: Backend) {
    let mut dice = Dice::throw();
    let mut subject = Subject::start(backend);
    let ledger: Arc<Ledger> = Arc::default();
    for _ in 0..cycles(backend) / 2 {
        crash(&mut subject, Shape::Keyed, &ledger, &mut dice);
        ledger.check(&subject, &mut dice);
    }
    let before = numbers(&subject);
    let sender = subject.sender(Shape::Keyed);
    let unanswered: BTreeSet<u64> = ledger.entries().unanswered.iter().copied().collect();
    let kept = unanswered.iter().filter(|n| before.contains_key(n)).count();
    println!("{} to repeat, {kept} of them stored", unanswered.len());
    for number in unanswered {
        let (first, second) = (sender.send(number), sender.send(number));
        let id = id_of(&first);
        assert_eq!(id, id_of(&second), "number {number} repeated");
        let earlier = before.get(&number).map_or(id, |ids| ids[0]);
        assert_eq!(id, earlier, "number {number} was stored before the crash");
    }
    let all = numbers(&subject);
    assert!(all.keys().copied().eq(0..ledger.orders()), "each number");
    let several: Vec<_> = all.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(several.is_empty(), "stored more than once: {several:?}");
}

fn cycles(backend: Backend) -> usize {
    match backend {
        Backend::Sqlite => 6,
        Backend::Postgres => 4,
    }
}

/// A crowd sends, the process is killed at a random moment, and started again on the same data.
fn crash(subject: &mut Subject, shape: Shape, ledger: &Arc<Ledger>, dice: &mut Dice) {
    let crowd = Crowd::enter(&subject.sender(shape), CALLERS, ledger);
    let answers = usize::try_from(dice.below(ANSWERS)).expect("a few thousand");
    let goal = ledger.entries().answers() + answers;
    ledger.wait_until("the moment of the crash", |entries| {
        entries.answers() >= goal
    });
    thread::sleep(dice.moment(LATER)); // tidy: the moment of the crash is meant to be random
    subject.server.kill9();
    crowd.wait();
    assert!(ledger.entries().refused.is_empty(), "there was no reason");
    subject.server.restart();
}

/// The IDs under which each number is stored.
fn numbers(subject: &Subject) -> BTreeMap<u64, Vec<u64>> {
    let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (id, number) in subject.stored() {
        numbers.entry(number).or_default().push(id);
    }
    numbers
}
