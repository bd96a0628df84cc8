//! How messages end: the final state, the expiry and the delivery report are stored in the transaction that ends them.

use domain::delivery::{CallbackKind, CarrierRef};
use domain::ids::NodeId;
use domain::message::lookup;
use domain::message::outcome::{Outcome, TakenParts};
use domain::{Channel, TraceContext};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::{billing, clock, traffic};
use crate::rows::callbacks::{CallbackColumns, TextColumns};
use crate::rows::dispatch::{self, seen_payload};
use crate::rows::ended::EndedColumns;
use crate::rows::records::Sent;
use crate::rows::traffic::{EndedMessage, Tally, counted_network, latency_bucket};
use crate::rows::{self, NOBODY, outcome_numbers};

/// Final states never change. A message gets the network that its receipt named. `?9` is how many parts of an SMS or
/// Viber message stay charged, NULL for all.
const END: &str = "
    UPDATE message SET status = ?2, error = ?3, final_us = ?4, result = CASE WHEN channel = 2 THEN ?5 END,
        carrier = ?6, sent_us = ?7, cost_micros = ?8, network = CASE WHEN channel = 2 THEN network
            ELSE coalesce(?10, network) END, charged_micros = CASE WHEN channel = 2 OR ?9 IS NULL
            THEN price_micros ELSE price_micros / max(parts, 1) * min(?9, max(parts, 1)) END
    WHERE id = ?1 AND final_us IS NULL
    RETURNING account_id, dlr_url, expires_us, price_micros, network, channel, parts,
        coalesce(scheduled_us, accepted_us), trace, test_mode IS NOT NULL, recipient, country";
/// For a lookup that ended without an answer.
const SET_LOOKUP_RESULT: &str =
    "UPDATE message SET status = ?2, error = ?3, result = ?4 WHERE id = ?1";
const SET_CHARGED: &str = "UPDATE message SET charged_micros = ?2 WHERE id = ?1";
const STOP_TIMER: &str =
    "DELETE FROM queue WHERE owner = -1 AND lane = 0 AND due_us = ?1 AND id = ?2";
const CREATE_CALLBACK: &str = "
    INSERT INTO callback (account_id, message_id, created_us, due_us, kind, state, tries)
    VALUES (?1, ?2, ?3, ?4, ?5, 0, 0)";
/// Stored in full, because its message has another final state.
const REPORT_SEEN: &str = "
    INSERT INTO callback (account_id, message_id, url, payload, created_us, due_us, kind, state, tries, trace)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, ?7)";
const MARK_SEEN: &str = "
    UPDATE message SET seen_us = ?3
    WHERE id = (
        SELECT id FROM transit WHERE carrier = ?1 AND reference = ?2 ORDER BY number DESC LIMIT 1
    ) AND status = 1 AND seen_us IS NULL
    RETURNING account_id, dlr_url, network, id, trace";
const QUEUE_CALLBACK: &str =
    "INSERT INTO callback_queue (owner, due_us, id, attempt) VALUES (?1, ?2, ?3, ?4)";
const FIND_PARTS_LEFT: &str = "SELECT parts_left FROM message WHERE id = ?1 AND final_us IS NULL";
const SET_PARTS_LEFT: &str = "UPDATE message SET parts_left = ?2 WHERE id = ?1";

/// How a message, or a part of it, ended.
#[derive(Clone, Copy)]
pub(super) struct End<'a> {
    pub(super) outcome: Outcome,
    pub(super) taken: TakenParts,
    /// The answer for the caller of a lookup.
    pub(super) report: Option<&'a str>,
    /// The network that the receipt named.
    pub(super) network: Option<i32>,
    pub(super) at_us: i64,
    /// The carrier that took it, if one did.
    pub(super) sent: Option<Sent<'a>>,
}

/// What a report on one part does to its message.
pub(super) enum Progress {
    /// It ended.
    Ended(EndedColumns),
    /// Other parts have no outcome yet.
    Open,
    /// It had ended before.
    AlreadyEnded,
}

/// The statements of the hot path, prepared once for a batch.
pub(super) struct Endings<'db> {
    db: &'db Connection,
    end: CachedStatement<'db>,
    stop_timer: CachedStatement<'db>,
    create_callback: CachedStatement<'db>,
    queue_callback: CachedStatement<'db>,
    /// The node that holds the delivery reports with a first claim, if any.
    holder: Option<NodeId>,
    now_us: i64,
    tally: Tally,
}

