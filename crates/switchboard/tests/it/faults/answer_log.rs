//! Records the answers that callers got and compares them with what is stored.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use testkit::TEST_TIMEOUT;
use testkit::http::Response;

use super::rng::Rng;
use super::test_service::{TestService, id_of};

/// How many of the messages that a list shows are also requested one by one.
const SAMPLE: usize = 100;

/// The answers of one test, to all of its callers.
#[derive(Default)]
pub(super) struct AnswerLog {
    next: AtomicU64,
    /// Odd while nothing can be stored, so that no request may be accepted; grows with each change.
    phase: AtomicU64,
    entries: Mutex<Entries>,
    changed: Condvar,
}

/// A request that is about to be sent.
#[derive(Clone, Copy)]
pub(super) struct SentRequest {
    pub(super) number: u64,
    phase: u64,
}

/// The requests by their answers.
#[derive(Default, Debug)]
pub(super) struct Entries {
    /// The number of the request that was answered with each ID.
    pub(super) accepted: HashMap<u64, u64>,
    /// The requests that got 503.
    pub(super) refused: Vec<u64>,
    /// The requests that were sent and got no answer.
    pub(super) unanswered: Vec<u64>,
    /// Answers that must not happen.
    unexpected: Vec<String>,
}

impl Entries {
    pub(super) fn answers(&self) -> usize {
        self.accepted.len() + self.refused.len()
    }

    fn accept(&mut self, number: u64, id: u64) {
        if let Some(earlier) = self.accepted.insert(id, number) {
            self.unexpected
                .push(format!("ID {id} was given to {earlier} and {number}"));
        }
    }
}

impl AnswerLog {
    pub(super) fn next_request(&self) -> SentRequest {
        SentRequest {
            number: self.next.fetch_add(1, Ordering::SeqCst),
            phase: self.phase.load(Ordering::SeqCst),
        }
    }

    /// From now on nothing can be stored. Call it after the fault has begun.
    pub(super) fn storage_failed(&self) {
        self.phase.fetch_add(1, Ordering::SeqCst);
    }

    /// From now on messages can be stored. Call it before the fault ends.
    pub(super) fn storage_recovers(&self) {
        self.phase.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn request_count(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// Records the answer to a request.
    pub(super) fn record(&self, request: SentRequest, answer: &io::Result<Response>) {
        let number = request.number;
        let mut entries = self.entries();
        match answer {
            Ok(answer) if answer.status == 200 && self.is_within_outage(request) => {
                let accepted = format!("{number} was accepted while nothing could be stored");
                entries.unexpected.push(accepted);
            }
            Ok(answer) if answer.status == 200 => entries.accept(number, id_of(answer)),
            Ok(answer) if is_refusal(answer) => entries.refused.push(number),
            Ok(answer) => entries.unexpected.push(format!("{number} got {answer:?}")),
            Err(_) => entries.unanswered.push(number),
        }
        drop(entries);
        self.changed.notify_all();
    }

    /// Whether the request was sent and answered during the same outage.
    fn is_within_outage(&self, request: SentRequest) -> bool {
        request.phase % 2 == 1 && request.phase == self.phase.load(Ordering::SeqCst)
    }

    /// A test that fails may poison the lock; its callers can still stop cleanly.
    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once `state` is true.
    pub(super) fn wait_until(&self, what: &str, mut state: impl FnMut(&Entries) -> bool) {
        let waiting = self
            .changed
            .wait_timeout_while(self.entries(), TEST_TIMEOUT, |entries| !state(entries));
        let (entries, timeout) = waiting.unwrap_or_else(PoisonError::into_inner);
        let (accepted, refused) = (entries.accepted.len(), entries.refused.len());
        assert!(
            !timeout.timed_out(),
            "timed out waiting until {what}: {accepted} accepted, {refused} refused, unexpected: {:?}",
            entries.unexpected
        );
    }

    /// Waits until this many more requests are accepted.
    pub(super) fn wait_for_accepted(&self, more: usize) {
        let goal = self.entries().accepted.len() + more;
        self.wait_until("more requests are accepted", |entries| {
            entries.accepted.len() >= goal
        });
    }

    /// Checks that every ID that a caller got is stored, with the message of its request.
    pub(super) fn check(&self, service: &TestService, rng: &mut Rng) {
        let stored = service.stored();
        let entries = self.entries();
        assert_eq!(entries.unexpected, Vec::<String>::new());
        let (listed, unlisted): (Vec<_>, Vec<_>) = entries
            .accepted
            .iter()
            .partition(|(id, _)| stored.contains_key(id));
        for (id, number) in &listed {
            assert_eq!(stored[id], **number, "ID {id} is another message");
        }
        let sampled = (0..SAMPLE.min(listed.len())).map(|_| {
            let any = rng.below(listed.len() as u64);
            *listed[usize::try_from(any).expect("an index")].0
        });
        let sampled: BTreeSet<u64> = sampled.collect();
        let asked = unlisted.iter().map(|(id, _)| **id).chain(sampled);
        let lost = service.unknown(asked);
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

/// Whether this is a proper 503: with a time to retry and a reason.
pub(super) fn is_refusal(answer: &Response) -> bool {
    let retry_after = answer.header("retry-after").map(str::parse::<u32>);
    answer.status == 503
        && matches!(retry_after, Some(Ok(1..)))
        && answer.json()["message"].is_string()
}
