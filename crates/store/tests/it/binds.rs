//! Binds are shared between nodes: each belongs to one node while that is alive.

use std::sync::Arc;

use domain::NodeId;
use domain::ports::{
    BindDemand, BindShare, CarrierState, CarrierStatus, Health, Shared, WorkStore,
};
use jiff::SignedDuration;

use super::fixture::Database;
use super::steps::{join, join_for};

on_every_store!(
    a_node_alone_has_every_bind,
    nodes_share_binds_and_take_only_free_ones,
    binds_of_a_removed_node_are_free,
    a_removed_node_gets_no_binds,
    fewer_binds_leave_a_surplus_and_more_are_taken,
    binds_of_an_unwanted_carrier_are_listed_until_they_are_released,
    every_carrier_has_its_own_pool,
    carrier_states_of_other_nodes_are_known;
    on_both_databases:
    concurrent_nodes_never_have_too_many_binds,
);

/// The lifetime of a node that is dead already.
const DEAD: SignedDuration = SignedDuration::from_secs(-1);

pub(super) fn demand(carrier: &str, total: u16) -> BindDemand {
    BindDemand {
        carrier: carrier.to_owned(),
        total,
    }
}

pub(super) async fn share<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    demands: &[BindDemand],
) -> Shared {
    let shared = store.share_binds(node, demands).await.expect("answers");
    shared.expect("the node is alive")
}

/// The binds of a node with one carrier: held, surplus, share.
async fn binds_of<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    node: NodeId,
    carrier: &str,
    total: u16,
) -> (u16, u16, u16) {
    let shared = share(store, node, &[demand(carrier, total)]).await;
    let BindShare {
        held,
        surplus,
        share,
        ..
    } = shared.shares[0];
    (held, surplus, share)
}

async fn release<S: WorkStore + ?Sized>(store: &Arc<S>, node: NodeId, carrier: &str, keep: u16) {
    let released = store.release_binds(node, carrier, keep).await;
    released.expect("the store answers");
}

async fn a_node_alone_has_every_bind(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    let demands = [demand("b", 3), demand("a", 1), demand("c", 0)];
    let shared = share(&store, node, &demands).await;
    let held: Vec<_> = shared.shares.iter().map(|share| share.held).collect();
    assert_eq!(held, [3, 1, 0], "in the order of the demands");
    assert!(shared.is_alone);
    assert_eq!(shared.left, [""; 0]);
    assert_eq!(
        share(&store, node, &demands).await,
        shared,
        "repeating it changes nothing"
    );
}

async fn nodes_share_binds_and_take_only_free_ones(store: Arc<dyn WorkStore>) {
    let (first, second) = (join(&store).await, join(&store).await);
    assert_eq!(binds_of(&store, first, "a", 3).await, (3, 0, 3));
    assert_eq!(binds_of(&store, second, "a", 3).await, (0, 0, 1));
    assert_eq!(
        binds_of(&store, first, "a", 3).await,
        (3, 0, 2),
        "no bind is taken away"
    );
    release(&store, first, "a", 2).await;
    assert_eq!(binds_of(&store, first, "a", 3).await, (2, 0, 2));
    assert_eq!(binds_of(&store, second, "a", 3).await, (1, 0, 1));
    release(&store, second, "a", 5).await;
    assert_eq!(binds_of(&store, second, "a", 3).await, (1, 0, 1));
}

async fn binds_of_a_removed_node_are_free(store: Arc<dyn WorkStore>) {
    let leaving = join(&store).await;
    assert_eq!(binds_of(&store, leaving, "a", 2).await, (2, 0, 2));
    let dead = join_for(&store, DEAD).await;
    store.leave(leaving).await.expect("answers");
    assert_eq!(binds_of(&store, dead, "a", 2).await, (2, 0, 2));
    let node = join(&store).await;
    assert_eq!(
        binds_of(&store, node, "a", 2).await,
        (0, 0, 2),
        "they still belong to the dead node"
    );
    store.remove_dead_nodes(node).await.expect("answers");
    assert_eq!(binds_of(&store, node, "a", 2).await, (2, 0, 2));
}

async fn a_removed_node_gets_no_binds(store: Arc<dyn WorkStore>) {
    let dead = join_for(&store, DEAD).await;
    let node = join(&store).await;
    store.remove_dead_nodes(node).await.expect("answers");
    let shared = store.share_binds(dead, &[demand("a", 2)]).await;
    assert_eq!(shared.expect("answers"), None);
    assert_eq!(binds_of(&store, node, "a", 2).await, (2, 0, 2));
}