impl<'db> Endings<'db> {
    pub(super) fn prepare(db: &'db Connection, holder: Option<NodeId>) -> Result<Self> {
        Ok(Self {
            db,
            end: db.prepare_cached(END)?,
            stop_timer: db.prepare_cached(STOP_TIMER)?,
            create_callback: db.prepare_cached(CREATE_CALLBACK)?,
            queue_callback: db.prepare_cached(QUEUE_CALLBACK)?,
            holder,
            now_us: clock::now_us(db)?,
            tally: Tally::default(),
        })
    }

    /// Counts the ended messages; called after the batch.
    pub(super) fn close(self) -> Result<()> {
        traffic::count(self.db, &self.tally)
    }

    /// The time at which this batch is stored.
    pub(super) fn now_us(&self) -> i64 {
        self.now_us
    }

    /// Stores the outcome of one part: the message is delivered when all parts are, and fails with the first part that
    /// fails.
    pub(super) fn report_part(&mut self, id: i64, parts: i16, end: End<'_>) -> Result<Progress> {
        if parts > 1 && end.outcome == Outcome::Delivered {
            let mut find = self.db.prepare_cached(FIND_PARTS_LEFT)?;
            let left: Option<Option<i16>> = find.query_row([id], |row| row.get(0)).optional()?;
            let Some(left) = left else {
                return Ok(Progress::AlreadyEnded);
            };
            let left = left.unwrap_or(parts) - 1;
            if left > 0 {
                let mut set = self.db.prepare_cached(SET_PARTS_LEFT)?;
                set.execute(params![id, left])?;
                return Ok(Progress::Open);
            }
        }
        let ended = self.end(id, end)?;
        Ok(ended.map_or(Progress::AlreadyEnded, Progress::Ended))
    }

    /// Ends a message; `None` when it had ended before.
    pub(super) fn end(&mut self, id: i64, end: End<'_>) -> Result<Option<EndedColumns>> {
        let (status, error) = outcome_numbers(end.outcome);
        let sent = end.sent.as_ref();
        let values = params![
            id,
            status,
            error,
            end.at_us,
            end.report,
            sent.map(|sent| sent.carrier),
            sent.map(|sent| sent.at_us),
            sent.and_then(|sent| sent.cost_micros),
            // The same for SMS and Viber.
            end.outcome.charged_parts(Channel::Sms, end.taken),
            end.network,
        ];
        let Some(message) = self.end.query_row(values, Message::read).optional()? else {
            return Ok(None);
        };
        self.stop_timer.execute([message.expires_us, id])?;
        let channel = rows::channel(message.channel)?;
        let (outcome, report) = match (channel, end.report) {
            (Channel::Hlr, Some(report)) => (end.outcome, Some(report.to_owned())),
            (Channel::Hlr, None) => self.store_unanswered(id, end.outcome)?,
            (Channel::Sms | Channel::Viber, _) => (end.outcome, None),
        };
        let mut cost_micros = message.price_micros;
        if let Some(charged) = outcome.charged_parts(channel, end.taken) {
            cost_micros = message.price_of(charged);
            let refund = message.price_micros - cost_micros;
            billing::refund(self.db, message.account_id, refund, end.at_us)?;
            if channel == Channel::Hlr {
                let mut set_charged = self.db.prepare_cached(SET_CHARGED)?;
                set_charged.execute([id, cost_micros])?;
            }
        }
        if !message.is_test {
            self.tally
                .add(&message.ended(channel, outcome, cost_micros, end.at_us));
        }
        let mut callback = None;
        if let Some(url) = message.dlr_url {
            let (status, error) = outcome_numbers(outcome);
            let text = TextColumns {
                payload: report,
                message_id: id,
                status: Some(status),
                error: Some(error),
                network: message.network,
            };
            let kind = rows::callbacks::callback_kind(channel);
            callback = self.create_callback(kind, message.account_id, url, text, end.at_us)?;
        }
        if let Some(callback) = &mut callback {
            callback.trace.clone_from(&message.trace);
        }
        Ok(Some(EndedColumns {
            id,
            channel,
            network: message.network,
            named: end.network.map(|network| (message.recipient, network)),
            outcome,
            began_us: message.began_us,
            ended_us: end.at_us,
            callback,
            trace: message.trace,
        }))
    }

