//! Refreshes that are repeated, concurrent or late, and the rows that they leave.

use std::sync::Arc;

use domain::oauth::GrantRefusal;
use domain::ports::{NewPair, Revoked, Rotated, Rotation, Store};
use domain::{Permission, Permissions};
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::{
    DAY, Renewed, approve, granted, listed, names, opens, pair, redeem, renew, rotation, salt,
};
use crate::sample::{at, create_account, hash, new_token};

on_both_stores!(
    a_client_that_repeats_a_refresh_gets_the_same_tokens,
    reuse_that_is_no_repetition_ends_the_grant,
    concurrent_refreshes_all_get_the_same_tokens,
    no_token_outlives_its_grant,
    a_client_that_refreshes_every_hour_leaves_few_rows,
    the_tokens_of_a_revoked_grant_are_deleted_after_a_day,
);

/// The same rotation at another second.
fn at_second(rotation: Rotation, name: &str, second: i64) -> Rotation {
    Rotation {
        pair: pair(name, second),
        ..rotation
    }
}

async fn rotate(store: &Arc<dyn Store>, rotation: &Rotation) -> Renewed {
    store.rotate_refresh(rotation).await.expect("answers")
}

async fn a_client_that_repeats_a_refresh_gets_the_same_tokens(store: Arc<dyn Store>) {
    granted(&store, "acme").await;
    let first = renew(&store, "acme", "second").await.expect("issued");
    let version = store.access_version().await.expect("answers");
    let expected = Rotated {
        granted: first.granted.clone(),
        salt: salt("second"),
    };
    assert_eq!(first, expected);
    assert_eq!(first.granted.access_expires, at(3602));
    for second in [2, 3, 12] {
        let again = at_second(rotation("acme", "again"), "again", second);
        let again = rotate(&store, &again).await;
        assert_eq!(again.as_ref(), Ok(&expected), "at {second}");
    }
    assert_eq!(names(&store).await.len(), 2, "no new token was issued");
    assert!(opens(&store, "access second").await);
    assert!(!opens(&store, "access again").await);
    let after = store.access_version().await.expect("answers");
    assert_eq!(after, version, "nothing changed");
    let late = at_second(rotation("acme", "late"), "late", 13);
    assert_eq!(rotate(&store, &late).await, Err(GrantRefusal::Replayed));
    assert!(!opens(&store, "access second").await);
}

async fn reuse_that_is_no_repetition_ends_the_grant(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let rates: Permissions = [Permission::SmsRates].into_iter().collect();
    for name in [
        "fewer scopes",
        "successor used",
        "access token revoked",
        "salt deleted",
    ] {
        approve(&store, account, name).await;
        redeem(&store, name, name).await.expect("issued");
        let (next, last) = (format!("{name} next"), format!("{name} last"));
        renew(&store, name, &next).await.expect("issued");
        let mut again = rotation(name, "again");
        match name {
            "fewer scopes" => again.scopes = Some(rates),
            "successor used" => drop(renew(&store, &next, &last).await.expect("issued")),
            "access token revoked" => {
                let access = hash(&format!("access {next}"));
                let revoked = store.revoke_granted(&access, "client", at(2)).await;
                assert_eq!(revoked.expect("answers"), Revoked::Done);
            }
            _ => {
                let pruned = store.prune_grants(at(62), 10).await;
                pruned.expect("answers");
            }
        }
        let again = rotate(&store, &again).await;
        assert_eq!(again, Err(GrantRefusal::Replayed), "{name}");
        assert_eq!(names(&store).await, Vec::<String>::new(), "{name}");
    }
    // Another client gets no tokens, and ends no grant.
    approve(&store, account, "other client").await;
    redeem(&store, "other client", "other client")
        .await
        .expect("issued");
    renew(&store, "other client", "next").await.expect("issued");
    let others = Rotation {
        client_id: "other".to_owned(),
        ..rotation("other client", "again")
    };
    let refused = rotate(&store, &others).await;
    assert_eq!(refused, Err(GrantRefusal::OtherClient));
    assert!(opens(&store, "access next").await);
}

async fn concurrent_refreshes_all_get_the_same_tokens(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    for round in 0..5 {
        let code = format!("code {round}");
        approve(&store, account, &code).await;
        redeem(&store, &code, &code).await.expect("issued");
        let mut tasks = JoinSet::new();
        for n in 0..20 {
            let (store, from) = (Arc::clone(&store), code.clone());
            tasks.spawn(async move { renew(&store, &from, &format!("{round} {n}")).await });
        }
        let outcomes = tasks.join_all().await;
        let winner = outcomes[0].as_ref().expect("issued");
        for outcome in &outcomes {
            assert_eq!(outcome.as_ref(), Ok(winner), "round {round}");
        }
        let matching = (0..20).map(|n| format!("{round} {n}"));
        let matching: Vec<String> = matching.filter(|name| salt(name) == winner.salt).collect();
        let [name] = &matching[..] else {
            panic!("{matching:?}");
        };
        assert!(opens(&store, &format!("access {name}")).await);
        assert_eq!(names(&store).await.len(), 2 * (round + 1));
    }
}

