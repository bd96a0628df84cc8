//! Callbacks: held, attempted, postponed, parked, released.

use std::sync::Arc;

use domain::delivery::{
    Callback, CallbackKind, CallbackNext, CallbackSettlement, Claim, SendResult,
};
use domain::message::Submission;
use domain::ports::{
    CallbackFilter, CallbackRecord, CallbackState, CallbackSubject, HeldCallback, Matched,
    SigningSecrets, Store, WorkStore,
};
use domain::{Network, Outcome};

use super::sample::{EVERYTHING, accept, account, at, create_account, message};
use super::steps::{
    ABSENT, attempt, attempted, claim_callbacks, deliver, first_result, future, held, join, past,
    receipt, release_all, settle, settle_callback, taken, url,
};

on_every_store!(
    an_unheld_report_is_claimed,
    a_held_report_is_not_claimed,
    no_report_without_a_url,
    a_failed_report_is_retried_when_due,
    a_parked_report_is_not_claimed,
    a_report_can_be_released_without_an_attempt,
    settling_with_another_claim_changes_nothing,
    callbacks_unknown_to_a_node_are_released;
    on_both_stores:
    a_report_has_the_same_payload_held_or_not,
    a_received_report_is_done,
    every_attempt_is_stored,
    an_account_has_its_secret,
    a_replaced_secret_stays_valid_for_a_while,
    lists_show_the_state_and_the_last_attempt,
    only_settled_attempts_are_stored,
);

fn ids(callbacks: &[Callback]) -> Vec<u64> {
    callbacks.iter().map(|callback| callback.id.get()).collect()
}

async fn list(store: &Arc<dyn Store>) -> Vec<CallbackRecord> {
    list_with(store, true).await
}

async fn list_with(store: &Arc<dyn Store>, with_done: bool) -> Vec<CallbackRecord> {
    let filter = CallbackFilter {
        with_done,
        ..CallbackFilter::default()
    };
    let listed = store.list_callbacks(&filter, EVERYTHING).await;
    listed.expect("answers")
}

