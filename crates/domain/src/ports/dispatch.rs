//! Sending: who works on what, what came of it, and what the networks say afterwards.
//!
//! Rows that wait belong to nobody or to a node. A node holds what it claimed, and what it accepted while it had room
//! in memory, for as long as it lives; it proves that by its heartbeat. What a dead node held is given back by the
//! others. Every time is the database's own: nodes need not agree on the hour.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::{CarrierState, StoreError};
use crate::delivery::{Callback, CarrierRef, Claim, Parcel, Receipt, Settlement};
use crate::ids::{AccountId, MessageId, NodeId, PoolId};
use crate::message::Priority;
use crate::number::msisdn::Msisdn;

/// A message that has come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub id: MessageId,
    /// The report that it gave rise to, when its sender asked for one and this node holds it; one that nobody holds
    /// waits in the store.
    pub callback: Option<Callback>,
}

/// A row of the message queue, and the claim under which a node holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedRow {
    /// Which message.
    pub id: MessageId,
    /// Its lane.
    pub priority: Priority,
    /// When it was due, and the number of the claim.
    pub claim: Claim,
}

/// What became of one settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It is stored; the message is still on its way.
    Stored,
    /// It is stored, and the message has ended: at once, or by a receipt that had come before the answer.
    Ended(Ended),
    /// The claim is not this node's any more: nothing was changed.
    Stale,
}

/// What became of one receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// It ended its message.
    Ended(Ended),
    /// Its message is known and goes on: other parts are still out.
    Noted,
    /// Its part was reported before, or its message has ended already: nothing was changed.
    Repeated,
    /// No part is known by that name yet; it is kept until one is.
    Kept,
}

/// A part that a carrier took and has not reported on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTransit {
    /// The carrier's name for it.
    pub reference: String,
    /// Where it goes.
    pub to: Msisdn,
    /// When the carrier took it.
    pub taken_at: Timestamp,
}

/// A message that reached a simulated handset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbox {
    /// From whom, as the handset shows it.
    pub from: String,
    /// The text.
    pub text: String,
    /// When it arrived.
    pub at: Timestamp,
}

/// How a carrier does, as the node sees it that is connected to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierNote {
    /// Its name.
    pub name: String,
    /// Its kind in configuration.
    pub kind: String,
    /// How it does.
    pub state: CarrierState,
    /// Messages that wait for it in the node's memory.
    pub waiting: u32,
    /// Parts that are under way to it.
    pub under_way: u32,
    /// How many may be.
    pub window: u32,
    /// Parts that were handed to it in a second, lately.
    pub per_second: u32,
}

/// A note of a node that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierSeen {
    /// Which node.
    pub node: NodeId,
    /// When it wrote that, on the database's clock.
    pub at: Timestamp,
    /// What it wrote.
    pub note: CarrierNote,
}

/// What a node says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCard {
    /// The parts of the service that it runs.
    pub roles: Vec<String>,
    /// Whether it sends: only then does it ever hold anything.
    pub works: bool,
    /// The version of its program.
    pub version: String,
    /// The name of its machine.
    pub host: String,
    /// Where it listens.
    pub listen: String,
}

/// What came of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// The node lives on.
    Alive,
    /// The node was given up, and what it held is others' now.
    GivenUp,
    /// A newer program changed the database, so that this one must not work with it any more.
    Outdated {
        /// The version of the schema that this program was built for.
        known: u32,
        /// The oldest one that may still work.
        oldest: u32,
    },
}

/// How much to claim from a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolClaim {
    /// Which pool.
    pub pool: PoolId,
    /// The limit of each lane.
    pub limits: [u32; 3],
    /// The account after which each lane's claim begins. More accounts may wait than one claim can serve, so claims take
    /// turns.
    pub after: [Option<AccountId>; 3],
}

/// A queue row that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The ID of the message, as stored.
    pub id: i64,
    /// What could not be read.
    pub what: String,
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claimed {
    /// Messages that are the node's now, the most urgent lane first.
    pub parcels: Vec<Parcel>,
    /// Pools and lanes in which more messages may wait.
    pub more: Vec<(PoolId, Priority)>,
    /// Rows that could not be read. They are not claimed again.
    pub set_aside: Vec<SetAside>,
}

