use domain::CallbackUrl;

use super::super::limit::FEW;
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
    let origin = Origin::of(&url);
    Address {
        receiver: ReceiverId::new(account, &origin),
        account,
        origin,
    }
}

fn receivers() -> Receivers<u32> {
    Receivers::new(2_048)
}

/// Adds with room for everything.
fn add(receivers: &mut Receivers<u32>, to: &Address, item: u32, at: Timestamp) -> bool {
    let added = receivers.add(to, Source::Due, item, at, |_, _| true);
    added.is_ok()
}

/// Starts what may start, at this host and at those whose turn it is.
fn start_all(receivers: &mut Receivers<u32>, at: &Address) -> Vec<(u32, Try)> {
    std::iter::from_fn(|| receivers.start(Some(&at.origin))).collect()
}

/// Fails until the receiver is paused; returns what waited for it.
fn pause(receivers: &mut Receivers<u32>, of: &Address, at: Timestamp) -> Vec<u32> {
    for _ in 0..100 {
        let (_, running) = receivers.start(Some(&of.origin)).expect("something waits");
        let waited = receivers.finish(&running, NO_ANSWER, at);
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
fn what_finds_no_room_in_memory_belongs_into_the_database() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    assert_eq!(
        receivers.add(&here, Source::Due, 1, now(), |_, _| false),
        Err(1)
    );
    let claimable = receivers.claimable(now(), 10);
    assert_eq!(claimable.open, [here.receiver], "it is asked for again");
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
        seen.expect("asked")
    };
    assert_eq!(share(&mut receivers, Source::Due), Share::Whole);
    receivers.note_backlog(here.receiver);
    assert_eq!(share(&mut receivers, Source::Due), Share::Half);
    assert_eq!(share(&mut receivers, Source::Queue), Share::Whole);
    receivers.note_drained(here.receiver);
    assert_eq!(share(&mut receivers, Source::Due), Share::Whole);
}

#[test]
fn tries_at_one_host_are_bounded_and_grow_with_its_answers() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..1_000 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    let mut under_way = start_all(&mut receivers, &here);
    let first = under_way.len();
    let mut most = first;
    let mut served = 0;
    while let Some((_, running)) = under_way.pop() {
        assert_eq!(receivers.finish(&running, OK, now()), [0; 0]);
        served += 1;
        under_way.splice(0..0, start_all(&mut receivers, &here));
        most = most.max(under_way.len());
    }
    assert_eq!(served, 1_000);
    assert_eq!((first, most), (8, super::super::limit::MOST));
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
fn a_receiver_that_fails_is_paused_longer_and_longer_then_tried_once() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..10 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    let waited = pause(&mut receivers, &here, now());
    assert_eq!(waited, [5, 6, 7, 8, 9], "what waits goes to the database");
    assert_eq!(receivers.paused(now())[0].until, after(FIRST_PAUSE_S));
    assert!(!add(&mut receivers, &here, 20, now()));
    assert_eq!(receivers.claimable(now(), 10), Claimable::default());

    let later = after(FIRST_PAUSE_S);
    assert_eq!(receivers.claimable(later, 10).probed, [here.receiver]);
    assert!(add(&mut receivers, &here, 21, later), "one finds out");
    assert!(!add(&mut receivers, &here, 22, later), "the others wait");
    assert_eq!(receivers.claimable(later, 10), Claimable::default());
    pause(&mut receivers, &here, later);
    let until = receivers.paused(later)[0].until;
    assert_eq!(until, after(3 * FIRST_PAUSE_S), "the pause doubles");
}

#[test]
fn what_fails_together_pauses_a_receiver_once() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..8 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    let under_way = start_all(&mut receivers, &here);
    assert_eq!(under_way.len(), 8);
    for (_, running) in under_way {
        receivers.finish(&running, NO_ANSWER, now());
    }
    assert_eq!(receivers.paused(now())[0].until, after(FIRST_PAUSE_S));
}

