//! Token families: renewed, replayed, revoked.

use std::sync::Arc;

use domain::oauth::{GrantRefusal, Granted};
use domain::ports::{Revoked, Rotated, Rotation, Store};
use domain::{Permission, Permissions};
use tokio::task::JoinSet;

use super::{
    DAY, Outcome, approve, granted, listed, names, opens, pair, redeem, renew, rotation, salt,
    two_scopes,
};
use crate::sample::{at, create_account, hash, new_token};

on_both_stores!(
    connected_clients_are_listed_and_ended,
    clients_with_expired_tokens_are_not_listed,
    a_refresh_token_is_renewed_once,
    reuse_of_a_refresh_token_ends_the_family,
    one_of_many_concurrent_redemptions_of_a_code_succeeds,
    revoking_while_renewing_leaves_nothing_alive,
    revoking_a_refresh_token_ends_its_family_and_no_other,
    revoking_an_access_token_ends_only_that_token,
    a_client_revokes_only_its_own_tokens,
);

/// How many succeeded, and how many were refused as reuse.
fn count(outcomes: &[Outcome]) -> (usize, usize) {
    let succeeded = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let is_reuse = |outcome: &&Outcome| {
        let refusal = outcome.as_ref().err();
        matches!(
            refusal,
            Some(GrantRefusal::Replayed | GrantRefusal::Revoked)
        )
    };
    (succeeded, outcomes.iter().filter(is_reuse).count())
}

async fn a_refresh_token_is_renewed_once(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    let rates: Permissions = [Permission::SmsRates].into_iter().collect();
    let less = Rotation {
        scopes: Some(rates),
        ..rotation("acme", "second")
    };
    let more = Rotation {
        scopes: Some(Permissions::all()),
        ..rotation("acme", "second")
    };
    let others = Rotation {
        client_id: "other".to_owned(),
        ..rotation("acme", "second")
    };
    let late = Rotation {
        pair: pair("second", 30 * DAY + 1),
        ..rotation("acme", "second")
    };
    for (name, rotation, refusal) in [
        (
            "unknown",
            rotation("nobody", "second"),
            GrantRefusal::Unknown,
        ),
        ("more scopes", more, GrantRefusal::Scope),
        ("other client", others, GrantRefusal::OtherClient),
        ("late", late, GrantRefusal::Expired),
    ] {
        let renewed = store.rotate_refresh(&rotation).await.expect("answers");
        assert_eq!(renewed, Err(refusal), "{name}");
        assert!(opens(&store, "access acme").await, "{name}");
    }
    let renewed = store.rotate_refresh(&less).await.expect("answers");
    let granted = Granted {
        account,
        scopes: rates,
        access_expires: at(3602),
    };
    let expected = Rotated {
        granted,
        salt: salt("second"),
    };
    assert_eq!(renewed, Ok(expected));
    assert!(
        !opens(&store, "access acme").await,
        "the access token before it is revoked"
    );
    assert!(opens(&store, "access second").await);
    assert_eq!(listed(&store).await.len(), 2);
    // A client that asked for fewer scopes can get all granted scopes again.
    let renewed = renew(&store, "second", "third").await.expect("issued");
    assert_eq!(renewed.granted.scopes, two_scopes());
    // An access token renews nothing.
    let with_access = Rotation {
        refresh: hash("access third"),
        ..rotation("third", "fourth")
    };
    let renewed = store.rotate_refresh(&with_access).await.expect("answers");
    assert_eq!(renewed, Err(GrantRefusal::Unknown));
}

async fn reuse_of_a_refresh_token_ends_the_family(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    approve(&store, account, "other code").await;
    redeem(&store, "other code", "other").await.expect("issued");
    renew(&store, "acme", "second").await.expect("issued");
    renew(&store, "second", "third").await.expect("issued");
    let again = renew(&store, "acme", "thief").await;
    assert_eq!(again, Err(GrantRefusal::Replayed));
    for (secret, alive) in [
        ("access third", false),
        ("access thief", false),
        ("access other", true),
    ] {
        assert_eq!(opens(&store, secret).await, alive, "{secret}");
    }
    for from in ["third", "second", "acme"] {
        let renewed = renew(&store, from, "fourth").await;
        assert_eq!(renewed, Err(GrantRefusal::Revoked), "{from}");
    }
    assert!(renew(&store, "other", "next").await.is_ok());
}

async fn one_of_many_concurrent_redemptions_of_a_code_succeeds(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    for round in 0..5 {
        let code = format!("code {round}");
        approve(&store, account, &code).await;
        let mut tasks = JoinSet::new();
        for n in 0..20 {
            let (store, code) = (Arc::clone(&store), code.clone());
            tasks.spawn(async move { redeem(&store, &code, &format!("{round} {n}")).await });
        }
        assert_eq!(count(&tasks.join_all().await), (1, 19));
        assert_eq!(
            names(&store).await,
            Vec::<String>::new(),
            "the reuse ended all tokens"
        );
    }
}

