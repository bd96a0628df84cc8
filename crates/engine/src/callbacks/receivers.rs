//! The queues of receivers in memory: who may be tried, who is paused, whose turn it is.
//!
//! A receiver is one account's callbacks to one origin. It has a queue and pauses of its own, so that one account's
//! failing path leaves other accounts of the same host alone. The tries of all receivers of a host count against the
//! host's limit, and they take turns.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use domain::{AccountId, Origin, ReceiverId, Timestamp};
use jiff::SignedDuration;

use super::limit::{AdaptiveLimit, Answer, may_take};
use super::slots::Share;

/// So many failures in a row, and the receiver is paused.
const PATIENCE: u32 = 5;
/// The first pause of a receiver, in seconds; it doubles with each failure after it.
const FIRST_PAUSE_S: i64 = 5;
/// The longest pause of a receiver, in seconds.
const LONGEST_PAUSE_S: i64 = 300;
/// Receivers that are remembered at once; beyond, those that nothing waits for are forgotten, failures and all.
const MOST_RECEIVERS: usize = 10_000;
/// Hosts that are looked at for one that may start a try.
const LOOK_AT: usize = 8;

/// Where a callback belongs.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) receiver: ReceiverId,
    pub(super) account: AccountId,
    pub(super) origin: Origin,
}

/// Where a callback comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// It is new, or its time has come.
    Due,
    /// It was claimed from its receiver's queue in the database.
    Queue,
}

/// A receiver that is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedReceiver {
    /// Whose callbacks wait.
    pub account: AccountId,
    /// For whom, by scheme, host and port.
    pub origin: Origin,
    /// Until then.
    pub until: Timestamp,
}

/// A try that was started. Must be given back by [`Receivers::finish`] or [`Receivers::abandon`].
#[derive(Debug, Clone)]
pub(super) struct Try {
    pub(super) receiver: ReceiverId,
    pub(super) origin: Origin,
    number: u64,
}

/// All receivers that something waits for, or that failed lately. `T` is what waits.
pub(super) struct Receivers<T> {
    by_id: HashMap<ReceiverId, Receiver<T>>,
    hosts: HashMap<Origin, Host>,
    /// Hosts that may start a try as soon as one of all tries ends, in turn.
    blocked: VecDeque<Origin>,
    backlog: Backlog,
    /// Tries under way, and the most of them.
    running: usize,
    most_tries: usize,
    /// The number of the next try.
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
    /// Its receivers for which something waits.
    turns: VecDeque<ReceiverId>,
    is_blocked: bool,
}

