//! Sending messages and callbacks: claims, results, receipts and delivery reports.

pub mod backoff;
pub mod receipt_match;
pub mod receiver;
pub mod sharing;

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;

use crate::callback_url::CallbackUrl;
use crate::delivery::receipt_match::NumberTail;
use crate::delivery::receiver::ReceiverId;
use crate::ids::{AccountId, CallbackId, MessageId, PoolId};
use crate::message::channel::Channel;
use crate::message::code::Code;
use crate::message::interactive::Interactive;
use crate::message::lookup::Subscriber;
use crate::message::outcome::Outcome;
use crate::message::text::{Shape, Udh};
use crate::message::{Priority, Recipient, Submission, TestMode};
use crate::money::Money;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;
use crate::sender::originator::Originator;
use crate::trace::TraceContext;

/// This node's right to work on a queued row. A settlement with another claim changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The position of the row in its lane.
    pub due_at: Timestamp,
    /// How often the row was claimed, including this claim. It fences off earlier claims.
    pub attempt: u32,
}

/// A queued message that this node holds and hands to a carrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    pub id: MessageId,
    pub account: AccountId,
    pub channel: Channel,
    pub to: Msisdn,
    /// `None` for a lookup.
    pub from: Option<Originator>,
    /// Empty for a lookup.
    pub text: String,
    /// The button and the image of a Viber message.
    pub interactive: Option<Interactive>,
    /// Coding and number of parts.
    pub shape: Shape,
    /// The caller's own user data header.
    pub udh: Option<Udh>,
    pub priority: Priority,
    pub test_mode: Option<TestMode>,
    /// Whether it is a message of the service itself. Opt-outs do not stop it.
    pub notice: bool,
    /// It is not sent after this time.
    pub expires_at: Timestamp,
    pub claim: Claim,
    /// How many attempts ended with "not now". Claims and moves between queues do not count.
    pub tries: u32,
    /// The pool that it was claimed from. Routing starts at that carrier: the earlier ones could not take the message,
    /// or belong to other nodes.
    pub pool: Option<PoolId>,
    /// How many earlier attempts got no answer. In each of them the carrier may have taken the message.
    pub unknown_tries: u32,
    /// The carrier of these attempts. No other one may get the message.
    pub unanswered_by: Option<String>,
    /// The trace of the request that the message came with.
    pub trace: Option<TraceContext>,
}

impl QueuedMessage {
    /// The message for one recipient of a submission, before its first try.
    pub fn new(submission: &Submission, recipient: &Recipient, attempt: u32) -> Self {
        Self {
            id: recipient.id,
            account: submission.account,
            channel: submission.channel,
            to: recipient.to,
            from: submission.from.clone(),
            text: submission.text.clone(),
            interactive: submission.interactive.clone(),
            shape: submission.shape,
            udh: submission.udh.clone(),
            priority: submission.priority,
            test_mode: submission.test_mode,
            notice: submission.notice,
            expires_at: submission.expires_at,
            claim: Claim {
                due_at: submission.due_at(),
                attempt,
            },
            tries: 0,
            pool: None,
            unknown_tries: 0,
            unanswered_by: None,
            trace: submission.trace,
        }
    }
}

/// The carrier name of the simulated network.
pub const SIMULATOR: &str = "simulator";

/// The ID that a carrier gave a part; the receipt repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CarrierRef {
    pub carrier: String,
    pub reference: String,
}

impl CarrierRef {
    /// The reference of a message whose carrier gave it none, or none that its reports repeat.
    pub fn by_message(carrier: &str, message: MessageId) -> Self {
        Self {
            carrier: carrier.to_owned(),
            reference: format!("@{message}"),
        }
    }
}

/// The result of one attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendResult {
    /// A carrier took every part.
    Taken {
        carrier: String,
        /// The carrier's reference of each part, in order.
        references: Vec<String>,
    },
    /// A carrier took some parts and finally refused the others, so the message has ended.
    PartlyTaken {
        carrier: String,
        /// The carrier's reference of each part that it took.
        references: Vec<String>,
        outcome: Outcome,
    },
    /// The carrier did not answer and may have taken the message. It is sent again, to this carrier only; the store
    /// counts such attempts.
    Unknown { carrier: String, again: Timestamp },
    /// No carrier was asked. Due again at this time.
    Later(Timestamp),
    /// A carrier answered "not now". Due again at this time.
    Retry(Timestamp),
    /// Waits in this pool until a node has capacity for it.
    Pooled {
        pool: PoolId,
        /// The account of the message: accounts share what is claimed from a pool.
        account: AccountId,
    },
    /// The message ended without a receipt.
    Over(Outcome),
    /// A lookup ended, with this report for its caller.
    Answered {
        /// The carrier that answered; `None` if no carrier did.
        carrier: Option<String>,
        outcome: Outcome,
        /// JSON.
        report: String,
    },
}

/// What a carrier answered to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarrierAnswer {
    /// It took every part; these are its references, in order.
    Taken(Vec<String>),
    /// It took some parts and finally refused the others.
    PartlyTaken {
        /// The carrier's reference of each part that it took.
        references: Vec<String>,
        /// Why it refused the others.
        code: Code,
    },
    /// It did not answer and may have taken the message. The message may be sent again, to this carrier only.
    Unknown,
    Answered(Subscriber),
    /// Not now. Another carrier may take it, or this one later.
    NotNow(Code),
    /// Never by this carrier. Another one may take it.
    Declined(Code),
    /// Never by any carrier.
    Refused(Code),
}

