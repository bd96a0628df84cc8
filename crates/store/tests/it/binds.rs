//! Binds are shared between nodes: each belongs to one node while that is alive.

use std::sync::Arc;

use domain::NodeId;
use domain::ports::{BindDemand, BindShare, CarrierState, CarrierStatus, Health, Shared, Store};
use jiff::SignedDuration;

use super::fixture::Database;
use super::steps::{join, join_for};

on_both_databases!(
    a_node_alone_has_every_bind,
    nodes_share_what_there_is_and_take_only_what_is_free,
    what_a_node_had_is_free_once_it_is_gone,
    a_node_that_was_given_up_takes_nothing,
    fewer_binds_leave_a_surplus_and_more_are_taken,
    a_carrier_that_is_wished_for_no_more_is_left_until_it_is_given_up,
    every_carrier_has_a_pool_of_its_own,
    what_other_nodes_noted_is_known,
    nodes_that_share_at_once_never_have_more_than_there_is,
);

/// How long a node lives that has died already.
const OVER: SignedDuration = SignedDuration::from_secs(-1);

pub(super) fn demand(carrier: &str, total: u16) -> BindDemand {
    BindDemand {
        carrier: carrier.to_owned(),
        total,
    }
}

pub(super) async fn share(store: &Arc<dyn Store>, node: NodeId, demands: &[BindDemand]) -> Shared {
    let shared = store.share_binds(node, demands).await.expect("answers");
    shared.expect("the node lives")
}

/// What a node has of one carrier: held, surplus, share.
async fn has(store: &Arc<dyn Store>, node: NodeId, carrier: &str, total: u16) -> (u16, u16, u16) {
    let shared = share(store, node, &[demand(carrier, total)]).await;
    let BindShare {
        held,
        surplus,
        share,
        ..
    } = shared.shares[0];
    (held, surplus, share)
}

async fn give_up(store: &Arc<dyn Store>, node: NodeId, carrier: &str, keep: u16) {
    let given_up = store.give_up_binds(node, carrier, keep).await;
    given_up.expect("the store takes them back");
}

async fn a_node_alone_has_every_bind(database: Database) {
    let store = database.open().await;
    let node = join(&store).await;
    let demands = [demand("b", 3), demand("a", 1), demand("c", 0)];
    let shared = share(&store, node, &demands).await;
    let held: Vec<_> = shared.shares.iter().map(|share| share.held).collect();
    assert_eq!(held, [3, 1, 0], "in the order of the wishes");
    assert!(shared.is_alone);
    assert_eq!(shared.left, [""; 0]);
    assert_eq!(
        share(&store, node, &demands).await,
        shared,
        "and it stays so"
    );
}

async fn nodes_share_what_there_is_and_take_only_what_is_free(database: Database) {
    let store = database.open().await;
    let (first, second) = (join(&store).await, join(&store).await);
    assert_eq!(has(&store, first, "a", 3).await, (3, 0, 3));
    assert_eq!(has(&store, second, "a", 3).await, (0, 0, 1));
    assert_eq!(
        has(&store, first, "a", 3).await,
        (3, 0, 2),
        "nothing is taken"
    );
    give_up(&store, first, "a", 2).await;
    assert_eq!(has(&store, first, "a", 3).await, (2, 0, 2));
    assert_eq!(has(&store, second, "a", 3).await, (1, 0, 1));
    give_up(&store, second, "a", 5).await;
    assert_eq!(has(&store, second, "a", 3).await, (1, 0, 1));
}

async fn what_a_node_had_is_free_once_it_is_gone(database: Database) {
    let store = database.open().await;
    let leaving = join(&store).await;
    assert_eq!(has(&store, leaving, "a", 2).await, (2, 0, 2));
    let dead = join_for(&store, OVER).await;
    store.leave(leaving).await.expect("answers");
    assert_eq!(has(&store, dead, "a", 2).await, (2, 0, 2));
    let node = join(&store).await;
    assert_eq!(
        has(&store, node, "a", 2).await,
        (0, 0, 2),
        "still the dead one's"
    );
    store.give_up_dead(node).await.expect("answers");
    assert_eq!(has(&store, node, "a", 2).await, (2, 0, 2));
}

