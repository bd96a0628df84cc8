//! What a carrier's refusal means: one table from the statuses of SMPP to what becomes of the message.
//!
//! A status about the link, the load or the state of the carrier says nothing of the message: it is tried again, there
//! or elsewhere. One about sender, number or text is the end: every carrier would say the same. One about how we fill
//! the PDU, or about what this carrier permits, is between it and us: another one may take the message.

use ::smpp::Status;
use domain::Code;
use domain::delivery::Submitted;

use crate::smpp::code;

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
const STATUSES: &[(Status, Fate)] = &[
    (Status::ESME_RINVMSGLEN, Over(61)),
    (Status::ESME_RINVCMDLEN, Elsewhere(90)),
    (Status::ESME_RINVCMDID, Elsewhere(90)),
    (Status::ESME_RINVBNDSTS, Again(91)),
    (Status::ESME_RALYBND, Again(91)),
    (Status::ESME_RINVPRTFLG, Elsewhere(90)),
    (Status::ESME_RINVREGDLVFLG, Elsewhere(90)),
    (Status::ESME_RSYSERR, Again(8)),
    (Status::ESME_RINVSRCADR, Over(15)),
    (Status::ESME_RINVDSTADR, Over(53)),
    // Strictly the ID of a message that is asked for or replaced; at a submit, carriers mean its address.
    (Status::ESME_RINVMSGID, Over(53)),
    (Status::ESME_RBINDFAIL, Again(91)),
    (Status::ESME_RINVPASWD, Again(91)),
    (Status::ESME_RINVSYSID, Again(91)),
    (Status::ESME_RCANCELFAIL, Elsewhere(999)),
    (Status::ESME_RREPLACEFAIL, Elsewhere(999)),
    (Status::ESME_RMSGQFUL, Again(31)),
    (Status::ESME_RINVSERTYP, Elsewhere(90)),
    (Status::ESME_RINVNUMDESTS, Elsewhere(90)),
    (Status::ESME_RINVDLNAME, Elsewhere(90)),
    (Status::ESME_RINVDESTFLAG, Elsewhere(90)),
    (Status::ESME_RINVSUBREP, Elsewhere(90)),
    // Headers are not taken.
    (Status::ESME_RINVESMCLASS, Elsewhere(60)),
    (Status::ESME_RCNTSUBDL, Elsewhere(90)),
    (Status::ESME_RSUBMITFAIL, Again(8)),
    (Status::ESME_RINVSRCTON, Elsewhere(15)),
    (Status::ESME_RINVSRCNPI, Elsewhere(15)),
    (Status::ESME_RINVDSTTON, Elsewhere(53)),
    (Status::ESME_RINVDSTNPI, Elsewhere(53)),
    (Status::ESME_RINVSYSTYP, Again(91)),
    (Status::ESME_RINVREPFLAG, Elsewhere(90)),
    (Status::ESME_RINVNUMMSGS, Elsewhere(90)),
    (Status::ESME_RTHROTTLED, Again(31)),
    (Status::ESME_RINVSCHED, Elsewhere(90)),
    (Status::ESME_RINVEXPIRY, Elsewhere(90)),
    (Status::ESME_RINVDFTMSGID, Elsewhere(90)),
    (Status::ESME_RX_T_APPN, Again(8)),
    (Status::ESME_RX_P_APPN, Elsewhere(12)),
    (Status::ESME_RX_R_APPN, Elsewhere(12)),
    (Status::ESME_RQUERYFAIL, Elsewhere(999)),
    (Status::ESME_RINVOPTPARSTREAM, Elsewhere(90)),
    (Status::ESME_ROPTPARNOTALLWD, Elsewhere(90)),
    (Status::ESME_RINVPARLEN, Elsewhere(90)),
    (Status::ESME_RMISSINGOPTPARAM, Elsewhere(90)),
    (Status::ESME_RINVOPTPARAMVAL, Elsewhere(90)),
    (Status::ESME_RDELIVERYFAILURE, Again(8)),
    // A carrier that does not know what went wrong did not judge the message.
    (Status::ESME_RUNKNOWNERR, Again(999)),
    (Status::ESME_RSERTYPUNAUTH, Elsewhere(20)),
    (Status::ESME_RPROHIBITED, Elsewhere(20)),
    (Status::ESME_RSERTYPUNAVAIL, Again(30)),
    (Status::ESME_RSERTYPDENIED, Elsewhere(20)),
    (Status::ESME_RINVDCS, Elsewhere(60)),
    (Status::ESME_RINVSRCADDRSUBUNIT, Elsewhere(15)),
    (Status::ESME_RINVDSTADDRSUBUNIT, Elsewhere(53)),
    (Status::ESME_RINVBCASTFREQINT, Elsewhere(90)),
    (Status::ESME_RINVBCASTALIAS_NAME, Elsewhere(90)),
    (Status::ESME_RINVBCASTAREAFMT, Elsewhere(90)),
    (Status::ESME_RINVNUMBCAST_AREAS, Elsewhere(90)),
    (Status::ESME_RINVBCASTCNTTYPE, Elsewhere(90)),
    (Status::ESME_RINVBCASTMSGCLASS, Elsewhere(90)),
    (Status::ESME_RBCASTFAIL, Elsewhere(90)),
    (Status::ESME_RBCASTQUERYFAIL, Elsewhere(90)),
    (Status::ESME_RBCASTCANCELFAIL, Elsewhere(90)),
    (Status::ESME_RINVBCAST_REP, Elsewhere(90)),
    (Status::ESME_RINVBCASTSRVGRP, Elsewhere(90)),
    (Status::ESME_RINVBCASTCHANIND, Elsewhere(90)),
];

