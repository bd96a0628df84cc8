//! The queues of receivers in memory: which may be attempted, which are paused, which is next.
//!
//! A receiver is one account's callbacks to one origin. It has its own queue and pauses, so that the failing path of
//! one account does not affect other accounts on the same host. All receivers of a host share the host's limit of
//! concurrent attempts and take turns.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use domain::{AccountId, CallbackUrl, Origin, ReceiverId, Timestamp};
use jiff::SignedDuration;

use super::limit::{AdaptiveLimit, Answer, may_take};
use super::slots::Share;

/// A receiver is paused after this many failures in a row.
const PAUSE_AFTER_FAILURES: u32 = 5;
/// The first pause of a receiver; it doubles with each further failure.
const FIRST_PAUSE_S: i64 = 5;
const LONGEST_PAUSE_S: i64 = 300;
/// Beyond this number, idle receivers are dropped along with their failure counts.
const MAX_RECEIVERS: usize = 10_000;
/// How many blocked hosts are checked for one that may start an attempt.
const MAX_BLOCKED_CHECKED: usize = 8;

/// The receiver of a callback.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) receiver: ReceiverId,
    pub(super) account: AccountId,
    pub(super) origin: Origin,
}

impl Address {
    pub(super) fn new(account: AccountId, url: &CallbackUrl) -> Self {
        let origin = Origin::from_url(url);
        Self {
            receiver: ReceiverId::new(account, &origin),
            account,
            origin,
        }
    }
}

/// Where a callback comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// It is new, or it has become due.
    Due,
    Queue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedReceiver {
    pub account: AccountId,
    /// Scheme, host and port.
    pub origin: Origin,
    pub until: Timestamp,
}

/// An attempt in flight. It must be ended by [`Receivers::finish`] or [`Receivers::abandon`].
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) receiver: ReceiverId,
    pub(super) origin: Origin,
    number: u64,
}

/// All receivers with waiting callbacks or recent failures. `T` is a waiting callback.
pub(super) struct Receivers<T> {
    by_id: HashMap<ReceiverId, Receiver<T>>,
    hosts: HashMap<Origin, Host>,
    /// Hosts that may start an attempt as soon as any attempt ends, in turn.
    blocked: VecDeque<Origin>,
    backlog: Backlog,
    /// The number of attempts in flight.
    running: usize,
    most_tries: usize,
    /// The number of the next attempt.
    next: u64,
}

struct Receiver<T> {
    account: AccountId,
    origin: Origin,
    waiting: VecDeque<T>,
    running: usize,
    failures: u32,
    paused_until: Option<Timestamp>,
}

#[derive(Default)]
struct Host {
    limit: AdaptiveLimit,
    running: usize,
    /// Its receivers with waiting callbacks.
    turns: VecDeque<ReceiverId>,
    is_blocked: bool,
}

/// Receivers that may have callbacks in the database, served in turn.
#[derive(Default)]
struct Backlog {
    turns: VecDeque<ReceiverId>,
    known: HashSet<ReceiverId>,
}

impl<T> Receivers<T> {
    pub(super) fn new(most_tries: usize) -> Self {
        Self {
            by_id: HashMap::new(),
            hosts: HashMap::new(),
            blocked: VecDeque::new(),
            backlog: Backlog::default(),
            running: 0,
            most_tries,
            next: 0,
        }
    }

    /// Puts a callback into its receiver's queue. If the receiver is paused or has no capacity, the callback is
    /// returned and must go back to the database. `admit` finds it a slot in memory.
    pub(super) fn add(
        &mut self,
        address: &Address,
        source: Source,
        mut item: T,
        now: Timestamp,
        admit: impl FnOnce(&mut T, Share) -> bool,
    ) -> Result<(), T> {
        let id = address.receiver;
        let may_wait = self
            .by_id
            .get(&id)
            .is_none_or(|receiver| receiver.may_wait(now));
        let share = if source == Source::Due && self.backlog.known.contains(&id) {
            Share::Half
        } else {
            Share::Whole
        };
        if !may_wait || !admit(&mut item, share) {
            self.backlog.add(id);
            return Err(item);
        }
        self.drop_idle();
        let receiver = self
            .by_id
            .entry(id)
            .or_insert_with(|| Receiver::new(address));
        receiver.waiting.push_back(item);
        if receiver.waiting.len() == 1 {
            let host = self.hosts.entry(receiver.origin.clone()).or_default();
            host.turns.push_back(id);
        }
        Ok(())
    }

