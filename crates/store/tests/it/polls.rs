//! Messages whose reports carriers ask for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::Clock as _;
use domain::ports::{AwaitedReport, Store};
use engine::clock::SystemClock;
use tokio::task::JoinSet;

use super::sample::message;

on_both_stores!(
    a_message_is_asked_about_by_one_node_until_it_is_removed,
    expired_messages_are_not_asked_about_and_are_pruned,
);

const HOUR: Duration = Duration::from_hours(1);

fn awaited(carrier: &str, id: u64, first_after: Duration) -> AwaitedReport {
    AwaitedReport {
        carrier: carrier.to_owned(),
        id: message(id),
        provider_id: format!("SM{id}"),
        first_after,
        expires_at: SystemClock.now() + HOUR,
    }
}

/// The messages that are claimed, with the provider's IDs, sorted.
async fn claim(
    store: &Arc<dyn Store>,
    carrier: &str,
    interval: Duration,
    limit: u32,
) -> Vec<(u64, String)> {
    let claimed = store.claim_polls(carrier, interval, limit).await;
    let claimed = claimed.expect("the store answers").into_iter();
    let mut claimed: Vec<_> = claimed
        .map(|poll| (poll.id.get(), poll.provider_id))
        .collect();
    claimed.sort();
    claimed
}

/// Claims again what was claimed just now: it is due after a quarter of its age.
async fn claim_again(store: &Arc<dyn Store>, carrier: &str) -> Vec<(u64, String)> {
    loop {
        let claimed = claim(store, carrier, Duration::ZERO, 9).await;
        if !claimed.is_empty() {
            return claimed;
        }
        tokio::task::yield_now().await;
    }
}

fn ids(ids: &[u64]) -> Vec<(u64, String)> {
    ids.iter().map(|id| (*id, format!("SM{id}"))).collect()
}

async fn a_message_is_asked_about_by_one_node_until_it_is_removed(store: Arc<dyn Store>) {
    let mut polls: Vec<_> = (1..=6)
        .map(|id| awaited("beta", id, Duration::ZERO))
        .collect();
    polls.push(awaited("gamma", 1, Duration::ZERO));
    polls.push(awaited("beta", 7, HOUR));
    store.add_polls(&polls).await.expect("added");

    // Several nodes claim at the same time; each message is claimed once.
    let mut nodes = JoinSet::new();
    for _ in 0..3 {
        let store = store.clone();
        nodes.spawn(async move { claim(&store, "beta", HOUR, 2).await });
    }
    let mut claimed: Vec<_> = nodes.join_all().await.into_iter().flatten().collect();
    while claimed.len() < 6 {
        // A node may have found only rows that another one was claiming.
        let more = claim(&store, "beta", HOUR, 2).await;
        assert!(!more.is_empty(), "{claimed:?}");
        claimed.extend(more);
    }
    claimed.sort();
    assert_eq!(claimed, ids(&[1, 2, 3, 4, 5, 6]));
    assert_eq!(
        claim(&store, "beta", HOUR, 9).await,
        [],
        "until they are due"
    );
    assert_eq!(claim(&store, "gamma", Duration::ZERO, 9).await, ids(&[1]));
    assert_eq!(claim(&store, "alpha", HOUR, 9).await, [], "another carrier");

    // The newest entry for a message counts.
    let newer = AwaitedReport {
        provider_id: "SM9".to_owned(),
        ..awaited("beta", 1, Duration::ZERO)
    };
    let repeated = [awaited("beta", 1, HOUR), newer];
    store.add_polls(&repeated).await.expect("added");
    let expected = [(1, "SM9".to_owned())];
    assert_eq!(claim(&store, "beta", Duration::ZERO, 9).await, expected);
    assert_eq!(claim_again(&store, "beta").await, expected);
    let ended = [message(1), message(2)];
    store.remove_polls("beta", &ended).await.expect("removed");
    assert_eq!(claim(&store, "beta", Duration::ZERO, 9).await, []);
    assert_eq!(claim_again(&store, "gamma").await, ids(&[1]));
}

async fn expired_messages_are_not_asked_about_and_are_pruned(store: Arc<dyn Store>) {
    let now = SystemClock.now();
    let expired: BTreeSet<u64> = (1..=3).collect();
    let polls: Vec<_> = (1..=4)
        .map(|id| AwaitedReport {
            expires_at: if expired.contains(&id) {
                now - HOUR
            } else {
                now + HOUR
            },
            ..awaited("beta", id, Duration::ZERO)
        })
        .collect();
    store.add_polls(&polls).await.expect("added");
    assert_eq!(claim(&store, "beta", Duration::ZERO, 9).await, ids(&[4]));
    let mut pruned = Vec::new();
    for _ in 0..3 {
        pruned.push(store.prune_polls(now, 2).await.expect("pruned"));
    }
    assert_eq!(pruned, [2, 1, 0]);
    assert_eq!(claim_again(&store, "beta").await, ids(&[4]));
}
