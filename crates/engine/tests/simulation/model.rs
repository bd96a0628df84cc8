//! A store in memory that behaves as the ports specify, for one thread and a simulated clock.
//!
//! It is as short as possible, so that it can be compared with the ports. The tests of the store crate show that both
//! databases behave the same way.

use std::collections::{BTreeMap, BTreeSet};

use domain::delivery::{Claim, QueuedMessage, Receipt, SendResult, Settlement, report_payload};
use domain::message::outcome::Outcome;
use domain::message::{AcceptedMessages, Holder, SendTime, Submission};
use domain::ports::{Accepted, ClaimedRow, Ended, Matched, Settled};
use domain::{AccountId, CallbackUrl, Channel, MessageId, NodeId, ReceiverId, Timestamp};

/// The owner of rows that no node holds.
pub(super) const NOBODY: u64 = 0;

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) queued: QueuedMessage,
    pub(super) dlr_url: Option<CallbackUrl>,
    pub(super) price: i64,
    pub(super) refunded: bool,
    pub(super) due_at: Timestamp,
    pub(super) ended: Option<Outcome>,
    /// How often it ended. More than once is an error: a final state must not change.
    pub(super) ends: u32,
    /// How often it was released because its node was considered dead.
    pub(super) given_up: u32,
    parts_left: Option<usize>,
}

/// The queue row of a message or a report.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueEntry {
    pub(super) owner: Owner,
    pub(super) due_at: Timestamp,
    pub(super) attempt: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Node(u64),
    Carrier,
    Pool(u64),
    /// A receiver queue.
    Receiver(ReceiverId),
}

/// What the messages of a pool wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PoolKind {
    Carrier(String),
    Route(Vec<String>),
}

/// A part that a carrier accepted, or a receipt that arrived before the part was stored.
#[derive(Debug, Clone)]
struct Transit {
    of: Option<(u64, usize)>,
    outcome: Option<Outcome>,
}

#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) message: u64,
    pub(super) payload: String,
    pub(super) url: CallbackUrl,
    pub(super) account: AccountId,
    pub(super) created_at: Timestamp,
    pub(super) tries: u32,
    pub(super) is_done: bool,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    next_id: u64,
    next_node: u64,
    pub(super) next_report: u64,
    pub(super) nodes: BTreeMap<u64, Timestamp>,
    pub(super) pools: BTreeMap<u64, PoolKind>,
    /// The node that has each bind of each carrier.
    pub(super) binds: BTreeMap<(String, u16), u64>,
    /// Carriers and the nodes that want binds of them.
    pub(super) demands: BTreeSet<(String, u64)>,
    /// Whether a carrier is up, as each node reported.
    pub(super) statuses: BTreeMap<(u64, String), bool>,
    pub(super) messages: BTreeMap<u64, Row>,
    pub(super) queue: BTreeMap<u64, QueueEntry>,
    transit: BTreeMap<(String, String), Transit>,
    pub(super) reports: BTreeMap<u64, Report>,
    pub(super) report_queue: BTreeMap<u64, QueueEntry>,
    pub(super) keys: BTreeMap<[u8; 32], AcceptedMessages>,
    /// The sum over all accounts.
    pub(super) balance: i64,
    pub(super) ledger: Vec<i64>,
}

impl Model {
    pub(super) fn reserve_ids(&mut self, count: u64) -> MessageId {
        let first = self.next_id + 1;
        self.next_id += count;
        MessageId::new(first).expect("small")
    }

    /// `None` if an ID is taken already; then nothing is stored.
    pub(super) fn accept(&mut self, batch: &[Submission]) -> Option<Vec<Accepted>> {
        let is_known = |one: &&Submission| {
            let claim = one.idempotency.as_ref();
            claim.is_some_and(|claim| self.keys.contains_key(&claim.key))
        };
        let fresh = batch.iter().filter(|one| !is_known(one));
        let mut ids = fresh.flat_map(|one| &one.recipients).map(|one| one.id);
        if ids.any(|id| self.messages.contains_key(&id.get())) {
            return None;
        }
        Some(batch.iter().map(|one| self.accept_one(one)).collect())
    }

    /// Forgets that the newest IDs were reserved, like a standby that is promoted without the newest writes.
    pub(super) fn forget_ids(&mut self, count: u64) {
        self.next_id = self.next_id.saturating_sub(count);
    }

