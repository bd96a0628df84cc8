//! Binds of SMPP users: how many there are over all nodes, and how nodes share the rate of a user.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use domain::ports::{SmppBinds, Store};
use domain::smpp_user::BindKind;
use engine::identity::smpp_users::BindRefused;
use jiff::SignedDuration;

use super::{Fixture, create, find, new_user, wait_until};
use crate::sample::create_account;
use crate::steps::{join, join_for};

on_both_stores!(
    sessions_are_counted_over_living_nodes,
    closed_sessions_are_free_again,
    a_bind_that_the_client_gives_up_counts_nothing,
    sessions_count_after_the_node_rejoined,
    nodes_share_the_rate_of_a_user,
);

async fn sessions_are_counted_over_living_nodes(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let user = create(&store, &new_user(acme, "acme")).await;
    let user = user.expect("it is free");
    let other = create(&store, &new_user(acme, "other")).await;
    let other = other.expect("it is free");
    let (one, two, dead) = (
        join(&store).await,
        join(&store).await,
        join_for(&store, SignedDuration::from_secs(-1)).await,
    );
    for (case, user, node, binds, most, expected) in [
        ("alone", user, one, 2, Some(3), true),
        ("together", user, two, 1, Some(3), true),
        ("too many", user, two, 2, Some(3), false),
        ("nothing was stored", user, one, 3, Some(4), true),
        ("without a limit", user, one, 100, None, true),
        ("fewer", user, one, 2, None, true),
        ("dead", user, dead, 50, None, true),
        ("the dead do not count", user, two, 1, Some(3), true),
        ("another user", other, two, 3, Some(3), true),
        ("none", user, one, 0, None, true),
        ("all of them", user, two, 3, Some(3), true),
    ] {
        let binds = SmppBinds {
            all: binds,
            senders: binds / 2,
        };
        let set = store.set_smpp_binds(user, node, binds, most).await;
        assert_eq!(set.expect("answers"), expected, "{case}");
    }
    let counts = store.count_smpp_binds().await.expect("answers");
    assert_eq!(counts, [(user, 3), (other, 3)]);
    let senders = async |node| {
        let counted = store.count_smpp_senders_elsewhere(node).await;
        let mut counted = counted.expect("answers");
        counted.sort_unstable();
        counted
    };
    assert_eq!(senders(one).await, [(user, 1), (other, 1)]);
    assert!(senders(two).await.is_empty(), "only its own");
}

async fn closed_sessions_are_free_again(store: Arc<dyn Store>) {
    let fixture = Fixture::new(store).await;
    let mut new = new_user(fixture.account, "acme");
    new.options.limits.max_binds = Some(2);
    create(&fixture.store, &new).await.expect("it is free");
    let (user, _) = find(&fixture.store, "acme").await.expect("a user");
    let (one, other) = (fixture.start().await, fixture.start().await);
    let first = one
        .bind(&user, BindKind::Transceiver)
        .await
        .expect("the first");
    let second = other
        .bind(&user, BindKind::Transceiver)
        .await
        .expect("the second");
    for node in [&one, &other] {
        let third = node.bind(&user, BindKind::Receiver).await;
        assert!(matches!(third, Err(BindRefused::TooMany)));
    }
    drop(first);
    wait_until(async || other.bind(&user, BindKind::Transceiver).await.is_ok()).await;
    drop(second);
    wait_until(async || one.bind(&user, BindKind::Transceiver).await.is_ok()).await;
    one.stop();
    other.stop();
}

async fn a_bind_that_the_client_gives_up_counts_nothing(store: Arc<dyn Store>) {
    let fixture = Fixture::new(store).await;
    create(&fixture.store, &new_user(fixture.account, "acme"))
        .await
        .expect("it is free");
    let (user, _) = find(&fixture.store, "acme").await.expect("a user");
    let users = fixture.start().await;
    for _ in 0..8 {
        let closed = users.bind(&user, BindKind::Transceiver).await;
        drop(closed.expect("room for one"));
        let mut given_up = pin!(users.bind(&user, BindKind::Transceiver));
        // It asks the store, and is dropped before the answer.
        let _asked = poll_fn(|context| Poll::Ready(given_up.as_mut().poll(context))).await;
    }
    wait_until(async || {
        let counts = fixture.store.count_smpp_binds().await;
        counts.expect("answers").is_empty()
    })
    .await;
    users.stop();
}

async fn sessions_count_after_the_node_rejoined(store: Arc<dyn Store>) {
    let fixture = Fixture::new(store).await;
    create(&fixture.store, &new_user(fixture.account, "acme"))
        .await
        .expect("it is free");
    let (user, _) = find(&fixture.store, "acme").await.expect("a user");
    let users = fixture.start().await;
    let bound = users.bind(&user, BindKind::Transceiver).await;
    let old = users.node();
    fixture.store.leave(old).await.expect("answers");
    assert_eq!(fixture.store.count_smpp_binds().await.expect("answers"), []);
    wait_until(async || users.node() != old).await;
    users.store_after_rejoin().await.expect("answers");
    let counts = fixture.store.count_smpp_binds().await;
    assert_eq!(counts.expect("answers"), [(user.id, 1)]);
    drop(bound);
    wait_until(async || {
        let counts = fixture.store.count_smpp_binds().await;
        counts.expect("answers").is_empty()
    })
    .await;
    users.stop();
}

async fn nodes_share_the_rate_of_a_user(store: Arc<dyn Store>) {
    let fixture = Fixture::new(store).await;
    let mut new = new_user(fixture.account, "acme");
    new.options.limits.max_per_second = Some(90);
    create(&fixture.store, &new).await.expect("it is free");
    let (user, _) = find(&fixture.store, "acme").await.expect("a user");
    let user = Arc::new(user);
    let (one, other) = (fixture.start().await, fixture.start().await);
    let _followed = [one.follow(&user), other.follow(&user)];
    let _first = one.bind(&user, BindKind::Transmitter).await;
    let _receiver = other.bind(&user, BindKind::Receiver).await;
    let second = [
        other.bind(&user, BindKind::Transceiver).await,
        other.bind(&user, BindKind::Transmitter).await,
    ];
    for (node, expected) in [(&one, 30), (&other, 60)] {
        node.share_rates().await.expect("answers");
        assert_eq!(node.per_second(&user), Some(expected));
    }
    drop(second);
    wait_until(async || {
        one.share_rates().await.expect("answers");
        one.per_second(&user) == Some(90)
    })
    .await;
    one.stop();
    other.stop();
}
