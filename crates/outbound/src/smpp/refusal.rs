//! What a carrier's refusal means: one table from the statuses of SMPP to what becomes of the message.
//!
//! A status about the link, the load or the state of the carrier says nothing of the message: it is tried again, there
//! or elsewhere. One about sender, number or text is the end: every carrier would say the same. One about how we fill
//! the PDU, or about what this carrier permits, is between it and us: another one may take the message.

use domain::Code;
use domain::delivery::Submitted;

use crate::smpp::code;

/// The status of an answer to a message that was taken.
pub(super) const FINE: u32 = 0;
/// The message queue is full.
const QUEUE_FULL: u32 = 0x14;
/// The carrier asks for less.
const THROTTLED: u32 = 0x58;
/// The link is not bound as it would have to be.
const WRONG_BIND: u32 = 0x04;

/// What becomes of a refused message, with the number of its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is tried again, here or elsewhere.
    Again(u16),
    /// It is tried elsewhere.
    Elsewhere(u16),
    /// It is over.
    Over(u16),
}
use Fate::{Again, Elsewhere, Over};

/// Every status that SMPP 3.4 and 5.0 name, ascending.
const STATUSES: &[(u32, Fate)] = &[
    (0x01, Over(61)),      // the message is too long
    (0x02, Elsewhere(90)), // the PDU's length
    (0x03, Elsewhere(90)), // the PDU's kind
    (WRONG_BIND, Again(91)),
    (0x05, Again(91)),     // already bound
    (0x06, Elsewhere(90)), // the priority flag
    (0x07, Elsewhere(90)), // the registered delivery flag
    (0x08, Again(8)),      // system error
    (0x0A, Over(15)),      // the source address
    (0x0B, Over(53)),      // the destination address
    // Strictly the ID of a message that is asked for or replaced; at a submit, carriers mean its address.
    (0x0C, Over(53)),
    (0x0D, Again(91)),      // bind failed
    (0x0E, Again(91)),      // the password
    (0x0F, Again(91)),      // the system ID
    (0x11, Elsewhere(999)), // cancelling failed
    (0x13, Elsewhere(999)), // replacing failed
    (QUEUE_FULL, Again(31)),
    (0x15, Elsewhere(90)), // the service type
    (0x33, Elsewhere(90)), // the number of destinations
    (0x34, Elsewhere(90)), // the name of a distribution list
    (0x40, Elsewhere(90)), // the destination flag
    (0x42, Elsewhere(90)), // submit with replace
    (0x43, Elsewhere(60)), // the ESM class: headers are not taken
    (0x44, Elsewhere(90)), // no submit to a distribution list
    (0x45, Again(8)),      // the submit failed
    (0x48, Elsewhere(15)), // the source's type of number
    (0x49, Elsewhere(15)), // the source's numbering plan
    (0x50, Elsewhere(53)), // the destination's type of number
    (0x51, Elsewhere(53)), // the destination's numbering plan
    (0x53, Again(91)),     // the system type
    (0x54, Elsewhere(90)), // the replace flag
    (0x55, Elsewhere(90)), // the number of messages
    (THROTTLED, Again(31)),
    (0x61, Elsewhere(90)),  // the scheduled time
    (0x62, Elsewhere(90)),  // the validity period
    (0x63, Elsewhere(90)),  // the predefined message
    (0x64, Again(8)),       // the receiver, for now
    (0x65, Elsewhere(12)),  // the receiver, for good
    (0x66, Elsewhere(12)),  // the receiver rejects
    (0x67, Elsewhere(999)), // the query failed
    (0xC0, Elsewhere(90)),  // the optional part of the PDU
    (0xC1, Elsewhere(90)),  // a TLV that is not allowed
    (0xC2, Elsewhere(90)),  // the length of a parameter
    (0xC3, Elsewhere(90)),  // a TLV that is missing
    (0xC4, Elsewhere(90)),  // the value of a TLV
    (0xFE, Again(8)),       // delivery failed
    // A carrier that does not know what went wrong did not judge the message.
    (0xFF, Again(999)),
    (0x100, Elsewhere(20)), // not authorised for the service type
    (0x101, Elsewhere(20)), // not allowed to do this
    (0x102, Again(30)),     // the service type is unavailable
    (0x103, Elsewhere(20)), // the service type is denied
    (0x104, Elsewhere(60)), // the data coding
    (0x105, Elsewhere(15)), // the source's subunit
    (0x106, Elsewhere(53)), // the destination's subunit
    (0x107, Elsewhere(90)), // broadcast: the interval
    (0x108, Elsewhere(90)), // broadcast: the alias
    (0x109, Elsewhere(90)), // broadcast: the form of the area
    (0x10A, Elsewhere(90)), // broadcast: the number of areas
    (0x10B, Elsewhere(90)), // broadcast: the kind of content
    (0x10C, Elsewhere(90)), // broadcast: the class
    (0x10D, Elsewhere(90)), // broadcast: failed
    (0x10E, Elsewhere(90)), // broadcast: the query failed
    (0x10F, Elsewhere(90)), // broadcast: cancelling failed
    (0x110, Elsewhere(90)), // broadcast: the repetitions
    (0x111, Elsewhere(90)), // broadcast: the service group
    (0x112, Elsewhere(90)), // broadcast: the channel
];

