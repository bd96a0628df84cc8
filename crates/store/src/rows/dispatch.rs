//! Rows of sending: queued messages, parts in transit.

use domain::delivery::{Claim, QueuedMessage, SendResult, Settlement};
use domain::ids::{AccountId, MessageId, PoolId};
use domain::message::interactive::Interactive;
use domain::message::outcome::{Outcome, TakenParts};
use domain::message::text::{Coding, Shape, Udh};
use domain::message::{Priority, TestMode};
use domain::ports::{ClaimedRow, InTransit, Inbox, PoolClaim};
use domain::{Code, KeyRing, Msisdn, Originator, TraceContext};

use super::binds::{pool_of, pool_owner};
use super::{Corrupt, SqlRow, account_id, message_id, micros, timestamp, utf8};

/// The columns of a message and its queue row that a worker needs.
pub(crate) struct QueuedMessageColumns {
    pub(crate) id: i64,
    pub(crate) account_id: i64,
    pub(crate) channel: i16,
    pub(crate) interactive: Option<Vec<u8>>,
    pub(crate) recipient: i64,
    pub(crate) originator: String,
    pub(crate) body: Vec<u8>,
    pub(crate) coding: i16,
    pub(crate) udh: Option<Vec<u8>>,
    pub(crate) parts: i16,
    pub(crate) priority: i16,
    pub(crate) test_mode: Option<i16>,
    pub(crate) expires_us: i64,
    pub(crate) due_us: i64,
    pub(crate) attempt: i32,
    pub(crate) tries: i32,
    /// The owner before the claim.
    pub(crate) owner: i64,
    pub(crate) unknown_tries: i16,
    /// Until the message ends, the carrier that did not answer.
    pub(crate) carrier: Option<String>,
    pub(crate) trace: Option<Vec<u8>>,
    pub(crate) notice: Option<i16>,
}

impl QueuedMessageColumns {
    pub(crate) fn queued(self) -> Result<QueuedMessage, Corrupt> {
        Ok(QueuedMessage {
            id: message_id(self.id)?,
            account: account_id(self.account_id)?,
            to: recipient(self.recipient)?,
            channel: super::channel(self.channel)?,
            interactive: interactive(self.interactive.as_deref())?,
            from: from(&self.originator)?,
            shape: shape(self.coding, self.parts)?,
            udh: udh(self.udh)?,
            priority: priority(self.priority)?,
            test_mode: self.test_mode.map(test_mode).transpose()?,
            notice: self.notice == Some(1),
            expires_at: timestamp(self.expires_us)?,
            claim: claim(self.due_us, self.attempt)?,
            tries: u32::try_from(self.tries).map_err(|_| Corrupt("tries"))?,
            pool: pool_of(self.owner),
            unknown_tries: u32::from(self.unknown_tries.unsigned_abs()),
            unanswered_by: self.carrier.filter(|_| self.unknown_tries > 0),
            trace: trace(self.trace.as_deref()).map(|trace| *trace),
            text: utf8(self.body)?,
        })
    }
}

/// A range of the queue that a claim reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolRange {
    pub(crate) pool: PoolId,
    pub(crate) owner: i64,
    pub(crate) lane: i16,
    /// The maximum number of rows to claim; not 0.
    pub(crate) limit: u32,
    /// The claim starts with the accounts after this one.
    pub(crate) after: i64,
}

/// The maximum number of accounts that one claim serves in a lane of a pool.
pub(crate) const ACCOUNTS: u32 = 64;

/// The ranges of pools that a claim reads, the most urgent lane first.
pub(crate) fn pool_ranges(pools: &[PoolClaim]) -> Vec<PoolRange> {
    let mut ranges = Vec::with_capacity(pools.len());
    for (lane, index) in Priority::ALL.map(Priority::lane).into_iter().zip(0..) {
        let wanted = pools.iter().filter(|claim| claim.limits[index] > 0);
        ranges.extend(wanted.map(|claim| PoolRange {
            pool: claim.pool,
            owner: pool_owner(claim.pool),
            lane,
            limit: claim.limits[index],
            after: claim.after[index].map_or(-1, AccountId::as_i64),
        }));
    }
    ranges
}

