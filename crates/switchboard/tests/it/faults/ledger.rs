//! What a crowd was answered, and how that compares with what is stored.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use testkit::PATIENCE;
use testkit::http::Response;

use super::dice::Dice;
use super::subject::{Subject, id_of};

/// Of the messages that were found by listing, so many are also asked for one by one.
const SAMPLE: usize = 100;

/// One for each test; crowds come and go.
#[derive(Default)]
pub(super) struct Ledger {
    next: AtomicU64,
    /// Odd while nothing can be stored, so that an acceptance would be a lie; grows with each change.
    era: AtomicU64,
    entries: Mutex<Entries>,
    changed: Condvar,
}

/// An order that is about to be sent.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) number: u64,
    era: u64,
}

/// What became of the orders.
#[derive(Default, Debug)]
pub(super) struct Entries {
    /// The number of the order behind each ID that was answered.
    pub(super) accepted: HashMap<u64, u64>,
    /// The orders that got 503.
    pub(super) refused: Vec<u64>,
    /// The orders that were sent and got no answer.
    pub(super) unanswered: Vec<u64>,
    /// Whatever must not happen.
    wrong: Vec<String>,
}

impl Entries {
    pub(super) fn answers(&self) -> usize {
        self.accepted.len() + self.refused.len()
    }

    fn accept(&mut self, number: u64, id: u64) {
        if let Some(earlier) = self.accepted.insert(id, number) {
            self.wrong
                .push(format!("ID {id} was given to {earlier} and {number}"));
        }
    }
}

impl Ledger {
    /// Makes the next order.
    pub(super) fn open(&self) -> Order {
        Order {
            number: self.next.fetch_add(1, Ordering::SeqCst),
            era: self.era.load(Ordering::SeqCst),
        }
    }

    /// From now on nothing can be stored. Call it when that is so.
    pub(super) fn trouble_has_begun(&self) {
        self.era.fetch_add(1, Ordering::SeqCst);
    }

    /// From now on messages can be stored. Call it before that is so.
    pub(super) fn trouble_ends(&self) {
        self.era.fetch_add(1, Ordering::SeqCst);
    }

    /// How many orders there were.
    pub(super) fn orders(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// Writes down what became of an order.
    pub(super) fn close(&self, order: Order, answer: &io::Result<Response>) {
        let number = order.number;
        let mut entries = self.entries();
        match answer {
            Ok(answer) if answer.status == 200 && self.is_lie(order) => {
                let lie = format!("{number} was accepted while nothing could be stored");
                entries.wrong.push(lie);
            }
            Ok(answer) if answer.status == 200 => entries.accept(number, id_of(answer)),
            Ok(answer) if is_refusal(answer) => entries.refused.push(number),
            Ok(answer) => entries.wrong.push(format!("{number} got {answer:?}")),
            Err(_) => entries.unanswered.push(number),
        }
        drop(entries);
        self.changed.notify_all();
    }

    /// Whether the order was sent and is answered within one and the same trouble.
    fn is_lie(&self, order: Order) -> bool {
        order.era % 2 == 1 && order.era == self.era.load(Ordering::SeqCst)
    }

    /// A test that fails holds the lock; its crowd still ends in order.
    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once the entries are as asked.
    pub(super) fn wait_until(&self, what: &str, mut state: impl FnMut(&Entries) -> bool) {
        let waiting = self
            .changed
            .wait_timeout_while(self.entries(), PATIENCE, |entries| !state(entries));
        let (entries, timeout) = waiting.unwrap_or_else(PoisonError::into_inner);
        let (accepted, refused) = (entries.accepted.len(), entries.refused.len());
        assert!(
            !timeout.timed_out(),
            "waited in vain until {what}: {accepted} accepted, {refused} refused, wrong: {:?}",
            entries.wrong
        );
    }

    /// Waits for so many more acceptances.
    pub(super) fn wait_for_accepted(&self, more: usize) {
        let goal = self.entries().accepted.len() + more;
        self.wait_until("more orders are accepted", |entries| {
            entries.accepted.len() >= goal
        });
    }

    /// Every ID that was answered is there, and stands for the order that it was the answer to.
    pub(super) fn check(&self, subject: &Subject, dice: &mut Dice) {
        let stored = subject.stored();
        let entries = self.entries();
        assert_eq!(entries.wrong, Vec::<String>::new());
        let (listed, unlisted): (Vec<_>, Vec<_>) = entries
            .accepted
            .iter()
            .partition(|(id, _)| stored.contains_key(id));
        for (id, number) in &listed {
            assert_eq!(stored[id], **number, "ID {id} is another message");
        }
        let sampled = (0..SAMPLE.min(listed.len())).map(|_| {
            let any = dice.below(listed.len() as u64);
            *listed[usize::try_from(any).expect("an index")].0
        });
        let sampled: BTreeSet<u64> = sampled.collect();
        let asked = unlisted.iter().map(|(id, _)| **id).chain(sampled);
        let lost = subject.unknown(asked);
        assert!(lost.is_empty(), "answered and lost: {lost:?}");
        println!(
            "{} listed and {} found of {} answered; {} refused, {} unanswered",
            listed.len(),
            unlisted.len(),
            entries.accepted.len(),
            entries.refused.len(),
            entries.unanswered.len()
        );
    }
}

/// A 503 says when to come back, and why in words.
pub(super) fn is_refusal(answer: &Response) -> bool {
    let retry_after = answer.header("retry-after").map(str::parse::<u32>);
    answer.status == 503
        && matches!(retry_after, Some(Ok(1..)))
        && answer.json()["message"].is_string()
}
