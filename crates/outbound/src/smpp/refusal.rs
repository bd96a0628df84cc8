//! Maps the status of a refused message to what happens next.
//!
//! A status about the link, the load or the carrier says nothing about the message: it is tried again, with any
//! carrier. A status about sender, recipient or text is final: every carrier would refuse it. A status about our PDU,
//! or about what this carrier permits, concerns only this carrier: another one may accept the message.

use ::smpp::Status;
use domain::Code;
use domain::delivery::CarrierAnswer;

use crate::smpp::code;

/// What happens to a refused message, with the number of its error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextAttempt {
    /// It is tried again, with any carrier.
    AnyCarrier(u16),
    /// It is tried with another carrier.
    OtherCarrier(u16),
    /// It has failed.
    Never(u16),
}
use NextAttempt::{AnyCarrier, Never, OtherCarrier};

/// All statuses of SMPP 3.4 and 5.0, ascending.
const STATUSES: &[(Status, NextAttempt)] = &[
    (Status::ESME_RINVMSGLEN, Never(61)),
    (Status::ESME_RINVCMDLEN, OtherCarrier(90)),
    (Status::ESME_RINVCMDID, OtherCarrier(90)),
    (Status::ESME_RINVBNDSTS, AnyCarrier(91)),
    (Status::ESME_RALYBND, AnyCarrier(91)),
    (Status::ESME_RINVPRTFLG, OtherCarrier(90)),
    (Status::ESME_RINVREGDLVFLG, OtherCarrier(90)),
    (Status::ESME_RSYSERR, AnyCarrier(8)),
    (Status::ESME_RINVSRCADR, Never(15)),
    (Status::ESME_RINVDSTADR, Never(53)),
    // By the specification about the ID of a queried or replaced message; in answers to `submit_sm`, carriers mean the
    // address.
    (Status::ESME_RINVMSGID, Never(53)),
    (Status::ESME_RBINDFAIL, AnyCarrier(91)),
    (Status::ESME_RINVPASWD, AnyCarrier(91)),
    (Status::ESME_RINVSYSID, AnyCarrier(91)),
    (Status::ESME_RCANCELFAIL, OtherCarrier(999)),
    (Status::ESME_RREPLACEFAIL, OtherCarrier(999)),
    (Status::ESME_RMSGQFUL, AnyCarrier(31)),
    (Status::ESME_RINVSERTYP, OtherCarrier(90)),
    (Status::ESME_RINVNUMDESTS, OtherCarrier(90)),
    (Status::ESME_RINVDLNAME, OtherCarrier(90)),
    (Status::ESME_RINVDESTFLAG, OtherCarrier(90)),
    (Status::ESME_RINVSUBREP, OtherCarrier(90)),
    // The carrier does not accept user data headers.
    (Status::ESME_RINVESMCLASS, OtherCarrier(60)),
    (Status::ESME_RCNTSUBDL, OtherCarrier(90)),
    (Status::ESME_RSUBMITFAIL, AnyCarrier(8)),
    (Status::ESME_RINVSRCTON, OtherCarrier(15)),
    (Status::ESME_RINVSRCNPI, OtherCarrier(15)),
    (Status::ESME_RINVDSTTON, OtherCarrier(53)),
    (Status::ESME_RINVDSTNPI, OtherCarrier(53)),
    (Status::ESME_RINVSYSTYP, AnyCarrier(91)),
    (Status::ESME_RINVREPFLAG, OtherCarrier(90)),
    (Status::ESME_RINVNUMMSGS, OtherCarrier(90)),
    (Status::ESME_RTHROTTLED, AnyCarrier(31)),
    (Status::ESME_RINVSCHED, OtherCarrier(90)),
    (Status::ESME_RINVEXPIRY, OtherCarrier(90)),
    (Status::ESME_RINVDFTMSGID, OtherCarrier(90)),
    (Status::ESME_RX_T_APPN, AnyCarrier(8)),
    (Status::ESME_RX_P_APPN, OtherCarrier(12)),
    (Status::ESME_RX_R_APPN, OtherCarrier(12)),
    (Status::ESME_RQUERYFAIL, OtherCarrier(999)),
    (Status::ESME_RINVOPTPARSTREAM, OtherCarrier(90)),
    (Status::ESME_ROPTPARNOTALLWD, OtherCarrier(90)),
    (Status::ESME_RINVPARLEN, OtherCarrier(90)),
    (Status::ESME_RMISSINGOPTPARAM, OtherCarrier(90)),
    (Status::ESME_RINVOPTPARAMVAL, OtherCarrier(90)),
    (Status::ESME_RDELIVERYFAILURE, AnyCarrier(8)),
    // The carrier did not judge the message.
    (Status::ESME_RUNKNOWNERR, AnyCarrier(999)),
    (Status::ESME_RSERTYPUNAUTH, OtherCarrier(20)),
    (Status::ESME_RPROHIBITED, OtherCarrier(20)),
    (Status::ESME_RSERTYPUNAVAIL, AnyCarrier(30)),
    (Status::ESME_RSERTYPDENIED, OtherCarrier(20)),
    (Status::ESME_RINVDCS, OtherCarrier(60)),
    (Status::ESME_RINVSRCADDRSUBUNIT, OtherCarrier(15)),
    (Status::ESME_RINVDSTADDRSUBUNIT, OtherCarrier(53)),
    (Status::ESME_RINVBCASTFREQINT, OtherCarrier(90)),
    (Status::ESME_RINVBCASTALIAS_NAME, OtherCarrier(90)),
    (Status::ESME_RINVBCASTAREAFMT, OtherCarrier(90)),
    (Status::ESME_RINVNUMBCAST_AREAS, OtherCarrier(90)),
    (Status::ESME_RINVBCASTCNTTYPE, OtherCarrier(90)),
    (Status::ESME_RINVBCASTMSGCLASS, OtherCarrier(90)),
    (Status::ESME_RBCASTFAIL, OtherCarrier(90)),
    (Status::ESME_RBCASTQUERYFAIL, OtherCarrier(90)),
    (Status::ESME_RBCASTCANCELFAIL, OtherCarrier(90)),
    (Status::ESME_RINVBCAST_REP, OtherCarrier(90)),
    (Status::ESME_RINVBCASTSRVGRP, OtherCarrier(90)),
    (Status::ESME_RINVBCASTCHANIND, OtherCarrier(90)),
];

