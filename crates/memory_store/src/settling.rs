//! Results of sending, receipts and expiry: how messages end.

use domain::delivery::receipt_match::{NumberTail, other_forms};
use domain::delivery::{CarrierRef, Receipt, SendResult, Settlement, report_payload};
use domain::message::outcome::Outcome;
use domain::ports::{Ended, Matched, Settled};
use domain::{Channel, Code, Network, NodeId, Timestamp};

use crate::model::{Model, NOBODY, Owner, Part, Report};

/// Who settles something, and when.
#[derive(Clone, Copy)]
pub(crate) struct Settler {
    pub(crate) node: NodeId,
    /// Whether the node holds the delivery reports.
    pub(crate) hold: bool,
    pub(crate) now: Timestamp,
}

/// How a message, or a part of it, ended.
#[derive(Clone, Copy)]
struct End {
    outcome: Outcome,
    /// Whether a carrier took it.
    taken: bool,
    /// The network that the receipt named.
    network: Option<Network>,
    at: Timestamp,
}

impl End {
    /// Expired at a carrier, or before one took it.
    fn expired(taken: bool, at: Timestamp) -> Self {
        let outcome = [Outcome::Failed(Code::EXPIRED), Outcome::Expired][usize::from(taken)];
        Self {
            outcome,
            taken,
            network: None,
            at,
        }
    }

    fn reported(receipt: &Receipt) -> Self {
        Self {
            outcome: receipt.outcome,
            taken: true,
            network: receipt.network,
            at: receipt.at,
        }
    }
}

impl Model {
    pub(crate) fn settle_sends(&mut self, by: Settler, batch: &[Settlement]) -> Vec<Settled> {
        let settle = |one: &Settlement| self.settle_send(by, one);
        batch.iter().map(settle).collect()
    }

    fn settle_send(&mut self, by: Settler, settlement: &Settlement) -> Settled {
        let Settlement {
            id,
            priority,
            claim,
            ..
        } = *settlement;
        let Some(entry) = self.held(by.node, id, priority, claim) else {
            return Settled::Stale;
        };
        let id = id.get();
        if let SendResult::Later(time)
        | SendResult::Unknown { again: time, .. }
        | SendResult::Retry(time) = settlement.sent
        {
            entry.owner = Owner::Node(NOBODY);
            entry.due_at = time;
        }
        let over = |outcome| End {
            outcome,
            taken: false,
            network: None,
            at: settlement.at,
        };
        let ended = match &settlement.sent {
            SendResult::Later(_) => None,
            SendResult::Unknown { carrier, .. } => {
                let queued = &mut self.row(id).queued;
                queued.unknown_tries += 1;
                queued.unanswered_by = Some(carrier.clone());
                None
            }
            SendResult::Retry(_) => {
                self.row(id).queued.tries += 1;
                None
            }
            SendResult::Pooled { pool, .. } => {
                entry.owner = Owner::Pool(pool.get());
                self.row(id).queued.expires_at = settlement.expires_at;
                None
            }
            SendResult::Taken {
                carrier,
                references,
            } => {
                entry.owner = Owner::Carrier;
                entry.due_at = settlement.expires_at;
                self.store_references(by, settlement, carrier, references)
            }
            SendResult::PartlyTaken {
                carrier,
                references,
                outcome,
            } => {
                let ended = self.end(by, id, over(*outcome));
                self.store_references(by, settlement, carrier, references);
                ended
            }
            SendResult::Over(outcome) | SendResult::Answered { outcome, .. } => {
                self.end(by, id, over(*outcome))
            }
        };
        ended.map_or(Settled::Stored, Settled::Ended)
    }

    /// Stores the carrier's references, and applies receipts that arrived before them. Parts with the same reference
    /// count as one.
    fn store_references(
        &mut self,
        by: Settler,
        settlement: &Settlement,
        carrier: &str,
        references: &[String],
    ) -> Option<Ended> {
        let (message, to) = (settlement.id.get(), NumberTail::from_number(&settlement.to));
        let mut distinct = references.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let parts = distinct.len();
        let mut ended = None;
        for reference in distinct {
            let of = CarrierRef {
                carrier: carrier.to_owned(),
                reference,
            };
            let mut early = self.early_receipts.iter();
            let early = early.position(|receipt| is_about(receipt, &of, to));
            self.parts.push(Part {
                of,
                to,
                message,
                parts,
                is_reported: early.is_some(),
            });
            if let Some(index) = early {
                let end = End::reported(&self.early_receipts.remove(index));
                if let Matched::Ended(message) = self.report_part(by, message, parts, end) {
                    ended = Some(message);
                }
            }
        }
        ended
    }

    pub(crate) fn settle_receipts(&mut self, by: Settler, batch: &[Receipt]) -> Vec<Matched> {
        let settle = |one: &Receipt| self.settle_receipt(by, one);
        batch.iter().map(settle).collect()
    }

