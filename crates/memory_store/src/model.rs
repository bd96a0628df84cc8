//! What the store in memory has stored, and accepting, nodes and claims.

use std::collections::{BTreeMap, BTreeSet};

use domain::delivery::receipt_match::NumberTail;
use domain::delivery::{CarrierRef, Claim, QueuedMessage, Receipt};
use domain::message::outcome::Outcome;
use domain::message::{
    AcceptedMessages, Holder, IdempotencyClaim, MessageRecord, SendTime, Submission,
};
use domain::ports::{Accepted, ClaimedRow, StoredAnswer};
use domain::{
    AccountId, CallbackUrl, MessageId, MessageState, Network, NodeId, Priority, ReceiverId,
    Timestamp, TraceContext,
};

/// The owner of rows that no node holds.
pub(crate) const NOBODY: u64 = 0;

#[derive(Debug, Clone)]
pub struct Row {
    pub queued: QueuedMessage,
    pub network: Option<Network>,
    pub dlr_url: Option<CallbackUrl>,
    pub price: i64,
    pub refunded: bool,
    /// When it was accepted, or the later time that its sender asked for.
    pub due_at: Timestamp,
    /// Whether it waits for its send time.
    pub(crate) is_scheduled: bool,
    /// How it ended, and when.
    pub ended: Option<(Outcome, Timestamp)>,
    /// How often it ended. More than once is an error: a final state must not change.
    pub ends: u32,
    /// How often it was released because its node was considered dead.
    pub given_up: u32,
    pub(crate) parts_left: Option<usize>,
}

/// The queue row of a message or a report.
#[derive(Debug, Clone, Copy)]
pub struct QueueEntry {
    pub owner: Owner,
    pub due_at: Timestamp,
    pub attempt: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Node(u64),
    Carrier,
    Pool(u64),
    /// A receiver queue.
    Receiver(ReceiverId),
}

/// What the messages of a pool wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PoolKind {
    Carrier(String),
    Route(Vec<String>),
}

/// A part that a carrier took.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) of: CarrierRef,
    pub(crate) to: NumberTail,
    pub(crate) message: u64,
    /// How many parts the message has.
    pub(crate) parts: usize,
    pub(crate) is_reported: bool,
}

#[derive(Debug, Clone)]
pub struct Report {
    pub message: u64,
    pub payload: String,
    pub url: CallbackUrl,
    pub account: AccountId,
    pub created_at: Timestamp,
    pub tries: u32,
    pub is_done: bool,
    pub trace: Option<TraceContext>,
}

#[derive(Debug, Default)]
pub struct Model {
    next_id: u64,
    next_node: u64,
    pub(crate) next_report: u64,
    pub(crate) nodes: BTreeMap<u64, Timestamp>,
    pub(crate) pools: BTreeMap<u64, PoolKind>,
    /// The node that has each bind of each carrier.
    pub(crate) binds: BTreeMap<(String, u16), u64>,
    /// Carriers and the nodes that want binds of them.
    pub(crate) demands: BTreeSet<(String, u64)>,
    /// Whether a carrier is up, as each node reported.
    pub(crate) statuses: BTreeMap<(u64, String), bool>,
    pub messages: BTreeMap<u64, Row>,
    pub queue: BTreeMap<u64, QueueEntry>,
    /// In the order in which they were stored.
    pub(crate) parts: Vec<Part>,
    /// Receipts that arrived before their part was stored.
    pub(crate) early_receipts: Vec<Receipt>,
    pub reports: BTreeMap<u64, Report>,
    pub report_queue: BTreeMap<u64, QueueEntry>,
    pub keys: BTreeMap<(AccountId, [u8; 32]), (IdempotencyClaim, AcceptedMessages)>,
    /// The sum over all accounts.
    pub balance: i64,
    pub ledger: Vec<i64>,
}

impl Model {
    pub(crate) fn reserve_ids(&mut self, count: u64) -> MessageId {
        let first = self.next_id + 1;
        self.next_id += count;
        MessageId::new(first).expect("small")
    }

