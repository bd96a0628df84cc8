//! Finding messages and callbacks, and the detail of one message.

use std::sync::Arc;

use domain::delivery::{CallbackNext, SendResult};
use domain::message::{Recipient, SendTime, Submission};
use domain::ports::{
    CallbackFilter, CallbackState, CallbackSubject, Cursor, MessageFilter, MessageSummary, Page,
    Place, StateName, Store,
};
use domain::{
    AccountId, CallbackId, Channel, Code, Country, MessageId, Msisdn, Network, Originator, Outcome,
};

use super::sample::{accept, account, at, message};
use super::steps::{
    ABSENT, attempt, attempted, claim, deliver, due, due_at, first_result, future, held, join,
    past, receipt, replay_all, report, result, send, settle, settle_callback, taken, url,
};

on_both_stores!(
    messages_are_found_by_every_condition,
    messages_are_found_by_time_despite_disorder,
    a_search_without_a_match_ends,
    messages_are_found_by_state,
    a_detail_shows_parts_and_callbacks,
    a_detail_shows_the_next_attempt,
    the_detail_of_another_account_is_hidden,
    callbacks_are_found_by_account_and_state,
    a_replay_is_limited_to_its_account,
);

/// IDs with small gaps, over several segments of either store; IDs after a gap that is too large to search segment by
/// segment; and IDs of three days, as `PostgreSQL` assigns them.
fn some_ids() -> Vec<u64> {
    let near = (0..3_000_u64).map(|n| 1 + n * 2 + n % 7 / 6);
    let far = (0..40).map(|n| 1_000_000_000 + n);
    let days = (0..90).map(|n| ((1 + n / 30) << 32) + n * 700);
    near.chain(far).chain(days).collect()
}

fn number(n: u64) -> Msisdn {
    Msisdn::parse(&format!("+3712000000{}", n % 7)).expect("a number")
}

fn network() -> Network {
    "24701".parse().expect("a network")
}

fn latvia() -> Country {
    Country::parse("LV").expect("a country")
}

/// A stored message.
struct Sample {
    id: u64,
    owner: AccountId,
    submission: Submission,
}

/// Messages of three accounts, the third with very few, to seven numbers, from two senders, on two channels.
async fn fill(store: &Arc<dyn Store>) -> Vec<Sample> {
    let mut known = Vec::new();
    for (n, id) in (0_u64..).zip(some_ids()) {
        let owner = account(if n % 1_500 == 0 { 3 } else { 1 + n % 2 });
        let from = if n % 3 == 0 { "Acme" } else { "37120000009" };
        let mut submission = due(id);
        submission.account = owner;
        submission.recipients[0].to = number(n / 5);
        submission.from = Some(Originator::parse(from).expect("a name"));
        submission.channel = [Channel::Sms, Channel::Viber][usize::from(n % 11 == 0)];
        submission.accepted_at = at(i64::try_from(n).expect("small"));
        let recipient = &mut submission.recipients[0];
        recipient.network = (n % 4 == 0).then(network);
        recipient.country = (n % 5 != 0).then(latvia);
        known.push(Sample {
            id,
            owner,
            submission,
        });
    }
    for batch in known.chunks(500) {
        let batch = batch.iter().map(|known| known.submission.clone());
        accept(store, batch.collect()).await;
    }
    known.reverse();
    known
}

/// Reads all pages.
async fn search_all(
    store: &Arc<dyn Store>,
    filter: &MessageFilter,
    limit: u32,
) -> Vec<MessageSummary> {
    let (mut before, mut rows) = (None, Vec::new());
    for _ in 0..5_000 {
        let cursor = Cursor { before, limit };
        let found = store.search_messages(filter, cursor).await;
        let found: Page<_, MessageId> = found.expect("the store answers");
        assert!(found.rows.len() <= limit as usize);
        rows.extend(found.rows);
        assert!(found.next < before || before.is_none(), "no progress");
        before = found.next;
        if before.is_none() {
            return rows;
        }
    }
    panic!("the search does not end");
}