    /// The newest part that waits for a receipt is meant. Of several early receipts the first is stored.
    fn settle_receipt(&mut self, by: Settler, receipt: &Receipt) -> Matched {
        let parts = self.parts.iter_mut().rev();
        let mut parts = parts.filter(|part| is_about(receipt, &part.of, part.to));
        let mut is_known = false;
        let open = parts.find(|part| {
            is_known = true;
            !part.is_reported
        });
        if let Some(part) = open {
            part.is_reported = true;
            let (message, parts) = (part.message, part.parts);
            return self.report_part(by, message, parts, End::reported(receipt));
        }
        if is_known {
            return Matched::Repeated;
        }
        let is_same = |other: &Receipt| other.of == receipt.of && other.to == receipt.to;
        if !self.early_receipts.iter().any(is_same) {
            self.early_receipts.push(receipt.clone());
        }
        Matched::Kept
    }

    pub(crate) fn has_early_receipt(&self, of: &CarrierRef) -> bool {
        self.early_receipts.iter().any(|receipt| receipt.of == *of)
    }

    fn report_part(&mut self, by: Settler, id: u64, parts: usize, end: End) -> Matched {
        let row = self.row(id);
        if row.ended.is_some() {
            return Matched::Repeated;
        }
        if end.outcome == Outcome::Delivered {
            let left = row.parts_left.unwrap_or(parts) - 1;
            row.parts_left = Some(left);
            if left > 0 {
                return Matched::Noted;
            }
        }
        let ended = self.end(by, id, end);
        ended.map_or(Matched::Repeated, Matched::Ended)
    }

    pub(crate) fn expire_sent(&mut self, by: Settler, limit: u32) -> Vec<Ended> {
        let sent = self.queue.iter();
        let sent = sent.filter(|(_, entry)| entry.owner == Owner::Carrier);
        let mut expired: Vec<_> = sent.map(|(id, entry)| (entry.due_at, *id)).collect();
        expired.retain(|(time, _)| *time <= by.now);
        expired.sort_unstable();
        expired.truncate(limit as usize);
        let end = |(_, id)| self.end(by, id, End::expired(true, by.now));
        expired.into_iter().filter_map(end).collect()
    }

    pub(crate) fn expire_pooled(&mut self, by: Settler, limit: u32) -> Vec<Ended> {
        let pooled = self.queue.iter();
        let pooled = pooled.filter(|(_, entry)| matches!(entry.owner, Owner::Pool(_)));
        let expires_at = |id: &u64| self.messages[id].queued.expires_at;
        let mut expired: Vec<_> = pooled.map(|(id, _)| (expires_at(id), *id)).collect();
        expired.retain(|(time, _)| *time <= by.now);
        expired.sort_unstable();
        expired.truncate(limit as usize);
        // A carrier that did not answer may have taken the message.
        let end = |(_, id)| {
            let taken = self.row(id).queued.unknown_tries > 0;
            self.end(by, id, End::expired(taken, by.now))
        };
        expired.into_iter().filter_map(end).collect()
    }

    /// Ends a message that was just accepted and is refused. No node holds its report.
    pub(crate) fn refuse(&mut self, id: u64, code: Code, at: Timestamp) {
        let by = Settler {
            node: NodeId::new(1).expect("counted from 1"),
            hold: false,
            now: at,
        };
        let end = End {
            outcome: Outcome::Failed(code),
            taken: false,
            network: None,
            at,
        };
        self.end(by, id, end);
    }

    fn end(&mut self, by: Settler, id: u64, end: End) -> Option<Ended> {
        let row = self.row(id);
        if row.ended.is_some() {
            return None;
        }
        row.ended = Some((end.outcome, end.at));
        row.network = end.network.or(row.network);
        row.ends += 1;
        if end.outcome.is_refunded(Channel::Sms, end.taken) {
            row.refunded = true;
            let price = row.price;
            self.add_to_ledger(price);
        }
        self.queue.remove(&id);
        let row = &self.messages[&id];
        let report = row.dlr_url.clone().map(|url| Report {
            message: id,
            payload: report_payload(row.queued.id, end.outcome, row.network),
            url,
            account: row.queued.account,
            created_at: end.at,
            tries: 0,
            is_done: false,
            trace: row.queued.trace,
        });
        let (message, trace) = (row.queued.id, row.queued.trace);
        let (channel, network, began_at) = (row.queued.channel, row.network, row.due_at);
        let to = row.queued.to;
        let callback = report.map(|report| self.create_report(by.node, report, by.hold, by.now));
        Some(Ended {
            id: message,
            channel,
            network,
            named: end.network.map(|network| (to, network)),
            outcome: end.outcome,
            began_at,
            ended_at: end.at,
            callback: callback.filter(|_| by.hold),
            trace: trace.map(Box::new),
        })
    }
}

/// Whether a receipt can be about a part: by its reference, and by its recipient if it names one. Other forms of the
/// reference count only for the same recipient.
fn is_about(receipt: &Receipt, of: &CarrierRef, to: NumberTail) -> bool {
    let is_own = receipt.of.reference == of.reference;
    let is_other_form = || other_forms(&receipt.of.reference).contains(&of.reference);
    let fits = match receipt.to {
        Some(recipient) => recipient == to && (is_own || is_other_form()),
        None => is_own,
    };
    fits && receipt.of.carrier == of.carrier
}
