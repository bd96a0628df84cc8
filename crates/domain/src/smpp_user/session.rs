//! What a node reports about the sessions of SMPP users, for people to see.
//!
//! A report contains no texts, passwords and phone numbers.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::BindKind;
use crate::ids::SmppUserId;

/// A session of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmppSession {
    /// Unique on its node.
    pub number: u64,
    pub user: SmppUserId,
    pub report: SessionReport,
}

/// What a session has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    pub kind: BindKind,
    /// The client's address.
    pub address: IpAddr,
    pub is_tls: bool,
    #[serde(with = "micros")]
    pub bound_at: Timestamp,
    /// When the last PDU came or went.
    #[serde(with = "micros")]
    pub active_at: Timestamp,
    /// Requests of the client without an answer yet.
    pub open_requests: u32,
    /// `deliver_sm` that the client has not answered yet.
    pub open_deliveries: u32,
    /// Submits that were accepted.
    pub accepted: u64,
    /// Submits that were accepted in the last minute before the report.
    pub accepted_last_minute: u32,
    /// Submits that were refused.
    pub refused: Vec<StatusCount>,
    /// `deliver_sm` that the client accepted.
    pub acknowledged: u64,
    /// `deliver_sm` that the client refused.
    pub rejected: Vec<StatusCount>,
    /// The last PDUs, oldest first.
    pub pdus: Vec<SessionPdu>,
}

/// How often an answer had a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCount {
    /// The status by its name in the specification, or as a number.
    pub status: String,
    pub count: u64,
}

/// A PDU that came or went, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPdu {
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// Whether the client sent it.
    pub is_incoming: bool,
    /// The command by its name in the specification, or as a number.
    pub command: String,
    pub sequence: u32,
    /// The status of a response, named as in [`StatusCount`].
    pub status: Option<String>,
    /// The message that it is about.
    pub message: Option<u64>,
    pub octets: u32,
}

impl SessionReport {
    /// The stored form.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain fields")
    }

    /// Reads the result of [`Self::to_json`].
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

mod micros {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(at.as_microsecond())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let micros = i64::deserialize(from)?;
        Timestamp::from_microsecond(micros).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn reports_round_trip() {
        let at = Timestamp::from_microsecond(1_700_000_000_123_456).expect("in range");
        let count = |status: &str| {
            vec![StatusCount {
                status: status.to_owned(),
                count: 3,
            }]
        };
        let report = SessionReport {
            kind: BindKind::Transceiver,
            address: Ipv6Addr::LOCALHOST.into(),
            is_tls: true,
            bound_at: at,
            active_at: at,
            open_requests: 1,
            open_deliveries: 2,
            accepted: u64::MAX,
            accepted_last_minute: 4,
            refused: count("ESME_RTHROTTLED"),
            acknowledged: 5,
            rejected: count("0x00000400"),
            pdus: vec![SessionPdu {
                at,
                is_incoming: true,
                command: "submit_sm".to_owned(),
                sequence: 6,
                status: None,
                message: Some(7),
                octets: 80,
            }],
        };
        assert_eq!(SessionReport::from_json(&report.to_json()), Some(report));
        assert_eq!(SessionReport::from_json("{}"), None);
    }
}