async fn messages_are_found_by_every_condition(store: Arc<dyn Store>) {
    let known = fill(&store).await;
    let all = MessageFilter::default();
    let of_account = |n| MessageFilter {
        account: Some(account(n)),
        ..MessageFilter::default()
    };
    let cases: Vec<(&str, MessageFilter)> = vec![
        ("everything", all.clone()),
        ("an account", of_account(1)),
        ("an account with few messages", of_account(3)),
        ("an account without messages", of_account(4)),
        (
            "an account and a number",
            MessageFilter {
                to: Some(number(3)),
                ..of_account(2)
            },
        ),
        (
            "a number",
            MessageFilter {
                to: Some(number(4)),
                ..all.clone()
            },
        ),
        (
            "a sender that is a number",
            MessageFilter {
                from: Some("+37120000009".to_owned()),
                ..of_account(1)
            },
        ),
        (
            "a sender and a channel",
            MessageFilter {
                from: Some("Acme".to_owned()),
                channel: Some(Channel::Viber),
                ..all.clone()
            },
        ),
        (
            "a time",
            MessageFilter {
                since: Some(at(100)),
                until: Some(at(160)),
                ..of_account(2)
            },
        ),
        (
            "a number and a time",
            MessageFilter {
                to: Some(number(2)),
                until: Some(at(900)),
                ..of_account(1)
            },
        ),
        (
            "a network",
            MessageFilter {
                places: Some(vec![Place::Network(network())]),
                ..of_account(1)
            },
        ),
        (
            "a country and a number",
            MessageFilter {
                to: Some(number(2)),
                places: Some(vec![Place::Network(network()), Place::Country(latvia())]),
                ..all.clone()
            },
        ),
    ];
    for (name, filter) in cases {
        let matches_filter = |known: &&Sample| {
            let submission = &known.submission;
            let Recipient {
                to, network: on, ..
            } = submission.recipients[0];
            let inside = submission.recipients[0].country.map(Place::Country);
            let place = on.map(Place::Network).or(inside);
            let shown = submission.from.as_ref().map(Originator::to_string);
            filter.account.is_none_or(|account| account == known.owner)
                && filter.to.is_none_or(|wanted| wanted == to)
                && filter.channel.is_none_or(|it| it == submission.channel)
                && (filter.from.is_none() || filter.from == shown)
                && (filter.places.iter()).all(|it| it.iter().any(|it| Some(*it) == place))
                && filter.since.is_none_or(|it| submission.accepted_at >= it)
                && filter.until.is_none_or(|it| submission.accepted_at < it)
        };
        let expected: Vec<u64> = known
            .iter()
            .filter(matches_filter)
            .map(|known| known.id)
            .collect();
        let found = search_all(&store, &filter, 97).await;
        let found: Vec<u64> = found.iter().map(|row| row.id.get()).collect();
        assert_eq!(found, expected, "{name}");
    }
}

/// Two nodes reserve their IDs at the same time, and one of them uses them late.
async fn messages_are_found_by_time_despite_disorder(store: Arc<dyn Store>) {
    const DAYS: i64 = 40;
    let accepted = |day: i64, slow: bool| at(day * 86_400 + i64::from(slow) * 3_300);
    let mut known = Vec::new();
    for day in 0..DAYS {
        let first = (1 + u64::try_from(day).expect("small")) << 32;
        for (id, slow) in [(first, true), (first + 10_000, false)] {
            let mut submission = due(id);
            submission.accepted_at = accepted(day, slow);
            known.push((id, submission.accepted_at));
            accept(&store, vec![submission]).await;
        }
    }
    known.reverse();
    for (since, until) in [(10, 20), (0, 1), (39, 40), (40, 50), (25, 26)] {
        for slow in [false, true] {
            let (since, until) = (accepted(since, slow), accepted(until, slow));
            let filter = MessageFilter {
                account: Some(account(1)),
                since: Some(since),
                until: Some(until),
                ..MessageFilter::default()
            };
            let matches_filter = |(_, at): &&(u64, domain::Timestamp)| since <= *at && *at < until;
            let expected: Vec<u64> = known
                .iter()
                .filter(matches_filter)
                .map(|(id, _)| *id)
                .collect();
            let found = search_all(&store, &filter, 7).await;
            let found: Vec<u64> = found.iter().map(|row| row.id.get()).collect();
            assert_eq!(found, expected, "{since} to {until}");
        }
    }
}

async fn a_search_without_a_match_ends(store: Arc<dyn Store>) {
    fill(&store).await;
    let nobody = MessageFilter {
        account: Some(account(1)),
        from: Some("Nobody".to_owned()),
        ..MessageFilter::default()
    };
    assert_eq!(search_all(&store, &nobody, 50).await, []);
    let empty = Cursor {
        before: Some(message(1)),
        limit: 50,
    };
    let all = MessageFilter::default();
    let found = store.search_messages(&all, empty).await;
    let found = found.expect("answers");
    assert_eq!((found.rows, found.next), (Vec::new(), None));
}

