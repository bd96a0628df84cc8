//! Sender IDs: registration, confirmation by a PIN with few guesses, review, and notifications.

use std::sync::Arc;

use domain::AccountId;
use domain::delivery::CallbackKind;
use domain::ids::SenderId;
use domain::ports::{
    CallbackFilter, Confirmed, NewSender, Registered, Reviewed, SenderFilter, Store,
};
use domain::sender::{
    Category, Judgement, Pin, SenderKind, SenderName, SenderRecord, SenderState, Step, WrongState,
};

use super::fixture::Database;
use super::sample::{EVERYTHING, at, create_account, hash, new_token};
use super::steps::{claim_callbacks, join, url};

const NOTIFY_URL: &str = "https://example.com/senders";
const RIGHT: &str = "54321";

fn pin(digits: &str) -> Pin {
    digits.parse().expect("five digits")
}

/// A name to review, registered at second 0.
pub(super) fn name(account: AccountId, name: &str) -> NewSender {
    NewSender {
        account,
        name: SenderName::parse(SenderKind::AlphaNumeric, name).expect(name),
        category: Some(Category::Brand),
        description: Some("our own".to_owned()),
        notification_url: Some(url(NOTIFY_URL)),
        pin: None,
        created_at: at(0),
    }
}

/// A number whose PIN is [`RIGHT`], registered at this second.
fn number(account: AccountId, second: i64) -> NewSender {
    NewSender {
        account,
        name: SenderName::parse(SenderKind::Msisdn, "+37120000001").expect("a number"),
        category: None,
        description: None,
        notification_url: Some(url(NOTIFY_URL)),
        pin: Some(pin(RIGHT).hash([3; 16])),
        created_at: at(second),
    }
}

async fn register(store: &Arc<dyn Store>, sender: &NewSender) -> Registered {
    let registered = store.register_sender(sender).await;
    registered.expect("the store answers")
}

pub(super) async fn new(store: &Arc<dyn Store>, sender: &NewSender) -> SenderId {
    match register(store, sender).await {
        Registered::New(id) => id,
        other => panic!("not new: {other:?}"),
    }
}

async fn guess(
    store: &Arc<dyn Store>,
    account: AccountId,
    id: SenderId,
    digits: &str,
    second: i64,
) -> Confirmed {
    let judged = store.confirm_sender(account, id, pin(digits), at(second));
    judged.await.expect("the store answers")
}

async fn review(store: &Arc<dyn Store>, id: SenderId, step: Step) -> Reviewed {
    let reviewed = store.review_sender(id, step, Some("a reason"), at(5)).await;
    reviewed.expect("the store answers")
}

async fn find(store: &Arc<dyn Store>, account: AccountId, id: SenderId) -> Option<SenderRecord> {
    let found = store.find_sender(Some(account), id).await;
    found.expect("the store answers")
}

async fn is_approved(store: &Arc<dyn Store>, account: AccountId, name: &str) -> bool {
    let right = store.find_sender_right(account, name).await;
    right.expect("the store answers") == Some(domain::ports::SenderRight::SenderId)
}

/// The payloads of all notifications, newest last.
async fn notifications(store: &Arc<dyn Store>) -> Vec<String> {
    let filter = CallbackFilter::default();
    let listed = store.list_callbacks(&filter, EVERYTHING).await;
    let mut listed = listed.expect("the store answers");
    listed.reverse();
    let payload = |callback: domain::ports::CallbackRecord| {
        assert_eq!(
            (callback.kind, callback.url.as_str()),
            (CallbackKind::Sender, NOTIFY_URL)
        );
        callback.payload
    };
    listed.into_iter().map(payload).collect()
}

fn wrong(tries_left: u32) -> Confirmed {
    Confirmed::Judged(Judgement::Wrong { tries_left })
}

const DONE: Confirmed = Confirmed::Judged(Judgement::Right);
const USED_UP: Confirmed = Confirmed::Judged(Judgement::UsedUp);
const EXPIRED: Confirmed = Confirmed::Judged(Judgement::Expired);

