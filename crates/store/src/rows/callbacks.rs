//! Rows of callbacks.

use domain::delivery::receiver::ReceiverId;
use domain::delivery::{Callback, CallbackAttempt, CallbackKind, CallbackNext};
use domain::ids::{AccountId, CallbackId};
use domain::ports::{
    CallbackFilter, CallbackRecord, CallbackState, CallbackSubject, HeldCallback, Page,
    ReplayCursor, ReplayRequest, ReplaySource,
};
use domain::{CallbackUrl, Channel, TraceContext};

use super::dispatch::{claim, payload};
use super::senders::sender_id;
use super::{Corrupt, SqlRow, account_id, message_id, micros, outcome, timestamp, utf8};

/// `callback.state`: has a row in the queue.
pub(crate) const WAITING: i16 = 0;
/// `callback.state`: not sent again until somebody replays it.
pub(crate) const PARKED: i16 = 1;
/// `callback.state`: was received.
pub(crate) const DONE: i16 = 2;

/// The columns that the body of a callback is made of.
#[derive(Debug)]
pub(crate) struct TextColumns {
    /// The stored body of the callback, or the result of a lookup.
    pub(crate) payload: Option<String>,
    pub(crate) message_id: i64,
    pub(crate) status: Option<i16>,
    pub(crate) error: Option<i16>,
    pub(crate) network: Option<i32>,
}

impl TextColumns {
    /// The columns from `first` on.
    pub(crate) fn read<R: SqlRow>(row: &R, first: usize) -> Result<Self, R::Error> {
        Ok(Self {
            payload: row.column(first)?,
            message_id: row.column(first + 1)?,
            status: row.column(first + 2)?,
            error: row.column(first + 3)?,
            network: row.column(first + 4)?,
        })
    }

    pub(crate) fn payload(self) -> Result<String, Corrupt> {
        match self.payload {
            Some(payload) => Ok(payload),
            None => payload(
                self.message_id,
                outcome(self.status, self.error)?,
                self.network,
            ),
        }
    }
}

/// The columns of a callback that a node holds.
#[derive(Debug)]
pub(crate) struct CallbackColumns {
    pub(crate) id: i64,
    pub(crate) kind: i16,
    pub(crate) account_id: i64,
    pub(crate) url: Vec<u8>,
    pub(crate) text: TextColumns,
    pub(crate) created_us: i64,
    pub(crate) tries: i32,
    pub(crate) due_us: i64,
    pub(crate) attempt: i32,
    pub(crate) trace: Option<Box<TraceContext>>,
}

impl CallbackColumns {
    pub(crate) fn callback(self) -> Result<Callback, Corrupt> {
        let kind = kind(self.kind)?;
        let message = match subject(kind, self.text.message_id)? {
            CallbackSubject::Message(id) | CallbackSubject::Inbound(id) => Some(id),
            CallbackSubject::Sender(_) => None,
        };
        Ok(Callback {
            id: callback_id(self.id)?,
            message,
            kind,
            account: account_id(self.account_id)?,
            url: CallbackUrl::parse_stored(&utf8(self.url)?)
                .map_err(|_| Corrupt("callback URL"))?,
            payload: self.text.payload()?,
            created_at: timestamp(self.created_us)?,
            tries: tries(self.tries)?,
            claim: claim(self.due_us, self.attempt)?,
            trace: self.trace,
        })
    }
}

fn callback_id(number: i64) -> Result<CallbackId, Corrupt> {
    CallbackId::from_i64(number).ok_or(Corrupt("callback ID"))
}

fn kind(number: i16) -> Result<CallbackKind, Corrupt> {
    CallbackKind::from_number(number).ok_or(Corrupt("kind of callback"))
}

fn tries(number: i32) -> Result<u32, Corrupt> {
    u32::try_from(number).map_err(|_| Corrupt("number of tries"))
}

/// `callback.state`, and the due time of a callback that is sent later.
pub(crate) fn next_columns(next: CallbackNext) -> (i16, Option<i64>) {
    match next {
        CallbackNext::Done => (DONE, None),
        CallbackNext::Parked => (PARKED, None),
        CallbackNext::Later(time) => (WAITING, Some(micros(time))),
        CallbackNext::Queued(_) => (WAITING, None),
    }
}