/// The columns of a queue row that a node holds.
pub(crate) struct ClaimedColumns {
    pub(crate) lane: i16,
    pub(crate) due_us: i64,
    pub(crate) id: i64,
    pub(crate) attempt: i32,
}

impl ClaimedColumns {
    pub(crate) fn from_row(row: &ClaimedRow) -> Self {
        Self {
            lane: row.priority.lane(),
            due_us: micros(row.claim.due_at),
            id: row.id.as_i64(),
            attempt: attempt(&row.claim),
        }
    }

    pub(crate) fn row(self) -> Result<ClaimedRow, Corrupt> {
        Ok(ClaimedRow {
            id: message_id(self.id)?,
            priority: priority(self.lane)?,
            claim: claim(self.due_us, self.attempt)?,
        })
    }
}

/// The lanes that a list of held rows reads, and the due time and ID after which each starts.
pub(crate) fn lanes_after(after: Option<&ClaimedRow>) -> impl Iterator<Item = (i16, i64, i64)> {
    let after = after.map(ClaimedColumns::from_row);
    let (first, due_us, id) = after.map_or((i16::MIN, i64::MIN, i64::MIN), |row| {
        (row.lane, row.due_us, row.id)
    });
    let lanes = Priority::ALL.map(Priority::lane).into_iter();
    lanes.filter(move |lane| *lane >= first).map(move |lane| {
        if lane == first {
            (lane, due_us, id)
        } else {
            (lane, i64::MIN, i64::MIN)
        }
    })
}

/// Reads the coding and the number of parts.
pub(crate) fn shape(coding: i16, parts: i16) -> Result<Shape, Corrupt> {
    let coding = u8::try_from(coding).ok().and_then(Coding::from_number);
    Ok(Shape {
        coding: coding.ok_or(Corrupt("coding"))?,
        parts: u8::try_from(parts).map_err(|_| Corrupt("number of parts"))?,
    })
}

/// Reads a claim.
pub(crate) fn claim(due_us: i64, attempt: i32) -> Result<Claim, Corrupt> {
    Ok(Claim {
        due_at: timestamp(due_us)?,
        attempt: u32::try_from(attempt).map_err(|_| Corrupt("attempt"))?,
    })
}

/// `queue.attempt` of a claim. A number that is too large matches no row.
pub(crate) fn attempt(claim: &Claim) -> i32 {
    i32::try_from(claim.attempt).unwrap_or(i32::MAX)
}

pub(super) fn recipient(number: i64) -> Result<Msisdn, Corrupt> {
    Msisdn::from_i64(number).ok_or(Corrupt("recipient"))
}

fn from(text: &str) -> Result<Option<Originator>, Corrupt> {
    if text.is_empty() {
        return Ok(None);
    }
    let from = Originator::parse_approved(text);
    from.map(Some).map_err(|_| Corrupt("originator"))
}

/// Reads the button and the image of a Viber message.
pub(crate) fn interactive(json: Option<&[u8]>) -> Result<Option<Interactive>, Corrupt> {
    let read = json.map(Interactive::from_json).transpose();
    read.map_err(|_| Corrupt("interactive part"))
}

fn udh(octets: Option<Vec<u8>>) -> Result<Option<Udh>, Corrupt> {
    let read = octets.map(|octets| Udh::from_bytes(&octets)).transpose();
    read.map_err(|_| Corrupt("user data header"))
}

/// Reads a lane.
pub(crate) fn priority(lane: i16) -> Result<Priority, Corrupt> {
    let lane = Priority::ALL.into_iter().find(|p| p.lane() == lane);
    lane.ok_or(Corrupt("lane"))
}

/// Reads the test mode of a message.
pub(crate) fn test_mode(number: i16) -> Result<TestMode, Corrupt> {
    TestMode::from_number(number.into()).ok_or(Corrupt("test mode"))
}

