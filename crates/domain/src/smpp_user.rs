//! SMPP users: what a customer binds with, and what that allows.
//!
//! A user belongs to one account. Its messages are subject to the account's rules and to the user's own limits, by the
//! same [`Access`] that a token has.

mod binds;
mod password;
mod receipt;
mod session;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use crate::access::{Access, AccessLimits, AllowList};
use crate::ids::SmppUserId;
use crate::quoted::Quoted;

pub use binds::{BindKind, BindKinds, UnknownBindKind};
pub use password::{LONG_PASSWORD_CHARS, PASSWORD_CHARS, PASSWORD_SEED_BYTES, generate_password};
pub use receipt::{ReceiptDate, ReceiptErrorField, ReceiptFormat, ReceiptId, UnknownReceiptOption};
pub use session::{SessionPdu, SessionReport, SmppSession, StatusCount};

/// The SMPP field has 16 octets, including the terminating zero.
pub const MAX_SYSTEM_ID_CHARS: usize = 15;
pub const DEFAULT_MAX_BINDS: u32 = 10;

/// The name that a client binds with: 1 to 15 ASCII characters without spaces, unique over the service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SystemId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a system ID; give 1 to 15 ASCII letters, digits and signs without spaces", Quoted(.0))]
pub struct NotASystemId(String);

impl SystemId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SystemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SystemId {
    type Err = NotASystemId;

    fn from_str(text: &str) -> Result<Self, NotASystemId> {
        let fits = (1..=MAX_SYSTEM_ID_CHARS).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotASystemId(text.to_owned()))
        }
    }
}

/// An SMPP user of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmppUser {
    pub id: SmppUserId,
    pub system_id: SystemId,
    /// What messages of this user may do, by the same rules as messages by a token. Its name is the system ID.
    pub access: Arc<Access>,
    pub limits: SmppLimits,
    pub receipts: ReceiptFormat,
    pub created_at: Timestamp,
}

impl SmppUser {
    /// What can be changed about the user.
    pub fn options(&self) -> SmppUserOptions {
        SmppUserOptions {
            allow: self.access.allow.clone(),
            access_limits: self.access.limits.clone(),
            limits: self.limits,
            receipts: self.receipts,
        }
    }

    /// Whether the user may have a session of this kind from this address.
    pub fn may_bind(&self, kind: BindKind, from: IpAddr) -> bool {
        self.limits.binds.contains(kind) && self.access.allow.allows(from)
    }

    /// Whether the user may have a session that receives.
    pub fn may_receive(&self) -> bool {
        let binds = self.limits.binds;
        binds.contains(BindKind::Receiver) || binds.contains(BindKind::Transceiver)
    }
}

/// What can be chosen and changed about an SMPP user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmppUserOptions {
    /// The addresses that may bind.
    pub allow: AllowList,
    pub access_limits: AccessLimits,
    pub limits: SmppLimits,
    pub receipts: ReceiptFormat,
}

/// Limits on the sessions of one SMPP user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmppLimits {
    /// Sessions at once, over all nodes; `None` for no limit.
    pub max_binds: Option<u32>,
    /// Messages a second over all nodes, which share it by their sessions that submit; `None` for no limit.
    pub max_per_second: Option<u32>,
    /// The kinds of bind that the user may open.
    pub binds: BindKinds,
}

impl Default for SmppLimits {
    fn default() -> Self {
        Self {
            max_binds: Some(DEFAULT_MAX_BINDS),
            max_per_second: None,
            binds: BindKinds::all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_ids_are_short_and_printable() {
        for (text, ok) in [
            ("acme", true),
            ("Acme_01.x-y", true),
            ("123456789012345", true),
            ("1234567890123456", false),
            ("", false),
            ("a b", false),
            ("a\0", false),
            ("ä", false),
        ] {
            assert_eq!(text.parse::<SystemId>().is_ok(), ok, "{text:?}");
        }
    }
}