/// The result of a refusal. An unknown status can mean anything: failing the message would lose one that another
/// carrier accepts, and retrying here would continue until it expires.
pub(super) fn interpret(status: Status) -> CarrierAnswer {
    let found = STATUSES.binary_search_by_key(&status, |(known, _)| *known);
    match found.map(|index| STATUSES[index].1) {
        Ok(AnyCarrier(number)) => CarrierAnswer::NotNow(code(number)),
        Ok(OtherCarrier(number)) => CarrierAnswer::Declined(code(number)),
        Ok(Never(number)) => CarrierAnswer::Refused(code(number)),
        Err(_) => CarrierAnswer::Declined(Code::UNKNOWN),
    }
}

/// A status that refuses a message for this reason, if there is one. Prefers a permanent refusal, except for
/// throttling.
pub(crate) fn status_for(code: Code) -> Option<Status> {
    let refuses = |next: &NextAttempt| match next {
        AnyCarrier(number) => *number == Code::THROTTLED.number() && code == Code::THROTTLED,
        OtherCarrier(number) | Never(number) => *number == code.number(),
    };
    let found = STATUSES.iter().find(|(_, next)| refuses(next));
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
        for (status, next) in STATUSES {
            let (AnyCarrier(number) | OtherCarrier(number) | Never(number)) = next;
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
            (0x01, CarrierAnswer::Refused(code(61))),
            (0x08, CarrierAnswer::NotNow(Code::SYSTEM_FAILURE)),
            (0x0A, CarrierAnswer::Refused(code(15))),
            (0x0B, CarrierAnswer::Refused(code(53))),
            (0x0C, CarrierAnswer::Refused(code(53))),
            (0x14, CarrierAnswer::NotNow(Code::THROTTLED)),
            (0x43, CarrierAnswer::Declined(code(60))),
            (0x45, CarrierAnswer::NotNow(Code::SYSTEM_FAILURE)),
            (0x58, CarrierAnswer::NotNow(Code::THROTTLED)),
            (0x09, CarrierAnswer::Declined(Code::UNKNOWN)),
            (0x400, CarrierAnswer::Declined(Code::UNKNOWN)),
            (0x4FF, CarrierAnswer::Declined(Code::UNKNOWN)),
            (u32::MAX, CarrierAnswer::Declined(Code::UNKNOWN)),
        ] {
            assert_eq!(interpret(Status(status)), expected, "{status:#X}");
        }
    }

    proptest! {
        #[test]
        fn every_status_has_a_meaning(status in prop_oneof![0_u32..0x500, any::<u32>()]) {
            let (CarrierAnswer::NotNow(code) | CarrierAnswer::Declined(code) | CarrierAnswer::Refused(code)) = interpret(Status(status)) else {
                return Err(TestCaseError::fail("a refusal takes nothing"));
            };
            prop_assert_ne!(code, Code::FINE);
            prop_assert_eq!(is_throttling(Status(status)), code == Code::THROTTLED);
        }
    }
}