/// What happens to a queue row when its attempt is settled.
pub(crate) enum Move<'a> {
    /// It moves to another owner, lane or due time.
    To {
        owner: i64,
        lane: i16,
        due_us: i64,
        /// How many attempts this adds.
        tries: i32,
        /// `queue.account_id` and `queue.expires_us`.
        pool_account: i64,
        pool_expires_us: Option<i64>,
        /// The carrier that took the message, and its references for the parts.
        taken: Option<(&'a str, Vec<&'a str>)>,
    },
    /// It is removed: the message has ended.
    Remove(Ending<'a>),
}

/// `queue.account_id` of rows outside of pools.
pub(crate) const NO_ACCOUNT: i64 = 0;
/// How a message ends when its attempt is settled.
pub(crate) struct Ending<'a> {
    pub(crate) outcome: Outcome,
    /// The answer for the caller of a lookup.
    pub(crate) report: Option<&'a str>,
    /// The carrier that took some of its parts, and its references for them.
    pub(crate) taken: Option<(&'a str, Vec<&'a str>)>,
    /// The carrier that answered a lookup.
    pub(crate) answered_by: Option<&'a str>,
}

impl<'a> Ending<'a> {
    fn new(outcome: Outcome, report: Option<&'a str>) -> Self {
        Self {
            outcome,
            report,
            taken: None,
            answered_by: None,
        }
    }

    /// The carrier that took a part or answered.
    pub(crate) fn carrier(&self) -> Option<&'a str> {
        let taken_by = self.taken.as_ref().map(|(carrier, _)| *carrier);
        taken_by.or(self.answered_by)
    }

    pub(crate) fn taken_parts(&self) -> TakenParts {
        match (&self.taken, self.report) {
            (Some((_, references)), _) => {
                TakenParts::Only(u16::try_from(references.len()).unwrap_or(u16::MAX))
            }
            // A carrier that answers took the whole message.
            (None, Some(_)) => TakenParts::All,
            (None, None) => TakenParts::Only(0),
        }
    }
}

/// A receipt is compared with at most this many parts with its reference, the newest ones. Older parts get no receipt,
/// and their messages end when they expire.
pub(crate) const MAX_USES: i32 = 33;

/// `early_receipt.tail` of a receipt that does not tell the recipient.
pub(crate) const NO_TAIL: i32 = -1;

/// `queue.owner`: a carrier, from which the message's receipt is awaited.
const CARRIER: i64 = -1;

impl<'a> Move<'a> {
    pub(crate) fn from_settlement(settlement: &'a Settlement) -> Self {
        let lane = settlement.priority.lane();
        let wait = |time, tries| Self::To {
            owner: super::NOBODY,
            lane,
            due_us: micros(time),
            tries,
            pool_account: NO_ACCOUNT,
            pool_expires_us: None,
            taken: None,
        };
        match &settlement.sent {
            SendResult::Taken {
                carrier,
                references,
            } => Self::To {
                owner: CARRIER,
                lane: 0,
                due_us: micros(settlement.expires_at),
                tries: 0,
                pool_account: NO_ACCOUNT,
                pool_expires_us: None,
                taken: Some((carrier, distinct(references))),
            },
            SendResult::Later(time) | SendResult::Unknown { again: time, .. } => wait(*time, 0),
            SendResult::Retry(time) => wait(*time, 1),
            // It keeps its due time, and so its position in the queue.
            SendResult::Pooled { pool, account } => Self::To {
                owner: pool_owner(*pool),
                lane,
                due_us: micros(settlement.claim.due_at),
                tries: 0,
                pool_account: account.as_i64(),
                pool_expires_us: Some(micros(settlement.expires_at)),
                taken: None,
            },
            SendResult::Over(outcome) => Self::Remove(Ending::new(*outcome, None)),
            SendResult::Answered {
                carrier,
                outcome,
                report,
            } => Self::Remove(Ending {
                answered_by: carrier.as_deref(),
                ..Ending::new(*outcome, Some(report))
            }),
            SendResult::PartlyTaken {
                carrier,
                references,
                outcome,
            } => Self::Remove(Ending {
                taken: Some((carrier, distinct(references))),
                ..Ending::new(*outcome, None)
            }),
        }
    }
}

