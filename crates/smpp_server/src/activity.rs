//! What a session does, for people to see: counts, and its last PDUs without their content.
//!
//! It is written for each PDU and read every few seconds, so it has a fixed size and costs next to nothing.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::smpp_user::{BindKind, ReceiptId, SessionPdu, SessionReport, SmppSession, StatusCount};
use domain::{SmppUserId, Timestamp};
use smpp::{Body, Frame, Pdu, Status, command};

use crate::deliver::read_message_id;

/// How many PDUs are kept.
const KEPT_PDUS: usize = 20;
/// How many different statuses are counted; a client may make up any number of them.
const MAX_STATUSES: usize = 16;
const MINUTE_S: usize = 60;
/// The name of the statuses that are not counted on their own.
const OTHERS: &str = "others";

/// The other side of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) is_tls: bool,
}

/// What a session has done since it was bound.
pub(crate) struct Activity {
    number: u64,
    user: SmppUserId,
    kind: BindKind,
    peer: Peer,
    bound_at: Timestamp,
    open_requests: AtomicU32,
    open_deliveries: AtomicU32,
    state: Mutex<State>,
}

struct State {
    active_at: Timestamp,
    accepted: u64,
    minute: LastMinute,
    refused: StatusCounts,
    acknowledged: u64,
    rejected: StatusCounts,
    pdus: [Option<Record>; KEPT_PDUS],
    /// Where the next PDU is written.
    next: usize,
    is_changed: bool,
    /// The accepted messages of the last minute in the last report.
    reported_minute: u32,
    /// The report that it was last in; 0 for none.
    reported_in: u64,
}

/// A PDU.
#[derive(Clone, Copy)]
struct Record {
    at: Timestamp,
    is_incoming: bool,
    command: u32,
    status: Status,
    sequence: u32,
    message: Option<u64>,
    octets: u32,
}

