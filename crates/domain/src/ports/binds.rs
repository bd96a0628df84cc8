//! Binds, which are shared among the nodes, and pools, in which messages wait for a node with a bind.
//!
//! Each bind of a carrier is free or belongs to a living node. A node without a bind sends nothing by that carrier: it
//! puts such messages into the carrier's pool, from which any node with a link claims them.
//!
//! A route has a pool, too. Messages that do not fit in memory wait there until a carrier of the route works and has
//! capacity.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::{MessageId, NodeId, PoolId};

/// A carrier that a node wants to send by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindDemand {
    pub carrier: String,
    /// The number of binds over all nodes; 0 if the carrier has none.
    pub total: u16,
}

/// A node's share of the binds of a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindShare {
    /// How many binds the node has and keeps.
    pub held: u16,
    /// How many more binds the node has, but has to give back.
    pub surplus: u16,
    /// How many it should have: its fair share among the nodes that want the carrier.
    pub share: u16,
    /// The pool in which messages wait for a node with a link.
    pub pool: PoolId,
    /// Whether another node reported that the carrier is up.
    pub is_up_elsewhere: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePool {
    pub id: PoolId,
    /// The names of the carriers, in order of preference.
    pub carriers: Vec<String>,
}

/// The position of a row within a pool: its lane, due time and message.
pub type PoolCursor = (i16, Timestamp, MessageId);

/// A node's shares of all carriers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// One for each demand, in the same order.
    pub shares: Vec<BindShare>,
    /// Carriers that the node still has binds of, but no longer wants.
    pub left: Vec<String>,
    /// Whether no other living node has carriers.
    pub is_alone: bool,
}

/// The binds of carriers, and the messages that wait for them.
#[async_trait]
pub trait BindStore: Send + Sync + 'static {
    /// Replaces a node's demands, and takes free binds up to its share. The node keeps all binds that it has. `None` if
    /// the node was given up and has nothing.
    async fn share_binds(
        &self,
        node: NodeId,
        demands: &[BindDemand],
    ) -> Result<Option<Shared>, StoreError>;

    /// Gives back a node's binds of a carrier, except for `keep` of them.
    async fn release_binds(&self, node: NodeId, carrier: &str, keep: u16)
    -> Result<(), StoreError>;

    /// Creates missing pools of these routes, and lists the pools of all routes.
    async fn list_route_pools(&self, wanted: &[Vec<String>]) -> Result<Vec<RoutePool>, StoreError>;

    /// Releases messages, so that any node may claim them, at most `limit` of each pool: from the pool of a carrier
    /// that no living node reported as up, or if this node is alone; from the pool of a route with a carrier that
    /// neither this node nor a living one knows. `known` are the carriers of this node. Returns the number of messages.
    async fn release_pools(
        &self,
        node: NodeId,
        known: &[String],
        limit: u32,
    ) -> Result<u64, StoreError>;

    /// Releases the messages of one pool, so that any node may claim them: at most `limit` of those after `after`.
    /// Returns the position of the last one; `None` if there were none.
    async fn release_pool(
        &self,
        pool: PoolId,
        after: Option<PoolCursor>,
        limit: u32,
    ) -> Result<Option<PoolCursor>, StoreError>;
}
