//! Sending: nodes, claims, results and receipts.
//!
//! A queued row is free or held by a node. A node holds what it claimed, and what it accepted while it had capacity in
//! memory, as long as it lives, which it shows by its heartbeat. Other nodes release what a dead node held. Every time
//! is the database's own, so the nodes' clocks need not agree.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{CarrierState, StoreError};
use crate::delivery::{Callback, CarrierRef, Claim, QueuedMessage, Receipt, Settlement};
use crate::ids::{AccountId, MessageId, NodeId, PoolId};
use crate::message::Priority;
use crate::message::channel::Channel;
use crate::message::outcome::Outcome;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;
use crate::trace::TraceContext;

/// A message that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub id: MessageId,
    pub channel: Channel,
    /// The recipient's network, if it is known.
    pub network: Option<Network>,
    /// The recipient with its network, if the carrier's receipt named it.
    pub named: Option<(Msisdn, Network)>,
    pub outcome: Outcome,
    /// When it was accepted, or the later time that its sender asked for.
    pub began_at: Timestamp,
    pub ended_at: Timestamp,
    /// Its callback, if the caller wants one and this node holds it. A callback that no node holds waits in the store.
    pub callback: Option<Callback>,
    /// Boxed, because few messages have one.
    pub trace: Option<Box<TraceContext>>,
}

/// A row of the message queue, and the claim under which a node holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedRow {
    pub id: MessageId,
    pub priority: Priority,
    pub claim: Claim,
}

/// The result of one settlement.
#[expect(
    clippy::large_enum_variant,
    reason = "most are Ended, and a box would be an allocation for each message"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It is stored; the message has not ended.
    Stored,
    /// It is stored, and the message has ended: at once, or by a receipt that arrived before the answer.
    Ended(Ended),
    /// This node no longer has the claim. Nothing was changed.
    Stale,
}

/// The result of one receipt.
#[expect(
    clippy::large_enum_variant,
    reason = "most are Ended, and a box would be an allocation for each message"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    Ended(Ended),
    /// The message is known and has not ended: receipts of other parts are missing.
    Noted,
    /// The part was reported before, or its message has ended. Nothing was changed.
    Repeated,
    /// The reference is unknown so far. The receipt is stored until a part has it.
    Kept,
}

/// A part that a carrier took and has not reported on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTransit {
    pub reference: String,
    pub to: Msisdn,
    pub taken_at: Timestamp,
}

/// A message on a simulated handset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbox {
    /// The originator, as the handset shows it.
    pub from: String,
    pub text: String,
    pub at: Timestamp,
}

/// The state of a carrier, as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierStatus {
    pub name: String,
    /// The kind in the configuration.
    pub kind: String,
    pub state: CarrierState,
    /// Messages that wait for it in the node's memory.
    pub waiting: u32,
    /// Parts that it has not answered yet.
    pub under_way: u32,
    /// The largest number of such parts.
    pub window: u32,
    /// Parts handed to it per second, recently.
    pub per_second: u32,
}

/// The state of a carrier, as stored by a living node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCarrierStatus {
    pub node: NodeId,
    /// On the database's clock.
    pub at: Timestamp,
    pub status: CarrierStatus,
}

/// How a node describes itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// The parts of the service that it runs.
    pub roles: Vec<String>,
    /// Whether it sends. Only such a node ever holds anything.
    pub works: bool,
    pub version: String,
    pub host: String,
    pub listen: String,
}

/// The result of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatResult {
    Alive,
    /// Other nodes gave it up and released what it held.
    GivenUp,
    /// A newer program changed the database, and this one must not work with it any more.
    Outdated {
        /// The version of the schema that this program was built for.
        known: u32,
        /// The oldest version that may still work.
        oldest: u32,
    },
}

/// How much to claim from a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolClaim {
    pub pool: PoolId,
    pub limits: [u32; 3],
    /// The account after which each lane's claim starts. More accounts may wait than one claim can serve, so they take
    /// turns.
    pub after: [Option<AccountId>; 3],
}

/// A queue row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// As stored.
    pub id: i64,
    /// What cannot be read.
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claimed {
    /// The claimed messages, the most urgent lane first.
    pub messages: Vec<QueuedMessage>,
    /// Pools and lanes in which more messages may wait.
    pub more: Vec<(PoolId, Priority)>,
    /// Rows that cannot be read. They are not claimed again.
    pub set_aside: Vec<SetAside>,
}