/// `callback_queue.owner` of a callback that returns to its receiver's queue.
pub(crate) fn next_queue(next: CallbackNext) -> Option<i64> {
    match next {
        CallbackNext::Queued(receiver) => Some(queue_owner(receiver)),
        CallbackNext::Done | CallbackNext::Parked | CallbackNext::Later(_) => None,
    }
}

/// `callback_queue.owner` of callbacks in a receiver's queue.
pub(crate) const fn queue_owner(receiver: ReceiverId) -> i64 {
    -receiver.as_i64()
}

/// The receiver of this owner, the reverse of [`queue_owner`].
pub(crate) fn receiver(owner: i64) -> Result<ReceiverId, Corrupt> {
    let receiver = owner.checked_neg().and_then(ReceiverId::from_i64);
    receiver.ok_or(Corrupt("receiver"))
}

/// A row of the queue that a node holds.
pub(crate) fn held(id: i64, due_us: i64, attempt: i32) -> Result<HeldCallback, Corrupt> {
    Ok(HeldCallback {
        id: callback_id(id)?,
        claim: claim(due_us, attempt)?,
    })
}

pub(crate) fn replay_request(
    number: i64,
    account: Option<i64>,
    url_prefix: Vec<u8>,
) -> Result<ReplayRequest, Corrupt> {
    Ok(ReplayRequest {
        number: u64::try_from(number).map_err(|_| Corrupt("number of a request"))?,
        account: account.map(account_id).transpose()?,
        url_prefix: utf8(url_prefix)?,
    })
}

/// The columns of an attempt.
pub(crate) struct AttemptColumns {
    pub(crate) at_us: i64,
    pub(crate) status: Option<i32>,
    pub(crate) elapsed_ms: i64,
    pub(crate) body: Vec<u8>,
    pub(crate) address: Option<String>,
    pub(crate) reason: Vec<u8>,
}

impl AttemptColumns {
    /// The columns from `first` on.
    pub(crate) fn read<R: SqlRow>(row: &R, first: usize) -> Result<Self, R::Error> {
        Ok(Self {
            at_us: row.column(first)?,
            status: row.column(first + 1)?,
            elapsed_ms: row.column(first + 2)?,
            body: row.column(first + 3)?,
            address: row.column(first + 4)?,
            reason: row.column(first + 5)?,
        })
    }

    pub(crate) fn attempt(self) -> Result<CallbackAttempt, Corrupt> {
        let status = self.status.map(u16::try_from).transpose();
        Ok(CallbackAttempt {
            at: timestamp(self.at_us)?,
            status: status.map_err(|_| Corrupt("status"))?,
            elapsed_ms: u32::try_from(self.elapsed_ms).map_err(|_| Corrupt("time taken"))?,
            body: self.body,
            address: self.address,
            reason: utf8(self.reason)?,
        })
    }
}

/// The columns of a callback in lists.
pub(crate) struct RecordColumns {
    pub(crate) id: i64,
    pub(crate) kind: i16,
    pub(crate) account_id: i64,
    pub(crate) url: Vec<u8>,
    pub(crate) text: TextColumns,
    pub(crate) created_us: i64,
    pub(crate) due_us: i64,
    pub(crate) state: i16,
    pub(crate) tries: i32,
    pub(crate) last: Option<AttemptColumns>,
}

impl RecordColumns {
    pub(crate) fn record(self) -> Result<CallbackRecord, Corrupt> {
        // Lists also show callbacks whose rows are unreadable and cannot be sent.
        let kind = kind(self.kind).unwrap_or(CallbackKind::Report);
        Ok(CallbackRecord {
            id: callback_id(self.id)?,
            kind,
            about: subject(kind, self.text.message_id)?,
            account: account_id(self.account_id)?,
            url: String::from_utf8_lossy(&self.url).into_owned(),
            payload: self.text.payload().unwrap_or_default(),
            state: state(self.state, self.due_us)?,
            tries: tries(self.tries)?,
            created_at: timestamp(self.created_us)?,
            last: self.last.map(AttemptColumns::attempt).transpose()?,
        })
    }
}

/// The kind of callback for messages of a channel.
pub(crate) fn callback_kind(channel: Channel) -> CallbackKind {
    match channel {
        Channel::Sms | Channel::Viber => CallbackKind::Report,
        Channel::Hlr => CallbackKind::Lookup,
    }
}

