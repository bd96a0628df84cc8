//! The queues of the receiving hosts.

use std::collections::{HashMap, HashSet, VecDeque};

use domain::delivery::Callback;
use domain::{CallbackId, CallbackUrl, Timestamp};
use jiff::SignedDuration;

use crate::node::Held;

/// Tries under way at one host at once.
const AT_ONCE: usize = 32;
/// Callbacks that may wait for one host in memory; more wait in the database.
const WAITING: usize = 4000;
/// So many failures in a row, and the host is left alone for a while.
const PATIENCE: u32 = 5;
/// The first pause of a host, in seconds; it doubles with each failure after it.
const FIRST_PAUSE_S: i64 = 5;
/// The longest pause of a host, in seconds.
const LONGEST_PAUSE_S: i64 = 300;
/// What does not fit is looked at again after so long.
const FULL_PAUSE: SignedDuration = SignedDuration::from_secs(2);

/// Hosts that are remembered at once; beyond, those that nothing waits for are forgotten, failures and all.
const MOST_HOSTS: usize = 10_000;

/// A receiver, by scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Host(String);

impl Host {
    /// The part of an address before its path. Two ways to write a host are two hosts: harmless, and cheap to tell.
    pub(super) fn of(url: &CallbackUrl) -> Self {
        let url = url.as_str();
        let start = url.find("://").map_or(0, |at| at + 3);
        let end = url[start..]
            .find(['/', '?', '#', '\\'])
            .map_or(url.len(), |at| start + at);
        Self(url[..end].to_ascii_lowercase())
    }
}

/// What became of a callback that was put into a queue.
pub(super) enum Placed {
    /// It waits for one of the tries under way to end.
    Queued,
    /// It waits, and the host may have one more try under way: start it.
    Start,
    /// The host is left alone, or its queue is full: put it back until then.
    Full(Box<Held<Callback>>, Timestamp),
}

/// What follows from how a try went.
#[derive(Default)]
pub(super) struct Noted {
    /// The host is left alone: put these back until then.
    pub(super) put_back: Vec<(Held<Callback>, Timestamp)>,
    /// The host is back, and more waits than its tries under way can see to soon: start so many.
    pub(super) start: usize,
}

/// All receivers that something waits for, or that failed lately.
#[derive(Default)]
pub(super) struct Hosts {
    queues: HashMap<Host, Queue>,
    known: HashSet<CallbackId>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Held<Callback>>,
    running: usize,
    failures: u32,
    paused_until: Option<Timestamp>,
}

impl Hosts {
    /// Puts a callback into its queue.
    pub(super) fn place(
        &mut self,
        host: &Host,
        callback: Held<Callback>,
        now: Timestamp,
    ) -> Placed {
        self.known.insert(callback.it.id);
        if self.queues.len() >= MOST_HOSTS {
            self.queues.retain(|_, queue| queue.running > 0);
        }
        let queue = match self.queues.get_mut(host) {
            Some(queue) => queue,
            None => self.queues.entry(host.clone()).or_default(),
        };
        if let Some(until) = queue.paused_until.filter(|until| *until > now) {
            return Placed::Full(Box::new(callback), until);
        }
        if queue.waiting.len() >= WAITING {
            return Placed::Full(Box::new(callback), now + FULL_PAUSE);
        }
        queue.waiting.push_back(callback);
        // After a pause one try finds out whether the host is back; the others wait for its result.
        let at_once = if queue.failures >= PATIENCE {
            1
        } else {
            AT_ONCE
        };
        if queue.running >= at_once {
            return Placed::Queued;
        }
        queue.running += 1;
        Placed::Start
    }

    /// The receivers that are left alone, each with the time until when.
    pub(super) fn paused(&self, now: Timestamp) -> HashMap<String, Timestamp> {
        let until = |queue: &Queue| queue.paused_until.filter(|until| *until > now);
        let queues = self.queues.iter();
        queues
            .filter_map(|(host, queue)| Some((host.0.clone(), until(queue)?)))
            .collect()
    }

    /// The next callback for one of the tries under way; `None` ends it.
    pub(super) fn next(&mut self, host: &Host) -> Option<Held<Callback>> {
        let queue = self.queues.get_mut(host)?;
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.running -= 1;
            if queue.running == 0 && queue.failures == 0 {
                self.queues.remove(host);
            }
        }
        next
    }

    /// Notes how a try went.
    pub(super) fn note(&mut self, host: &Host, received: bool, now: Timestamp) -> Noted {
        let Some(queue) = self.queues.get_mut(host) else {
            return Noted::default();
        };
        if received {
            return Noted {
                start: queue.recover(),
                ..Noted::default()
            };
        }
        // Tries that were under way together fail together: that is one reason to pause, not many.
        if queue.paused_until.is_some_and(|until| until > now) {
            return Noted::default();
        }
        queue.failures = queue.failures.saturating_add(1);
        if queue.failures < PATIENCE {
            return Noted::default();
        }
        let until = now + pause(queue.failures - PATIENCE);
        queue.paused_until = Some(until);
        let put_back = queue.waiting.drain(..).map(|callback| (callback, until));
        Noted {
            put_back: put_back.collect(),
            start: 0,
        }
    }

    /// A callback is settled and no longer this node's.
    pub(super) fn forget(&mut self, id: CallbackId) {
        self.known.remove(&id);
    }

    /// Every callback that this node knows to hold.
    pub(super) fn known(&self) -> impl Iterator<Item = CallbackId> {
        self.known.iter().copied()
    }
}

impl Queue {
    /// Ends the distrust, and says how many more tries may begin.
    fn recover(&mut self) -> usize {
        if self.failures == 0 {
            return 0;
        }
        self.failures = 0;
        self.paused_until = None;
        let start = AT_ONCE.saturating_sub(self.running).min(self.waiting.len());
        self.running += start;
        start
    }
}

