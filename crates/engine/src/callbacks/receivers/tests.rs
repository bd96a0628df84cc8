use domain::CallbackUrl;

use super::super::limit::MIN_SHARE;
use super::*;

const OK: Answer = Answer::Received { elapsed_ms: 10 };
const NO_ANSWER: Answer = Answer::Overloaded;

fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().expect("a time")
}

fn after(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn address(account: u64, host: &str) -> Address {
    let url = CallbackUrl::parse(&format!("http://{host}/dlr")).expect("a URL");
    let account = AccountId::new(account).expect("in range");
    let origin = Origin::from_url(&url);
    Address {
        receiver: ReceiverId::new(account, &origin),
        account,
        origin,
    }
}

fn receivers() -> Receivers<u32> {
    Receivers::new(2_048)
}

/// Adds a callback, with capacity for everything.
fn add(receivers: &mut Receivers<u32>, to: &Address, item: u32, at: Timestamp) -> bool {
    let added = receivers.add(to, Source::Due, item, at, |_, _| true);
    added.is_ok()
}

/// Starts all attempts that are allowed, of this host and of blocked ones.
fn start_all(receivers: &mut Receivers<u32>, at: &Address) -> Vec<(u32, Attempt)> {
    std::iter::from_fn(|| receivers.start(Some(&at.origin))).collect()
}

/// Fails until the receiver is paused. Returns the callbacks that waited for it.
fn pause(receivers: &mut Receivers<u32>, of: &Address, at: Timestamp) -> Vec<u32> {
    for _ in 0..100 {
        let (_, attempt) = receivers.start(Some(&of.origin)).expect("something waits");
        let waited = receivers.finish(&attempt, NO_ANSWER, at);
        if receivers
            .paused(at)
            .iter()
            .any(|one| one.origin == of.origin)
        {
            return waited;
        }
    }
    panic!("it is never paused");
}

#[test]
fn callbacks_without_a_slot_go_back_to_the_database() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    assert_eq!(
        receivers.add(&here, Source::Due, 1, now(), |_, _| false),
        Err(1)
    );
    let claimable = receivers.claimable(now(), 10, |_| true);
    assert_eq!(claimable.open, [here.receiver], "it is claimed again");
    for can_reach in [false, true] {
        let claimable = receivers.claimable(now(), 10, |_| can_reach);
        assert_eq!(claimable, Claimable::default(), "it is left to other nodes");
    }
}

#[test]
fn a_receiver_with_a_backlog_keeps_half_of_its_share_for_it() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    let share = |receivers: &mut Receivers<u32>, source| {
        let mut seen = None;
        let added = receivers.add(&here, source, 1, now(), |_, share| {
            seen = Some(share);
            true
        });
        assert!(added.is_ok());
        seen.expect("admit was called")
    };
    assert_eq!(share(&mut receivers, Source::Due), Share::Whole);
    receivers.add_backlog(here.receiver);
    assert_eq!(share(&mut receivers, Source::Due), Share::Half);
    assert_eq!(share(&mut receivers, Source::Queue), Share::Whole);
    receivers.remove_backlog(here.receiver);
    assert_eq!(share(&mut receivers, Source::Due), Share::Whole);
}

#[test]
fn attempts_at_one_host_are_bounded_and_grow_with_its_answers() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..1_000 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    let mut in_flight = start_all(&mut receivers, &here);
    let first = in_flight.len();
    let mut most = first;
    let mut served = 0;
    while let Some((_, attempt)) = in_flight.pop() {
        assert_eq!(receivers.finish(&attempt, OK, now()), [0; 0]);
        served += 1;
        in_flight.splice(0..0, start_all(&mut receivers, &here));
        most = most.max(in_flight.len());
    }
    assert_eq!(served, 1_000);
    assert_eq!((first, most), (8, super::super::limit::MAX_LIMIT));
    assert!(receivers.by_id.is_empty() && receivers.hosts.is_empty());
    assert_eq!(receivers.running, 0);
}

#[test]
fn accounts_of_one_host_take_turns() {
    let mut receivers = receivers();
    let (busy, quiet) = (address(1, "a.example"), address(2, "a.example"));
    for item in 0..100 {
        assert!(add(&mut receivers, &busy, item, now()));
    }
    assert!(add(&mut receivers, &quiet, 1_000, now()));
    let started: Vec<u32> = (0..3)
        .filter_map(|_| receivers.start(Some(&busy.origin)))
        .map(|(item, _)| item)
        .collect();
    assert_eq!(started, [0, 1_000, 1]);
}

#[test]
fn a_failing_receiver_is_paused_longer_each_time_and_then_attempted_once() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..10 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    let waited = pause(&mut receivers, &here, now());
    assert_eq!(waited, [5, 6, 7, 8, 9], "they go back to the database");
    assert_eq!(receivers.paused(now())[0].until, after(FIRST_PAUSE_S));
    assert!(!add(&mut receivers, &here, 20, now()));
    assert_eq!(
        receivers.claimable(now(), 10, |_| true),
        Claimable::default()
    );

    let later = after(FIRST_PAUSE_S);
    assert_eq!(
        receivers.claimable(later, 10, |_| true).probed,
        [here.receiver]
    );
    assert!(add(&mut receivers, &here, 21, later), "one attempt");
    assert!(!add(&mut receivers, &here, 22, later), "no second one");
    assert_eq!(
        receivers.claimable(later, 10, |_| true),
        Claimable::default()
    );
    pause(&mut receivers, &here, later);
    let until = receivers.paused(later)[0].until;
    assert_eq!(until, after(3 * FIRST_PAUSE_S), "the pause doubles");
}

