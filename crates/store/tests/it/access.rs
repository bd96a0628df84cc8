//! Accounts and tokens.

use std::sync::Arc;

use domain::access::{Access, AccessLimits};
use domain::billing::{Countries, SpendingRules};
use domain::ports::{AccountRecord, NewToken, Store, StoreError, TokenInput};
use domain::{AllowList, Money, Permission, Permissions, TokenId};

use super::sample::{account, at, create_account, hash, new_account, new_token};

on_both_stores!(
    an_account_is_stored_as_created,
    an_account_name_can_be_used_once,
    accounts_are_listed_by_id,
    a_token_is_stored_as_created,
    revoked_tokens_are_not_listed,
    a_token_needs_an_account_and_a_unique_secret,
    suspending_an_account_affects_its_tokens,
    a_token_of_another_account_is_not_revoked,
    a_token_is_changed_by_its_account_only,
    a_replaced_token_ends_and_never_lives_longer,
    the_last_use_of_a_token_is_stored,
    every_change_raises_the_version_and_nothing_else_does,
);

async fn an_account_is_stored_as_created(store: Arc<dyn Store>) {
    let id = create_account(&store, "Ácme 'Ltd'").await;
    let expected = AccountRecord {
        id,
        name: "Ácme 'Ltd'".to_owned(),
        balance: Money::from_micros(12_345_678),
        rules: SpendingRules::default(),
        suspended: false,
        created_at: at(1),
    };
    assert_eq!(
        store.find_account("Ácme 'Ltd'").await.expect("answers"),
        Some(expected.clone())
    );
    assert_eq!(
        store.find_account_by_id(id).await.expect("answers"),
        Some(expected)
    );
    assert_eq!(
        store.find_account("ácme 'ltd'").await.expect("answers"),
        None
    );
    assert_eq!(
        store
            .find_account_by_id(account(id.get() + 1))
            .await
            .expect("answers"),
        None
    );
}

async fn an_account_name_can_be_used_once(store: Arc<dyn Store>) {
    create_account(&store, "acme").await;
    assert_eq!(
        store
            .create_account(&new_account("acme"))
            .await
            .expect("answers"),
        None
    );
    create_account(&store, "Acme").await;
}

async fn accounts_are_listed_by_id(store: Arc<dyn Store>) {
    assert_eq!(store.list_accounts().await.expect("answers"), []);
    let mut ids = Vec::new();
    for name in ["b", "a", "c"] {
        ids.push((create_account(&store, name).await, name.to_owned()));
    }
    let listed = store.list_accounts().await.expect("answers");
    assert_eq!(
        listed
            .into_iter()
            .map(|record| (record.id, record.name))
            .collect::<Vec<_>>(),
        ids
    );
}

async fn a_token_is_stored_as_created(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    let narrow = NewToken {
        permissions: [Permission::SmsRead, Permission::HlrLookup]
            .into_iter()
            .collect(),
        allow: "192.0.2.0/24 2001:db8::/32".parse().expect("networks"),
        expires: Some(at(50)),
        ..new_token(owner, "narrow")
    };
    for token in [new_token(owner, "wide"), narrow] {
        let created = store.create_token(&token).await;
        created.expect("the token is created");
        let expected = Access {
            name: token.name,
            account: owner,
            account_name: "acme".to_owned(),
            suspended: false,
            countries: Countries::default(),
            approved_senders_only: false,
            requests_per_second: 0,
            permissions: token.permissions,
            allow: token.allow,
            expires: token.expires,
            grant_cap: None,
            limits: AccessLimits::default(),
        };
        assert_eq!(
            store.find_access(&token.hash).await.expect("answers"),
            Some(expected)
        );
    }
    assert_eq!(
        store.find_access(&hash("unknown")).await.expect("answers"),
        None
    );
}

