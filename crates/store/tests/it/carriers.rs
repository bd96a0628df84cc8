//! The state of carriers, as reported by nodes: replaced as a whole, deleted with the node.

use std::sync::Arc;

use domain::NodeId;
use domain::ports::{
    CarrierState, CarrierStatus, Health, HeartbeatResult, NodeCarrierStatus, Store,
};
use jiff::SignedDuration;

use super::fixture::Database;
use super::steps::{future, join, join_for, past, renew_heartbeat};

on_both_databases!(
    a_status_is_read_back_with_its_time,
    a_status_replaces_the_earlier_one,
    statuses_are_listed_by_name_and_node,
    statuses_of_a_dead_node_are_not_listed,
    statuses_are_deleted_with_their_node,
);

const STORED: &str = "SELECT count(*) FROM carrier";
/// The lifetime of a node that is dead already.
const DEAD: SignedDuration = SignedDuration::from_secs(-1);

fn simple(name: &str) -> CarrierStatus {
    CarrierStatus {
        name: name.to_owned(),
        kind: "simulator".to_owned(),
        state: CarrierState {
            health: Health::Up,
            links_up: 0,
            links: 0,
            links_total: 0,
            note: None,
        },
        waiting: 0,
        under_way: 0,
        window: 0,
        per_second: 0,
    }
}

/// A status with the largest numbers and an unusual text.
fn rare(name: &str) -> CarrierStatus {
    CarrierStatus {
        kind: "smpp".to_owned(),
        state: CarrierState {
            health: Health::Strained,
            links_up: u16::MAX - 1,
            links: u16::MAX,
            links_total: u16::MAX - 2,
            note: Some("it said \"ä\0\"".to_owned()),
        },
        waiting: u32::MAX,
        under_way: u32::MAX - 1,
        window: u32::MAX - 2,
        per_second: u32::MAX - 3,
        ..simple(name)
    }
}

async fn store_statuses(store: &Arc<dyn Store>, node: NodeId, statuses: &[CarrierStatus]) {
    let stored = store.replace_carrier_statuses(node, statuses).await;
    stored.expect("the store answers");
}

async fn list(store: &Arc<dyn Store>) -> Vec<NodeCarrierStatus> {
    store.list_carrier_statuses().await.expect("answers")
}

/// The carrier and the node of each status.
async fn names(store: &Arc<dyn Store>) -> Vec<(String, NodeId)> {
    let listed = list(store).await.into_iter();
    listed.map(|row| (row.status.name, row.node)).collect()
}

async fn a_status_is_read_back_with_its_time(database: Database) {
    let store = database.open().await;
    let node = join(&store).await;
    assert_eq!(list(&store).await, []);
    let down = CarrierStatus {
        state: CarrierState {
            health: Health::Down,
            ..rare("c").state
        },
        ..rare("c")
    };
    let statuses = [simple("a"), rare("b"), down];
    store_statuses(&store, node, &statuses).await;
    let listed = list(&store).await;
    for row in &listed {
        assert_eq!(row.node, node);
        assert!(past(0) < row.at && row.at < future(0), "{row:?}");
    }
    let listed: Vec<_> = listed.into_iter().map(|row| row.status).collect();
    assert_eq!(listed, statuses);
}

async fn a_status_replaces_the_earlier_one(database: Database) {
    let store = database.open().await;
    let (node, other) = (join(&store).await, join(&store).await);
    store_statuses(&store, node, &[simple("a"), simple("b")]).await;
    store_statuses(&store, other, &[simple("a")]).await;
    let before = list(&store).await[0].at;
    store_statuses(&store, node, &[rare("b"), simple("c")]).await;
    let listed = list(&store).await;
    let statuses: Vec<_> = listed.iter().map(|row| row.status.clone()).collect();
    assert_eq!(statuses, [simple("a"), rare("b"), simple("c")]);
    assert_eq!(listed[0].node, other, "those of another node are unchanged");
    assert!(listed[1].at >= before, "{listed:?}");
    store_statuses(&store, node, &[]).await;
    assert_eq!(names(&store).await, [("a".to_owned(), other)]);
}

async fn statuses_are_listed_by_name_and_node(database: Database) {
    let store = database.open().await;
    let (first, second) = (join(&store).await, join(&store).await);
    store_statuses(&store, second, &[simple("b"), simple("a"), simple("B")]).await;
    store_statuses(&store, first, &[simple("b"), simple("a_2"), simple("a-1")]).await;
    let expected = [
        ("B", second),
        ("a", second),
        ("a-1", first),
        ("a_2", first),
        ("b", first),
        ("b", second),
    ];
    let expected = expected.map(|(name, node)| (name.to_owned(), node));
    assert_eq!(names(&store).await, expected);
}

async fn statuses_of_a_dead_node_are_not_listed(database: Database) {
    let store = database.open().await;
    let dead = join_for(&store, DEAD).await;
    let node = join(&store).await;
    store_statuses(&store, dead, &[simple("a")]).await;
    store_statuses(&store, node, &[simple("b")]).await;
    let alive = [("b".to_owned(), node)];
    assert_eq!(names(&store).await, alive);
    store.remove_dead_nodes(node).await.expect("answers");
    assert_eq!(
        renew_heartbeat(&store, dead).await,
        HeartbeatResult::GivenUp
    );
    store_statuses(&store, dead, &[simple("a")]).await;
    assert_eq!(names(&store).await, alive, "the node was given up");
    assert_eq!(database.numbers(STORED, 1).await, [[Some(2)]]);
    store.remove_dead_nodes(node).await.expect("answers");
    assert_eq!(database.numbers(STORED, 1).await, [[Some(1)]]);
}

async fn statuses_are_deleted_with_their_node(database: Database) {
    let store = database.open().await;
    let (leaving, node) = (join(&store).await, join(&store).await);
    for who in [leaving, node] {
        store_statuses(&store, who, &[simple("a"), simple("b")]).await;
    }
    store.leave(leaving).await.expect("answers");
    let left = ["a", "b"].map(|name| (name.to_owned(), node));
    assert_eq!(names(&store).await, left);
    store.leave(node).await.expect("answers");
    assert_eq!(names(&store).await, []);
    assert_eq!(database.numbers(STORED, 1).await, [[Some(0)]]);
}