async fn an_unheld_report_is_claimed(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    for id in 1..=3 {
        accept(&store, vec![held(id, node)]).await;
        settle(
            &store,
            node,
            vec![first_result(id, taken(&[&id.to_string()]))],
        )
        .await;
        let batch = Arc::new(vec![receipt(&id.to_string(), Outcome::Delivered)]);
        let matched = store.settle_receipts(node, batch, false).await;
        let matched = matched.expect("answers");
        assert!(
            matches!(&matched[..], [Matched::Ended(ended)] if ended.callback.is_none()),
            "{matched:?}"
        );
    }
    let first = store.claim_callbacks(node, 2, &[]).await.expect("answers");
    let first = first.due;
    assert_eq!(first.len(), 2);
    assert_eq!(first[0].payload, r#"{"id":"1","status":1,"error":0}"#);
    assert_eq!((first[0].account, first[0].tries), (account(1), 0));
    assert_eq!((first[0].claim.attempt, first[0].created_at), (1, past(2)));
    assert_eq!(claim_callbacks(&store, node).await.len(), 1);
    assert_eq!(claim_callbacks(&store, node).await, []);
}

async fn a_report_has_the_same_payload_held_or_not(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let outcomes = [Outcome::Delivered, ABSENT, Outcome::Expired];
    let networks = [None, Network::new("247", "01"), Network::new("310", "004")];
    let cases = outcomes
        .iter()
        .flat_map(|&it| networks.map(|network| (it, network)));
    let hold = [true, false].into_iter().cycle();
    for (id, ((outcome, network), hold)) in (1..).zip(cases.zip(hold)) {
        let mut submission = held(id, node);
        submission.recipients[0].network = network;
        accept(&store, vec![submission]).await;
        let reference = id.to_string();
        settle(&store, node, vec![first_result(id, taken(&[&reference]))]).await;
        let batch = Arc::new(vec![receipt(&reference, outcome)]);
        let matched = store.settle_receipts(node, batch, hold).await;
        let matched = matched.expect("answers");
        let [Matched::Ended(ended)] = &matched[..] else {
            panic!("{matched:?}")
        };
        let callback = match &ended.callback {
            Some(callback) => callback.clone(),
            None => claim_callbacks(&store, node).await.remove(0),
        };
        assert_eq!(ended.callback.is_some(), hold);
        let expected = domain::delivery::report_payload(message(id), outcome, network);
        assert_eq!(callback.payload, expected);
        assert_eq!(callback.url, url("https://example.com/dlr"));
        assert_eq!(
            (callback.account, callback.created_at),
            (account(1), past(2))
        );
        assert_eq!(list(&store).await[0].payload, expected);
    }
}

async fn a_held_report_is_not_claimed(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    deliver(&store, node, 1).await;
    assert_eq!(claim_callbacks(&store, node).await, []);
}

async fn no_report_without_a_url(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let silent = Submission {
        dlr_url: None,
        ..held(1, node)
    };
    accept(&store, vec![silent]).await;
    settle(&store, node, vec![first_result(1, taken(&["a"]))]).await;
    let batch = Arc::new(vec![receipt("a", Outcome::Delivered)]);
    let matched = store.settle_receipts(node, batch, true).await;
    let matched = matched.expect("answers");
    assert!(
        matches!(&matched[..], [Matched::Ended(ended)] if ended.callback.is_none()),
        "{matched:?}"
    );
    assert_eq!(release_all(&store, node).await, 0);
    assert_eq!(claim_callbacks(&store, node).await, []);
}

async fn a_received_report_is_done(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let callback = deliver(&store, node, 1).await;
    assert!(settle_callback(&store, node, attempted(&callback, CallbackNext::Done, 3)).await);
    let expected = CallbackRecord {
        id: callback.id,
        kind: CallbackKind::Report,
        about: CallbackSubject::Message(message(1)),
        account: account(1),
        url: "https://example.com/dlr".to_owned(),
        payload: callback.payload,
        state: CallbackState::Done,
        tries: 1,
        created_at: past(2),
        last: Some(attempt(3)),
    };
    assert_eq!(list(&store).await, [expected]);
    assert_eq!(
        list_with(&store, false).await,
        [],
        "it is not listed as open"
    );
}

async fn a_failed_report_is_retried_when_due(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let (soon, far) = (
        deliver(&store, node, 1).await,
        deliver(&store, node, 2).await,
    );
    let batch = vec![
        attempted(&soon, CallbackNext::Later(past(5)), 3),
        attempted(&far, CallbackNext::Later(future(5)), 4),
    ];
    let settled = store.settle_callbacks(node, Arc::new(batch)).await;
    assert_eq!(settled.expect("answers"), [true, true]);
    let claimed = claim_callbacks(&store, node).await;
    let expected = Callback {
        tries: 1,
        claim: Claim {
            due_at: past(5),
            attempt: 2,
        },
        ..soon
    };
    assert_eq!(claimed, [expected]);
}

async fn a_parked_report_is_not_claimed(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let callback = deliver(&store, node, 1).await;
    assert!(settle_callback(&store, node, attempted(&callback, CallbackNext::Parked, 3)).await);
    assert_eq!(release_all(&store, node).await, 0);
    assert_eq!(claim_callbacks(&store, node).await, []);
}

async fn a_report_can_be_released_without_an_attempt(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let callback = deliver(&store, node, 1).await;
    let untried = CallbackSettlement {
        attempt: None,
        ..attempted(&callback, CallbackNext::Later(past(5)), 3)
    };
    assert!(settle_callback(&store, node, untried).await);
    assert_eq!(claim_callbacks(&store, node).await[0].tries, 0);
}

/// Of every open report; one without a URL is not stored.
async fn lists_show_the_state_and_the_last_attempt(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let silent = Submission {
        dlr_url: None,
        ..held(1, node)
    };
    accept(&store, vec![silent]).await;
    let over = first_result(1, SendResult::Over(ABSENT));
    settle(&store, node, vec![over]).await;
    assert_eq!(list(&store).await, []);

    let due_at = future(5);
    let waiting = CallbackState::Waiting { due_at };
    for (id, next, is_attempted, state) in [
        (2, CallbackNext::Later(due_at), true, waiting),
        (3, CallbackNext::Later(due_at), false, waiting),
        (4, CallbackNext::Parked, true, CallbackState::Parked),
    ] {
        let callback = deliver(&store, node, id).await;
        let mut settlement = attempted(&callback, next, 3);
        let last = settlement.attempt.take().filter(|_| is_attempted);
        settlement.attempt.clone_from(&last);
        assert!(settle_callback(&store, node, settlement).await);
        let newest = list_with(&store, false).await.remove(0);
        let shown = (newest.id, newest.state, newest.tries, newest.last);
        let tries = u32::from(is_attempted);
        assert_eq!(shown, (callback.id, state, tries, last.clone()), "{id}");
        let attempts = store.list_attempts(callback.id).await;
        assert_eq!(attempts.expect("answers"), Vec::from_iter(last), "{id}");
    }
}

async fn settling_with_another_claim_changes_nothing(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let callback = deliver(&store, node, 1).await;
    let right = attempted(&callback, CallbackNext::Done, 3);
    let with = |claim| CallbackSettlement {
        claim,
        ..right.clone()
    };
    let claim = callback.claim;
    let number = with(Claim {
        attempt: 2,
        ..claim
    });
    let time = with(Claim {
        due_at: past(0),
        ..claim
    });
    for (name, node, settlement, expected) in [
        ("another node", other, right.clone(), false),
        ("another number", node, number, false),
        ("another time", node, time, false),
        ("the right one", node, right.clone(), true),
        ("repeated", node, right.clone(), false),
    ] {
        let settled = settle_callback(&store, node, settlement).await;
        assert_eq!(settled, expected, "{name}");
    }
    let empty = store.settle_callbacks(node, Arc::new(vec![])).await;
    assert_eq!(empty.expect("answers"), [false; 0]);
}

async fn only_settled_attempts_are_stored(store: Arc<dyn Store>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let callback = deliver(&store, node, 1).await;
    for (node, second, expected) in [(other, 3, false), (node, 4, true), (node, 5, false)] {
        let settlement = attempted(&callback, CallbackNext::Done, second);
        assert_eq!(settle_callback(&store, node, settlement).await, expected);
    }
    let attempts = store.list_attempts(callback.id).await;
    assert_eq!(attempts.expect("answers"), [attempt(4)]);
}

async fn every_attempt_is_stored(store: Arc<dyn Store>) {
    let node = join(&store).await;
    let mut callback = deliver(&store, node, 1).await;
    for second in 1..=3 {
        let again = attempted(&callback, CallbackNext::Later(past(second)), second);
        assert!(settle_callback(&store, node, again).await);
        let mut claimed = claim_callbacks(&store, node).await;
        callback = claimed.pop().expect("it is due");
    }
    let mut last = attempted(&callback, CallbackNext::Done, 4);
    let bare = domain::delivery::CallbackAttempt {
        status: None,
        body: vec![],
        address: None,
        ..attempt(4)
    };
    last.attempt = Some(bare.clone());
    assert!(settle_callback(&store, node, last).await);
    let attempts = store.list_attempts(callback.id).await.expect("answers");
    assert_eq!(attempts, [attempt(1), attempt(2), attempt(3), bare]);
    assert_eq!(list(&store).await[0].tries, 4);
}

async fn callbacks_unknown_to_a_node_are_released(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let (known, lost) = (
        deliver(&store, node, 1).await,
        deliver(&store, node, 2).await,
    );
    deliver(&store, other, 3).await;
    let missing = HeldCallback {
        id: lost.id,
        claim: lost.claim,
    };
    let released = store.release_callbacks(node, vec![missing]).await;
    assert_eq!(released.expect("answers"), 1);
    let claimed = claim_callbacks(&store, other).await;
    assert_eq!(ids(&claimed), [lost.id.get()]);
    let stale = attempted(&lost, CallbackNext::Done, 3);
    assert!(!settle_callback(&store, node, stale).await);
    assert!(settle_callback(&store, node, attempted(&known, CallbackNext::Done, 3)).await);
}

async fn an_account_has_its_secret(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    let secrets = store.find_signing_secrets(owner).await.expect("answers");
    let first = SigningSecrets {
        newest: "secret of acme".to_owned(),
        former: None,
    };
    assert_eq!(secrets, Some(first));
    let unknown = store.find_signing_secrets(account(99)).await;
    assert_eq!(unknown.expect("answers"), None);
}

/// After each rotation, the secret before it stays valid for some time.
async fn a_replaced_secret_stays_valid_for_a_while(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    let mut before = "secret of acme".to_owned();
    for (secret, until) in [("second", at(50)), ("third", at(90))] {
        let replaced = store.replace_signing_secret(owner, secret, until).await;
        assert!(replaced.expect("answers"));
        let secrets = store.find_signing_secrets(owner).await.expect("answers");
        let secrets = secrets.expect("the account exists");
        assert_eq!(secrets.at(at(49)), [secret, &before]);
        assert_eq!(secrets.at(until), [secret]);
        assert_eq!(format!("{secrets:?}"), "SigningSecrets");
        secret.clone_into(&mut before);
    }
    let unknown = store.replace_signing_secret(account(99), "x", at(1)).await;
    assert!(!unknown.expect("answers"));
}