async fn revoking_while_renewing_leaves_nothing_alive(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    for round in 0..10 {
        let code = format!("code {round}");
        approve(&store, account, &code).await;
        redeem(&store, &code, &code).await.expect("issued");
        let refresh = listed(&store).await.last().expect("two tokens").1;
        let renewing = {
            let (store, from) = (Arc::clone(&store), code.clone());
            tokio::spawn(async move { renew(&store, &from, &format!("{from} next")).await })
        };
        let revoked = store
            .revoke_token(None, refresh, at(2))
            .await
            .expect("answers");
        let renewed = renewing.await.expect("no panic");
        // If the client renewed first, the token to revoke is no longer valid.
        if revoked {
            assert_eq!(names(&store).await, Vec::<String>::new(), "{renewed:?}");
        } else {
            assert!(renewed.is_ok());
            let next = listed(&store).await.last().expect("two tokens").1;
            assert!(
                store
                    .revoke_token(None, next, at(3))
                    .await
                    .expect("answers")
            );
        }
        assert_eq!(names(&store).await, Vec::<String>::new());
    }
}

async fn revoking_a_refresh_token_ends_its_family_and_no_other(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    approve(&store, account, "other code").await;
    redeem(&store, "other code", "other").await.expect("issued");
    let refresh = listed(&store).await[1].1;
    for expected in [true, false] {
        let revoked = store.revoke_token(None, refresh, at(5)).await;
        assert_eq!(revoked.expect("answers"), expected);
    }
    assert!(!opens(&store, "access acme").await);
    assert!(opens(&store, "access other").await);
    let renewed = renew(&store, "acme", "second").await;
    assert_eq!(renewed, Err(GrantRefusal::Revoked));
}

async fn revoking_an_access_token_ends_only_that_token(store: Arc<dyn Store>) {
    granted(&store, "acme").await;
    let access = listed(&store).await[0].1;
    assert!(
        store
            .revoke_token(None, access, at(5))
            .await
            .expect("answers")
    );
    assert!(!opens(&store, "access acme").await);
    assert_eq!(names(&store).await, ["oauth:refresh:Ácme 'Desk'"]);
    assert!(renew(&store, "acme", "second").await.is_ok());
}

async fn a_client_revokes_only_its_own_tokens(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    let own = new_token(account, "created by its owner");
    store.create_token(&own).await.expect("created");
    for (name, secret, client, expected) in [
        ("unknown", "x", "client", Revoked::Unknown),
        (
            "a token of the owner",
            "created by its owner",
            "client",
            Revoked::Unknown,
        ),
        (
            "another client",
            "access acme",
            "other",
            Revoked::OtherClient,
        ),
        (
            "another client",
            "refresh acme",
            "other",
            Revoked::OtherClient,
        ),
    ] {
        let revoked = store.revoke_granted(&hash(secret), client, at(5)).await;
        assert_eq!(revoked.expect("answers"), expected, "{name}");
        assert_eq!(listed(&store).await.len(), 3, "{name}");
    }
    for (secret, left) in [("access acme", 2), ("refresh acme", 1)] {
        for expected in [Revoked::Done, Revoked::Unknown] {
            let revoked = store.revoke_granted(&hash(secret), "client", at(5)).await;
            assert_eq!(revoked.expect("answers"), expected, "{secret}");
        }
        assert_eq!(listed(&store).await.len(), left, "{secret}");
    }
    let renewed = renew(&store, "acme", "second").await;
    assert_eq!(renewed, Err(GrantRefusal::Revoked));
}

async fn connected_clients_are_listed_and_ended(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    let stranger = granted(&store, "other").await;
    approve(&store, account, "never redeemed").await;
    renew(&store, "acme", "second").await.expect("issued");
    let used = [(hash("access second"), at(7))];
    let recorded = store.record_token_use(&used).await;
    recorded.expect("the store answers");

    let connected = store.list_grants(account, at(8)).await.expect("answers");
    let [grant] = &connected[..] else {
        panic!("{connected:?}")
    };
    assert_eq!(grant.client_id, "client");
    assert_eq!(grant.scopes, two_scopes());
    assert_eq!(grant.last_used_at, Some(at(7)));
    let tokens = store.list_tokens(Some(account)).await.expect("answers");
    assert!(tokens.iter().all(|token| token.grant == Some(grant.id)));

    let version = store.access_version().await.expect("answers");
    for (who, expected) in [(stranger, false), (account, true), (account, false)] {
        let ended = store.revoke_grant(who, grant.id, at(9)).await;
        assert_eq!(ended.expect("answers"), expected);
    }
    let after = store.access_version().await.expect("answers");
    assert_eq!(after, version + 1, "nodes notice it, once");
    assert!(!opens(&store, "access second").await);
    assert!(opens(&store, "access other").await);
    let renewed = renew(&store, "second", "third").await;
    assert_eq!(renewed, Err(GrantRefusal::Revoked));
    let connected = store.list_grants(account, at(10)).await;
    assert_eq!(connected.expect("answers"), []);
}

async fn clients_with_expired_tokens_are_not_listed(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    let later = store.list_grants(account, at(10_000 * DAY)).await;
    assert_eq!(later.expect("answers"), []);
    let now = store.list_grants(account, at(2)).await;
    assert_eq!(now.expect("answers").len(), 1);
}
