//! Alerts and notifications.

use std::sync::Arc;

use domain::alert::{Alert, Level, Topic};
use domain::ports::{NewNotification, Notification, Store};
use domain::{AccountId, Timestamp};

use super::steps::past;

/// A time this many seconds before another one.
fn at(ago: i64) -> Timestamp {
    past(-ago)
}

on_both_stores!(
    an_alert_changes_only_as_it_was_read,
    of_two_nodes_that_see_a_change_one_tells_it,
    each_target_has_one_notification_under_way,
    a_notification_is_due_again_unless_it_is_settled,
    a_target_with_a_backlog_does_not_use_up_the_claim_of_others,
    notifications_for_one_target_are_limited,
);

fn alert(subject: &str, level: Level, since: Timestamp) -> Alert {
    Alert {
        topic: Topic::Carrier,
        subject: subject.to_owned(),
        account: None,
        level,
        since,
        told: Level::Fine,
        told_at: [None, Some(since), None],
        data: r#"{"carrier":"alpha"}"#.to_owned(),
    }
}

fn notification(target: &str, body: &str) -> NewNotification {
    NewNotification {
        account: target
            .strip_prefix("account ")
            .and_then(|id| AccountId::new(id.parse().ok()?)),
        target: target.to_owned(),
        body: body.to_owned(),
    }
}

/// Stores notifications with a new alert.
async fn notify(store: &Arc<dyn Store>, subject: &str, notifications: &[NewNotification]) -> bool {
    let alert = alert(subject, Level::Bad, at(100));
    let created = store.change_alert(None, Some(&alert), notifications, at(100));
    created.await.expect("the store answers")
}

async fn claim(store: &Arc<dyn Store>, ago: i64, limits: [u32; 2]) -> Vec<Notification> {
    let claimed = store.claim_notifications(at(ago), at(ago - 10), limits);
    let mut claimed = claimed.await.expect("the store answers");
    claimed.sort_by_key(|one| one.id);
    claimed
}

fn bodies(notifications: &[Notification]) -> Vec<&str> {
    notifications.iter().map(|one| one.body.as_str()).collect()
}

async fn an_alert_changes_only_as_it_was_read(store: Arc<dyn Store>) {
    let first = alert("alpha", Level::Bad, at(100));
    assert!(notify(&store, "alpha", &[]).await);
    assert!(!notify(&store, "alpha", &[]).await, "it is there already");
    let list = || async {
        store
            .list_alerts(None, 10)
            .await
            .expect("the store answers")
    };
    assert_eq!(list().await, std::slice::from_ref(&first));
    let told = Alert {
        told: Level::Bad,
        ..first.clone()
    };
    let change = |before: Alert, after: Option<Alert>| {
        let store = store.clone();
        async move {
            let changed = store.change_alert(Some(&before), after.as_ref(), &[], at(50));
            changed.await.expect("the store answers")
        }
    };
    assert!(change(first.clone(), Some(told.clone())).await);
    assert!(!change(first.clone(), Some(told.clone())).await, "stale");
    assert!(!change(first, None).await, "stale");
    let account = AccountId::new(7).expect("an ID");
    let of_account = store.list_alerts(Some(account), 10).await;
    assert_eq!(of_account.expect("the store answers"), []);
    assert!(change(told, None).await);
    assert_eq!(list().await, []);
}

async fn of_two_nodes_that_see_a_change_one_tells_it(store: Arc<dyn Store>) {
    let nodes = (0..8).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let body = number.to_string();
            notify(&store, "alpha", &[notification("config 1", &body)]).await
        })
    });
    let mut told = 0;
    for node in nodes.collect::<Vec<_>>() {
        told += u32::from(node.await.expect("no panic"));
    }
    assert_eq!(told, 1);
    assert_eq!(claim(&store, 50, [9, 9]).await.len(), 1);
}

async fn each_target_has_one_notification_under_way(store: Arc<dyn Store>) {
    let all = [
        notification("config 1", "a"),
        notification("config 1", "b"),
        notification("config 2", "c"),
        notification("account 7", "d"),
    ];
    assert!(notify(&store, "alpha", &all).await);
    assert_eq!(claim(&store, 101, [9, 9]).await, [], "not due yet");
    let claimed = claim(&store, 50, [9, 9]).await;
    assert_eq!(bodies(&claimed), ["a", "c", "d"]);
    assert_eq!(claimed[2].account, AccountId::new(7));
    assert_eq!((claimed[0].tries, claimed[0].created_at), (1, at(100)));
    assert_eq!(claim(&store, 50, [9, 9]).await, [], "all are under way");

    // Received: the next of the target is due at once.
    let settled = store.settle_notification(&claimed[0], None, at(49));
    settled.await.expect("the store answers");
    let claimed = claim(&store, 49, [9, 9]).await;
    assert_eq!(bodies(&claimed), ["b"]);

    // Failed: the others of the target wait, too.
    let later = store.settle_notification(&claimed[0], Some(at(20)), at(49));
    later.await.expect("the store answers");
    assert!(notify(&store, "beta", &[notification("config 2", "e")]).await);
    assert_eq!(bodies(&claim(&store, 21, [9, 9]).await), ["c", "d"]);
    assert_eq!(bodies(&claim(&store, 20, [9, 9]).await), ["b"]);
}

async fn a_notification_is_due_again_unless_it_is_settled(store: Arc<dyn Store>) {
    assert!(notify(&store, "alpha", &[notification("config 1", "a")]).await);
    let first = claim(&store, 50, [9, 9]).await.remove(0);
    let second = claim(&store, 40, [9, 9]).await.remove(0);
    assert_eq!((first.id, second.tries), (second.id, 2));
    // The first attempt ended too late to count.
    let late = store.settle_notification(&first, None, at(39));
    late.await.expect("the store answers");
    let third = claim(&store, 30, [9, 9]).await.remove(0);
    let received = store.settle_notification(&third, None, at(29));
    received.await.expect("the store answers");
    assert_eq!(claim(&store, 0, [9, 9]).await, []);
}

async fn a_target_with_a_backlog_does_not_use_up_the_claim_of_others(store: Arc<dyn Store>) {
    let mut all: Vec<NewNotification> =
        (0..50).map(|_| notification("account 7", "slow")).collect();
    all.push(notification("account 8", "fine"));
    all.push(notification("config 1", "service"));
    assert!(notify(&store, "alpha", &all).await);
    let claimed = claim(&store, 50, [2, 2]).await;
    assert_eq!(bodies(&claimed), ["slow", "fine", "service"]);
    assert_eq!(claim(&store, 50, [0, 0]).await, []);
}

async fn notifications_for_one_target_are_limited(store: Arc<dyn Store>) {
    let all: Vec<NewNotification> = (0..501).map(|_| notification("config 1", "x")).collect();
    assert!(notify(&store, "alpha", &all).await);
    let mut received = 0;
    while let Some(one) = claim(&store, 50, [9, 9]).await.pop() {
        let settled = store.settle_notification(&one, None, at(50)).await;
        settled.expect("the store answers");
        received += 1;
    }
    assert_eq!(received, 500);
}