async fn a_node_that_was_given_up_takes_nothing(database: Database) {
    let store = database.open().await;
    let dead = join_for(&store, OVER).await;
    let node = join(&store).await;
    store.give_up_dead(node).await.expect("answers");
    let shared = store.share_binds(dead, &[demand("a", 2)]).await;
    assert_eq!(shared.expect("answers"), None);
    assert_eq!(has(&store, node, "a", 2).await, (2, 0, 2));
}

async fn fewer_binds_leave_a_surplus_and_more_are_taken(database: Database) {
    let store = database.open().await;
    let node = join(&store).await;
    assert_eq!(has(&store, node, "a", 4).await, (4, 0, 4));
    assert_eq!(has(&store, node, "a", 1).await, (1, 3, 1));
    give_up(&store, node, "a", 1).await;
    assert_eq!(has(&store, node, "a", 1).await, (1, 0, 1));
    assert_eq!(has(&store, node, "a", 5).await, (5, 0, 5));
}

async fn a_carrier_that_is_wished_for_no_more_is_left_until_it_is_given_up(database: Database) {
    let store = database.open().await;
    let node = join(&store).await;
    share(&store, node, &[demand("a", 2), demand("b", 1)]).await;
    let shared = share(&store, node, &[demand("b", 1)]).await;
    assert_eq!(shared.left, ["a"]);
    give_up(&store, node, "a", 1).await;
    assert_eq!(share(&store, node, &[demand("b", 1)]).await.left, ["a"]);
    give_up(&store, node, "a", 0).await;
    assert_eq!(share(&store, node, &[demand("b", 1)]).await.left, [""; 0]);
}

async fn every_carrier_has_a_pool_of_its_own(database: Database) {
    let store = database.open().await;
    let (node, other) = (join(&store).await, join(&store).await);
    let shared = share(&store, node, &[demand("a", 1), demand("b", 0)]).await;
    assert_ne!(shared.shares[0].pool, shared.shares[1].pool);
    let again = share(&store, other, &[demand("b", 0), demand("a", 1)]).await;
    assert_eq!(again.shares[1].pool, shared.shares[0].pool);
    assert_eq!(again.shares[0].pool, shared.shares[1].pool);
}

pub(super) fn noted(name: &str, health: Health) -> CarrierStatus {
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

async fn what_other_nodes_noted_is_known(database: Database) {
    let store = database.open().await;
    let (node, other) = (join(&store).await, join(&store).await);
    let dead = join_for(&store, OVER).await;
    let demands = [demand("a", 1), demand("b", 1)];
    for (who, health, expected) in [
        (node, Health::Up, (false, true)),
        (dead, Health::Up, (false, true)),
        (other, Health::Down, (false, false)),
        (other, Health::Strained, (true, false)),
        (other, Health::Up, (true, false)),
    ] {
        let notes = [noted("a", health)];
        store.note_carriers(who, &notes).await.expect("noted");
        let shared = share(&store, node, &demands).await;
        let known = (shared.shares[0].is_up_elsewhere, shared.is_alone);
        assert_eq!(known, expected, "{who} {health:?}");
        assert!(!shared.shares[1].is_up_elsewhere);
    }
}

async fn nodes_that_share_at_once_never_have_more_than_there_is(database: Database) {
    let stores = [database.open().await, database.open().await];
    let mut nodes = Vec::new();
    for _ in 0..6 {
        nodes.push(join(&stores[0]).await);
    }
    let work = nodes.iter().map(|&node| {
        let store = stores[usize::from(node.get() % 2 == 0)].clone();
        tokio::spawn(async move {
            for _ in 0..5 {
                let (held, surplus, share) = has(&store, node, "a", 8).await;
                assert!(held + surplus <= 8, "{held} {surplus}");
                give_up(&store, node, "a", share).await;
            }
        })
    });
    for work in work.collect::<Vec<_>>() {
        work.await.expect("no panic");
    }
    // Whoever was done before the others wished may still have more than its share.
    for &node in &nodes {
        let (_, _, share) = has(&stores[0], node, "a", 8).await;
        give_up(&stores[0], node, "a", share).await;
    }
    let mut all = 0;
    for &node in &nodes {
        let (held, _, share) = has(&stores[0], node, "a", 8).await;
        assert_eq!(held, share, "{node}");
        all += held;
    }
    assert_eq!(all, 8);
}