async fn fewer_binds_leave_a_surplus_and_more_are_taken(store: Arc<dyn WorkStore>) {
    let node = join(&store).await;
    assert_eq!(binds_of(&store, node, "a", 4).await, (4, 0, 4));
    assert_eq!(binds_of(&store, node, "a", 1).await, (1, 3, 1));
    release(&store, node, "a", 1).await;
    assert_eq!(binds_of(&store, node, "a", 1).await, (1, 0, 1));
    assert_eq!(binds_of(&store, node, "a", 5).await, (5, 0, 5));
}

async fn binds_of_an_unwanted_carrier_are_listed_until_they_are_released(
    store: Arc<dyn WorkStore>,
) {
    let node = join(&store).await;
    share(&store, node, &[demand("a", 2), demand("b", 1)]).await;
    let shared = share(&store, node, &[demand("b", 1)]).await;
    assert_eq!(shared.left, ["a"]);
    release(&store, node, "a", 1).await;
    assert_eq!(share(&store, node, &[demand("b", 1)]).await.left, ["a"]);
    release(&store, node, "a", 0).await;
    assert_eq!(share(&store, node, &[demand("b", 1)]).await.left, [""; 0]);
}

async fn every_carrier_has_its_own_pool(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let shared = share(&store, node, &[demand("a", 1), demand("b", 0)]).await;
    assert_ne!(shared.shares[0].pool, shared.shares[1].pool);
    let again = share(&store, other, &[demand("b", 0), demand("a", 1)]).await;
    assert_eq!(again.shares[1].pool, shared.shares[0].pool);
    assert_eq!(again.shares[0].pool, shared.shares[1].pool);
}

pub(super) fn carrier_status(name: &str, health: Health) -> CarrierStatus {
    CarrierStatus {
        name: name.to_owned(),
        kind: "smpp".to_owned(),
        state: CarrierState {
            health,
            links_up: 1,
            links: 1,
            links_total: 2,
            note: None,
        },
        waiting: 0,
        under_way: 0,
        window: 1,
        per_second: 0,
    }
}

async fn carrier_states_of_other_nodes_are_known(store: Arc<dyn WorkStore>) {
    let (node, other) = (join(&store).await, join(&store).await);
    let dead = join_for(&store, DEAD).await;
    let demands = [demand("a", 1), demand("b", 1)];
    for (who, health, expected) in [
        (node, Health::Up, (false, true)),
        (dead, Health::Up, (false, true)),
        (other, Health::Down, (false, false)),
        (other, Health::Strained, (true, false)),
        (other, Health::Up, (true, false)),
    ] {
        let statuses = [carrier_status("a", health)];
        store
            .replace_carrier_statuses(who, &statuses)
            .await
            .expect("stored");
        let shared = share(&store, node, &demands).await;
        let known = (shared.shares[0].is_up_elsewhere, shared.is_alone);
        assert_eq!(known, expected, "{who} {health:?}");
        assert!(!shared.shares[1].is_up_elsewhere);
    }
}

async fn concurrent_nodes_never_have_too_many_binds(database: Database) {
    let stores = [database.open().await, database.open().await];
    let mut nodes = Vec::new();
    for _ in 0..6 {
        nodes.push(join(&stores[0]).await);
    }
    let work = nodes.iter().map(|&node| {
        let store = stores[usize::from(node.get() % 2 == 0)].clone();
        tokio::spawn(async move {
            for _ in 0..5 {
                let (held, surplus, share) = binds_of(&store, node, "a", 8).await;
                assert!(held + surplus <= 8, "{held} {surplus}");
                release(&store, node, "a", share).await;
            }
        })
    });
    for work in work.collect::<Vec<_>>() {
        work.await.expect("no panic");
    }
    // A node that finished before the others started may still have more than its share.
    for &node in &nodes {
        let (_, _, share) = binds_of(&stores[0], node, "a", 8).await;
        release(&stores[0], node, "a", share).await;
    }
    let mut all = 0;
    for &node in &nodes {
        let (held, _, share) = binds_of(&stores[0], node, "a", 8).await;
        assert_eq!(held, share, "{node}");
        all += held;
    }
    assert_eq!(all, 8);
}
