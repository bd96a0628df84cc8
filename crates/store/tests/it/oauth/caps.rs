//! What a client may spend on one day.

use std::sync::Arc;

use domain::billing::{GrantCap, NotPaid};
use domain::ports::{Approval, Store};
use domain::{AccountId, Money};

use super::{approval, approve, redeem, renew, request};
use crate::sample::{at, create_account, hash};

on_both_stores!(
    a_cap_is_that_of_every_token_of_its_grant,
    a_client_spends_no_more_than_its_cap_on_a_day,
    simultaneous_requests_keep_to_the_cap,
);

fn money(text: &str) -> Money {
    text.parse().expect(text)
}

/// A grant with this cap. The code and the first tokens have this name.
async fn granted(store: &Arc<dyn Store>, account: AccountId, name: &str, cap: &str) -> GrantCap {
    let created = store.create_request(&hash(name), &request(), 10).await;
    assert!(created.expect("answers"));
    let approval = Approval {
        daily_cap: Some(money(cap)),
        ..approval(account, name)
    };
    let approved = store.approve_request(&hash(name), &approval).await;
    assert!(approved.expect("answers"));
    redeem(store, name, name).await.expect("redeemed");
    cap_of(store, &format!("access {name}"))
        .await
        .expect("a cap")
}

async fn cap_of(store: &Arc<dyn Store>, secret: &str) -> Option<GrantCap> {
    let access = store.find_access(&hash(secret)).await.expect("answers");
    access.expect("a token").grant_cap
}

async fn a_cap_is_that_of_every_token_of_its_grant(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let cap = granted(&store, account, "capped", "2.5").await;
    assert_eq!(cap.daily, money("2.5"));
    approve(&store, account, "free").await;
    redeem(&store, "free", "free").await.expect("redeemed");
    assert_eq!(cap_of(&store, "access free").await, None);
    renew(&store, "capped", "next").await.expect("renewed");
    assert_eq!(cap_of(&store, "access next").await, Some(cap));

    let grants = store.list_grants(account, at(3)).await.expect("answers");
    let caps: Vec<_> = grants.iter().map(|grant| grant.daily_cap).collect();
    assert_eq!(caps, [None, Some(money("2.5"))]);
    let tokens = store.list_tokens(Some(account)).await.expect("answers");
    let capped = tokens.iter().filter(|token| token.grant == Some(cap.grant));
    let caps: Vec<_> = capped.map(|token| token.access.grant_cap).collect();
    assert_eq!(caps, [Some(cap), Some(cap)], "both tokens of the client");
}

async fn a_client_spends_no_more_than_its_cap_on_a_day(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let cap = granted(&store, account, "one", "1").await;
    let other = granted(&store, account, "other", "1").await;
    let refused = |cost, left| {
        let (cost, left) = (money(cost), money(left));
        Err(NotPaid::GrantCap { cost, left })
    };
    // day, cost, expected result, spent afterwards
    for (day, cost, expected, spent) in [
        (10, "1.000001", refused("1.000001", "1"), "0"),
        (10, "0.6", Ok(()), "0.6"),
        (10, "0.5", refused("0.5", "0.4"), "0.6"),
        (10, "0.4", Ok(()), "1"),
        (10, "0.000001", refused("0.000001", "0"), "1"),
        // A node whose clock is behind does not start an earlier day again.
        (9, "0.1", refused("0.1", "0"), "1"),
        (11, "0.7", Ok(()), "0.7"),
    ] {
        let counted = store.spend_of_grant(cap, money(cost), day).await;
        assert_eq!(counted.expect("answers"), expected, "{day} {cost}");
        let found = store.find_grant_spending(cap.grant, day).await;
        assert_eq!(found.expect("answers"), money(spent), "{day} {cost}");
    }
    for (day, spent) in [(10, "0.7"), (11, "0.2"), (11, "0.2")] {
        let taken = store.unspend_of_grant(cap.grant, money("0.5"), day).await;
        taken.expect("the store answers");
        let found = store.find_grant_spending(cap.grant, 11).await;
        assert_eq!(found.expect("answers"), money(spent), "{day}");
    }
    let found = store.find_grant_spending(other.grant, 11).await;
    assert_eq!(found.expect("answers"), Money::ZERO, "grants count apart");
    let lower = GrantCap {
        daily: money("0.1"),
        ..cap
    };
    let counted = store.spend_of_grant(lower, money("0.1"), 11).await;
    assert_eq!(counted.expect("answers"), refused("0.1", "0"));
}

async fn simultaneous_requests_keep_to_the_cap(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let cap = granted(&store, account, "one", "1").await;
    let requests = (0..20).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.spend_of_grant(cap, money("0.1"), 10).await })
    });
    let requests: Vec<_> = requests.collect();
    let mut accepted = 0;
    for request in requests {
        let counted = request.await.expect("it ends").expect("answers");
        accepted += usize::from(counted.is_ok());
    }
    assert_eq!(accepted, 10);
    let found = store.find_grant_spending(cap.grant, 10).await;
    assert_eq!(found.expect("answers"), money("1"));
}
