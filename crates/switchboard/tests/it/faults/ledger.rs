//! What a crowd was answered, and how that compares with what is stored.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use testkit::http::Response;

use super::dice::Dice;
use super::subject::{Subject, id_of};
use super::waiting::DEADLINE;

/// Of the messages that were found by listing, so many are also asked for one by one.
const SAMPLE: usize = 100;

/// One for each test; crowds come and go.
#[derive(Default)]
pub(super) struct Ledger {
    next: AtomicU64,
    /// Whether nothing can be stored, so that an acceptance would be a lie.
    unable: AtomicBool,
    entries: Mutex<Entries>,
    changed: Condvar,
}

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
    /// The number of the next order, and whether its acceptance would be a lie.
    pub(super) fn open(&self) -> (u64, bool) {
        let unable = self.unable.load(Ordering::SeqCst);
        (self.next.fetch_add(1, Ordering::SeqCst), unable)
    }

    /// Orders that are opened from now on cannot be stored, or can be again.
    pub(super) fn set_unable(&self, unable: bool) {
        self.unable.store(unable, Ordering::SeqCst);
    }

    /// How many orders there were.
    pub(super) fn orders(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    pub(super) fn close(&self, number: u64, unable: bool, answer: &io::Result<Response>) {
        let mut entries = self.entries();
        match answer {
            Ok(answer) if answer.status == 200 && unable => {
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

    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().expect("no holder panics")
    }

    /// Returns once the entries are as asked.
    pub(super) fn wait_until(&self, what: &str, mut state: impl FnMut(&Entries) -> bool) {
        let waiting =
            self.changed
                .wait_timeout_while(self.entries(), DEADLINE, |entries| !state(entries));
        let (entries, timeout) = waiting.expect("no holder panics");
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