impl Activity {
    pub(crate) fn new(
        number: u64,
        user: SmppUserId,
        kind: BindKind,
        peer: Peer,
        now: Timestamp,
    ) -> Self {
        Self {
            number,
            user,
            kind,
            peer,
            bound_at: now,
            open_requests: AtomicU32::new(0),
            open_deliveries: AtomicU32::new(0),
            state: Mutex::new(State {
                active_at: now,
                accepted: 0,
                minute: LastMinute::default(),
                refused: StatusCounts::default(),
                acknowledged: 0,
                rejected: StatusCounts::default(),
                pdus: [None; KEPT_PDUS],
                next: 0,
                is_changed: true,
                reported_minute: 0,
                reported_in: 0,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client sent a frame.
    pub(crate) fn received(&self, frame: &Frame, octets: usize, form: ReceiptId, now: Timestamp) {
        let (command, status, sequence, message) = match frame {
            Frame::Ok(pdu) => (
                pdu.body.command(),
                pdu.status,
                pdu.sequence,
                message_of(&pdu.body, form),
            ),
            Frame::Bad {
                command, sequence, ..
            } => (*command, Status::OK, *sequence, None),
        };
        self.lock().record(Record {
            at: now,
            is_incoming: true,
            command,
            status,
            sequence,
            message,
            octets: short(octets),
        });
    }

    /// The client's bind, which is known only after it was admitted.
    pub(crate) fn received_bind(&self, command: u32, sequence: u32, octets: usize, now: Timestamp) {
        self.lock().record(Record {
            at: now,
            is_incoming: true,
            command,
            status: Status::OK,
            sequence,
            message: None,
            octets: short(octets),
        });
    }

    /// A PDU was written for the client. Answers to submits are counted.
    pub(crate) fn sent(&self, pdu: &Pdu, octets: usize, form: ReceiptId, now: Timestamp) {
        let mut state = self.lock();
        let command = pdu.body.command();
        let is_submit = matches!(
            command,
            command::SUBMIT_SM_RESP | command::SUBMIT_MULTI_RESP | command::DATA_SM_RESP
        );
        if is_submit && pdu.status.is_ok() {
            state.accepted += 1;
            state.minute.count(now);
        } else if is_submit {
            state.refused.count(pdu.status);
        }
        state.record(Record {
            at: now,
            is_incoming: false,
            command,
            status: pdu.status,
            sequence: pdu.sequence,
            message: message_of(&pdu.body, form),
            octets: short(octets),
        });
    }

    /// The client answered `deliver_sm`.
    pub(crate) fn settled(&self, status: Status) {
        let mut state = self.lock();
        state.is_changed = true;
        if status.is_ok() {
            state.acknowledged += 1;
        } else {
            state.rejected.count(status);
        }
    }

    pub(crate) fn set_open(&self, requests: usize, deliveries: usize) {
        let set = |open: &AtomicU32, now: u32| open.swap(now, Ordering::Relaxed) != now;
        let requests = set(&self.open_requests, short(requests));
        let deliveries = set(&self.open_deliveries, short(deliveries));
        if requests || deliveries {
            self.set_changed();
        }
    }

    /// The report that it was last in, if there is something new to report.
    pub(crate) fn due_since(&self, now: Timestamp) -> Option<u64> {
        let mut state = self.lock();
        let is_due = state.is_changed || state.minute.sum(now) != state.reported_minute;
        is_due.then_some(state.reported_in)
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.lock().reported_in > 0
    }

    /// Makes the next report contain the session.
    pub(crate) fn set_changed(&self) {
        self.lock().is_changed = true;
    }

    /// What is to be reported now, in the report of this number.
    pub(crate) fn report(&self, number: u64, now: Timestamp) -> SmppSession {
        let mut state = self.lock();
        let accepted_last_minute = state.minute.sum(now);
        state.is_changed = false;
        state.reported_minute = accepted_last_minute;
        state.reported_in = number;
        let (newer, older) = state.pdus.split_at(state.next);
        let pdus = older.iter().chain(newer).flatten();
        SmppSession {
            number: self.number,
            user: self.user,
            report: SessionReport {
                kind: self.kind,
                address: self.peer.address,
                is_tls: self.peer.is_tls,
                bound_at: self.bound_at,
                active_at: state.active_at,
                open_requests: self.open_requests.load(Ordering::Relaxed),
                open_deliveries: self.open_deliveries.load(Ordering::Relaxed),
                accepted: state.accepted,
                accepted_last_minute,
                refused: state.refused.list(),
                acknowledged: state.acknowledged,
                rejected: state.rejected.list(),
                pdus: pdus.map(Record::report).collect(),
            },
        }
    }
}

impl State {
    fn record(&mut self, record: Record) {
        self.active_at = record.at;
        self.is_changed = true;
        self.pdus[self.next] = Some(record);
        self.next = (self.next + 1) % KEPT_PDUS;
    }
}

impl Record {
    fn report(&self) -> SessionPdu {
        let named = command::name(self.command);
        let is_response = command::is_response(self.command);
        SessionPdu {
            at: self.at,
            is_incoming: self.is_incoming,
            command: named.map_or_else(|| format!("{:#010x}", self.command), str::to_owned),
            sequence: self.sequence,
            status: is_response.then(|| status_name(self.status)),
            message: self.message,
            octets: self.octets,
        }
    }
}

fn status_name(status: Status) -> String {
    let named = status.name().map(str::to_owned);
    named.unwrap_or_else(|| status.to_string())
}

fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The message that a PDU is about, if it names one.
fn message_of(body: &Body, form: ReceiptId) -> Option<u64> {
    let read = |id: &[u8]| read_message_id(id, form);
    match body {
        Body::SubmitSmResp(resp) | Body::DataSmResp(resp) => read(&resp.message_id),
        Body::SubmitMultiResp(resp) => read(&resp.message_id),
        Body::QuerySm(query) => read(&query.message_id),
        Body::QuerySmResp(resp) => read(&resp.message_id),
        Body::CancelSm(cancel) => read(&cancel.message_id),
        Body::DeliverSm(message) => read(&message.tlvs.receipted_message_id()?),
        _ => None,
    }
}

/// How many messages each second of the last minute had.
struct LastMinute {
    counts: [u32; MINUTE_S],
    /// The newest second that is counted.
    newest_s: i64,
}

impl Default for LastMinute {
    fn default() -> Self {
        Self {
            counts: [0; MINUTE_S],
            newest_s: 0,
        }
    }
}

impl LastMinute {
    fn count(&mut self, now: Timestamp) {
        let slot = self.advance(now);
        self.counts[slot] = self.counts[slot].saturating_add(1);
    }

    fn sum(&mut self, now: Timestamp) -> u32 {
        self.advance(now);
        self.counts.iter().copied().fold(0, u32::saturating_add)
    }

    /// Forgets seconds that are more than a minute old, and returns the slot of this one. A clock that was set back
    /// counts as standing still.
    fn advance(&mut self, now: Timestamp) -> usize {
        let slot = |second: i64| usize::try_from(second).unwrap_or(0) % MINUTE_S;
        let now_s = now.as_second().max(self.newest_s);
        if now_s - self.newest_s >= 60 {
            self.counts = [0; MINUTE_S];
        } else {
            for second in self.newest_s + 1..=now_s {
                self.counts[slot(second)] = 0;
            }
        }
        self.newest_s = now_s;
        slot(now_s)
    }
}

/// How often each status was seen.
#[derive(Default)]
struct StatusCounts {
    counts: Vec<(Status, u64)>,
    others: u64,
}

impl StatusCounts {
    fn count(&mut self, status: Status) {
        let found = self.counts.iter_mut().find(|(known, _)| *known == status);
        if let Some((_, count)) = found {
            *count += 1;
        } else if self.counts.len() < MAX_STATUSES {
            self.counts.push((status, 1));
        } else {
            self.others += 1;
        }
    }

    fn list(&self) -> Vec<StatusCount> {
        let counts = self.counts.iter();
        let counts = counts.map(|(status, count)| (status_name(*status), *count));
        let others = (self.others > 0).then(|| (OTHERS.to_owned(), self.others));
        let all = counts.chain(others);
        all.map(|(status, count)| StatusCount { status, count })
            .collect()
    }
}

#[cfg(test)]
mod tests;
