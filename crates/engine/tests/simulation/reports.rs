//! Reports of the store in memory: their queues, claims and settlements.

use std::collections::BTreeSet;

use domain::delivery::{Callback, CallbackKind, CallbackNext, CallbackSettlement, Claim};
use domain::ports::{ClaimedCallbacks, HeldCallback};
use domain::{CallbackId, NodeId, ReceiverId, Timestamp};

use super::model::{Model, NOBODY, Owner, Place, Report, is_held};

impl Model {
    pub(super) fn create_report(
        &mut self,
        node: NodeId,
        report: Report,
        hold: bool,
        now: Timestamp,
    ) -> Callback {
        self.next_report += 1;
        let id = self.next_report;
        let place = Place {
            owner: Owner::Node(if hold { node.get() } else { NOBODY }),
            due_at: now,
            attempt: u32::from(hold),
        };
        let callback = callback(id, &report, &place);
        self.report_queue.insert(id, place);
        self.reports.insert(id, report);
        callback
    }

    pub(super) fn claim_reports(
        &mut self,
        node: NodeId,
        limit: u32,
        queues: &[(ReceiverId, u32)],
        now: Timestamp,
    ) -> ClaimedCallbacks {
        let due = self.claim_from(node, Owner::Node(NOBODY), limit, now);
        let mut taken = Vec::new();
        for (receiver, most) in queues {
            let owner = Owner::Receiver(*receiver);
            taken.extend(self.claim_from(node, owner, *most, Timestamp::MAX));
        }
        ClaimedCallbacks {
            due,
            queued: taken,
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
        let mut claimed = Vec::new();
        for (id, place) in &mut self.report_queue {
            let is_due = place.owner == owner && place.due_at <= until;
            if is_due && claimed.len() < limit as usize {
                place.owner = Owner::Node(node.get());
                place.attempt += 1;
                claimed.push(callback(*id, &self.reports[id], place));
            }
        }
        claimed
    }

    pub(super) fn list_queues(&self, after: Option<ReceiverId>, limit: u32) -> Vec<ReceiverId> {
        let receiver = |place: &Place| match place.owner {
            Owner::Receiver(receiver) if Some(receiver) > after => Some(receiver),
            _ => None,
        };
        let found: BTreeSet<_> = self.report_queue.values().filter_map(receiver).collect();
        found.into_iter().take(limit as usize).collect()
    }

    pub(super) fn settle_reports(
        &mut self,
        node: NodeId,
        batch: &[CallbackSettlement],
    ) -> Vec<bool> {
        let mut settled = Vec::with_capacity(batch.len());
        for one in batch {
            let id = one.id.get();
            let place = self.report_queue.get_mut(&id);
            let Some(place) = place.filter(|place| is_held(place, node, one.claim)) else {
                settled.push(false);
                continue;
            };
            let report = self.reports.get_mut(&id).expect("queued");
            report.tries += u32::from(one.attempt.is_some());
            match one.next {
                CallbackNext::Later(time) => {
                    place.owner = Owner::Node(NOBODY);
                    place.due_at = time;
                }
                CallbackNext::Queued(receiver) => place.owner = Owner::Receiver(receiver),
                CallbackNext::Done | CallbackNext::Parked => {
                    report.is_done = one.next == CallbackNext::Done;
                    self.report_queue.remove(&id);
                }
            }
            settled.push(true);
        }
        settled
    }

    pub(super) fn list_held_reports(
        &self,
        node: NodeId,
        until: Timestamp,
        after: Option<HeldCallback>,
        limit: u32,
    ) -> Vec<HeldCallback> {
        let after = after.map_or(0, |held| held.id.get());
        let is_held =
            |place: &Place| place.owner == Owner::Node(node.get()) && place.due_at <= until;
        let held = self.report_queue.range(after + 1..);
        let held = held.filter(|(_, place)| is_held(place));
        let held = held.map(|(id, place)| HeldCallback {
            id: CallbackId::new(*id).expect("counted from 1"),
            claim: Claim {
                due_at: place.due_at,
                attempt: place.attempt,
            },
        });
        held.take(limit as usize).collect()
    }

    pub(super) fn release_reports(&mut self, node: NodeId, held: &[HeldCallback]) -> u64 {
        let mut released = 0;
        for one in held {
            let place = self.report_queue.get_mut(&one.id.get());
            if let Some(place) = place.filter(|place| is_held(place, node, one.claim)) {
                place.owner = Owner::Node(NOBODY);
                released += 1;
            }
        }
        released
    }
}

fn callback(id: u64, report: &Report, place: &Place) -> Callback {
    Callback {
        id: CallbackId::new(id).expect("counted from 1"),
        kind: CallbackKind::Report,
        account: report.account,
        url: report.url.clone(),
        payload: report.payload.clone(),
        created_at: report.created_at,
        tries: report.tries,
        claim: Claim {
            due_at: place.due_at,
            attempt: place.attempt,
        },
    }
}
