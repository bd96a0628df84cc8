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
    a_note_is_read_back_with_its_time,
    a_note_takes_the_place_of_the_one_before,
    notes_are_listed_by_name_and_node,
    what_a_dead_node_noted_is_not_listed,
    what_a_node_noted_is_forgotten_with_it,
);

const STORED: &str = "SELECT count(*) FROM carrier";
/// How long a node lives that has died already.
const OVER: SignedDuration = SignedDuration::from_secs(-1);

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

/// One with the largest numbers and the strangest text.
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

async fn note(store: &Arc<dyn Store>, node: NodeId, notes: &[CarrierStatus]) {
    let stored = store.note_carriers(node, notes).await;
    stored.expect("the store takes the notes");
}

async fn list(store: &Arc<dyn Store>) -> Vec<NodeCarrierStatus> {
    store.list_carriers().await.expect("answers")
}

/// Who noted what, as short as tables want it.
async fn names(store: &Arc<dyn Store>) -> Vec<(String, NodeId)> {
    let listed = list(store).await.into_iter();
    listed.map(|seen| (seen.note.name, seen.node)).collect()
}

async fn a_note_is_read_back_with_its_time(database: Database) {
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
    let notes = [simple("a"), rare("b"), down];
    note(&store, node, &notes).await;
    let listed = list(&store).await;
    for seen in &listed {
        assert_eq!(seen.node, node);
        assert!(past(0) < seen.at && seen.at < future(0), "{seen:?}");
    }
    let listed: Vec<_> = listed.into_iter().map(|seen| seen.note).collect();
    assert_eq!(listed, notes);
}

async fn a_note_takes_the_place_of_the_one_before(database: Database) {
    let store = database.open().await;
    let (node, other) = (join(&store).await, join(&store).await);
    note(&store, node, &[simple("a"), simple("b")]).await;
    note(&store, other, &[simple("a")]).await;
    let before = list(&store).await[0].at;
    note(&store, node, &[rare("b"), simple("c")]).await;
    let listed = list(&store).await;
    let notes: Vec<_> = listed.iter().map(|seen| seen.note.clone()).collect();
    assert_eq!(notes, [simple("a"), rare("b"), simple("c")]);
    assert_eq!(listed[0].node, other, "another node's stay");
    assert!(listed[1].at >= before, "{listed:?}");
    note(&store, node, &[]).await;
    assert_eq!(names(&store).await, [("a".to_owned(), other)]);
}

async fn notes_are_listed_by_name_and_node(database: Database) {
    let store = database.open().await;
    let (first, second) = (join(&store).await, join(&store).await);
    note(&store, second, &[simple("b"), simple("a"), simple("B")]).await;
    note(&store, first, &[simple("b"), simple("a_2"), simple("a-1")]).await;
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

async fn what_a_dead_node_noted_is_not_listed(database: Database) {
    let store = database.open().await;
    let dead = join_for(&store, OVER).await;
    let node = join(&store).await;
    note(&store, dead, &[simple("a")]).await;
    note(&store, node, &[simple("b")]).await;
    let alive = [("b".to_owned(), node)];
    assert_eq!(names(&store).await, alive);
    store.give_up_dead(node).await.expect("answers");
    assert_eq!(
        renew_heartbeat(&store, dead).await,
        HeartbeatResult::GivenUp
    );
    note(&store, dead, &[simple("a")]).await;
    assert_eq!(names(&store).await, alive, "it was given up");
    assert_eq!(database.numbers(STORED, 1).await, [[Some(2)]]);
    store.give_up_dead(node).await.expect("answers");
    assert_eq!(database.numbers(STORED, 1).await, [[Some(1)]]);
}

async fn what_a_node_noted_is_forgotten_with_it(database: Database) {
    let store = database.open().await;
    let (leaving, node) = (join(&store).await, join(&store).await);
    for noting in [leaving, node] {
        note(&store, noting, &[simple("a"), simple("b")]).await;
    }
    store.leave(leaving).await.expect("answers");
    let left = ["a", "b"].map(|name| (name.to_owned(), node));
    assert_eq!(names(&store).await, left);
    store.leave(node).await.expect("answers");
    assert_eq!(names(&store).await, []);
    assert_eq!(database.numbers(STORED, 1).await, [[Some(0)]]);
}