async fn messages_are_found_by_state(store: Arc<dyn Store>) {
    let node = join(&store).await;
    deliver(&store, node, 1).await;
    send(&store, node, 2, &["two"]).await;
    report(&store, node, vec![receipt("two", ABSENT)]).await;
    send(&store, node, 3, &["three"]).await;
    accept(
        &store,
        vec![due(4), due_at(5, future(1)), due_at(6, future(1))],
    )
    .await;
    store
        .cancel(account(1), message(6), past(1))
        .await
        .expect("answers");
    accept(&store, vec![held(7, node)]).await;
    let mut late = first_result(7, taken(&["seven"]));
    late.expires_at = past(5);
    settle(&store, node, vec![late]).await;
    store.expire_sent(node, 10, true).await.expect("answers");

    let in_state = |state| MessageFilter {
        account: Some(account(1)),
        state: Some(state),
        ..MessageFilter::default()
    };
    let expected = [
        (StateName::Scheduled, 5),
        (StateName::Queued, 4),
        (StateName::Sent, 3),
        (StateName::Delivered, 1),
        (StateName::Failed, 2),
        (StateName::Expired, 7),
        (StateName::Cancelled, 6),
    ];
    for (state, id) in expected {
        let found = search_all(&store, &in_state(state), 2).await;
        let found: Vec<_> = found
            .iter()
            .map(|row| (row.id.get(), row.state.name()))
            .collect();
        assert_eq!(found, [(id, state.name())]);
    }
    for (code, id) in [(Code::ABSENT, 2), (Code::EXPIRED, 7)] {
        let filter = MessageFilter {
            error: Some(code),
            ..MessageFilter::default()
        };
        let found = search_all(&store, &filter, 2).await;
        let found: Vec<u64> = found.iter().map(|row| row.id.get()).collect();
        assert_eq!(found, [id], "{code}");
    }
}

async fn a_detail_shows_parts_and_callbacks(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let long = Submission {
        shape: domain::message::text::Shape {
            parts: 2,
            ..due(1).shape
        },
        ..held(1, node)
    };
    accept(&store, vec![long]).await;
    settle(&store, node, vec![first_result(1, taken(&["a", "b"]))]).await;
    let detail = find_detail(&store, 1).await;
    assert_eq!(detail.summary.state.name(), "sent");
    assert_eq!((detail.attempts, detail.due_at), (Some(1), None));

    let first = vec![receipt("a", Outcome::Delivered)];
    report(&store, node, first).await;
    let ended = report(&store, node, vec![receipt("b", ABSENT)]).await;
    let [domain::ports::Matched::Ended(ended)] = &ended[..] else {
        panic!("{ended:?}")
    };
    let callback = ended.callback.as_ref().expect("it is held");
    let again = attempted(callback, CallbackNext::Later(past(5)), 3);
    assert!(settle_callback(&store, node, again).await);

    let detail = find_detail(&store, 1).await;
    let parts: Vec<_> = detail
        .parts
        .iter()
        .map(|part| (part.part, part.reference.as_str(), part.outcome))
        .collect();
    let expected = [(1, "a", Some(Outcome::Delivered)), (2, "b", Some(ABSENT))];
    assert_eq!(parts, expected);
    assert!(detail.parts.iter().all(|part| part.carrier == "alpha"));
    assert_eq!(detail.shape.parts, 2);
    assert_eq!((detail.attempts, detail.due_at), (None, None));
    let [(record, attempts)] = &detail.callbacks[..] else {
        panic!("{:?}", detail.callbacks)
    };
    assert_eq!(record.about, CallbackSubject::Message(message(1)));
    assert_eq!(attempts[..], [attempt(3)]);
}

async fn find_detail(store: &Arc<dyn Store>, id: u64) -> domain::ports::MessageDetail {
    let detail = store
        .find_message_detail(Some(account(1)), message(id))
        .await;
    detail.expect("answers").expect("it is there")
}