async fn revoked_tokens_are_not_listed(store: Arc<dyn Store>) {
    let (first, second) = (
        create_account(&store, "first").await,
        create_account(&store, "second").await,
    );
    let mut ids = Vec::new();
    for (owner, secret) in [(first, "a"), (second, "b"), (first, "c")] {
        ids.push(
            store
                .create_token(&new_token(owner, secret))
                .await
                .expect("the token is created"),
        );
    }
    let revocations = [
        ("valid", ids[0], true),
        ("revoked already", ids[0], false),
        ("unknown", unknown(), false),
    ];
    for (name, id, expected) in revocations {
        assert_eq!(
            store.revoke_token(None, id, at(9)).await.expect("answers"),
            expected,
            "{name}"
        );
    }
    assert_eq!(store.find_access(&hash("a")).await.expect("answers"), None);
    for (name, owner, expected) in [
        ("all", None, vec![ids[1], ids[2]]),
        ("of the first account", Some(first), vec![ids[2]]),
        ("of the second account", Some(second), vec![ids[1]]),
        ("of an unknown account", Some(account(99)), vec![]),
    ] {
        let listed = store.list_tokens(owner).await.expect("answers");
        assert!(
            listed.iter().all(|record| record.created_at == at(2)),
            "{name}"
        );
        assert_eq!(
            listed.iter().map(|record| record.id).collect::<Vec<_>>(),
            expected,
            "{name}"
        );
    }
}

fn unknown() -> TokenId {
    TokenId::new(99).expect("an ID")
}

async fn a_token_needs_an_account_and_a_unique_secret(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    store
        .create_token(&new_token(owner, "a"))
        .await
        .expect("the token is created");
    for (name, token) in [
        ("same secret", new_token(owner, "a")),
        ("no account", new_token(account(99), "b")),
    ] {
        let error = store.create_token(&token).await.expect_err(name);
        assert!(
            matches!(
                error,
                StoreError::Unexpected {
                    operation: "create a token",
                    ..
                }
            ),
            "{name}: {error:?}"
        );
    }
    assert_eq!(store.list_tokens(None).await.expect("answers").len(), 1);
}

async fn suspending_an_account_affects_its_tokens(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    store
        .create_token(&new_token(owner, "a"))
        .await
        .expect("the token is created");
    for suspended in [true, false] {
        assert!(
            store
                .set_suspended("acme", suspended)
                .await
                .expect("answers")
        );
        let access = store
            .find_access(&hash("a"))
            .await
            .expect("answers")
            .expect("known");
        assert_eq!(access.suspended, suspended);
        let record = store
            .find_account("acme")
            .await
            .expect("answers")
            .expect("known");
        assert_eq!(record.suspended, suspended);
    }
    assert!(!store.set_suspended("other", true).await.expect("answers"));
}

async fn every_change_raises_the_version_and_nothing_else_does(store: Arc<dyn Store>) {
    let mut last = store.access_version().await.expect("answers");
    let mut raised = async || {
        let version = store.access_version().await.expect("answers");
        std::mem::replace(&mut last, version) < version
    };

    assert!(!raised().await, "reading");
    let owner = create_account(&store, "acme").await;
    assert!(raised().await, "a new account");
    assert_eq!(
        store
            .create_account(&new_account("acme"))
            .await
            .expect("answers"),
        None
    );
    assert!(!raised().await, "a name that is already used");
    let token = store
        .create_token(&new_token(owner, "a"))
        .await
        .expect("the token is created");
    assert!(raised().await, "a new token");
    store.set_suspended("acme", true).await.expect("answers");
    assert!(raised().await, "suspending");
    store.set_suspended("other", true).await.expect("answers");
    assert!(!raised().await, "suspending an unknown account");
    let input = input("renamed");
    let changed = store.change_token(owner, token, &input).await;
    assert!(changed.expect("answers") && raised().await, "changing");
    let changed = store.change_token(account(99), token, &input).await;
    assert!(!changed.expect("answers") && !raised().await, "not theirs");
    let new = new_token(owner, "b");
    let replaced = store.replace_token(unknown(), None, &new).await;
    assert_eq!(replaced.expect("answers"), None);
    assert!(!raised().await, "replacing an unknown token");
    let replaced = store.replace_token(token, Some(at(50)), &new).await;
    assert!(replaced.expect("answers").is_some());
    assert!(raised().await, "replacing");
    store
        .revoke_token(None, token, at(9))
        .await
        .expect("answers");
    assert!(raised().await, "revoking");
    store
        .revoke_token(None, token, at(9))
        .await
        .expect("answers");
    assert!(!raised().await, "revoking again");
}

async fn a_token_of_another_account_is_not_revoked(store: Arc<dyn Store>) {
    let (owner, stranger) = (
        create_account(&store, "owner").await,
        create_account(&store, "stranger").await,
    );
    let token = store.create_token(&new_token(owner, "a")).await;
    let token = token.expect("the token is created");
    for (who, expected) in [(stranger, false), (owner, true), (owner, false)] {
        let revoked = store.revoke_token(Some(who), token, at(9)).await;
        assert_eq!(revoked.expect("answers"), expected);
        let access = store.find_access(&hash("a")).await.expect("answers");
        assert_eq!(access.is_some(), who == stranger);
    }
}

