//! Callbacks in the store in memory: their queues, claims and settlements.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use domain::delivery::{
    Callback, CallbackAttempt, CallbackKind, CallbackNext, CallbackSettlement, Claim,
};
use domain::ports::{
    CallbackFilter, CallbackRecord, CallbackStore, ClaimedCallbacks, HeldCallback, ListRange,
    ReplayCursor, ReplayRequest, Replayed, SigningSecrets, StoreError,
};
use domain::{AccountId, CallbackId, MessageId, NodeId, ReceiverId, Timestamp};
use jiff::SignedDuration;

use crate::calls::CallKind::Plain;
use crate::calls::{Calls, MemoryStore, missing};
use crate::model::{Model, NOBODY, Owner, QueueEntry, Report, is_held};

impl Model {
    pub(crate) fn create_report(
        &mut self,
        node: NodeId,
        report: Report,
        hold: bool,
        now: Timestamp,
    ) -> Callback {
        self.next_report += 1;
        let id = self.next_report;
        let entry = QueueEntry {
            owner: Owner::Node(if hold { node.get() } else { NOBODY }),
            due_at: now,
            attempt: u32::from(hold),
        };
        let callback = callback(id, &report, &entry);
        self.report_queue.insert(id, entry);
        self.reports.insert(id, report);
        callback
    }

    pub(crate) fn claim_reports(
        &mut self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
        now: Timestamp,
    ) -> ClaimedCallbacks {
        let due = self.claim_from(node, Owner::Node(NOBODY), limit, now);
        let mut from_receivers = Vec::new();
        for (receiver, limit) in queues {
            let owner = Owner::Receiver(*receiver);
            from_receivers.extend(self.claim_from(node, owner, *limit, Timestamp::MAX));
        }
        ClaimedCallbacks {
            due,
            queued: from_receivers,
            unreadable: Vec::new(),
        }
    }

    fn claim_from(
        &mut self,
        node: NodeId,
        owner: Owner,
        limit: u32,
        until: Timestamp,
    ) -> Vec<Callback> {
        let waiting = self.report_queue.iter_mut();
        let waiting = waiting.filter(|(_, entry)| entry.owner == owner && entry.due_at <= until);
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by_key(|(id, entry)| (entry.due_at, **id));
        waiting.truncate(limit as usize);
        let claim = |(id, entry): (&u64, &mut QueueEntry)| {
            entry.owner = Owner::Node(node.get());
            entry.attempt += 1;
            callback(*id, &self.reports[id], entry)
        };
        waiting.into_iter().map(claim).collect()
    }

    pub(crate) fn list_queues(&self, after: Option<ReceiverId>, limit: u32) -> Vec<ReceiverId> {
        let receiver = |entry: &QueueEntry| match entry.owner {
            Owner::Receiver(receiver) if Some(receiver) > after => Some(receiver),
            _ => None,
        };
        let receivers: BTreeSet<_> = self.report_queue.values().filter_map(receiver).collect();
        receivers.into_iter().take(limit as usize).collect()
    }

    pub(crate) fn settle_reports(
        &mut self,
        node: NodeId,
        batch: &[CallbackSettlement],
    ) -> Vec<bool> {
        let mut settled = Vec::with_capacity(batch.len());
        for one in batch {
            let id = one.id.get();
            let entry = self.report_queue.get_mut(&id);
            let Some(entry) = entry.filter(|entry| is_held(entry, node, one.claim)) else {
                settled.push(false);
                continue;
            };
            let report = self.reports.get_mut(&id).expect("queued");
            report.tries += u32::from(one.attempt.is_some());
            match one.next {
                CallbackNext::Later(time) => {
                    entry.owner = Owner::Node(NOBODY);
                    entry.due_at = time;
                }
                CallbackNext::Queued(receiver) => entry.owner = Owner::Receiver(receiver),
                CallbackNext::Done | CallbackNext::Parked => {
                    report.is_done = one.next == CallbackNext::Done;
                    self.report_queue.remove(&id);
                }
            }
            settled.push(true);
        }
        settled
    }