async fn no_token_outlives_its_grant(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    let short = |name: &str, second| NewPair {
        grant_lifetime: SignedDuration::from_secs(1000),
        ..pair(name, second)
    };
    let renewal = Rotation {
        pair: short("second", 999),
        ..rotation("acme", "second")
    };
    let given = rotate(&store, &renewal).await.expect("issued");
    assert_eq!(given.granted.access_expires, at(1000));
    let tokens = store.list_tokens(Some(account)).await.expect("answers");
    let expiries: Vec<_> = tokens.iter().map(|token| token.access.expires).collect();
    assert_eq!(expiries, [Some(at(1000)), Some(at(1000))]);
    let late = Rotation {
        pair: short("third", 1000),
        ..rotation("second", "third")
    };
    let refused = rotate(&store, &late).await;
    assert_eq!(refused, Err(GrantRefusal::Expired));
    // Tokens from before this limit existed.
    approve(&store, account, "before").await;
    redeem(&store, "before", "before").await.expect("issued");
    let late = Rotation {
        pair: short("after", 1000),
        ..rotation("before", "after")
    };
    let refused = rotate(&store, &late).await;
    assert_eq!(refused, Err(GrantRefusal::Expired));
}

async fn a_client_that_refreshes_every_hour_leaves_few_rows(store: Arc<dyn Store>) {
    const HOUR: i64 = 3600;
    granted(&store, "acme").await;
    let used = [(hash("access acme"), at(7))];
    store.record_token_use(&used).await.expect("answers");
    let (mut last, mut rows) = ("acme".to_owned(), 2);
    for hour in 1..=72 {
        let (name, second) = (hour.to_string(), hour * HOUR);
        let valid_for_a_day = NewPair {
            refresh_expires: at(second + DAY),
            ..pair(&name, second)
        };
        let renewal = Rotation {
            pair: valid_for_a_day,
            ..rotation(&last, &name)
        };
        rotate(&store, &renewal).await.expect("issued");
        let pruned = store.prune_grants(at(second), 100).await.expect("answers");
        rows += 2 - i64::try_from(pruned).expect("a few");
        last = name;
        // Two valid tokens, the access token before, and the refresh tokens used within their lifetime and a day more.
        // The very first one is valid for a month.
        let used_tokens = hour.min(49) + 1;
        assert!(rows <= 3 + used_tokens, "{rows} after {hour} hours");
    }
    assert!(rows > 24, "{rows}: used tokens are kept to detect reuse");
    let account = store.find_account("acme").await.expect("answers");
    let account = account.expect("it is there").id;
    let connected = store.list_grants(account, at(72 * HOUR)).await;
    let connected = connected.expect("answers");
    assert_eq!(
        connected[0].last_used_at,
        Some(at(7)),
        "the last use is kept"
    );
    // Reuse is still detected.
    let reused = renew(&store, "acme", "thief").await;
    assert_eq!(reused, Err(GrantRefusal::Replayed));
}

async fn the_tokens_of_a_revoked_grant_are_deleted_after_a_day(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    renew(&store, "acme", "second").await.expect("issued");
    approve(&store, account, "alive").await;
    redeem(&store, "alive", "alive").await.expect("issued");
    let connected = store.list_grants(account, at(3)).await.expect("answers");
    let ended = connected.last().expect("two").id;
    let revoked = store.revoke_grant(account, ended, at(3)).await;
    assert!(revoked.expect("answers"));
    let token = new_token(account, "created by its owner");
    store.create_token(&token).await.expect("created");
    // At each second, these rows are deleted: both access tokens; the two refresh tokens; the grant.
    for (second, expected) in [
        (3601, 0),
        (3603, 2),
        (DAY + 2, 0),
        (DAY + 3, 2),
        (DAY + 60, 1),
    ] {
        let pruned = store.prune_grants(at(second), 10).await.expect("answers");
        assert_eq!(pruned, expected, "at {second}");
    }
    let renewed = renew(&store, "second", "third").await;
    assert_eq!(renewed, Err(GrantRefusal::Unknown));
    assert_eq!(listed(&store).await.len(), 3, "the others are unchanged");
    assert!(renew(&store, "alive", "next").await.is_ok());
}