async fn a_sender_is_stored_as_registered(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let full = name(acme, "Acme & Co");
    let bare = NewSender {
        notification_url: None,
        ..number(acme, 0)
    };
    let ids = [new(&store, &full).await, new(&store, &bare).await];
    let states = [SenderState::Pending, SenderState::AwaitingConfirmation];
    let mut expected = Vec::new();
    for ((sender, id), state) in [full, bare].into_iter().zip(ids).zip(states) {
        expected.push(SenderRecord {
            id,
            account: acme,
            name: sender.name,
            category: sender.category,
            description: sender.description,
            notification_url: sender.notification_url,
            state,
            reason: None,
            created_at: at(0),
        });
    }
    for record in &expected {
        assert_eq!(find(&store, acme, record.id).await.as_ref(), Some(record));
        assert_eq!(
            find(&store, other, record.id).await,
            None,
            "another account"
        );
    }
    new(&store, &name(other, "Acme & Co")).await;
    let list = |account, state| {
        let filter = SenderFilter {
            account,
            state,
            after: None,
        };
        let store = store.clone();
        async move {
            store
                .list_senders(filter, EVERYTHING)
                .await
                .expect("answers")
        }
    };
    assert_eq!(list(Some(acme), None).await, expected);
    assert_eq!(list(None, None).await.len(), 3);
    assert_eq!(list(None, Some(SenderState::Pending)).await.len(), 2);
    let waiting = list(Some(acme), Some(SenderState::AwaitingConfirmation)).await;
    assert_eq!(waiting, expected[1..]);
    assert_eq!(
        notifications(&store).await,
        Vec::<String>::new(),
        "nothing changed"
    );
}

async fn an_active_name_is_unique_within_its_account(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let id = new(&store, &name(acme, "Acme")).await;
    let again = name(acme, "Acme");
    let exists = |state| Registered::Exists(id, state);
    assert_eq!(register(&store, &again).await, exists(SenderState::Pending));
    new(&store, &name(acme, "ACME")).await;
    new(&store, &name(other, "Acme")).await;
    review(&store, id, Step::Approve).await;
    assert_eq!(
        register(&store, &again).await,
        exists(SenderState::Approved)
    );
    review(&store, id, Step::Revoke).await;
    let second = new(&store, &again).await;
    assert_ne!(second, id, "a revoked sender does not count");
    review(&store, second, Step::Reject).await;
    new(&store, &again).await;

    // The digits of a number, as a name and as a number.
    let digits = new(&store, &name(acme, "37120000001")).await;
    let exists = Registered::Exists(digits, SenderState::Pending);
    assert_eq!(register(&store, &number(acme, 0)).await, exists);
}