/// Sending messages.
#[async_trait]
pub trait DispatchStore: Send + Sync + 'static {
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Registers this process as a node that is alive for `lifetime` from now, on the database's clock. It has been
    /// running for `up_for`.
    async fn join(
        &self,
        info: &NodeInfo,
        up_for: SignedDuration,
        lifetime: SignedDuration,
    ) -> Result<NodeId, StoreError>;

    /// Renews the node's heartbeat for another `lifetime`, and checks whether its program may still work.
    async fn renew_heartbeat(
        &self,
        node: NodeId,
        lifetime: SignedDuration,
    ) -> Result<HeartbeatResult, StoreError>;

    /// Releases what dead nodes hold, and deletes those nodes. On a database for a single node, every other working
    /// node is dead.
    async fn remove_dead_nodes(&self, node: NodeId) -> Result<u64, StoreError>;

    /// Releases what the node holds, and deletes the node.
    async fn leave(&self, node: NodeId) -> Result<(), StoreError>;

    /// Claims due messages that no node holds, by due time, at most `limits` of each lane; and messages from pools.
    /// Each account gets an equal share of a pool's limit, by due time within the account. Scheduled messages become
    /// queued.
    async fn claim_due(
        &self,
        node: NodeId,
        limits: [u32; 3],
        pools: &[PoolClaim],
    ) -> Result<Claimed, StoreError>;

    /// Lists the messages that a node holds and that have been due for at least `due_for` on the database's clock, by
    /// lane, due time and ID: at most `limit`, after `after`.
    async fn list_held(
        &self,
        node: NodeId,
        due_for: SignedDuration,
        after: Option<ClaimedRow>,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError>;

    /// Releases messages that the node still holds under exactly these claims, so that any node can claim them. Returns
    /// the number.
    async fn release_held(&self, node: NodeId, rows: &[ClaimedRow]) -> Result<u64, StoreError>;

    /// Stores the results of sending in one transaction, with callbacks and refunds of messages that ended. With
    /// `hold`, the node holds these callbacks; otherwise they wait in the store.
    async fn settle_sends(
        &self,
        node: NodeId,
        batch: Arc<Vec<Settlement>>,
        hold: bool,
    ) -> Result<Vec<Settled>, StoreError>;

    /// Stores receipts in one transaction, with callbacks and refunds as in [`Self::settle_sends`].
    async fn settle_receipts(
        &self,
        node: NodeId,
        batch: Arc<Vec<Receipt>>,
        hold: bool,
    ) -> Result<Vec<Matched>, StoreError>;

    /// Compares stored receipts with the parts that wait for one: a node that stopped may have left both, although they
    /// match. Reads at most `limit` of them, the next time those that follow, and settles matches as in
    /// [`Self::settle_receipts`].
    async fn match_stored_receipts(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError>;

    /// Whether a receipt with exactly this reference is stored and no part with it is known.
    async fn has_early_receipt(&self, of: &CarrierRef) -> Result<bool, StoreError>;

    /// Stores that the recipient of a delivered message has seen it, and creates the callback, which no node holds.
    /// `false` if no delivered message has that reference, or it was seen before.
    async fn mark_seen(&self, of: &CarrierRef, at: Timestamp) -> Result<bool, StoreError>;

    /// Ends messages that a carrier took and never reported on, after their expiry: at most `limit`.
    async fn expire_sent(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError>;

    /// Ends messages in pools after their expiry: at most `limit`. No carrier took them.
    async fn expire_pooled(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError>;

    /// Parts that a carrier took and has not reported on, sorted by reference, after `after`.
    async fn list_in_transit(
        &self,
        carrier: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<InTransit>, StoreError>;

    /// Replaces the stored states of a node's carriers. They are deleted with the node.
    async fn replace_carrier_statuses(
        &self,
        node: NodeId,
        statuses: &[CarrierStatus],
    ) -> Result<(), StoreError>;

    /// The messages on a simulated handset of this carrier, the newest first.
    async fn list_inbox(
        &self,
        carrier: &str,
        to: &Msisdn,
        limit: u32,
    ) -> Result<Vec<Inbox>, StoreError>;

    /// Deletes unmatched receipts and reported parts that are older than `age`: at most `limit`, or whole days of
    /// parts. Returns the number.
    async fn prune_receipts(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError>;

    /// Deletes messages that ended more than `age` ago, with everything that belongs to them: at most `limit`. Messages
    /// with a waiting callback stay.
    async fn prune_messages(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError>;
}