/// Sending.
#[async_trait]
pub trait DispatchStore: Send + Sync + 'static {
    /// The database's time.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Makes this process known as a node, alive for `lifetime` from now on the database's clock. It has been running
    /// for `up_for`.
    async fn join(
        &self,
        card: &NodeCard,
        up_for: SignedDuration,
        lifetime: SignedDuration,
    ) -> Result<NodeId, StoreError>;

    /// Proves that the node lives, for another `lifetime`, and asks whether its program may still work.
    async fn beat(&self, node: NodeId, lifetime: SignedDuration) -> Result<Beat, StoreError>;

    /// Gives back what dead nodes hold, and forgets them. On a database that only one node can work on at a time, every
    /// one that works but the caller is dead.
    async fn give_up_dead(&self, node: NodeId) -> Result<u64, StoreError>;

    /// Gives back what the node holds, and forgets it.
    async fn leave(&self, node: NodeId) -> Result<(), StoreError>;

    /// Claims messages that are due and that nobody holds, by due time, at most `limits` of each lane; and messages that
    /// wait in pools. From a pool, each account gets an equal share of the limit, by due time within the account.
    /// Scheduled messages become queued.
    async fn claim_due(
        &self,
        node: NodeId,
        limits: [u32; 3],
        pools: &[PoolClaim],
    ) -> Result<Claimed, StoreError>;

    /// Lists the messages that a node holds and that have been due for at least `due_for` on the database's clock, by lane,
    /// due time and ID: at most `limit`, those after `after`.
    async fn list_held(
        &self,
        node: NodeId,
        due_for: SignedDuration,
        after: Option<ClaimedRow>,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError>;

    /// Puts messages back in the queue, where any node can claim them: those that the node still holds under exactly these
    /// claims. Returns how many.
    async fn release_held(&self, node: NodeId, rows: &[ClaimedRow]) -> Result<u64, StoreError>;

    /// Stores what came of tries, in one transaction. What ends gets its report in the same, and its price back where
    /// that is due; with `hold` the node holds that report, else it waits in the store.
    async fn settle_sends(
        &self,
        node: NodeId,
        batch: Arc<Vec<Settlement>>,
        hold: bool,
    ) -> Result<Vec<Settled>, StoreError>;

    /// Stores receipts, in one transaction: final states, with reports and refunds as in [`Self::settle_sends`].
    async fn settle_receipts(
        &self,
        node: NodeId,
        batch: Arc<Vec<Receipt>>,
        hold: bool,
    ) -> Result<Vec<Matched>, StoreError>;

    /// Compares receipts that are kept with the parts that wait for one: a node that stopped may have left both, although
    /// they belong together. Looks at `limit` of them at most, the next time at those that follow, and settles what it
    /// finds as in [`Self::settle_receipts`].
    async fn compare_receipts(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError>;

    /// Notes that the recipient of a delivered message has seen it, and creates the report of that; nobody holds it.
    /// `false`: no delivered message is known by that name, or it was seen before.
    async fn mark_seen(&self, of: &CarrierRef, at: Timestamp) -> Result<bool, StoreError>;

    /// Ends messages that a carrier took and never reported on, once their time is over: at most `limit`.
    async fn expire_sent(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError>;

    /// Ends messages that wait in pools, once their time is over: at most `limit`. No carrier took them.
    async fn expire_pooled(
        &self,
        node: NodeId,
        limit: u32,
        hold: bool,
    ) -> Result<Vec<Ended>, StoreError>;

    /// Parts that a carrier took and has not reported on, in the order of their names, after `after`.
    async fn list_in_transit(
        &self,
        carrier: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<InTransit>, StoreError>;

    /// Notes how a node's carriers do, in the place of what it noted before. Forgotten with the node.
    async fn note_carriers(&self, node: NodeId, notes: &[CarrierNote]) -> Result<(), StoreError>;

    /// What the nodes that live noted last, by name and node.
    async fn list_carriers(&self) -> Result<Vec<CarrierSeen>, StoreError>;

    /// What a simulated handset received by this carrier, the newest first.
    async fn list_inbox(
        &self,
        carrier: &str,
        to: &Msisdn,
        limit: u32,
    ) -> Result<Vec<Inbox>, StoreError>;

    /// Forgets receipts that matched nothing and parts that were reported on, when they are older than `age`: at most
    /// `limit`, or whole days of parts. Says how many.
    async fn prune_receipts(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError>;

    /// Forgets messages that ended longer than `age` ago, with all that belongs to them: at most `limit`. Those whose
    /// report still waits stay.
    async fn prune_messages(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError>;
}
