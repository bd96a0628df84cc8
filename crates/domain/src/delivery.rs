//! What becomes of a message on its way out: claims, outcomes, receipts and the report about it.

pub mod backoff;
pub mod receipt_match;
pub mod receiver;
pub mod sharing;

use std::fmt::Write as _;

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
use crate::message::{Priority, TestMode};
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;
use crate::sender::originator::Originator;

/// This node's right to work on a queued row. A settle that names another one changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Where the row stands in its lane.
    pub due_at: Timestamp,
    /// How many times it was claimed, this time included: the fence.
    pub attempt: u32,
}

/// A message that this node holds and is to hand to a carrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The message.
    pub id: MessageId,
    /// Whose.
    pub account: AccountId,
    /// By which channel.
    pub channel: Channel,
    /// To whom.
    pub to: Msisdn,
    /// From whom; nobody signs a lookup.
    pub from: Option<Originator>,
    /// The text; empty for a lookup.
    pub text: String,
    /// What a Viber message has besides its text.
    pub interactive: Option<Interactive>,
    /// How it is coded and split.
    pub shape: Shape,
    /// The caller's own header.
    pub udh: Option<Udh>,
    /// Which lane.
    pub priority: Priority,
    /// Whether it only pretends.
    pub test_mode: Option<TestMode>,
    /// From when on it is no longer attempted.
    pub expires_at: Timestamp,
    /// The right to work on it.
    pub claim: Claim,
    /// How many tries ended with "not now". Claims and moves between queues do not count.
    pub tries: u32,
    /// The pool that it was taken from: the carriers before that one could not take it, or are others' to ask.
    pub pool: Option<PoolId>,
    /// How many earlier tries were handed to a carrier and got no answer: each carrier may have the message.
    pub unknown_tries: u32,
}

/// The name of the simulated network, as a carrier.
pub const SIMULATOR: &str = "simulator";

/// The name that a carrier gave to a part it took: what its receipt will name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CarrierRef {
    /// Which carrier.
    pub carrier: String,
    /// Its own name for the part.
    pub reference: String,
}

/// What came of one try to send a parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// A carrier took every part; these are its names for them, in order.
    Taken {
        /// Which carrier.
        carrier: String,
        /// Its name for each part.
        references: Vec<String>,
    },
    /// A carrier took some parts and refused the others for good, so the message is over.
    PartlyTaken {
        /// Which carrier.
        carrier: String,
        /// Its name for each part that it took.
        references: Vec<String>,
        /// How the message ended.
        outcome: Outcome,
    },
    /// It was handed to a carrier, which did not answer and may have it. Tried again from this time on; the store
    /// counts such tries.
    Unknown(Timestamp),
    /// No carrier was tried: due again from this time on.
    Later(Timestamp),
    /// A carrier was tried and said "not now": due again from this time on.
    Retry(Timestamp),
    /// Waits in this pool until a node has room for it.
    Pooled {
        /// Which pool.
        pool: PoolId,
        /// The account of the message: accounts share what is claimed from a pool.
        account: AccountId,
    },
    /// It is over, without a network's report.
    Over(Outcome),
    /// A lookup is over, and this is what its caller is told.
    Answered {
        /// How it ended.
        outcome: Outcome,
        /// The report: JSON.
        report: String,
    },
}

/// What a carrier answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It took every part; these are its names for them, in order.
    Taken(Vec<String>),
    /// It took some parts, which have these names, and refused the others for good.
    PartlyTaken {
        /// Its name for each part that it took.
        references: Vec<String>,
        /// Why it refused the others.
        code: Code,
    },
    /// It did not answer, and may have the message. The message may be sent again.
    Unknown,
    /// It answered a lookup.
    Answered(Subscriber),
    /// Not now, for this reason; another carrier may take it, or this one later.
    NotNow(Code),
    /// Not by this carrier, now or later; another may take it.
    Declined(Code),
    /// Never, for this reason.
    Refused(Code),
}

/// One parcel's result, to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The message.
    pub id: MessageId,
    /// Its lane.
    pub priority: Priority,
    /// The right under which it was tried.
    pub claim: Claim,
    /// To whom.
    pub to: Msisdn,
    /// When it is no longer waited for.
    pub expires_at: Timestamp,
    /// What came of it.
    pub sent: Sent,
    /// When.
    pub at: Timestamp,
}

/// What a carrier says about a part that it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Which part, in the carrier's words.
    pub of: CarrierRef,
    /// Who the message was for, where the receipt tells. Without it only the reference decides, in this very form.
    pub to: Option<NumberTail>,
    /// How it ended. News that are not final never come this far.
    pub outcome: Outcome,
    /// What a lookup's caller is told: JSON. `None` for messages.
    pub report: Option<String>,
    /// When it arrived here.
    pub at: Timestamp,
}

/// What a callback tells, and so which answer says that it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallbackKind {
    /// How a message ended: received with status 200 and the body `OK`.
    Report,
    /// What a lookup found: received likewise.
    Lookup,
    /// That a sender changed its state: received with any status from 200 to 299.
    Sender,
}

impl CallbackKind {
    const ALL: [Self; 3] = [Self::Report, Self::Lookup, Self::Sender];

    /// The number that both databases keep.
    pub const fn number(self) -> i16 {
        match self {
            Self::Report => 0,
            Self::Lookup => 1,
            Self::Sender => 2,
        }
    }

    /// Reads back a number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name in lists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Lookup => "lookup",
            Self::Sender => "sender",
        }
    }
}

/// A report that is to reach its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// The report's own ID.
    pub id: CallbackId,
    /// What it tells.
    pub kind: CallbackKind,
    /// Whose.
    pub account: AccountId,
    /// Where it goes.
    pub url: CallbackUrl,
    /// What it says: JSON.
    pub payload: String,
    /// When it came into being.
    pub created_at: Timestamp,
    /// How often it was tried before.
    pub tries: u32,
    /// The right to deliver it.
    pub claim: Claim,
}

/// How a try to deliver a callback ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Whether the receiver took it.
    pub received: bool,
    /// The try, for those who look into it.
    pub attempt: CallbackAttempt,
}

/// How one try to deliver a callback went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackAttempt {
    /// When it began.
    pub at: Timestamp,
    /// The answer's status, if there was an answer.
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u32,
    /// The first KiB of the answer's body.
    pub body: Vec<u8>,
    /// The address that was dialled, if it came so far.
    pub address: Option<String>,
    /// What to make of it, for people.
    pub reason: String,
}

/// What follows from a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackNext {
    /// It was received.
    Done,
    /// It is tried again from this time on.
    Later(Timestamp),
    /// It goes back untried into its receiver's queue, where it keeps its place.
    Queued(ReceiverId),
    /// It is tried no more until somebody asks for it.
    Parked,
}

/// One callback's result, to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackSettlement {
    /// Which callback.
    pub id: CallbackId,
    /// The right under which it was tried.
    pub claim: Claim,
    /// How it went; `None` when it was only put back untried.
    pub attempt: Option<CallbackAttempt>,
    /// What follows.
    pub next: CallbackNext,
}

/// The payload of the report that the recipient of a delivered message has seen it.
pub fn seen_payload(id: MessageId, network: Option<Network>) -> String {
    let delivered = report_payload(id, Outcome::Delivered, network);
    delivered.replacen(r#""status":1"#, r#""status":3"#, 1)
}

/// The payload of a delivery report; a network that is not known is left out.
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