    fn drop_idle(&mut self) {
        if self.by_id.len() >= MAX_RECEIVERS {
            self.by_id.retain(|_, receiver| receiver.is_busy());
        }
    }

    /// Starts an attempt of a blocked host, else of this one. Call it until it starts none.
    pub(super) fn start(&mut self, origin: Option<&Origin>) -> Option<(T, Attempt)> {
        for _ in 0..self.blocked.len().min(MAX_BLOCKED_CHECKED) {
            let blocked = self.blocked.pop_front()?;
            if let Some(host) = self.hosts.get_mut(&blocked) {
                host.is_blocked = false;
            }
            if let Some(started) = self.start_at(&blocked) {
                self.block(&blocked);
                return Some(started);
            }
        }
        self.start_at(origin?)
    }

    fn start_at(&mut self, origin: &Origin) -> Option<(T, Attempt)> {
        let host = self.hosts.get_mut(origin)?;
        if host.turns.is_empty() || host.running >= host.limit.get() {
            return None;
        }
        if !may_take(host.running, self.running, self.most_tries) {
            self.block(origin);
            return None;
        }
        let id = host.turns.pop_front()?;
        let receiver = self.by_id.get_mut(&id)?;
        let item = receiver.waiting.pop_front()?;
        if !receiver.waiting.is_empty() {
            host.turns.push_back(id);
        }
        receiver.running += 1;
        host.running += 1;
        self.running += 1;
        let number = self.next;
        self.next += 1;
        let started = Attempt {
            receiver: id,
            origin: origin.clone(),
            number,
        };
        Some((item, started))
    }

    /// Makes a host wait for its turn if it could start an attempt.
    fn block(&mut self, origin: &Origin) {
        if let Some(host) = self.hosts.get_mut(origin)
            && !host.is_blocked
            && !host.turns.is_empty()
            && host.running < host.limit.get()
        {
            host.is_blocked = true;
            self.blocked.push_back(origin.clone());
        }
    }

    /// Ends an attempt with its result. If its receiver is paused now, returns its waiting callbacks, which must go
    /// back to the database.
    pub(super) fn finish(&mut self, attempt: &Attempt, answer: Answer, now: Timestamp) -> Vec<T> {
        let next = self.next;
        if let Some(host) = self.hosts.get_mut(&attempt.origin) {
            let is_full = host.running >= host.limit.get();
            host.limit.record(answer, attempt.number, next, is_full);
        }
        let mut paused = Vec::new();
        if let Some(receiver) = self.by_id.get_mut(&attempt.receiver) {
            if matches!(answer, Answer::Received { .. }) {
                receiver.failures = 0;
                receiver.paused_until = None;
            } else if receiver.fail(now) {
                paused.extend(receiver.waiting.drain(..));
                self.backlog.add(attempt.receiver);
            }
        }
        if !paused.is_empty()
            && let Some(host) = self.hosts.get_mut(&attempt.origin)
        {
            host.turns.retain(|id| *id != attempt.receiver);
        }
        self.end(attempt);
        paused
    }

    /// Ends an attempt without a result.
    pub(super) fn abandon(&mut self, attempt: &Attempt) {
        self.end(attempt);
        self.block(&attempt.origin);
    }

    fn end(&mut self, attempt: &Attempt) {
        self.running -= 1;
        if let Some(receiver) = self.by_id.get_mut(&attempt.receiver) {
            receiver.running -= 1;
            if !receiver.is_busy() && receiver.failures == 0 {
                self.by_id.remove(&attempt.receiver);
            }
        }
        if let Some(host) = self.hosts.get_mut(&attempt.origin) {
            host.running -= 1;
            if host.running == 0 && host.turns.is_empty() {
                self.hosts.remove(&attempt.origin);
            }
        }
    }

    /// Call this if a receiver has callbacks in the database.
    pub(super) fn add_backlog(&mut self, id: ReceiverId) {
        self.backlog.add(id);
    }

