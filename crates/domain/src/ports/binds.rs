//! Binds, which are shared out among the nodes, and pools, in which messages wait for a node that has one.
//!
//! Each bind of a carrier belongs to nobody or to a node, for as long as the node lives. A node that has none sends
//! nothing by that carrier: what it has for it goes to the carrier's pool, from which any node with a link takes it.
//!
//! A route has a pool, too: messages wait there that have no room in memory, until a carrier of the route works and has
//! room.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::{MessageId, NodeId, PoolId};

/// A carrier that a node would send by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindWish {
    /// Its name.
    pub carrier: String,
    /// How many binds there are, over all nodes; 0 where there is nothing to bind.
    pub total: u16,
}

/// What a node has of a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindShare {
    /// How many binds are the node's.
    pub held: u16,
    /// How many more are still the node's although there should be fewer: to be given up.
    pub surplus: u16,
    /// How many should be: no more than its share of all who wish.
    pub share: u16,
    /// Where messages wait for a node that has a link.
    pub pool: PoolId,
    /// Whether another node noted that the carrier takes messages there.
    pub is_up_elsewhere: bool,
}

/// The pool of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePool {
    /// Its ID.
    pub id: PoolId,
    /// The names of the carriers, in the order in which they are tried.
    pub carriers: Vec<String>,
}

/// The position of a row within a pool: its lane, when it was due, and its message.
pub type PoolCursor = (i16, Timestamp, MessageId);

/// What a node has of all carriers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// One for each wish, in their order.
    pub shares: Vec<BindShare>,
    /// Carriers of which binds are still the node's although it does not wish for them.
    pub left: Vec<String>,
    /// Whether no other node that lives has carriers.
    pub is_alone: bool,
}

/// The binds of carriers, and what waits for them.
#[async_trait]
pub trait BindStore: Send + Sync + 'static {
    /// Says what a node wishes for, in the place of what it wished before, and takes free binds up to its share.
    /// Nothing that it has is taken from it. `None`: the node was given up, and has nothing.
    async fn share_binds(
        &self,
        node: NodeId,
        wishes: &[BindWish],
    ) -> Result<Option<Shared>, StoreError>;

    /// Gives back what a node has of a carrier, but for so many binds.
    async fn give_up_binds(&self, node: NodeId, carrier: &str, keep: u16)
    -> Result<(), StoreError>;

    /// Creates the pools of these routes where they do not exist, and lists the pools of all routes.
    async fn list_route_pools(&self, wanted: &[Vec<String>]) -> Result<Vec<RoutePool>, StoreError>;

    /// Releases messages to nobody, at most `limit` of each pool: from the pool of a carrier where no living node noted
    /// that the carrier takes messages, or where this node is alone; from the pool of a route that names a carrier which
    /// neither this node nor a living one knows. `known` are the carriers of this node. Returns how many.
    async fn release_pools(
        &self,
        node: NodeId,
        known: &[String],
        limit: u32,
    ) -> Result<u64, StoreError>;

    /// Releases the messages of one pool to nobody, at most `limit` of those after `after`. Returns the position of the
    /// last one; `None` when there were none.
    async fn release_pool(
        &self,
        pool: PoolId,
        after: Option<PoolCursor>,
        limit: u32,
    ) -> Result<Option<PoolCursor>, StoreError>;
}
