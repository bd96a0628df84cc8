//! Attempts at passwords and codes, and known browsers.

use std::sync::Arc;

use domain::TokenHash;
use domain::access::attempts::AttemptLimit;
use domain::ports::{AttemptKey, Store};
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::people::member;
use super::sample::{at, create_account};

on_both_stores!(
    an_attempt_counts_against_all_keys_or_none,
    concurrent_attempts_are_counted_correctly,
    pauses_grow_until_the_right_answer,
    old_attempts_and_browsers_are_deleted,
    a_browser_is_known_for_people_who_signed_in_with_it,
);

const STEADY: AttemptLimit = AttemptLimit::Steady {
    burst: 2,
    forgiven_after: SignedDuration::from_secs(10),
};
const GROWING: AttemptLimit = AttemptLimit::Growing {
    burst: 2,
    pause_s: 60,
};
const DAY: i64 = 86_400;

fn key(name: &str, limit: AttemptLimit) -> AttemptKey {
    (TokenHash::from_secret(name), limit)
}

async fn count_attempt(
    store: &Arc<dyn Store>,
    keys: &[AttemptKey],
    second: i64,
) -> Result<(), u32> {
    store
        .count_attempt(keys, at(second))
        .await
        .expect("answers")
}

async fn an_attempt_counts_against_all_keys_or_none(store: Arc<dyn Store>) {
    let (one, other) = (key("one", STEADY), key("other", STEADY));
    assert_eq!(count_attempt(&store, &[one], 0).await, Ok(()));
    assert_eq!(count_attempt(&store, &[one, other], 0).await, Ok(()));
    assert_eq!(
        count_attempt(&store, &[other, one], 0).await,
        Err(10),
        "the limit of one key is reached"
    );
    assert_eq!(
        count_attempt(&store, &[other], 0).await,
        Ok(()),
        "the refused attempt did not count"
    );
    assert_eq!(count_attempt(&store, &[other], 4).await, Err(6));
    store.uncount_attempt(&[one, other]).await.expect("answers");
    assert_eq!(count_attempt(&store, &[other, one], 4).await, Ok(()));
    assert_eq!(
        count_attempt(&store, &[one], 10).await,
        Ok(()),
        "one attempt is forgiven"
    );
    let unknown = key("unknown", STEADY);
    store
        .uncount_attempt(&[unknown])
        .await
        .expect("nothing to do");
}

async fn concurrent_attempts_are_counted_correctly(store: Arc<dyn Store>) {
    let mut all = JoinSet::new();
    for n in 0..12 {
        let (store, own) = (store.clone(), key(&format!("own {n}"), STEADY));
        let shared = key(
            "shared",
            AttemptLimit::Steady {
                burst: 5,
                forgiven_after: SignedDuration::from_secs(10),
            },
        );
        // The order must not matter.
        let keys = if n % 2 == 0 {
            [own, shared]
        } else {
            [shared, own]
        };
        all.spawn(async move { count_attempt(&store, &keys, 0).await });
    }
    let passed = all.join_all().await.into_iter().flatten();
    assert_eq!(passed.count(), 5);
}

async fn pauses_grow_until_the_right_answer(store: Arc<dyn Store>) {
    let codes = key("codes", GROWING);
    for (second, expected) in [
        (0, Ok(())),
        (0, Ok(())),
        (1, Err(59)),
        (60, Ok(())),
        (61, Err(119)),
        (180, Ok(())),
    ] {
        assert_eq!(
            count_attempt(&store, &[codes], second).await,
            expected,
            "{second}"
        );
    }
    store.uncount_attempt(&[codes]).await.expect("answers");
    assert_eq!(count_attempt(&store, &[codes], 181).await, Ok(()));
    assert_eq!(count_attempt(&store, &[codes], 181).await, Ok(()));
    assert_eq!(count_attempt(&store, &[codes], 181).await, Err(60));
}

async fn old_attempts_and_browsers_are_deleted(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", account).await;
    for (name, second) in [("a", 0), ("b", 1), ("c", 2)] {
        assert_eq!(
            count_attempt(&store, &[key(name, GROWING)], second).await,
            Ok(())
        );
    }
    for (name, second) in [("x", DAY), ("y", DAY + 2)] {
        let browser = TokenHash::from_secret(name);
        let remembered = store.remember_browser(&browser, ann, at(second)).await;
        remembered.expect("answers");
    }
    let prune = async |second, limit| {
        let pruned = store.prune_attempts(at(second), limit).await;
        pruned.expect("answers")
    };
    assert_eq!(prune(DAY - 1, 10).await, 0);
    assert_eq!(prune(DAY + 1, 1).await, 2, "one of each");
    assert_eq!(prune(DAY + 1, 10).await, 1, "the other attempt");
    assert_eq!(prune(DAY + 2, 10).await, 2);
}

async fn a_browser_is_known_for_people_who_signed_in_with_it(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let ann = member(&store, "ann@example.com", account).await;
    let bob = member(&store, "bob@example.com", account).await;
    let browser = TokenHash::from_secret("browser");
    let known = async |second| {
        let mut known = store
            .list_people_of_browser(&browser, at(second))
            .await
            .expect("answers");
        known.sort_by_key(|person| person.as_i64());
        known
    };
    assert_eq!(known(0).await, []);
    for (person, expires) in [(ann, 10), (bob, 20), (ann, 30)] {
        let remembered = store.remember_browser(&browser, person, at(expires)).await;
        remembered.expect("answers");
    }
    assert_eq!(known(19).await, [ann, bob]);
    assert_eq!(known(20).await, [ann]);
    assert_eq!(known(30).await, []);
}
