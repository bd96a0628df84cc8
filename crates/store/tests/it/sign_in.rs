//! Sign-in links and sessions.

use std::sync::Arc;

use domain::person::{Device, SignedIn};
use domain::ports::{NewSession, Store};
use tokio::task::JoinSet;

use super::sample::{at, create_account, hash};

on_both_stores!(
    a_link_opens_one_session,
    an_expired_link_opens_none,
    one_of_many_concurrent_redemptions_of_a_link_succeeds,
    a_session_lasts_until_it_expires_or_ends,
);

/// A session with this secret, from second 1 to second 900.
pub(super) fn session(secret: &str) -> NewSession {
    session_at(secret, 1)
}

/// A session that starts at another second.
pub(super) fn session_at(secret: &str, second: i64) -> NewSession {
    NewSession {
        hash: hash(secret),
        opened_at: at(second),
        expires: at(900),
        device: Device::default(),
    }
}

async fn a_link_opens_one_session(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    store
        .create_sign_in_link(&hash("link"), owner, at(60))
        .await
        .expect("the link is stored");
    for (name, link, secret, expected) in [
        ("unknown", "other", "s0", false),
        ("good", "link", "s1", true),
        ("used", "link", "s2", false),
    ] {
        let opened = store
            .redeem_sign_in_link(&hash(link), &session(secret))
            .await;
        assert_eq!(opened.expect("answers"), expected, "{name}");
        let found = store
            .find_session(&hash(secret), at(2))
            .await
            .expect("answers");
        let by_link = SignedIn::ByLink(owner);
        let found = found.map(|session| session.signed_in);
        assert_eq!(found, expected.then_some(by_link), "{name}");
    }
}

async fn an_expired_link_opens_none(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    for (link, expires) in [("early", at(60)), ("late", at(61))] {
        store
            .create_sign_in_link(&hash(link), owner, expires)
            .await
            .expect("the link is stored");
    }
    for (link, expected) in [("early", false), ("late", true)] {
        let opened = store
            .redeem_sign_in_link(&hash(link), &session_at(link, 60))
            .await;
        assert_eq!(opened.expect("answers"), expected, "{link}");
    }
}

async fn one_of_many_concurrent_redemptions_of_a_link_succeeds(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    store
        .create_sign_in_link(&hash("link"), owner, at(60))
        .await
        .expect("the link is stored");
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let session = session(&n.to_string());
            store
                .redeem_sign_in_link(&hash("link"), &session)
                .await
                .expect("answers")
        });
    }
    assert_eq!(
        tasks
            .join_all()
            .await
            .into_iter()
            .filter(|opened| *opened)
            .count(),
        1
    );
}

async fn a_session_lasts_until_it_expires_or_ends(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    for name in ["ended", "open"] {
        store
            .create_sign_in_link(&hash(name), owner, at(60))
            .await
            .expect("the link is stored");
        let opened = store.redeem_sign_in_link(&hash(name), &session(name)).await;
        assert!(opened.expect("answers"));
    }
    store.end_session(&hash("ended")).await.expect("answers");
    store.end_session(&hash("unknown")).await.expect("answers");
    for (name, session, second, expected) in [
        ("ended", "ended", 2, None),
        ("open", "open", 899, Some(SignedIn::ByLink(owner))),
        ("expired", "open", 900, None),
    ] {
        let found = store
            .find_session(&hash(session), at(second))
            .await
            .expect("answers");
        let found = found.map(|session| session.signed_in);
        assert_eq!(found, expected, "{name}");
    }
}