fn input(name: &str) -> TokenInput {
    TokenInput {
        name: name.to_owned(),
        permissions: Permissions::all(),
        allow: AllowList::default(),
        expires: None,
    }
}

async fn a_token_is_changed_by_its_account_only(store: Arc<dyn Store>) {
    let (owner, stranger) = (
        create_account(&store, "owner").await,
        create_account(&store, "stranger").await,
    );
    let token = store.create_token(&new_token(owner, "a")).await;
    let token = token.expect("the token is created");
    let narrow = TokenInput {
        permissions: [Permission::SmsRead].into_iter().collect(),
        allow: "192.0.2.0/24 2001:db8::/32".parse().expect("networks"),
        expires: Some(at(50)),
        ..input("narrow")
    };
    for (who, new, expected) in [
        (stranger, &narrow, false),
        (owner, &narrow, true),
        (owner, &input("wide"), true),
    ] {
        let changed = store.change_token(who, token, new).await;
        assert_eq!(changed.expect("answers"), expected, "{}", new.name);
        let listed = store.list_tokens(Some(owner)).await.expect("answers");
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].input() == *new, expected, "{}", new.name);
        let access = store.find_access(&hash("a")).await.expect("answers");
        assert_eq!(access.as_ref(), Some(&listed[0].access), "the same secret");
    }
    let revoked = store.revoke_token(None, token, at(9)).await;
    assert!(revoked.expect("answers"));
    let changed = store.change_token(owner, token, &narrow).await;
    assert!(!changed.expect("answers"), "revoked");
}

async fn a_replaced_token_ends_and_never_lives_longer(store: Arc<dyn Store>) {
    let owner = create_account(&store, "owner").await;
    let stranger = create_account(&store, "stranger").await;
    for (name, expires, until, expected) in [
        ("no expiry", None, Some(at(30)), Some(Some(at(30)))),
        ("later", Some(at(40)), Some(at(30)), Some(Some(at(30)))),
        ("sooner", Some(at(20)), Some(at(30)), Some(Some(at(20)))),
        ("at once", Some(at(20)), None, None),
    ] {
        let old = NewToken {
            expires,
            ..new_token(owner, name)
        };
        let old = store
            .create_token(&old)
            .await
            .expect("the token is created");
        let secret = format!("new {name}");
        let theirs = new_token(stranger, &secret);
        let theirs = store.replace_token(old, until, &theirs).await;
        assert_eq!(theirs.expect("answers"), None, "{name}: not theirs");
        let new = new_token(owner, &secret);
        let new = store.replace_token(old, until, &new).await;
        let new = new.expect("answers").expect("replaced");
        let access = store.find_access(&hash(name)).await.expect("answers");
        assert_eq!(access.map(|access| access.expires), expected, "{name}");
        let listed = store.list_tokens(Some(owner)).await.expect("answers");
        let newest = listed.last().expect("a token");
        assert_eq!((newest.id, newest.created_at), (new, at(2)), "{name}");
        let access = store.find_access(&hash(&secret)).await.expect("answers");
        assert_eq!(access.as_ref(), Some(&newest.access), "{name}");
    }
    let theirs = store.list_tokens(Some(stranger)).await.expect("answers");
    assert!(theirs.is_empty());
}

async fn the_last_use_of_a_token_is_stored(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    for secret in ["a", "b"] {
        let token = store.create_token(&new_token(owner, secret)).await;
        token.expect("the token is created");
    }
    let version = store.access_version().await.expect("answers");
    // The latest use is stored, in whatever order the nodes write; unknown tokens are ignored.
    let uses = [
        vec![(hash("a"), at(20)), (hash("unknown"), at(30))],
        vec![(hash("a"), at(10))],
        vec![],
    ];
    for used in uses {
        let written = store.record_token_use(&used).await;
        written.expect("the store answers");
    }
    let listed = store.list_tokens(Some(owner)).await.expect("answers");
    let stored: Vec<_> = listed
        .iter()
        .map(|token| (token.last_used_at, token.grant))
        .collect();
    assert_eq!(stored, [(Some(at(20)), None), (None, None)]);
    let after = store.access_version().await.expect("answers");
    assert_eq!(after, version, "no cached access becomes invalid");
}