fn pause(failures: u32) -> SignedDuration {
    let seconds = FIRST_PAUSE_S << failures.min(10);
    SignedDuration::from_secs(seconds.min(LONGEST_PAUSE_S))
}

#[cfg(test)]
mod tests {
    use domain::delivery::{CallbackKind, Claim};
    use domain::{AccountId, NodeId};

    use super::*;

    fn now() -> Timestamp {
        "2030-01-01T00:00:00Z".parse().expect("a time")
    }

    fn callback(id: u64) -> Held<Callback> {
        let by = NodeId::new(1).expect("in range");
        let it = Callback {
            id: CallbackId::new(id).expect("in range"),
            kind: CallbackKind::Report,
            account: AccountId::new(1).expect("in range"),
            url: CallbackUrl::parse("http://a.example/dlr").expect("a URL"),
            payload: String::new(),
            created_at: now(),
            tries: 0,
            claim: Claim {
                due_at: now(),
                attempt: 1,
            },
        };
        Held { by, it }
    }

    fn host() -> Host {
        Host::of(&callback(1).it.url)
    }

    #[test]
    fn a_host_is_scheme_name_and_port() {
        for (url, host) in [
            ("http://A.example/x?y", "http://a.example"),
            ("https://a.example:8443", "https://a.example:8443"),
            ("http://[::1]:80/a", "http://[::1]:80"),
            ("http://a.example?x", "http://a.example"),
        ] {
            assert_eq!(Host::of(&CallbackUrl::parse(url).expect(url)).0, host);
        }
    }

    #[test]
    fn tries_at_one_host_are_bounded_and_the_rest_waits() {
        let mut hosts = Hosts::default();
        let started = (1..=100)
            .filter(|id| matches!(hosts.place(&host(), callback(*id), now()), Placed::Start))
            .count();
        assert_eq!(started, AT_ONCE);
        let mut served = 0;
        while hosts.next(&host()).is_some() {
            served += 1;
        }
        assert_eq!(served, 100);
    }

    #[test]
    fn a_full_queue_puts_back() {
        let mut hosts = Hosts::default();
        let full = (1..=5000)
            .find(|id| matches!(hosts.place(&host(), callback(*id), now()), Placed::Full(..)));
        assert_eq!(full, Some(u64::try_from(WAITING).expect("small") + 1));
    }

    #[test]
    fn a_host_that_fails_is_left_alone_longer_and_longer_then_tried_by_one() {
        let mut hosts = Hosts::default();
        for id in 1..=10 {
            hosts.place(&host(), callback(id), now());
        }
        for failure in 1..PATIENCE {
            hosts.next(&host()).expect("something waits");
            assert!(
                hosts.note(&host(), false, now()).put_back.is_empty(),
                "failure {failure}"
            );
        }
        hosts.next(&host()).expect("something waits");
        let put_back = hosts.note(&host(), false, now()).put_back;
        assert_eq!(put_back.len(), 5, "what waits is put back");
        let until = now() + SignedDuration::from_secs(FIRST_PAUSE_S);
        assert!(put_back.iter().all(|(_, time)| *time == until));
        assert!(
            matches!(hosts.place(&host(), callback(20), now()), Placed::Full(_, time) if time == until)
        );

        for _ in 1..=10 {
            assert!(
                hosts.next(&host()).is_none(),
                "each of the ten tries under way ends"
            );
        }
        assert!(
            matches!(hosts.place(&host(), callback(21), until), Placed::Start),
            "one finds out"
        );
        assert!(
            matches!(hosts.place(&host(), callback(22), until), Placed::Queued),
            "the others wait"
        );
        hosts.next(&host()).expect("something waits");
        let again = hosts.note(&host(), false, until).put_back;
        assert_eq!(
            again[0].1,
            until + SignedDuration::from_secs(2 * FIRST_PAUSE_S),
            "the pause doubles"
        );
    }

    #[test]
    fn what_fails_together_pauses_a_host_once() {
        let mut hosts = Hosts::default();
        for id in 1..=AT_ONCE {
            let id = u64::try_from(id).expect("small");
            hosts.place(&host(), callback(id), now());
            hosts.next(&host()).expect("something waits");
        }
        for _ in 1..=AT_ONCE {
            hosts.note(&host(), false, now());
        }
        let until = now() + SignedDuration::from_secs(FIRST_PAUSE_S);
        assert!(
            matches!(hosts.place(&host(), callback(99), now()), Placed::Full(_, time) if time == until)
        );
    }

    #[test]
    fn a_host_that_is_back_gets_all_its_tries_at_once() {
        let mut hosts = Hosts::default();
        for id in 1..=u64::from(PATIENCE) {
            hosts.place(&host(), callback(id), now());
            hosts.next(&host()).expect("something waits");
            hosts.note(&host(), false, now());
            hosts.next(&host());
        }
        let later = now() + SignedDuration::from_secs(FIRST_PAUSE_S);
        for id in 100..200 {
            hosts.place(&host(), callback(id), later);
        }
        hosts.next(&host()).expect("something waits");
        assert_eq!(hosts.note(&host(), true, later).start, AT_ONCE - 1);
        assert_eq!(hosts.note(&host(), true, later).start, 0, "only once");
    }

    #[test]
    fn a_success_ends_the_distrust() {
        let mut hosts = Hosts::default();
        for id in 1..=PATIENCE {
            hosts.place(&host(), callback(id.into()), now());
            hosts.next(&host()).expect("something waits");
            hosts.note(&host(), false, now());
        }
        hosts.note(&host(), true, now());
        assert!(matches!(
            hosts.place(&host(), callback(50), now()),
            Placed::Start
        ));
    }
}
