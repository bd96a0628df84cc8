//! Grants belong to the person who gave them.

use std::sync::Arc;

use domain::oauth::GrantRefusal;
use domain::ports::{Invitation, PersonChanged, Purpose, Store};
use domain::{AccountId, PersonId, Role};

use super::{approve, approve_as, opens, redeem, renew};
use crate::people::{email, invite, member, password};
use crate::sample::{at, create_account, hash};
use crate::sign_in::session;

on_both_stores!(
    grants_end_when_their_person_is_removed,
    grants_end_when_their_person_changes_the_account,
    removing_somebody_while_their_client_renews_leaves_nothing_alive,
    a_new_password_ends_grants_if_requested,
    the_list_shows_who_granted,
);

/// A grant of a person; the code and the first tokens have this name.
async fn grant(store: &Arc<dyn Store>, account: AccountId, person: PersonId, name: &str) {
    assert!(approve_as(store, account, Some(person), name).await);
    redeem(store, name, name).await.expect("redeemed");
}

async fn access(store: &Arc<dyn Store>, name: &str) -> bool {
    opens(store, &format!("access {name}")).await
}

async fn grants_end_when_their_person_is_removed(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", acme).await;
    let bob = member(&store, "bob@example.com", acme).await;
    grant(&store, acme, ann, "ann").await;
    grant(&store, acme, bob, "bob").await;
    approve(&store, acme, "nobody").await;
    redeem(&store, "nobody", "nobody").await.expect("redeemed");
    assert!(approve_as(&store, acme, Some(ann), "a code").await);

    let version = store.access_version().await.expect("answers");
    let removed = store.remove_person(ann, at(3)).await;
    assert_eq!(removed.expect("answers"), PersonChanged::Done);
    assert!(store.access_version().await.expect("answers") > version);
    for (name, alive) in [("ann", false), ("bob", true), ("nobody", true)] {
        assert_eq!(access(&store, name).await, alive, "{name}");
    }
    let revoked = Err(GrantRefusal::Revoked);
    assert_eq!(renew(&store, "ann", "next").await, revoked);
    let code = redeem(&store, "a code", "late").await;
    assert_eq!(code, Err(GrantRefusal::Revoked));
    assert!(
        !approve_as(&store, acme, Some(ann), "too late").await,
        "a removed person grants nothing"
    );
}

async fn grants_end_when_their_person_changes_the_account(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let ann = member(&store, "ann@example.com", acme).await;
    grant(&store, acme, ann, "ann").await;
    for (role, account, alive) in [
        (Role::Admin, Some(acme), true),
        (Role::Member, Some(acme), true),
        (Role::Member, Some(other), false),
    ] {
        let changed = store.set_role(ann, role, account, at(3)).await;
        assert_eq!(changed.expect("answers"), PersonChanged::Done);
        assert_eq!(access(&store, "ann").await, alive, "{role}");
    }
}

async fn removing_somebody_while_their_client_renews_leaves_nothing_alive(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    for round in 0..10 {
        let name = format!("ann{round}");
        let ann = member(&store, &format!("{name}@example.com"), acme).await;
        grant(&store, acme, ann, &name).await;
        let next = format!("{name} next");
        let renewing = {
            let (store, from, next) = (Arc::clone(&store), name.clone(), next.clone());
            tokio::spawn(async move { renew(&store, &from, &next).await })
        };
        let code = format!("{name} code");
        let approving = {
            let (store, code) = (Arc::clone(&store), code.clone());
            tokio::spawn(async move { approve_as(&store, acme, Some(ann), &code).await })
        };
        let removed = store.remove_person(ann, at(2)).await;
        assert_eq!(removed.expect("answers"), PersonChanged::Done);
        let renewed = renewing.await.expect("no panic");
        let approved = approving.await.expect("no panic");
        for name in [&name, &next] {
            assert!(!access(&store, name).await, "{name}: {renewed:?}");
        }
        let again = renew(&store, &next, "third").await;
        assert!(again.is_err(), "{renewed:?}, then {again:?}");
        let redeemed = redeem(&store, &code, "late").await;
        assert!(redeemed.is_err(), "{approved}: {redeemed:?}");
    }
}

async fn a_new_password_ends_grants_if_requested(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", acme).await;
    let bob = member(&store, "bob@example.com", acme).await;
    grant(&store, acme, bob, "bob").await;
    let kept_session = hash("no session");
    for (number, ends_grants) in [false, true].into_iter().enumerate() {
        let name = format!("own {number}");
        grant(&store, acme, ann, &name).await;
        let grants_end = ends_grants.then(|| at(3));
        let set = store
            .set_password(ann, &password("own"), &kept_session, grants_end)
            .await;
        assert!(set.expect("answers"));
        assert_eq!(
            access(&store, &name).await,
            !ends_grants,
            "own, {ends_grants}"
        );

        let name = format!("link {number}");
        grant(&store, acme, ann, &name).await;
        let again = Invitation {
            email: email("ann@example.com"),
            purpose: Purpose::NewPassword(ann),
        };
        invite(&store, &again, &name).await;
        let (link, opened) = (hash(&name), session(&name));
        let redeemed = store
            .redeem_invitation(&link, &password("new"), &opened, at(300), ends_grants)
            .await;
        assert!(redeemed.expect("answers").is_some());
        assert_eq!(
            access(&store, &name).await,
            !ends_grants,
            "by link, {ends_grants}"
        );
    }
    assert!(access(&store, "bob").await);
}

async fn the_list_shows_who_granted(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", acme).await;
    grant(&store, acme, ann, "ann").await;
    approve(&store, acme, "nobody").await;
    redeem(&store, "nobody", "nobody").await.expect("redeemed");
    let connected = store.list_grants(acme, at(2)).await.expect("answers");
    let granted_by: Vec<_> = connected.into_iter().map(|it| it.granted_by).collect();
    assert_eq!(granted_by, [None, Some(email("ann@example.com"))]);
}