/// Receivers that may have more callbacks in the database, served in turn.
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

    /// Puts a callback into its receiver's queue, unless that is paused or has no room: then it is returned, and belongs
    /// into the queue in the database. `admit` finds room for it in memory.
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
        self.make_room();
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

    fn make_room(&mut self) {
        if self.by_id.len() >= MOST_RECEIVERS {
            self.by_id.retain(|_, receiver| receiver.is_busy());
        }
    }

    /// Starts a try: of a host that waits for its turn, else of this one. To be called until it starts none.
    pub(super) fn start(&mut self, origin: Option<&Origin>) -> Option<(T, Try)> {
        for _ in 0..self.blocked.len().min(LOOK_AT) {
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

    fn start_at(&mut self, origin: &Origin) -> Option<(T, Try)> {
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
        let started = Try {
            receiver: id,
            origin: origin.clone(),
            number,
        };
        Some((item, started))
    }

    /// Lets a host that could start a try wait for its turn.
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

    /// Notes how a try went. Returns what waited for a receiver that is paused now: it belongs into the database.
    pub(super) fn finish(&mut self, of: &Try, answer: Answer, now: Timestamp) -> Vec<T> {
        let next = self.next;
        if let Some(host) = self.hosts.get_mut(&of.origin) {
            let is_full = host.running >= host.limit.get();
            host.limit.note(answer, of.number, next, is_full);
        }
        let mut paused = Vec::new();
        if let Some(receiver) = self.by_id.get_mut(&of.receiver) {
            if matches!(answer, Answer::Received { .. }) {
                receiver.failures = 0;
                receiver.paused_until = None;
            } else if receiver.fail(now) {
                paused.extend(receiver.waiting.drain(..));
                self.backlog.add(of.receiver);
            }
        }
        if !paused.is_empty()
            && let Some(host) = self.hosts.get_mut(&of.origin)
        {
            host.turns.retain(|id| *id != of.receiver);
        }
        self.end(of);
        paused
    }

    /// Frees the place of a try that came to nothing.
    pub(super) fn abandon(&mut self, of: &Try) {
        self.end(of);
        self.block(&of.origin);
    }

    fn end(&mut self, of: &Try) {
        self.running -= 1;
        if let Some(receiver) = self.by_id.get_mut(&of.receiver) {
            receiver.running -= 1;
            if !receiver.is_busy() && receiver.failures == 0 {
                self.by_id.remove(&of.receiver);
            }
        }
        if let Some(host) = self.hosts.get_mut(&of.origin) {
            host.running -= 1;
            if host.running == 0 && host.turns.is_empty() {
                self.hosts.remove(&of.origin);
            }
        }
    }

    /// Notes that callbacks wait in a receiver's queue in the database.
    pub(super) fn note_backlog(&mut self, id: ReceiverId) {
        self.backlog.add(id);
    }

    /// Notes that nothing waits there any more.
    pub(super) fn note_drained(&mut self, id: ReceiverId) {
        if self.backlog.known.remove(&id) {
            self.backlog.turns.retain(|turn| *turn != id);
        }
    }

    /// Receivers with a backlog that may be claimed for, at most `most` of them, in turn: those that may have any number,
    /// and those that get one to find out whether they are back.
    pub(super) fn claimable(&mut self, now: Timestamp, most: usize) -> Claimable {
        let mut claimable = Claimable::default();
        for _ in 0..self.backlog.turns.len() {
            if claimable.open.len() + claimable.probed.len() >= most {
                break;
            }
            let Some(id) = self.backlog.turns.pop_front() else {
                break;
            };
            self.backlog.turns.push_back(id);
            match self.by_id.get(&id) {
                Some(receiver) if !receiver.may_wait(now) => {}
                Some(receiver) if receiver.is_doubtful() => claimable.probed.push(id),
                _ => claimable.open.push(id),
            }
        }
        claimable
    }

    /// Ends the pauses of receivers, so that each is tried once now.
    pub(super) fn end_pauses(&mut self, of: impl Fn(AccountId, &Origin) -> bool) {
        for receiver in self.by_id.values_mut() {
            if receiver.paused_until.is_some() && of(receiver.account, &receiver.origin) {
                receiver.paused_until = None;
            }
        }
    }

    /// The receivers that are paused, in the order of their origins.
    pub(super) fn paused(&self, now: Timestamp) -> Vec<PausedReceiver> {
        let until = |receiver: &Receiver<T>| receiver.paused_until.filter(|until| *until > now);
        let paused = self.by_id.values().filter_map(|receiver| {
            let key = (receiver.origin.clone(), receiver.account);
            Some((key, until(receiver)?))
        });
        let paused: BTreeMap<_, _> = paused.collect();
        let show = |((origin, account), until)| PausedReceiver {
            account,
            origin,
            until,
        };
        paused.into_iter().map(show).collect()
    }
}

/// Receivers that may be claimed for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Claimable {
    /// As many callbacks as there is room for.
    pub(super) open: Vec<ReceiverId>,
    /// One callback each.
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

    /// It has failed so often that one try must find out whether it is back.
    fn is_doubtful(&self) -> bool {
        self.failures >= PATIENCE
    }

    /// Whether one more may wait for it in memory.
    fn may_wait(&self, now: Timestamp) -> bool {
        if self.paused_until.is_some_and(|until| until > now) {
            return false;
        }
        !self.is_doubtful() || !self.is_busy()
    }

    /// Notes a failure, and says whether it is the reason for a pause. Tries that were under way together fail together:
    /// that is one reason to pause, not many.
    fn fail(&mut self, now: Timestamp) -> bool {
        if self.paused_until.is_some_and(|until| until > now) {
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        if !self.is_doubtful() {
            return false;
        }
        self.paused_until = Some(now + pause(self.failures - PATIENCE));
        true
    }
}

impl Backlog {
    fn add(&mut self, id: ReceiverId) {
        // Those beyond the bound are found in the database again.
        if self.known.len() < MOST_RECEIVERS && self.known.insert(id) {
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