    /// Creates and stores the result of a lookup that ended without an answer.
    fn store_unanswered(&self, id: i64, outcome: Outcome) -> Result<(Outcome, Option<String>)> {
        let (outcome, report) = lookup::unanswered(rows::message_id(id)?, outcome);
        let (status, error) = outcome_numbers(outcome);
        let mut store_unanswered = self.db.prepare_cached(SET_LOOKUP_RESULT)?;
        store_unanswered.execute(params![id, status, error, report])?;
        Ok((outcome, Some(report)))
    }

    /// Creates the report, and returns it if the node is to hold it.
    fn create_callback(
        &mut self,
        kind: CallbackKind,
        account_id: i64,
        url: Vec<u8>,
        text: TextColumns,
        created_us: i64,
    ) -> Result<Option<CallbackColumns>> {
        let kind = kind.number();
        let values = params![account_id, text.message_id, created_us, self.now_us, kind];
        let id = self.create_callback.insert(values)?;
        let owner = self.holder.map_or(NOBODY, NodeId::as_i64);
        let attempt = i32::from(self.holder.is_some());
        let values = params![owner, self.now_us, id, attempt];
        self.queue_callback.execute(values)?;
        Ok(self.holder.map(|_| CallbackColumns {
            id,
            kind,
            account_id,
            url,
            text,
            created_us,
            tries: 0,
            due_us: self.now_us,
            attempt,
            trace: None,
        }))
    }
}

struct Message {
    account_id: i64,
    dlr_url: Option<Vec<u8>>,
    expires_us: i64,
    price_micros: i64,
    network: Option<i32>,
    channel: i16,
    parts: i16,
    /// When it was accepted, or the later time that its sender asked for.
    began_us: i64,
    trace: Option<Box<TraceContext>>,
    /// Test messages are not counted.
    is_test: bool,
    recipient: i64,
    country: Option<i16>,
}

impl Message {
    /// The price of a number of its parts.
    fn price_of(&self, parts: u16) -> i64 {
        let whole = i64::from(self.parts.max(1));
        self.price_micros / whole * i64::from(parts).min(whole)
    }

    fn ended(
        &self,
        channel: Channel,
        outcome: Outcome,
        cost_micros: i64,
        at_us: i64,
    ) -> EndedMessage {
        let (status, error) = outcome_numbers(outcome);
        let has_latency = channel != Channel::Hlr && outcome == Outcome::Delivered;
        EndedMessage {
            account_id: self.account_id,
            channel: self.channel,
            network: counted_network(self.network, self.country),
            status,
            error,
            parts: self.parts,
            cost_micros,
            at_us,
            bucket: has_latency.then(|| latency_bucket(self.began_us, at_us)),
        }
    }

    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            account_id: row.get(0)?,
            dlr_url: row.get(1)?,
            expires_us: row.get(2)?,
            price_micros: row.get(3)?,
            network: row.get(4)?,
            channel: row.get(5)?,
            parts: row.get(6)?,
            began_us: row.get(7)?,
            trace: dispatch::trace(row.get_ref(8)?.as_bytes_or_null()?),
            is_test: row.get(9)?,
            recipient: row.get(10)?,
            country: row.get(11)?,
        })
    }
}

/// Stores that the recipient of a delivered message has seen it, and creates the report.
pub(super) fn mark_seen(db: &Connection, of: &CarrierRef, at_us: i64) -> Result<bool> {
    let values = params![of.carrier, of.reference.as_bytes(), at_us];
    let mut mark_seen = db.prepare_cached(MARK_SEEN)?;
    let Some(seen) = mark_seen.query_row(values, SeenMessage::read).optional()? else {
        return Ok(false);
    };
    if let Some(url) = seen.dlr_url {
        let (payload, now_us) = (seen_payload(seen.id, seen.network)?, clock::now_us(db)?);
        let values = params![
            seen.account_id,
            seen.id,
            url,
            payload,
            at_us,
            now_us,
            seen.trace
        ];
        let id = db.prepare_cached(REPORT_SEEN)?.insert(values)?;
        let values = params![NOBODY, now_us, id, 0];
        db.prepare_cached(QUEUE_CALLBACK)?.execute(values)?;
    }
    Ok(true)
}

struct SeenMessage {
    account_id: i64,
    dlr_url: Option<Vec<u8>>,
    network: Option<i32>,
    id: i64,
    trace: Option<Vec<u8>>,
}

impl SeenMessage {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            account_id: row.get(0)?,
            dlr_url: row.get(1)?,
            network: row.get(2)?,
            id: row.get(3)?,
            trace: row.get(4)?,
        })
    }
}