    /// `None` if an ID is taken already; then nothing is stored.
    pub(crate) fn accept(&mut self, batch: &[Submission]) -> Option<Vec<Accepted>> {
        let fresh = batch.iter().filter(|one| self.find_claim(one).is_none());
        let mut ids = fresh.flat_map(|one| &one.recipients).map(|one| one.id);
        if ids.any(|id| self.messages.contains_key(&id.get())) {
            return None;
        }
        Some(batch.iter().map(|one| self.accept_one(one)).collect())
    }

    /// Forgets that the newest IDs were reserved, like a standby that is promoted without the newest writes.
    pub fn forget_ids(&mut self, count: u64) {
        self.next_id = self.next_id.saturating_sub(count);
    }

    fn accept_one(&mut self, submission: &Submission) -> Accepted {
        if let Some(claim) = submission.idempotency {
            if let Some((earlier, receipt)) = self.find_claim(submission) {
                let is_same = earlier.body == claim.body;
                return [Accepted::KeyConflict, Accepted::Replayed(*receipt)][usize::from(is_same)];
            }
            let stored = (claim, submission.receipt());
            self.keys.insert((submission.account, claim.key), stored);
        }
        self.add_to_ledger(-submission.cost().micros());
        for recipient in &submission.recipients {
            let (owner, attempt) = match submission.holder {
                Holder::Nobody => (Owner::Node(NOBODY), 0),
                Holder::Node(node) => (Owner::Node(node.get()), 1),
                Holder::Pool(pool) => (Owner::Pool(pool.get()), 0),
            };
            let id = recipient.id.get();
            let entry = QueueEntry {
                owner,
                due_at: submission.due_at(),
                attempt,
            };
            let row = Row {
                queued: QueuedMessage::new(submission, recipient, 0),
                network: recipient.network,
                dlr_url: submission.dlr_url.clone(),
                price: recipient.price.micros(),
                refunded: false,
                due_at: match submission.send {
                    SendTime::Now => submission.accepted_at,
                    SendTime::At(time) => time,
                },
                is_scheduled: matches!(submission.send, SendTime::At(_)),
                ended: None,
                ends: 0,
                given_up: 0,
                parts_left: None,
            };
            assert!(self.messages.insert(id, row).is_none(), "an ID given twice");
            self.queue.insert(id, entry);
            if let Some(code) = recipient.refused {
                self.refuse(id, code, submission.accepted_at);
            }
        }
        Accepted::Stored
    }

    /// The valid earlier use of a submission's idempotency key.
    fn find_claim(&self, submission: &Submission) -> Option<&(IdempotencyClaim, AcceptedMessages)> {
        let claim = submission.idempotency.as_ref()?;
        let earlier = self.keys.get(&(submission.account, claim.key))?;
        (submission.accepted_at < earlier.0.expires_at).then_some(earlier)
    }

    pub(crate) fn find_answer(
        &self,
        account: AccountId,
        key: [u8; 32],
        now: Timestamp,
    ) -> Option<StoredAnswer> {
        let (claim, receipt) = self.keys.get(&(account, key))?;
        (now < claim.expires_at).then_some(StoredAnswer {
            body: claim.body,
            receipt: *receipt,
        })
    }

    pub(crate) fn find_message(&self, account: AccountId, id: MessageId) -> Option<MessageRecord> {
        let row = self.messages.get(&id.get())?;
        let owner = self.queue.get(&id.get()).map(|entry| entry.owner);
        let state = match row.ended {
            Some((outcome, at)) => MessageState::Ended { outcome, at },
            None if owner == Some(Owner::Carrier) => MessageState::Sent,
            None if row.is_scheduled => MessageState::Scheduled { at: row.due_at },
            None => MessageState::Queued,
        };
        (row.queued.account == account).then_some(MessageRecord {
            id,
            channel: row.queued.channel,
            state,
            parts: row.queued.shape.parts,
            network: row.network,
        })
    }

    pub(crate) fn add_to_ledger(&mut self, amount: i64) {
        if amount != 0 {
            self.balance += amount;
            self.ledger.push(amount);
        }
    }