/// What an answer with this status makes of a message. A status without a name, or a vendor's own, may mean anything:
/// refusing the message would lose one that another carrier takes, and trying it here again would go on until it expires.
pub(super) fn read(status: Status) -> Submitted {
    let found = STATUSES.binary_search_by_key(&status, |(known, _)| *known);
    match found.map(|index| STATUSES[index].1) {
        Ok(Again(number)) => Submitted::NotNow(code(number)),
        Ok(Elsewhere(number)) => Submitted::Declined(code(number)),
        Ok(Over(number)) => Submitted::Refused(code(number)),
        Err(_) => Submitted::Declined(Code::UNKNOWN),
    }
}

/// A status that refuses a message for this reason, if there is one: for good, but for one that asks for less.
pub(crate) fn status_of(code: Code) -> Option<Status> {
    let refuses = |fate: &Fate| match fate {
        Again(number) => *number == Code::THROTTLED.number() && code == Code::THROTTLED,
        Elsewhere(number) | Over(number) => *number == code.number(),
    };
    let found = STATUSES.iter().find(|(_, fate)| refuses(fate));
    found.map(|(status, _)| *status)
}

/// Whether the carrier asks for less.
pub(super) fn is_throttling(status: Status) -> bool {
    matches!(status, Status::ESME_RTHROTTLED | Status::ESME_RMSGQFUL)
}

/// Whether the carrier takes the link for one that is not bound: only a new one helps.
pub(super) fn is_unbound(status: Status) -> bool {
    status == Status::ESME_RINVBNDSTS
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
            assert!(Code::new(*number).is_some(), "{status}");
        }
    }

    #[test]
    fn every_status_with_a_name_is_in_the_table() {
        let refusals = Status::NAMED.iter().filter(|status| !status.is_ok());
        let in_table = STATUSES.iter().map(|(status, _)| status);
        assert!(in_table.eq(refusals));
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
            assert_eq!(read(Status(status)), expected, "{status:#X}");
        }
    }

    proptest! {
        #[test]
        fn every_status_has_a_meaning(status in prop_oneof![0_u32..0x500, any::<u32>()]) {
            let (Submitted::NotNow(code) | Submitted::Declined(code) | Submitted::Refused(code)) = read(Status(status)) else {
                return Err(TestCaseError::fail("a refusal takes nothing"));
            };
            prop_assert_ne!(code, Code::FINE);
            prop_assert_eq!(is_throttling(Status(status)), code == Code::THROTTLED);
        }
    }
}