fn subject(kind: CallbackKind, number: i64) -> Result<CallbackSubject, Corrupt> {
    match kind {
        CallbackKind::Report | CallbackKind::Lookup => {
            message_id(number).map(CallbackSubject::Message)
        }
        CallbackKind::Inbound => message_id(number).map(CallbackSubject::Inbound),
        CallbackKind::Sender => sender_id(number).map(CallbackSubject::Sender),
    }
}

fn state(number: i16, due_us: i64) -> Result<CallbackState, Corrupt> {
    match number {
        WAITING => Ok(CallbackState::Waiting {
            due_at: timestamp(due_us)?,
        }),
        PARKED => Ok(CallbackState::Parked),
        DONE => Ok(CallbackState::Done),
        _ => Err(Corrupt("callback state")),
    }
}

/// The parameters of a filter. A missing condition matches every row.
pub(crate) struct FilterColumns {
    pub(crate) account_id: Option<i64>,
    pub(crate) first_id: i64,
    pub(crate) last_id: i64,
    pub(crate) url_prefix: Vec<u8>,
    pub(crate) from_us: i64,
    pub(crate) until_us: i64,
}

impl FilterColumns {
    pub(crate) fn from_filter(filter: &CallbackFilter) -> Self {
        let id = filter.id.map(CallbackId::as_i64);
        Self {
            account_id: filter.account.map(AccountId::as_i64),
            first_id: id.unwrap_or(0),
            last_id: id.unwrap_or(i64::MAX),
            url_prefix: filter.url_prefix.clone().unwrap_or_default().into_bytes(),
            from_us: filter.from.map_or(i64::MIN, micros),
            until_us: filter.until.map_or(i64::MAX, micros),
        }
    }
}

/// How many rows one step of a replay reads and locks at most.
pub(crate) const REPLAY_ROWS: i64 = 1_000;

/// Where a replay continues after a step that read `rows` rows up to `last`.
pub(crate) fn replay_next(
    from: ReplayCursor,
    rows: i64,
    last: Option<ReplayCursor>,
    with_done: bool,
) -> Option<ReplayCursor> {
    match (last, from.source) {
        (Some(last), _) if rows >= REPLAY_ROWS => Some(last),
        (_, ReplaySource::Queue) => Some(ReplayCursor::before(ReplaySource::Parked)),
        (_, ReplaySource::Parked) if with_done => Some(ReplayCursor::before(ReplaySource::Done)),
        _ => None,
    }
}

/// How many callbacks one page of a search checks.
pub(crate) const ROWS: usize = 2_000;
/// Up to this many waiting callbacks are sorted by ID. If there are more, nearly all of the newest callbacks are
/// waiting.
pub(crate) const OPEN: usize = 5_000;

/// The callbacks that one page of a search checks, the newest first.
pub(crate) struct Window {
    pub(crate) ids: Vec<i64>,
    /// The cursor of the next page if all of them were checked.
    next: Option<i64>,
    with_done: bool,
}

impl Window {
    /// All waiting callbacks, and the newest parked ones.
    pub(crate) fn from_open(open: Vec<i64>, parked: Vec<i64>) -> Self {
        // More parked callbacks may follow the last one listed.
        let last = (parked.len() == ROWS)
            .then(|| parked.last().copied())
            .flatten();
        let mut ids = open;
        ids.retain(|id| last.is_none_or(|last| *id >= last));
        ids.extend(parked);
        ids.sort_unstable_by(|one, other| other.cmp(one));
        let beyond = ids.len() > ROWS;
        ids.truncate(ROWS);
        let next = if beyond { ids.last().copied() } else { last };
        Self {
            ids,
            next,
            with_done: false,
        }
    }

    /// The newest callbacks in any state.
    pub(crate) fn from_all(ids: Vec<i64>, with_done: bool) -> Self {
        let next = (ids.len() == ROWS).then(|| ids.last().copied()).flatten();
        Self {
            ids,
            next,
            with_done,
        }
    }

    /// Whether the search includes this callback.
    pub(crate) fn includes(&self, record: &CallbackRecord) -> bool {
        self.with_done || record.state != CallbackState::Done
    }

    /// The page. `stopped` is the last ID checked if the page was full before all of them were checked.
    pub(crate) fn page(
        &self,
        records: Vec<CallbackRecord>,
        stopped: Option<i64>,
    ) -> Result<Page<CallbackRecord, CallbackId>, Corrupt> {
        let next = stopped.or(self.next).map(callback_id);
        Ok(Page {
            rows: records,
            next: next.transpose()?,
        })
    }
}