#[test]
fn a_success_ends_the_doubt() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..5 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    pause(&mut receivers, &here, now());
    let later = after(FIRST_PAUSE_S);
    assert!(add(&mut receivers, &here, 5, later));
    let (_, running) = receivers.start(Some(&here.origin)).expect("one waits");
    receivers.finish(&running, OK, later);
    assert_eq!(receivers.claimable(later, 10).open, [here.receiver]);
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
fn a_request_of_a_person_ends_a_pause() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..5 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    pause(&mut receivers, &here, now());
    receivers.end_pauses(|account, _| account.get() == 2);
    assert!(!add(&mut receivers, &here, 6, now()), "of another account");
    receivers.end_pauses(|_, origin| *origin == here.origin);
    assert_eq!(receivers.claimable(now(), 10).probed, [here.receiver]);
    assert!(add(&mut receivers, &here, 7, now()));
    assert!(!add(&mut receivers, &here, 8, now()), "one try, not all");
}

#[test]
fn when_all_tries_are_under_way_hosts_take_turns() {
    let mut receivers: Receivers<u32> = Receivers::new(40);
    let slow: Vec<_> = (0..10)
        .map(|number| address(1, &format!("slow{number}.example")))
        .collect();
    let mut under_way = VecDeque::new();
    for host in &slow {
        for item in 0..100 {
            assert!(add(&mut receivers, host, item, now()));
        }
        under_way.extend(start_all(&mut receivers, host));
    }
    assert_eq!(under_way.len(), 40, "all are under way");
    let quick = address(2, "quick.example");
    assert!(add(&mut receivers, &quick, 1_000, now()));
    assert!(receivers.start(Some(&quick.origin)).is_none());
    let mut ended = 0;
    let served = loop {
        let (_, running) = under_way.pop_front().expect("under way");
        receivers.finish(&running, OK, now());
        ended += 1;
        let started: Vec<_> =
            std::iter::from_fn(|| receivers.start(Some(&running.origin))).collect();
        if started.iter().any(|(item, _)| *item == 1_000) {
            break ended;
        }
        under_way.extend(started);
    };
    assert!(served <= slow.len() + 1, "after {served} tries of others");
}

#[test]
fn a_new_host_may_start_a_few_tries_beside_greedy_ones() {
    let mut receivers: Receivers<u32> = Receivers::new(400);
    for number in 0..8 {
        let host = address(1, &format!("slow{number}.example"));
        for item in 0..500 {
            assert!(add(&mut receivers, &host, item, now()));
        }
        // Quick at first, so that its limit grows; then all of its tries hang.
        let mut under_way: VecDeque<_> = start_all(&mut receivers, &host).into();
        for _ in 0..200 {
            let (_, running) = under_way.pop_front().expect("under way");
            receivers.finish(&running, OK, now());
            under_way.extend(start_all(&mut receivers, &host));
        }
    }
    let new = address(2, "new.example");
    for item in 0..100 {
        assert!(add(&mut receivers, &new, item, now()));
    }
    let started = start_all(&mut receivers, &new);
    let of_new = started.iter().filter(|(_, it)| it.origin == new.origin);
    assert!(of_new.count() >= FEW);
}

#[test]
fn an_abandoned_try_leaves_no_trace() {
    let mut receivers = receivers();
    let here = address(1, "a.example");
    for item in 0..9 {
        assert!(add(&mut receivers, &here, item, now()));
    }
    for (_, running) in start_all(&mut receivers, &here) {
        receivers.abandon(&running);
    }
    assert_eq!(receivers.running, 0);
    let (item, running) = receivers.start(None).expect("the next scan starts it");
    assert_eq!(item, 8);
    receivers.finish(&running, OK, now());
    assert!(receivers.by_id.is_empty() && receivers.hosts.is_empty());
}

#[test]
fn receivers_are_bounded() {
    let mut receivers = receivers();
    for number in 0..MOST_RECEIVERS + 10 {
        let here = address(1, &format!("host{number}.example"));
        assert!(add(&mut receivers, &here, 1, now()));
        let (_, running) = receivers.start(Some(&here.origin)).expect("it waits");
        receivers.finish(&running, Answer::Refused, now());
        receivers.note_backlog(here.receiver);
    }
    assert!(receivers.by_id.len() <= MOST_RECEIVERS);
    assert!(receivers.hosts.is_empty());
    assert!(receivers.backlog.turns.len() <= MOST_RECEIVERS);
}