/// The result of one attempt to send a message, to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    pub id: MessageId,
    pub priority: Priority,
    /// The claim under which the message was sent.
    pub claim: Claim,
    pub to: Msisdn,
    /// A receipt is not waited for after this time.
    pub expires_at: Timestamp,
    pub sent: SendResult,
    /// What the carrier charges for the parts that it took, or for its answer, if that is known.
    pub cost: Option<Money>,
    pub at: Timestamp,
}

/// A carrier's final report about a part that it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The part, by the carrier's reference.
    pub of: CarrierRef,
    /// The recipient, if the receipt names one. Without it, only this exact reference matches.
    pub to: Option<NumberTail>,
    /// The final outcome; receipts about other states are dropped before.
    pub outcome: Outcome,
    /// The report for the caller of a lookup, as JSON. `None` for messages.
    pub report: Option<String>,
    /// The recipient's network, if the carrier named it.
    pub network: Option<Network>,
    /// When the receipt arrived.
    pub at: Timestamp,
}

/// What a callback is about. It decides which answer counts as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallbackKind {
    /// How a message ended. Received if the answer has status 200 and the body `OK`.
    Report,
    /// What a lookup found. Received under the same condition.
    Lookup,
    /// A sender ID changed its state. Received with any status from 200 to 299.
    Sender,
    /// A message from a handset. Received like a report.
    Inbound,
}

impl CallbackKind {
    const ALL: [Self; 4] = [Self::Report, Self::Lookup, Self::Sender, Self::Inbound];

    pub const fn number(self) -> i16 {
        match self {
            Self::Report => 0,
            Self::Lookup => 1,
            Self::Sender => 2,
            Self::Inbound => 3,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Lookup => "lookup",
            Self::Sender => "sender",
            Self::Inbound => "inbound",
        }
    }
}

/// A callback that this node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    pub id: CallbackId,
    /// The message that it reports on.
    pub message: Option<MessageId>,
    pub kind: CallbackKind,
    pub account: AccountId,
    pub url: CallbackUrl,
    /// JSON.
    pub payload: String,
    pub created_at: Timestamp,
    /// The number of earlier attempts.
    pub tries: u32,
    pub claim: Claim,
    /// The trace of its message. Boxed, because few messages have one.
    pub trace: Option<Box<TraceContext>>,
}

impl Callback {
    /// The trace context of the next attempt. Each attempt is a span; the request and the exported span use the same ID.
    pub fn attempt_trace(&self) -> Option<TraceContext> {
        let trace = self.trace.as_deref()?;
        let mut span = DefaultHasher::new();
        (trace, self.id, self.tries).hash(&mut span);
        Some(trace.child(span.finish()))
    }
}

/// The result of an attempt to deliver a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Whether the receiver accepted it.
    pub received: bool,
    pub attempt: CallbackAttempt,
}

/// One attempt to deliver a callback, for those who investigate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackAttempt {
    /// When it began.
    pub at: Timestamp,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    pub elapsed_ms: u32,
    /// The first KiB of the response body.
    pub body: Vec<u8>,
    /// The address that we connected to, if we got that far.
    pub address: Option<String>,
    /// The result in words.
    pub reason: String,
}

/// What happens to a callback after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackNext {
    Done,
    /// It is sent again at this time.
    Later(Timestamp),
    /// It goes back to its receiver's queue unsent, and keeps its position.
    Queued(ReceiverId),
    /// It is not sent again until somebody replays it.
    Parked,
}

/// The result of one callback, to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackSettlement {
    pub id: CallbackId,
    /// The message that it reports on, if that is known. The store needs less time then.
    pub message: Option<MessageId>,
    /// The claim under which it was sent.
    pub claim: Claim,
    /// `None` if it was put back unsent.
    pub attempt: Option<CallbackAttempt>,
    pub next: CallbackNext,
}

/// The payload of the report that the recipient has seen a delivered message.
pub fn seen_payload(id: MessageId, network: Option<Network>) -> String {
    let delivered = report_payload(id, Outcome::Delivered, network);
    delivered.replacen(r#""status":1"#, r#""status":3"#, 1)
}

/// The payload of a delivery report; an unknown network is left out.
pub fn report_payload(id: MessageId, outcome: Outcome, network: Option<Network>) -> String {
    let (status, error) = (outcome.status(), outcome.code().number());
    let mut payload = format!(r#"{{"id":"{id}","status":{status},"error":{error}"#);
    if let Some(network) = network {
        let (mcc, mnc) = (network.mcc(), network.mnc());
        write!(payload, r#","mcc":"{mcc:03}","mnc":"{mnc}""#).expect("a string takes everything");
    }
    payload.push('}');
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_round_trips_through_its_numbers() {
        for outcome in [
            Outcome::Delivered,
            Outcome::Expired,
            Outcome::Failed(Code::ABSENT),
        ] {
            let numbers = (
                i64::from(outcome.status()),
                i64::from(outcome.code().number()),
            );
            assert_eq!(Outcome::from_numbers(numbers.0, numbers.1), Some(outcome));
        }
        assert_eq!(Outcome::from_numbers(2, 18), None);
        assert_eq!(Outcome::from_numbers(3, 0), None);
    }

    #[test]
    fn a_report_holds_the_contracts_fields() {
        let id = MessageId::new(7).expect("in range");
        let network = Network::new("247", "01");
        for (outcome, network, payload) in [
            (
                Outcome::Failed(Code::ABSENT),
                None,
                r#"{"id":"7","status":2,"error":43}"#,
            ),
            (
                Outcome::Delivered,
                network,
                r#"{"id":"7","status":1,"error":0,"mcc":"247","mnc":"01"}"#,
            ),
        ] {
            assert_eq!(report_payload(id, outcome, network), payload);
        }
    }
}