/// What an answer with this status makes of a message. A status without a name, or a vendor's own, may mean anything:
/// refusing the message would lose one that another carrier takes, and trying it here again would go on until it expires.
pub(super) fn read(status: u32) -> Submitted {
    let found = STATUSES.binary_search_by_key(&status, |(known, _)| *known);
    match found.map(|index| STATUSES[index].1) {
        Ok(Again(number)) => Submitted::NotNow(code(number)),
        Ok(Elsewhere(number)) => Submitted::Declined(code(number)),
        Ok(Over(number)) => Submitted::Refused(code(number)),
        Err(_) => Submitted::Declined(Code::UNKNOWN),
    }
}

/// A status that refuses a message for this reason, if there is one: for good, but for one that asks for less.
pub(crate) fn status_of(code: Code) -> Option<u32> {
    let refuses = |fate: &Fate| match fate {
        Again(number) => *number == Code::THROTTLED.number() && code == Code::THROTTLED,
        Elsewhere(number) | Over(number) => *number == code.number(),
    };
    let found = STATUSES.iter().find(|(_, fate)| refuses(fate));
    found.map(|(status, _)| *status)
}

/// Whether the carrier asks for less.
pub(super) const fn is_throttling(status: u32) -> bool {
    matches!(status, THROTTLED | QUEUE_FULL)
}

/// Whether the carrier takes the link for one that is not bound: only a new one helps.
pub(super) const fn is_unbound(status: u32) -> bool {
    status == WRONG_BIND
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_table_ascends_and_names_codes_of_the_catalogue() {
        assert!(STATUSES.is_sorted_by(|one, next| one.0 < next.0));
        for (status, fate) in STATUSES {
            let (Again(number) | Elsewhere(number) | Over(number)) = fate;
            assert!(Code::new(*number).is_some(), "{status:#X}");
        }
    }

    #[test]
    fn refusals_mean_what_was_decided() {
        for (status, expected) in [
            (0x01, Submitted::Refused(code(61))),
            (0x08, Submitted::NotNow(Code::SYSTEM_FAILURE)),
            (0x0A, Submitted::Refused(code(15))),
            (0x0B, Submitted::Refused(code(53))),
            (0x0C, Submitted::Refused(code(53))),
            (0x14, Submitted::NotNow(Code::THROTTLED)),
            (0x43, Submitted::Declined(code(60))),
            (0x45, Submitted::NotNow(Code::SYSTEM_FAILURE)),
            (0x58, Submitted::NotNow(Code::THROTTLED)),
            (0x09, Submitted::Declined(Code::UNKNOWN)),
            (0x400, Submitted::Declined(Code::UNKNOWN)),
            (0x4FF, Submitted::Declined(Code::UNKNOWN)),
            (u32::MAX, Submitted::Declined(Code::UNKNOWN)),
        ] {
            assert_eq!(read(status), expected, "{status:#X}");
        }
    }

    proptest! {
        #[test]
        fn every_status_has_a_meaning(status in prop_oneof![0_u32..0x500, any::<u32>()]) {
            let (Submitted::NotNow(code) | Submitted::Declined(code) | Submitted::Refused(code)) = read(status) else {
                return Err(TestCaseError::fail("a refusal takes nothing"));
            };
            prop_assert_ne!(code, Code::FINE);
            prop_assert_eq!(is_throttling(status), code == Code::THROTTLED);
        }
    }
}