    /// Call this if a receiver has no more callbacks in the database.
    pub(super) fn remove_backlog(&mut self, id: ReceiverId) {
        if self.backlog.known.remove(&id) {
            self.backlog.turns.retain(|turn| *turn != id);
        }
    }

    /// Receivers with a backlog, at most `most`, in turn: those that may get any number of callbacks, and those that
    /// get one to find out whether they work again. Receivers that this node cannot reach are left to other nodes.
    pub(super) fn claimable(
        &mut self,
        now: Timestamp,
        most: usize,
        can_reach: impl Fn(ReceiverId) -> bool,
    ) -> Claimable {
        let mut claimable = Claimable::default();
        for _ in 0..self.backlog.turns.len() {
            if claimable.open.len() + claimable.probed.len() >= most {
                break;
            }
            let Some(id) = self.backlog.turns.pop_front() else {
                break;
            };
            if !can_reach(id) {
                // It is found in the database again once this node can reach it.
                self.backlog.known.remove(&id);
                continue;
            }
            self.backlog.turns.push_back(id);
            match self.by_id.get(&id) {
                Some(receiver) if !receiver.may_wait(now) => {}
                Some(receiver) if receiver.is_on_probation() => claimable.probed.push(id),
                _ => claimable.open.push(id),
            }
        }
        claimable
    }

    /// Ends pauses, so that each of these receivers gets one attempt now.
    pub(super) fn end_pauses(&mut self, is_meant: impl Fn(AccountId, &Origin) -> bool) {
        for receiver in self.by_id.values_mut() {
            if receiver.paused_until.is_some() && is_meant(receiver.account, &receiver.origin) {
                receiver.paused_until = None;
            }
        }
    }

    /// The paused receivers, by origin.
    pub(super) fn paused(&self, now: Timestamp) -> Vec<PausedReceiver> {
        let until = |receiver: &Receiver<T>| receiver.paused_until.filter(|until| *until > now);
        let paused = self.by_id.values().filter_map(|receiver| {
            let key = (receiver.origin.clone(), receiver.account);
            Some((key, until(receiver)?))
        });
        let paused: BTreeMap<_, _> = paused.collect();
        let to_paused = |((origin, account), until)| PausedReceiver {
            account,
            origin,
            until,
        };
        paused.into_iter().map(to_paused).collect()
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Claimable {
    /// May get as many callbacks as there is capacity for.
    pub(super) open: Vec<ReceiverId>,
    /// Get one callback each.
    pub(super) probed: Vec<ReceiverId>,
}

impl<T> Receiver<T> {
    fn new(address: &Address) -> Self {
        Self {
            account: address.account,
            origin: address.origin.clone(),
            waiting: VecDeque::new(),
            running: 0,
            failures: 0,
            paused_until: None,
        }
    }

    fn is_busy(&self) -> bool {
        self.running > 0 || !self.waiting.is_empty()
    }

    /// Whether it has failed so often that a single attempt must show whether it works again.
    fn is_on_probation(&self) -> bool {
        self.failures >= PAUSE_AFTER_FAILURES
    }

    /// Whether one more callback may wait in memory.
    fn may_wait(&self, now: Timestamp) -> bool {
        if self.paused_until.is_some_and(|until| until > now) {
            return false;
        }
        !self.is_on_probation() || !self.is_busy()
    }

    /// Counts a failure and returns whether it starts a pause. Attempts that were in flight together fail together,
    /// which is one reason to pause, not many.
    fn fail(&mut self, now: Timestamp) -> bool {
        if self.paused_until.is_some_and(|until| until > now) {
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        if !self.is_on_probation() {
            return false;
        }
        self.paused_until = Some(now + pause(self.failures - PAUSE_AFTER_FAILURES));
        true
    }
}

impl Backlog {
    fn add(&mut self, id: ReceiverId) {
        // Receivers beyond the limit will be found in the database again.
        if self.known.len() < MAX_RECEIVERS && self.known.insert(id) {
            self.turns.push_back(id);
        }
    }
}

fn pause(failures: u32) -> SignedDuration {
    let seconds = FIRST_PAUSE_S << failures.min(10);
    SignedDuration::from_secs(seconds.min(LONGEST_PAUSE_S))
}

#[cfg(test)]
mod tests;