    pub(crate) fn list_held_reports(
        &self,
        node: NodeId,
        until: Timestamp,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Vec<HeldCallback> {
        let after = after.map_or(0, |held| held.id.get());
        let is_held =
            |entry: &QueueEntry| entry.owner == Owner::Node(node.get()) && entry.due_at <= until;
        let held = self.report_queue.range(after + 1..);
        let held = held.filter(|(_, entry)| is_held(entry));
        let held = held.map(|(id, entry)| HeldCallback {
            id: CallbackId::new(*id).expect("counted from 1"),
            claim: Claim {
                due_at: entry.due_at,
                attempt: entry.attempt,
            },
        });
        held.take(limit as usize).collect()
    }

    pub(crate) fn release_reports(&mut self, node: NodeId, held: &[HeldCallback]) -> u64 {
        let mut released = 0;
        for one in held {
            let entry = self.report_queue.get_mut(&one.id.get());
            if let Some(entry) = entry.filter(|entry| is_held(entry, node, one.claim)) {
                entry.owner = Owner::Node(NOBODY);
                released += 1;
            }
        }
        released
    }
}

fn callback(id: u64, report: &Report, entry: &QueueEntry) -> Callback {
    Callback {
        id: CallbackId::new(id).expect("counted from 1"),
        message: MessageId::new(report.message),
        kind: CallbackKind::Report,
        account: report.account,
        url: report.url.clone(),
        payload: report.payload.clone(),
        created_at: report.created_at,
        tries: report.tries,
        claim: Claim {
            due_at: entry.due_at,
            attempt: entry.attempt,
        },
        trace: report.trace.map(Box::new),
    }
}

#[async_trait]
impl<C: Calls> CallbackStore for MemoryStore<C> {
    async fn claim_callbacks(
        &self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
    ) -> Result<ClaimedCallbacks, StoreError> {
        let queues = queues.to_vec();
        let claim = move |model: &mut Model, now| model.claim_reports(node, limit, &queues, now);
        self.0.call(Plain, "claim reports", claim).await
    }

    async fn list_receiver_queues(
        &self,
        after: Option<ReceiverId>,
        limit: u32,
    ) -> Result<Vec<ReceiverId>, StoreError> {
        let list = move |model: &mut Model, _| model.list_queues(after, limit);
        self.0.call(Plain, "list queues", list).await
    }

    async fn settle_callbacks(
        &self,
        node: NodeId,
        batch: Arc<Vec<CallbackSettlement>>,
    ) -> Result<Vec<bool>, StoreError> {
        let settle = move |model: &mut Model, _| model.settle_reports(node, &batch);
        self.0.call(Plain, "settle reports", settle).await
    }

    async fn list_held_callbacks(
        &self,
        node: NodeId,
        age: SignedDuration,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Result<Vec<HeldCallback>, StoreError> {
        let list = move |model: &mut Model, now: Timestamp| {
            model.list_held_reports(node, now - age, after, limit)
        };
        self.0.call(Plain, "list held reports", list).await
    }

    async fn release_callbacks(
        &self,
        node: NodeId,
        held: Vec<HeldCallback>,
    ) -> Result<u64, StoreError> {
        let release = move |model: &mut Model, _| model.release_reports(node, &held);
        self.0.call(Plain, "release reports", release).await
    }

    async fn list_callbacks(
        &self,
        _: &CallbackFilter,
        _: ListRange,
    ) -> Result<Vec<CallbackRecord>, StoreError> {
        Err(missing("list callbacks"))
    }

    async fn list_attempts(&self, _: CallbackId) -> Result<Vec<CallbackAttempt>, StoreError> {
        Err(missing("list attempts"))
    }

    async fn replay_callbacks(
        &self,
        _: &CallbackFilter,
        _: ReplayCursor,
    ) -> Result<Replayed, StoreError> {
        Err(missing("replay callbacks"))
    }

    async fn list_replay_requests(&self, _: u64) -> Result<Vec<ReplayRequest>, StoreError> {
        Ok(Vec::new())
    }

    async fn find_signing_secrets(
        &self,
        _: AccountId,
    ) -> Result<Option<SigningSecrets>, StoreError> {
        Ok(Some(SigningSecrets {
            newest: "secret".to_owned(),
            former: None,
        }))
    }

    async fn replace_signing_secret(
        &self,
        _: AccountId,
        _: &str,
        _: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }
}