async fn one_of_many_concurrent_registrations_is_new(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let registrations: Vec<_> = (0..30)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { register(&store, &name(acme, "Acme")).await })
        })
        .collect();
    let mut created = 0;
    for registration in registrations {
        match registration.await.expect("it ends") {
            Registered::New(_) => created += 1,
            Registered::Exists(_, state) => assert_eq!(state, SenderState::Pending),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(created, 1);
}

async fn the_right_pin_approves_a_number(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let id = new(&store, &number(acme, 0)).await;
    assert_eq!(guess(&store, other, id, RIGHT, 1).await, Confirmed::Unknown);
    assert_eq!(guess(&store, acme, id, "00000", 1).await, wrong(4));
    assert!(!is_approved(&store, acme, "37120000001").await);
    assert_eq!(guess(&store, acme, id, RIGHT, 2).await, DONE);
    assert!(is_approved(&store, acme, "37120000001").await);
    assert!(!is_approved(&store, other, "37120000001").await);
    let again = Confirmed::NotWaiting(SenderState::Approved);
    assert_eq!(guess(&store, acme, id, RIGHT, 3).await, again);
    let expected = format!(
        r#"{{"id":{id},"name":"+37120000001","type":"MSISDN","status":"approved","previousStatus":"awaiting_confirmation","reason":null,"timestamp":"{}"}}"#,
        at(2)
    );
    assert_eq!(notifications(&store).await, [expected]);

    let reviewed = new(&store, &name(acme, "Acme")).await;
    let pending = Confirmed::NotWaiting(SenderState::Pending);
    assert_eq!(guess(&store, acme, reviewed, RIGHT, 3).await, pending);
    let unknown = SenderId::new(999).expect("in range");
    assert_eq!(
        guess(&store, acme, unknown, RIGHT, 3).await,
        Confirmed::Unknown
    );
}

async fn a_pin_allows_five_guesses_within_ten_minutes(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let id = new(&store, &number(acme, 0)).await;
    for left in (0..5).rev() {
        assert_eq!(guess(&store, acme, id, "11111", 1).await, wrong(left));
    }
    assert_eq!(guess(&store, acme, id, RIGHT, 1).await, USED_UP);
    assert_eq!(
        register(&store, &number(acme, 59)).await,
        Registered::TooSoon(id)
    );
    assert_eq!(guess(&store, acme, id, RIGHT, 60).await, USED_UP);
    assert_eq!(
        register(&store, &number(acme, 60)).await,
        Registered::PinAgain(id)
    );
    assert_eq!(guess(&store, acme, id, "11111", 61).await, wrong(4));
    assert_eq!(guess(&store, acme, id, RIGHT, 660).await, EXPIRED);
    assert_eq!(guess(&store, acme, id, "11111", 660).await, EXPIRED);
    assert_eq!(guess(&store, acme, id, RIGHT, 659).await, DONE);
    assert_eq!(
        register(&store, &number(acme, 700)).await,
        Registered::Exists(id, SenderState::Approved)
    );
}

async fn a_new_pin_replaces_the_one_before(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let id = new(&store, &number(acme, 0)).await;
    let renewed = NewSender {
        pin: Some(pin("67890").hash([4; 16])),
        notification_url: None,
        ..number(acme, 60)
    };
    assert_eq!(register(&store, &renewed).await, Registered::PinAgain(id));
    assert_eq!(guess(&store, acme, id, RIGHT, 61).await, wrong(4));
    assert_eq!(guess(&store, acme, id, "67890", 61).await, DONE);
    assert_eq!(notifications(&store).await.len(), 1, "the URL is kept");
}

async fn a_pin_that_was_not_sent_is_withdrawn(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let sender = number(acme, 0);
    let id = new(&store, &sender).await;
    let another = pin("67890").hash([4; 16]);
    store.withdraw_pin(id, &another).await.expect("answers");
    assert_eq!(register(&store, &sender).await, Registered::TooSoon(id));
    let sent = sender.pin.expect("a PIN");
    store.withdraw_pin(id, &sent).await.expect("answers");
    assert_eq!(guess(&store, acme, id, RIGHT, 1).await, EXPIRED);
    let again = register(&store, &number(acme, 1)).await;
    assert_eq!(again, Registered::PinAgain(id), "without a pause");
    assert_eq!(guess(&store, acme, id, RIGHT, 2).await, DONE);
}

/// Of two hundred concurrent guesses on two nodes, only five are judged.
async fn concurrent_guesses_are_limited_to_five(database: Database) {
    let nodes = [database.open().await, database.open().await];
    let acme = create_account(&nodes[0], "acme").await;
    let id = new(&nodes[0], &number(acme, 0)).await;
    let guesses: Vec<_> = (0..200)
        .map(|n| {
            let store = nodes[n % 2].clone();
            let digits = if n % 40 == 7 { RIGHT } else { "11111" };
            tokio::spawn(async move { guess(&store, acme, id, digits, 1).await })
        })
        .collect();
    let (mut judged, mut right) = (0, 0);
    for guess in guesses {
        match guess.await.expect("it ends") {
            Confirmed::Judged(Judgement::Wrong { .. }) => judged += 1,
            DONE => right += 1,
            USED_UP | Confirmed::NotWaiting(SenderState::Approved) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(right <= 1 && judged + right <= 5, "{judged} {right}");
    assert!(right == 1 || judged == 5, "{judged} {right}");
    assert_eq!(notifications(&nodes[0]).await.len(), right);
    assert_eq!(
        is_approved(&nodes[1], acme, "37120000001").await,
        right == 1
    );

    // If the right PIN is among the first five guesses, exactly one guess succeeds.
    let second = NewSender {
        name: SenderName::parse(SenderKind::Msisdn, "+37120000002").expect("a number"),
        ..number(acme, 0)
    };
    let id = new(&nodes[0], &second).await;
    for left in [4, 3] {
        assert_eq!(guess(&nodes[0], acme, id, "11111", 1).await, wrong(left));
    }
    let guesses: Vec<_> = (0..200)
        .map(|n| {
            let store = nodes[n % 2].clone();
            tokio::spawn(async move { guess(&store, acme, id, RIGHT, 1).await })
        })
        .collect();
    let mut right = 0;
    for guess in guesses {
        right += usize::from(guess.await.expect("it ends") == DONE);
    }
    assert_eq!(right, 1);
}

async fn every_step_leads_to_the_right_state(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    for (case, sender, steps) in [
        (
            "approved, then revoked",
            name(acme, "One"),
            vec![
                (Step::Approve, Some(SenderState::Approved)),
                (Step::Approve, None),
                (Step::Reject, None),
                (Step::Revoke, Some(SenderState::Revoked)),
                (Step::Approve, None),
            ],
        ),
        (
            "rejected",
            name(acme, "Two"),
            vec![
                (Step::Revoke, None),
                (Step::Reject, Some(SenderState::Rejected)),
                (Step::Approve, None),
            ],
        ),
        (
            "a number, approved without its PIN",
            number(acme, 0),
            vec![(Step::Approve, Some(SenderState::Approved))],
        ),
    ] {
        let id = new(&store, &sender).await;
        for (step, expected) in steps {
            let before = find(&store, acme, id).await.expect("it is there");
            let reviewed = review(&store, id, step).await;
            let after = find(&store, acme, id).await.expect("it is there");
            let state = before.state;
            if let Some(state) = expected {
                assert_eq!(reviewed, Reviewed::Done(after.clone()), "{case}");
                assert_eq!(
                    (after.state, after.reason.as_deref()),
                    (state, Some("a reason"))
                );
            } else {
                let refused = Reviewed::Refused(WrongState { state, step });
                assert_eq!((reviewed, after), (refused, before), "{case} {step:?}");
            }
        }
    }
    let unknown = SenderId::new(999).expect("in range");
    assert_eq!(
        review(&store, unknown, Step::Approve).await,
        Reviewed::Unknown
    );
    assert_eq!(notifications(&store).await.len(), 4, "not for a refusal");
}

async fn a_change_is_queued_and_raises_the_access_version(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let acme = create_account(&store, "acme").await;
    let silent = NewSender {
        notification_url: None,
        ..name(acme, "Silent")
    };
    let ids = [
        new(&store, &name(acme, "Acme-Inc")).await,
        new(&store, &silent).await,
    ];
    for id in ids {
        let before = store.access_version().await.expect("answers");
        review(&store, id, Step::Approve).await;
        let after = store.access_version().await.expect("answers");
        assert!(after > before, "{before} {after}");
        review(&store, id, Step::Approve).await;
        let unchanged = store.access_version().await.expect("answers");
        assert_eq!(unchanged, after, "a refusal changes nothing");
    }
    let claimed = claim_callbacks(&store, node).await;
    let [callback] = &claimed[..] else {
        panic!("not exactly one: {claimed:?}");
    };
    assert_eq!(
        (callback.kind, callback.account, callback.created_at),
        (CallbackKind::Sender, acme, at(5))
    );
    let expected = format!(
        r#"{{"id":{},"name":"Acme-Inc","type":"AlphaNumeric","status":"approved","previousStatus":"pending","reason":"a reason","timestamp":"{}"}}"#,
        ids[0],
        at(5)
    );
    assert_eq!(callback.payload, expected);
}

/// A notification has the ID of its sender in the column that otherwise has the ID of a message.
async fn a_notification_is_stored_with_the_callbacks(database: Database) {
    let store = database.open().await;
    let acme = create_account(&store, "acme").await;
    let id = new(&store, &name(acme, "Acme")).await;
    review(&store, id, Step::Reject).await;
    let sql = "SELECT CAST(c.kind AS BIGINT), c.message_id, c.account_id, q.owner, CAST(q.attempt AS BIGINT)
        FROM callback AS c JOIN callback_queue AS q ON q.id = c.id AND q.due_us = c.due_us";
    let expected = [2, id.as_i64(), acme.as_i64(), 0, 0].map(Some);
    assert_eq!(database.numbers(sql, 5).await, [expected]);
    let sql = "SELECT count(*) FROM sender WHERE pin_hash IS NOT NULL";
    assert_eq!(database.numbers(sql, 1).await, [[Some(0)]]);
}

async fn an_account_may_be_limited_to_approved_senders(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let token = new_token(acme, "a");
    store.create_token(&token).await.expect("created");
    for only in [false, true, false] {
        let rules = domain::billing::SpendingRules {
            approved_senders_only: only,
            ..domain::billing::SpendingRules::default()
        };
        assert!(store.set_rules(acme, None, &rules).await.expect("answers"));
        let account = store.find_account_by_id(acme).await.expect("answers");
        assert_eq!(account.expect("it is there").rules, rules);
        let access = store.find_access(&hash("a")).await.expect("answers");
        assert_eq!(access.expect("it is there").approved_senders_only, only);
    }
}

mod stores {
    use super::*;

    on_both_stores!(
        a_sender_is_stored_as_registered,
        an_active_name_is_unique_within_its_account,
        one_of_many_concurrent_registrations_is_new,
        the_right_pin_approves_a_number,
        a_pin_allows_five_guesses_within_ten_minutes,
        a_new_pin_replaces_the_one_before,
        a_pin_that_was_not_sent_is_withdrawn,
        every_step_leads_to_the_right_state,
        a_change_is_queued_and_raises_the_access_version,
        an_account_may_be_limited_to_approved_senders,
    );
}

mod databases {
    use super::*;

    on_both_databases!(
        concurrent_guesses_are_limited_to_five,
        a_notification_is_stored_with_the_callbacks,
    );
}