    fn accept_one(&mut self, submission: &Submission) -> Accepted {
        if let Some(claim) = &submission.idempotency {
            if let Some(earlier) = self.keys.get(&claim.key) {
                return Accepted::Replayed(*earlier);
            }
            self.keys.insert(claim.key, submission.receipt());
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
                queued: queued(submission, recipient.id, recipient.to),
                dlr_url: submission.dlr_url.clone(),
                price: recipient.price.micros(),
                refunded: false,
                due_at: match submission.send {
                    SendTime::Now => submission.accepted_at,
                    SendTime::At(time) => time,
                },
                ended: None,
                ends: 0,
                given_up: 0,
                parts_left: None,
            };
            assert!(self.messages.insert(id, row).is_none(), "an ID given twice");
            self.queue.insert(id, entry);
        }
        Accepted::Stored
    }

    fn add_to_ledger(&mut self, amount: i64) {
        if amount != 0 {
            self.balance += amount;
            self.ledger.push(amount);
        }
    }

    pub(super) fn join(&mut self, until: Timestamp) -> NodeId {
        self.next_node += 1;
        self.nodes.insert(self.next_node, until);
        NodeId::new(self.next_node).expect("counted from 1")
    }

    pub(super) fn renew_heartbeat(&mut self, node: NodeId, until: Timestamp) -> bool {
        let alive = self.nodes.get_mut(&node.get());
        alive.map(|alive| *alive = until).is_some()
    }

    pub(super) fn is_known(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node.get())
    }

    pub(super) fn remove_dead_nodes(&mut self, node: NodeId, now: Timestamp) -> u64 {
        self.nodes
            .retain(|id, until| *id == node.get() || *until >= now);
        let nodes = &self.nodes;
        self.demands.retain(|(_, id)| nodes.contains_key(id));
        self.statuses.retain(|(id, _), _| nodes.contains_key(id));
        for owner in self.binds.values_mut() {
            if !nodes.contains_key(owner) {
                *owner = NOBODY;
            }
        }
        let is_dead = |owner: Owner| matches!(owner, Owner::Node(id) if id != NOBODY && id != node.get() && !nodes.contains_key(&id));
        let mut released = 0;
        for (id, entry) in &mut self.queue {
            if is_dead(entry.owner) {
                entry.owner = Owner::Node(NOBODY);
                self.messages.get_mut(id).expect("queued").given_up += 1;
                released += 1;
            }
        }
        for entry in self.report_queue.values_mut() {
            if is_dead(entry.owner) {
                entry.owner = Owner::Node(NOBODY);
                released += 1;
            }
        }
        released
    }

    pub(super) fn list_held(
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

    pub(super) fn release_held(&mut self, node: NodeId, rows: &[ClaimedRow]) -> u64 {
        let mut released = 0;
        for row in rows {
            if let Some(entry) = self.held(node, row.id.get(), row.claim) {
                entry.owner = Owner::Node(NOBODY);
                released += 1;
            }
        }
        released
    }

    /// The queue entry of a message, if it is held under exactly this claim.
    fn held(&mut self, node: NodeId, id: u64, claim: Claim) -> Option<&mut QueueEntry> {
        let entry = self.queue.get_mut(&id)?;
        is_held(entry, node, claim).then_some(entry)
    }

    pub(super) fn settle_sends(
        &mut self,
        node: NodeId,
        batch: &[Settlement],
        hold: bool,
        now: Timestamp,
    ) -> Vec<Settled> {
        let settle = |one: &Settlement| self.settle_send(node, one, hold, now);
        batch.iter().map(settle).collect()
    }

    fn settle_send(
        &mut self,
        node: NodeId,
        settlement: &Settlement,
        hold: bool,
        now: Timestamp,
    ) -> Settled {
        let id = settlement.id.get();
        let Some(entry) = self.held(node, id, settlement.claim) else {
            return Settled::Stale;
        };
        let ended = match &settlement.sent {
            SendResult::Later(time) | SendResult::Unknown(time) => {
                entry.owner = Owner::Node(NOBODY);
                entry.due_at = *time;
                None
            }
            SendResult::Retry(time) => {
                entry.owner = Owner::Node(NOBODY);
                entry.due_at = *time;
                self.messages.get_mut(&id).expect("queued").queued.tries += 1;
                None
            }
            SendResult::Pooled { pool, .. } => {
                entry.owner = Owner::Pool(pool.get());
                None
            }
            SendResult::Taken {
                carrier,
                references,
            } => {
                entry.owner = Owner::Carrier;
                entry.due_at = settlement.expires_at;
                self.store_references(node, id, carrier, references, hold, now)
            }
            SendResult::Over(outcome)
            | SendResult::Answered { outcome, .. }
            | SendResult::PartlyTaken { outcome, .. } => {
                self.end(node, id, *outcome, false, hold, now)
            }
        };
        ended.map_or(Settled::Stored, Settled::Ended)
    }

    fn store_references(
        &mut self,
        node: NodeId,
        id: u64,
        carrier: &str,
        references: &[String],
        hold: bool,
        now: Timestamp,
    ) -> Option<Ended> {
        let mut ended = None;
        for reference in references {
            let key = (carrier.to_owned(), reference.clone());
            let early = self.transit.get(&key).and_then(|transit| transit.outcome);
            let transit = Transit {
                of: Some((id, references.len())),
                outcome: early,
            };
            self.transit.insert(key, transit);
            if let Some(outcome) = early {
                let matched = self.report_part(node, id, references.len(), outcome, hold, now);
                if let Matched::Ended(message) = matched {
                    ended = Some(message);
                }
            }
        }
        ended
    }

    pub(super) fn settle_receipts(
        &mut self,
        node: NodeId,
        batch: &[Receipt],
        hold: bool,
        now: Timestamp,
    ) -> Vec<Matched> {
        let mut matched = Vec::with_capacity(batch.len());
        for receipt in batch {
            let key = (receipt.of.carrier.clone(), receipt.of.reference.clone());
            let known = self.transit.entry(key).or_insert(Transit {
                of: None,
                outcome: None,
            });
            let was_reported = known.outcome.is_some();
            known.outcome.get_or_insert(receipt.outcome);
            matched.push(match known.of {
                None => Matched::Kept,
                Some(_) if was_reported => Matched::Repeated,
                Some((id, parts)) => self.report_part(node, id, parts, receipt.outcome, hold, now),
            });
        }
        matched
    }

    fn report_part(
        &mut self,
        node: NodeId,
        id: u64,
        parts: usize,
        outcome: Outcome,
        hold: bool,
        now: Timestamp,
    ) -> Matched {
        let row = self.messages.get_mut(&id).expect("named by a part");
        if row.ended.is_some() {
            return Matched::Repeated;
        }
        if outcome == Outcome::Delivered {
            let left = row.parts_left.unwrap_or(parts) - 1;
            row.parts_left = Some(left);
            if left > 0 {
                return Matched::Noted;
            }
        }
        let ended = self.end(node, id, outcome, true, hold, now);
        ended.map_or(Matched::Repeated, Matched::Ended)
    }

    pub(super) fn expire_sent(
        &mut self,
        node: NodeId,
        limit: u32,
        hold: bool,
        now: Timestamp,
    ) -> Vec<Ended> {
        let has_expired = |entry: &QueueEntry| entry.owner == Owner::Carrier && entry.due_at <= now;
        let expired = self.queue.iter().filter(|(_, entry)| has_expired(entry));
        let expired: Vec<u64> = expired.map(|(id, _)| *id).take(limit as usize).collect();
        let end = |id| self.end(node, id, Outcome::Expired, true, hold, now);
        expired.into_iter().filter_map(end).collect()
    }

    pub(super) fn expire_pooled(
        &mut self,
        node: NodeId,
        limit: u32,
        hold: bool,
        now: Timestamp,
    ) -> Vec<Ended> {
        let messages = &self.messages;
        let has_expired = |(id, entry): &(&u64, &QueueEntry)| {
            matches!(entry.owner, Owner::Pool(_)) && messages[*id].queued.expires_at <= now
        };
        let expired = self.queue.iter().filter(has_expired);
        let expired: Vec<u64> = expired.map(|(id, _)| *id).take(limit as usize).collect();
        let outcome = Outcome::Failed(domain::Code::EXPIRED);
        let end = |id| self.end(node, id, outcome, false, hold, now);
        expired.into_iter().filter_map(end).collect()
    }

    fn end(
        &mut self,
        node: NodeId,
        id: u64,
        outcome: Outcome,
        taken: bool,
        hold: bool,
        now: Timestamp,
    ) -> Option<Ended> {
        let row = self.messages.get_mut(&id).expect("known");
        if row.ended.is_some() {
            return None;
        }
        row.ended = Some(outcome);
        row.ends += 1;
        self.queue.remove(&id);
        if outcome.is_refunded(Channel::Sms, taken) {
            row.refunded = true;
            let price = row.price;
            self.add_to_ledger(price);
        }
        let row = &self.messages[&id];
        let report = row.dlr_url.clone().map(|url| Report {
            message: id,
            payload: report_payload(row.queued.id, outcome, None),
            url,
            account: row.queued.account,
            created_at: now,
            tries: 0,
            is_done: false,
        });
        let message = row.queued.id;
        let callback = report.map(|report| self.create_report(node, report, hold, now));
        Some(Ended {
            id: message,
            callback: callback.filter(|_| hold),
        })
    }
}

pub(super) fn is_held(entry: &QueueEntry, node: NodeId, claim: Claim) -> bool {
    entry.owner == Owner::Node(node.get())
        && entry.due_at == claim.due_at
        && entry.attempt == claim.attempt
}

fn queued(submission: &Submission, id: MessageId, to: domain::Msisdn) -> QueuedMessage {
    QueuedMessage {
        id,
        account: submission.account,
        channel: submission.channel,
        to,
        from: submission.from.clone(),
        text: submission.text.clone(),
        interactive: None,
        shape: submission.shape,
        udh: None,
        priority: submission.priority,
        test_mode: submission.test_mode,
        expires_at: submission.expires_at,
        claim: Claim {
            due_at: submission.due_at(),
            attempt: 0,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
    }
}