async fn a_detail_shows_the_next_attempt(store: Arc<dyn Store>) {
    let node = join(&store).await;
    accept(&store, vec![due(1), due_at(2, future(7)), held(3, node)]).await;
    let claimed = claim(&store, node).await;
    let [queued] = &claimed[..] else {
        panic!("{claimed:?}")
    };
    let later = SendResult::Later(future(3));
    settle(&store, node, vec![result(queued, later)]).await;
    for (id, attempts, due_at) in [
        (1, 1, Some(future(3))),
        (2, 0, Some(future(7))),
        (3, 1, None),
    ] {
        let detail = find_detail(&store, id).await;
        assert_eq!(
            (detail.attempts, detail.due_at),
            (Some(attempts), due_at),
            "{id}"
        );
    }
}

async fn the_detail_of_another_account_is_hidden(store: Arc<dyn Store>) {
    accept(&store, vec![due(1)]).await;
    let stranger = store
        .find_message_detail(Some(account(2)), message(1))
        .await;
    assert_eq!(stranger.expect("answers"), None);
    let operator = store.find_message_detail(None, message(1)).await;
    assert!(operator.expect("answers").is_some());
}

/// Delivers a message of an account, and settles one attempt of its report.
async fn reported(store: &Arc<dyn Store>, owner: u64, id: u64, next: CallbackNext) -> CallbackId {
    let node = join(store).await;
    let one = Submission {
        account: account(owner),
        dlr_url: Some(url(&format!("https://{owner}.example.com/dlr"))),
        send: SendTime::Now,
        ..held(id, node)
    };
    accept(store, vec![one]).await;
    let name = format!("ref-{id}");
    settle(store, node, vec![first_result(id, taken(&[&name]))]).await;
    let ended = report(store, node, vec![receipt(&name, Outcome::Delivered)]).await;
    let [domain::ports::Matched::Ended(ended)] = &ended[..] else {
        panic!("{ended:?}")
    };
    let callback = ended.callback.as_ref().expect("it is held");
    assert!(settle_callback(store, node, attempted(callback, next, 3)).await);
    callback.id
}

async fn callbacks_are_found_by_account_and_state(store: Arc<dyn Store>) {
    let mut ids = Vec::new();
    for id in 1..=12 {
        let next = match id % 3 {
            0 => CallbackNext::Done,
            1 => CallbackNext::Parked,
            _ => CallbackNext::Later(future(1)),
        };
        ids.push((id, reported(&store, 1 + id % 2, id, next).await));
    }
    ids.reverse();
    for (owner, with_done) in [
        (None, true),
        (None, false),
        (Some(1), true),
        (Some(2), false),
    ] {
        let filter = CallbackFilter {
            account: owner.map(account),
            with_done,
            ..CallbackFilter::default()
        };
        let matches_filter = |(id, _): &&(u64, CallbackId)| {
            owner.is_none_or(|owner| 1 + *id % 2 == owner) && (with_done || id % 3 != 0)
        };
        let expected: Vec<CallbackId> = ids
            .iter()
            .filter(matches_filter)
            .map(|(_, id)| *id)
            .collect();
        let (mut before, mut found) = (None, Vec::new());
        loop {
            let cursor = Cursor { before, limit: 2 };
            let step = store.search_callbacks(&filter, cursor).await;
            let step = step.expect("the store answers");
            found.extend(step.rows.iter().map(|record| record.id));
            before = step.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{owner:?}, {with_done}");
    }
}

async fn a_replay_is_limited_to_its_account(store: Arc<dyn Store>) {
    let mine = reported(&store, 1, 1, CallbackNext::Parked).await;
    let theirs = reported(&store, 2, 2, CallbackNext::Parked).await;
    let only = |account_number, id| CallbackFilter {
        account: Some(account(account_number)),
        id,
        ..CallbackFilter::default()
    };
    let replay = |filter: CallbackFilter| {
        let store = store.clone();
        async move { replay_all(&store, &filter).await.expect("answers") }
    };
    assert_eq!(replay(only(1, Some(theirs))).await, 0);
    assert_eq!(replay(only(1, None)).await, 1);
    let page = super::sample::EVERYTHING;
    let listed = store.list_callbacks(&CallbackFilter::default(), page).await;
    let listed = listed.expect("answers");
    let parked: Vec<CallbackId> = listed
        .iter()
        .filter(|record| record.state == CallbackState::Parked)
        .map(|record| record.id)
        .collect();
    assert_eq!(parked, [theirs]);
    let listed = store.list_callbacks(&only(1, None), page).await;
    let listed: Vec<CallbackId> = listed.expect("answers").iter().map(|it| it.id).collect();
    assert_eq!(listed, [mine]);
}