#[test]
fn failures_that_were_in_flight_together_pause_a_receiver_once() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..8 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    let in_flight = start_all(&mut receivers, &here);
    assert_eq!(in_flight.len(), 8);
    for (_, attempt) in in_flight {
        receivers.finish(&attempt, NO_ANSWER, now());
    }
    assert_eq!(receivers.paused(now())[0].until, after(FIRST_PAUSE_S));
}

#[test]
fn a_success_lifts_the_restriction_to_one_attempt() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..5 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    pause(&mut receivers, &here, now());
    let later = after(FIRST_PAUSE_S);
    assert!(add(&mut receivers, &here, 5, later));
    let (_, attempt) = receivers.start(Some(&here.origin)).expect("one waits");
    receivers.finish(&attempt, OK, later);
    assert_eq!(
        receivers.claimable(later, 10, |_| true).open,
        [here.receiver]
    );
    assert!(add(&mut receivers, &here, 6, later));
    assert!(add(&mut receivers, &here, 7, later));
}

#[test]
fn one_accounts_failing_path_does_not_pause_the_host_for_others() {
    let mut receivers = receivers();
    let (failing, other) = (address(1, "a.example"), address(2, "a.example"));
    for item in 0..5 {
        assert!(add(&mut receivers, &failing, item, now()));
    }
    pause(&mut receivers, &failing, now());
    assert!(!add(&mut receivers, &failing, 9, now()));
    assert!(add(&mut receivers, &other, 10, now()));
    assert!(receivers.start(Some(&other.origin)).is_some());
    let paused = receivers.paused(now());
    assert_eq!(paused.len(), 1);
    assert_eq!(paused[0].account, failing.account);
}

#[test]
fn a_replay_request_ends_a_pause() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..5 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    pause(&mut receivers, &here, now());
    receivers.end_pauses(|account, _| account.get() == 2);
    assert!(!add(&mut receivers, &here, 6, now()), "another account");
    receivers.end_pauses(|_, origin| *origin == here.origin);
    assert_eq!(
        receivers.claimable(now(), 10, |_| true).probed,
        [here.receiver]
    );
    assert!(add(&mut receivers, &here, 7, now()));
    assert!(!add(&mut receivers, &here, 8, now()), "one attempt only");
}

#[test]
fn hosts_take_turns_when_all_attempts_are_in_flight() {
    let mut receivers: Receivers<u32> = Receivers::new(40);
    let slow: Vec<_> = (0..10)
        .map(|number| address(1, &format!("slow{number}.example")))
        .collect();
    let mut in_flight = VecDeque::new();
    for host in &slow {
        for item in 0..100 {
            assert!(add(&mut receivers, host, item, now()));
        }
        in_flight.extend(start_all(&mut receivers, host));
    }
    assert_eq!(in_flight.len(), 40, "all are in flight");
    let quick = address(2, "quick.example");
    assert!(add(&mut receivers, &quick, 1_000, now()));
    assert!(receivers.start(Some(&quick.origin)).is_none());
    let mut ended = 0;
    let served = loop {
        let (_, attempt) = in_flight.pop_front().expect("under way");
        receivers.finish(&attempt, OK, now());
        ended += 1;
        let started: Vec<_> =
            std::iter::from_fn(|| receivers.start(Some(&attempt.origin))).collect();
        if started.iter().any(|(item, _)| *item == 1_000) {
            break ended;
        }
        in_flight.extend(started);
    };
    assert!(served <= slow.len() + 1, "after {served} other attempts");
}

#[test]
fn a_new_host_may_start_a_few_attempts_beside_greedy_ones() {
    let mut receivers: Receivers<u32> = Receivers::new(400);
    for number in 0..8 {
        let host = address(1, &format!("slow{number}.example"));
        for item in 0..500 {
            assert!(add(&mut receivers, &host, item, now()));
        }
        // Quick at first, so that the limit grows; then all attempts hang.
        let mut in_flight: VecDeque<_> = start_all(&mut receivers, &host).into();
        for _ in 0..200 {
            let (_, attempt) = in_flight.pop_front().expect("under way");
            receivers.finish(&attempt, OK, now());
            in_flight.extend(start_all(&mut receivers, &host));
        }
    }
    let new = address(2, "new.example");
    for item in 0..100 {
        assert!(add(&mut receivers, &new, item, now()));
    }
    let started = start_all(&mut receivers, &new);
    let of_new = started
        .iter()
        .filter(|(_, attempt)| attempt.origin == new.origin);
    assert!(of_new.count() >= MIN_SHARE);
}

#[test]
fn an_abandoned_attempt_leaves_no_trace() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..9 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    for (_, attempt) in start_all(&mut receivers, &here) {
        receivers.abandon(&attempt);
    }
    assert_eq!(receivers.running, 0);
    let (item, attempt) = receivers.start(None).expect("the next scan starts it");
    assert_eq!(item, 8);
    receivers.finish(&attempt, OK, now());
    assert!(receivers.by_id.is_empty() && receivers.hosts.is_empty());
}

#[test]
fn receivers_are_bounded() {
    let mut receivers = receivers();
    for number in 0..MAX_RECEIVERS + 10 {
        let here = address(1, &format!("host{number}.example"));
        assert!(add(&mut receivers, &here, 1, now()));
        let (_, attempt) = receivers.start(Some(&here.origin)).expect("it waits");
        receivers.finish(&attempt, Answer::Refused, now());
        receivers.add_backlog(here.receiver);
    }
    assert!(receivers.by_id.len() <= MAX_RECEIVERS);
    assert!(receivers.hosts.is_empty());
    assert!(receivers.backlog.turns.len() <= MAX_RECEIVERS);
}