    pub(crate) fn join(&mut self, until: Timestamp) -> NodeId {
        self.next_node += 1;
        self.nodes.insert(self.next_node, until);
        NodeId::new(self.next_node).expect("counted from 1")
    }

    pub(crate) fn renew_heartbeat(&mut self, node: NodeId, until: Timestamp) -> bool {
        let alive = self.nodes.get_mut(&node.get());
        alive.map(|alive| *alive = until).is_some()
    }

    pub(crate) fn is_known(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node.get())
    }

    pub(crate) fn remove_dead_nodes(&mut self, node: NodeId, now: Timestamp) -> u64 {
        self.nodes
            .retain(|id, until| *id == node.get() || *until >= now);
        let known: BTreeSet<u64> = self.nodes.keys().copied().collect();
        self.release_rows(|id| id != node.get() && !known.contains(&id))
    }

    pub(crate) fn leave(&mut self, node: NodeId) {
        self.nodes.remove(&node.get());
        self.release_rows(|id| id == node.get());
    }

    /// Releases the rows of nodes that are gone, and what nodes have that are not known.
    fn release_rows(&mut self, is_gone: impl Fn(u64) -> bool) -> u64 {
        let nodes = &self.nodes;
        self.demands.retain(|(_, id)| nodes.contains_key(id));
        self.statuses.retain(|(id, _), _| nodes.contains_key(id));
        for owner in self.binds.values_mut() {
            if !nodes.contains_key(owner) {
                *owner = NOBODY;
            }
        }
        let is_gone =
            |owner: Owner| matches!(owner, Owner::Node(id) if id != NOBODY && is_gone(id));
        let mut released = 0;
        for (id, entry) in &mut self.queue {
            if is_gone(entry.owner) {
                entry.owner = Owner::Node(NOBODY);
                self.messages.get_mut(id).expect("queued").given_up += 1;
                released += 1;
            }
        }
        for entry in self.report_queue.values_mut() {
            if is_gone(entry.owner) {
                entry.owner = Owner::Node(NOBODY);
                released += 1;
            }
        }
        released
    }

    pub(crate) fn list_held(
        &self,
        node: NodeId,
        due: Timestamp,
        after: Option<ClaimedRow>,
        limit: u32,
    ) -> Vec<ClaimedRow> {
        let key = |row: &ClaimedRow| (row.priority.lane(), row.claim.due_at, row.id);
        let held = self
            .queue
            .iter()
            .filter(|(_, entry)| entry.owner == Owner::Node(node.get()) && entry.due_at <= due);
        let rows = held.map(|(id, entry)| ClaimedRow {
            id: self.messages[id].queued.id,
            priority: self.messages[id].queued.priority,
            claim: Claim {
                due_at: entry.due_at,
                attempt: entry.attempt,
            },
        });
        let mut rows: Vec<_> = rows
            .filter(|row| after.is_none_or(|after| key(row) > key(&after)))
            .collect();
        rows.sort_by_key(key);
        rows.truncate(limit as usize);
        rows
    }

    pub(crate) fn release_held(&mut self, node: NodeId, rows: &[ClaimedRow]) -> u64 {
        let mut released = 0;
        for row in rows {
            if let Some(entry) = self.held(node, row.id, row.priority, row.claim) {
                entry.owner = Owner::Node(NOBODY);
                released += 1;
            }
        }
        released
    }

    pub(crate) fn row(&mut self, id: u64) -> &mut Row {
        self.messages.get_mut(&id).expect("known")
    }

    /// The queue entry of a message, if it is held under exactly this claim.
    pub(crate) fn held(
        &mut self,
        node: NodeId,
        id: MessageId,
        priority: Priority,
        claim: Claim,
    ) -> Option<&mut QueueEntry> {
        let entry = self.queue.get_mut(&id.get())?;
        let is_in_lane = self.messages[&id.get()].queued.priority == priority;
        (is_in_lane && is_held(entry, node, claim)).then_some(entry)
    }
}

pub(crate) fn is_held(entry: &QueueEntry, node: NodeId, claim: Claim) -> bool {
    entry.owner == Owner::Node(node.get())
        && entry.due_at == claim.due_at
        && entry.attempt == claim.attempt
}
