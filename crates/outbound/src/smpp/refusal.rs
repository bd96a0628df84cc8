//! Maps the status of a refused message to what happens next.
//!
//! A status about the link, the load or the carrier says nothing about the message: it is tried again, with any
//! carrier. A status about sender, recipient or text is final: every carrier would refuse it. A status about our PDU,
//! or about what this carrier permits, concerns only this carrier: another one may accept the message.

use ::smpp::Status;
use domain::Code;
use domain::delivery::Submitted;

use crate::smpp::code;

/// What happens to a refused message, with the number of its error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is tried again, with any carrier.
    Again(u16),
    /// It is tried with another carrier.
    Elsewhere(u16),
    /// It has failed.
    Over(u16),
}
use Fate::{Again, Elsewhere, Over};

/// All statuses of SMPP 3.4 and 5.0, ascending.
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
    // By the specification about the ID of a queried or replaced message; in answers to `submit_sm`, carriers mean the
    // address.
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
    // The carrier does not accept user data headers.
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
    // The carrier did not judge the message.
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

/// The result of a refusal. An unnamed or vendor-specific status can mean anything: failing the message would lose one
/// that another carrier accepts, and retrying here would continue until it expires.
pub(super) fn read(status: Status) -> Submitted {
    let found = STATUSES.binary_search_by_key(&status, |(known, _)| *known);
    match found.map(|index| STATUSES[index].1) {
        Ok(Again(number)) => Submitted::NotNow(code(number)),
        Ok(Elsewhere(number)) => Submitted::Declined(code(number)),
        Ok(Over(number)) => Submitted::Refused(code(number)),
        Err(_) => Submitted::Declined(Code::UNKNOWN),
    }
}

/// A status that refuses a message for this reason, if there is one. Prefers a permanent refusal, except for
/// throttling.
pub(crate) fn status_of(code: Code) -> Option<Status> {
    let refuses = |fate: &Fate| match fate {
        Again(number) => *number == Code::THROTTLED.number() && code == Code::THROTTLED,
        Elsewhere(number) | Over(number) => *number == code.number(),
    };
    let found = STATUSES.iter().find(|(_, fate)| refuses(fate));
    found.map(|(status, _)| *status)
}

/// Whether the carrier is throttling us.
pub(super) fn is_throttling(status: Status) -> bool {
    matches!(status, Status::ESME_RTHROTTLED | Status::ESME_RMSGQFUL)
}

/// Whether the carrier thinks that the link is not bound, so that it must be reconnected.
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