/// The outcome of an expired message.
pub(crate) const fn expired(taken: bool) -> Outcome {
    if taken {
        Outcome::Expired
    } else {
        Outcome::Failed(Code::EXPIRED)
    }
}

/// The references without duplicates: a carrier that gives two parts the same reference sends one receipt for both.
fn distinct(references: &[String]) -> Vec<&str> {
    let mut distinct = Vec::with_capacity(references.len());
    for reference in references {
        if !distinct.contains(&reference.as_str()) {
            distinct.push(reference);
        }
    }
    distinct
}

/// Reads a trace. One that cannot be read is left out, because it must not stop its message.
pub(crate) fn trace(bytes: Option<&[u8]>) -> Option<Box<TraceContext>> {
    bytes.and_then(TraceContext::from_bytes).map(Box::new)
}

/// The columns of a part in transit.
pub(crate) struct TransitColumns {
    pub(crate) reference: Vec<u8>,
    pub(crate) recipient: i64,
    pub(crate) taken_us: i64,
}

impl TransitColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            reference: row.column(0)?,
            recipient: row.column(1)?,
            taken_us: row.column(2)?,
        })
    }

    pub(crate) fn in_transit(self) -> Result<InTransit, Corrupt> {
        Ok(InTransit {
            reference: utf8(self.reference)?,
            to: recipient(self.recipient)?,
            taken_at: timestamp(self.taken_us)?,
        })
    }
}

/// The columns of a message on a simulated handset.
pub(crate) struct InboxColumns {
    pub(crate) originator: String,
    pub(crate) body: Vec<u8>,
    pub(crate) final_us: i64,
    pub(crate) code_text: Option<Vec<u8>>,
}

impl InboxColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            originator: row.column(0)?,
            body: row.column(1)?,
            final_us: row.column(2)?,
            code_text: row.column(3)?,
        })
    }

    pub(crate) fn inbox(self, keys: &KeyRing, to: &Msisdn) -> Result<Inbox, Corrupt> {
        let text = match self.code_text {
            Some(encrypted) => code_text(keys, to, &encrypted)?,
            None => utf8(self.body)?,
        };
        Ok(Inbox {
            from: self.originator,
            text,
            at: timestamp(self.final_us)?,
        })
    }
}

/// Decrypts a text that carries a code.
pub(crate) fn code_text(keys: &KeyRing, to: &Msisdn, encrypted: &[u8]) -> Result<String, Corrupt> {
    domain::message::code_text::decrypt(keys, to, encrypted).map_err(|error| {
        tracing::error!(%error, "the text of a confirmation code cannot be decrypted");
        Corrupt("text of a code")
    })
}

/// The columns of a message that retention reads, in the order of IDs.
pub(crate) struct PruneColumns {
    pub(crate) id: i64,
    pub(crate) accepted_us: i64,
    pub(crate) final_us: Option<i64>,
    pub(crate) has_waiting_report: bool,
}

impl PruneColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            accepted_us: row.column(1)?,
            final_us: row.column(2)?,
            has_waiting_report: row.column(3)?,
        })
    }

    /// Whether no later message can have ended before the time: IDs ascend with acceptance, and no message ends before
    /// it is accepted. So retention reads the beginning of the table and stops, however long the history is.
    pub(crate) fn is_too_young(&self, before_us: i64) -> bool {
        self.accepted_us > before_us
    }

    /// Whether the message may be deleted.
    pub(crate) fn is_over(&self, before_us: i64) -> bool {
        self.final_us.is_some_and(|at| at <= before_us) && !self.has_waiting_report
    }
}

/// The body of the delivery report of an ended message.
pub(crate) fn payload(id: i64, outcome: Outcome, network: Option<i32>) -> Result<String, Corrupt> {
    let id: MessageId = message_id(id)?;
    let network = super::billing::network(network)?;
    Ok(domain::delivery::report_payload(id, outcome, network))
}

/// The body of the report that a message was seen.
pub(crate) fn seen_payload(id: i64, network: Option<i32>) -> Result<String, Corrupt> {
    let network = super::billing::network(network)?;
    Ok(domain::delivery::seen_payload(message_id(id)?, network))
}
