//! `command_status`: the result of a request.

use std::fmt;

/// The status of a PDU. Vendors use their own codes, so any number is valid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Status(pub u32);

impl Status {
    /// No error; the same as [`Status::ESME_ROK`].
    pub const OK: Self = Self(0);

    /// Whether this is success.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl From<u32> for Status {
    fn from(code: u32) -> Self {
        Self(code)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} (0x{:08X})", self.0),
            None => write!(f, "0x{:08X}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({self})")
    }
}

macro_rules! statuses {
    ($($code:literal $name:ident $meaning:literal)+) => {
        /// The codes of SMPP 3.4, and from 0x100 on those that 5.0 added.
        impl Status {
            $(
                #[doc = $meaning]
                pub const $name: Self = Self($code);
            )+

            /// All codes with a name.
            pub const NAMED: &[Self] = &[$(Self::$name),+];

            /// The name in the specification; `None` for a vendor's code.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    0x0000 ESME_ROK "No error."
    0x0001 ESME_RINVMSGLEN "The message length is invalid."
    0x0002 ESME_RINVCMDLEN "The command length is invalid."
    0x0003 ESME_RINVCMDID "The command is not known."
    0x0004 ESME_RINVBNDSTS "The command does not fit the state of the bind."
    0x0005 ESME_RALYBND "Bound already."
    0x0006 ESME_RINVPRTFLG "The priority flag is invalid."
    0x0007 ESME_RINVREGDLVFLG "The registered delivery flag is invalid."
    0x0008 ESME_RSYSERR "A system error."
    0x000A ESME_RINVSRCADR "The source address is invalid."
    0x000B ESME_RINVDSTADR "The destination address is invalid."
    0x000C ESME_RINVMSGID "The message ID is invalid."
    0x000D ESME_RBINDFAIL "The bind failed."
    0x000E ESME_RINVPASWD "The password is wrong."
    0x000F ESME_RINVSYSID "The system ID is unknown."
    0x0011 ESME_RCANCELFAIL "`cancel_sm` failed."
    0x0013 ESME_RREPLACEFAIL "`replace_sm` failed."
    0x0014 ESME_RMSGQFUL "The message queue is full."
    0x0015 ESME_RINVSERTYP "The service type is invalid."
    0x0033 ESME_RINVNUMDESTS "The number of destinations is invalid."
    0x0034 ESME_RINVDLNAME "The distribution list's name is invalid."
    0x0040 ESME_RINVDESTFLAG "The destination flag is invalid."
    0x0042 ESME_RINVSUBREP "Submitting with replacement is not possible."
    0x0043 ESME_RINVESMCLASS "`esm_class` is invalid."
    0x0044 ESME_RCNTSUBDL "Cannot submit to the distribution list."
    0x0045 ESME_RSUBMITFAIL "`submit_sm` failed."
    0x0048 ESME_RINVSRCTON "The source's type of number is invalid."
    0x0049 ESME_RINVSRCNPI "The source's numbering plan is invalid."
    0x0050 ESME_RINVDSTTON "The destination's type of number is invalid."
    0x0051 ESME_RINVDSTNPI "The destination's numbering plan is invalid."
    0x0053 ESME_RINVSYSTYP "The system type is invalid."
    0x0054 ESME_RINVREPFLAG "`replace_if_present` is invalid."
    0x0055 ESME_RINVNUMMSGS "The number of messages is invalid."
    0x0058 ESME_RTHROTTLED "Too many messages at once; slow down."
    0x0061 ESME_RINVSCHED "The scheduled delivery time is invalid."
    0x0062 ESME_RINVEXPIRY "The validity period is invalid."
    0x0063 ESME_RINVDFTMSGID "The predefined message is invalid or not found."
    0x0064 ESME_RX_T_APPN "The receiver has a temporary error: try again later."
    0x0065 ESME_RX_P_APPN "The receiver has a permanent error: do not try again."
    0x0066 ESME_RX_R_APPN "The receiver rejects the message."
    0x0067 ESME_RQUERYFAIL "`query_sm` failed."
    0x00C0 ESME_RINVOPTPARSTREAM "The optional part cannot be read; `ESME_RINVTLVSTREAM` in 5.0."
    0x00C1 ESME_ROPTPARNOTALLWD "An optional parameter is not allowed; `ESME_RTLVNOTALLWD` in 5.0."
    0x00C2 ESME_RINVPARLEN "A parameter's length is invalid; `ESME_RINVTLVLEN` in 5.0."
    0x00C3 ESME_RMISSINGOPTPARAM "An expected optional parameter is missing; `ESME_RMISSINGTLV` in 5.0."
    0x00C4 ESME_RINVOPTPARAMVAL "An optional parameter's value is invalid; `ESME_RINVTLVVAL` in 5.0."
    0x00FE ESME_RDELIVERYFAILURE "The delivery failed; of `data_sm_resp`."
    0x00FF ESME_RUNKNOWNERR "An error that has no name."
    0x0100 ESME_RSERTYPUNAUTH "The service type is not permitted."
    0x0101 ESME_RPROHIBITED "The operation is prohibited."
    0x0102 ESME_RSERTYPUNAVAIL "The service type is not available."
    0x0103 ESME_RSERTYPDENIED "The service type is denied."
    0x0104 ESME_RINVDCS "The data coding is invalid."
    0x0105 ESME_RINVSRCADDRSUBUNIT "The source's subunit is invalid."
    0x0106 ESME_RINVDSTADDRSUBUNIT "The destination's subunit is invalid."
    0x0107 ESME_RINVBCASTFREQINT "The broadcast's frequency interval is invalid."
    0x0108 ESME_RINVBCASTALIAS_NAME "The broadcast's alias name is invalid."
    0x0109 ESME_RINVBCASTAREAFMT "The broadcast's area format is invalid."
    0x010A ESME_RINVNUMBCAST_AREAS "The number of broadcast areas is invalid."
    0x010B ESME_RINVBCASTCNTTYPE "The broadcast's content type is invalid."
    0x010C ESME_RINVBCASTMSGCLASS "The broadcast's message class is invalid."
    0x010D ESME_RBCASTFAIL "`broadcast_sm` failed."
    0x010E ESME_RBCASTQUERYFAIL "`query_broadcast_sm` failed."
    0x010F ESME_RBCASTCANCELFAIL "`cancel_broadcast_sm` failed."
    0x0110 ESME_RINVBCAST_REP "The number of repeated broadcasts is invalid."
    0x0111 ESME_RINVBCASTSRVGRP "The broadcast's service group is invalid."
    0x0112 ESME_RINVBCASTCHANIND "The broadcast's channel indicator is invalid."
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn names_belong_to_codes() {
        for (code, name) in [
            (0x00, Some("ESME_ROK")),
            (0x09, None),
            (0x0E, Some("ESME_RINVPASWD")),
            (0x14, Some("ESME_RMSGQFUL")),
            (0x45, Some("ESME_RSUBMITFAIL")),
            (0x58, Some("ESME_RTHROTTLED")),
            (0xFF, Some("ESME_RUNKNOWNERR")),
            (0x112, Some("ESME_RINVBCASTCHANIND")),
            (0x400, None),
            (u32::MAX, None),
        ] {
            assert_eq!(Status(code).name(), name, "{code:#x}");
        }
    }

    #[test]
    fn codes_are_in_order_and_each_has_its_own() {
        assert!(Status::NAMED.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn reads_with_its_name_and_its_number() {
        assert_eq!(
            Status::ESME_RTHROTTLED.to_string(),
            "ESME_RTHROTTLED (0x00000058)"
        );
        assert_eq!(Status(0x400).to_string(), "0x00000400");
        assert!(Status::OK.is_ok() && !Status::ESME_RSYSERR.is_ok());
    }
}
