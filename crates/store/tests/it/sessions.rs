//! Sessions of a person.

use std::sync::Arc;

use domain::person::{Device, SessionRecord};
use domain::ports::{NewSession, Store};
use domain::{PersonId, TokenHash};

use super::people::{find_signed_in, member};
use super::sample::{at, create_account, hash};

on_both_stores!(
    sessions_are_listed_with_device_and_time,
    a_session_that_is_used_comes_first,
    all_sessions_of_a_person_are_ended,
    a_session_is_proved_by_signing_in_and_by_the_password,
);

fn new(secret: &str, second: i64, address: &str, browser: &str) -> NewSession {
    NewSession {
        hash: hash(secret),
        opened_at: at(second),
        expires: at(900),
        device: Device {
            address: address.parse().ok(),
            browser: browser.to_owned(),
        },
    }
}

async fn open(store: &Arc<dyn Store>, person: PersonId, session: &NewSession) {
    let opened = store.open_session(person, session, None).await;
    opened.expect("the session opens");
}

async fn list(store: &Arc<dyn Store>, person: PersonId, second: i64) -> Vec<SessionRecord> {
    let listed = store.list_sessions(person, 3, at(second)).await;
    listed.expect("answers")
}

fn hashes(sessions: &[SessionRecord]) -> Vec<TokenHash> {
    sessions.iter().map(|session| session.hash).collect()
}

async fn sessions_are_listed_with_device_and_time(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", account).await;
    let bob = member(&store, "bob@example.com", account).await;
    let session = new("phone", 5, "2001:db8::7", "Firefox on Android");
    open(&store, ann, &session).await;
    let listed = list(&store, ann, 6).await;
    assert_eq!(hashes(&listed), [hash("phone"), hash("ann@example.com")]);
    assert_eq!(
        listed[0],
        SessionRecord {
            hash: hash("phone"),
            opened_at: at(5),
            seen_at: at(5),
            expires: at(900),
            device: session.device,
        }
    );
    assert_eq!(listed[1].device, Device::default());
    assert_eq!(
        hashes(&list(&store, bob, 6).await),
        [hash("bob@example.com")]
    );
    assert_eq!(list(&store, ann, 900).await, [], "they have expired");
    for secret in ["a", "b"] {
        open(&store, ann, &new(secret, 6, "", "")).await;
    }
    assert_eq!(list(&store, ann, 7).await.len(), 3, "up to the limit");
}

async fn a_session_that_is_used_comes_first(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", account).await;
    open(&store, ann, &new("later", 5, "", "")).await;
    let first = hash("ann@example.com");
    store.touch_session(&first, at(9)).await.expect("answers");
    let unknown = store.touch_session(&hash("unknown"), at(9)).await;
    unknown.expect("answers");
    let listed = list(&store, ann, 10).await;
    assert_eq!(hashes(&listed), [first, hash("later")]);
    assert_eq!((listed[0].opened_at, listed[0].seen_at), (at(1), at(9)));
    let found = store.find_session(&first, at(10)).await.expect("answers");
    assert_eq!(found.map(|session| session.seen_at), Some(at(9)));
    let person = store.find_person(ann).await.expect("answers");
    assert_eq!(person.expect("ann").seen_at, Some(at(9)));
}

async fn all_sessions_of_a_person_are_ended(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", account).await;
    member(&store, "bob@example.com", account).await;
    open(&store, ann, &new("second", 5, "", "")).await;
    super::second_factor::enable(&store, ann).await;
    let pending = store
        .create_pending_sign_in(ann, &hash("pending"), at(300), at(5))
        .await;
    pending.expect("it is pending");
    assert_eq!(store.end_sessions(ann).await.expect("answers"), 2);
    for (secret, expected) in [
        ("ann@example.com", false),
        ("second", false),
        ("bob@example.com", true),
    ] {
        assert_eq!(
            find_signed_in(&store, secret).await.is_some(),
            expected,
            "{secret}"
        );
    }
    let attempted = store.try_pending_sign_in(&hash("pending"), 5, at(6)).await;
    assert_eq!(
        attempted.expect("answers"),
        None,
        "the pending sign-in ended as well"
    );
    assert_eq!(store.end_sessions(ann).await.expect("answers"), 0);
}

async fn a_session_is_proved_by_signing_in_and_by_the_password(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", account).await;
    for secret in ["first", "second"] {
        open(&store, ann, &new(secret, 5, "", "")).await;
    }
    let first = hash("first");
    store.set_proof(&first, at(70)).await.expect("answers");
    let unknown = hash("unknown");
    store.set_proof(&unknown, at(70)).await.expect("answers");
    for (secret, second, expected) in [
        ("first", 80, Some(at(70))),
        ("second", 80, Some(at(5))),
        ("unknown", 80, None),
        ("first", 900, None),
    ] {
        let found = store.find_proof(&hash(secret), at(second)).await;
        assert_eq!(found.expect("answers"), expected, "{secret} at {second}");
    }
    let link = hash("link");
    let created = store.create_sign_in_link(&link, account, at(100));
    created.await.expect("a link");
    for (second, expected) in [(9, true), (100, false)] {
        let found = store.has_sign_in_link(&link, at(second)).await;
        assert_eq!(found.expect("answers"), expected, "at {second}");
    }
    let session = new("by link", 9, "", "");
    let redeemed = store.redeem_sign_in_link(&link, &session).await;
    assert!(redeemed.expect("answers"));
    let used = store.has_sign_in_link(&link, at(9)).await;
    assert!(!used.expect("answers"));
    let found = store.find_proof(&hash("by link"), at(10)).await;
    assert_eq!(found.expect("answers"), Some(at(9)));
}
