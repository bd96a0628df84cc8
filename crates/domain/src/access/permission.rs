//! What a token may do.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;

/// A group of routes that a token may be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Send and cancel SMS, and read their states and costs.
    SmsSend,
    /// Read messages, scheduled messages, states and costs.
    SmsRead,
    /// Send Viber messages.
    ViberSend,
    /// Register and confirm sender IDs, and read the account's own.
    SenderWrite,
    /// Run HLR lookups and read their results.
    HlrLookup,
    /// Read the price list.
    SmsRates,
    /// Read reference data and correct numbers.
    NumbersRead,
    /// Have one-time codes sent, and check them.
    VerifySend,
}

impl Permission {
    /// Every permission, in the order in which lists show them.
    pub const ALL: [Self; 8] = [
        Self::SmsSend,
        Self::SmsRead,
        Self::ViberSend,
        Self::SenderWrite,
        Self::HlrLookup,
        Self::SmsRates,
        Self::NumbersRead,
        Self::VerifySend,
    ];

    /// The name that tokens, scopes and the command line use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SmsSend => "sms:send",
            Self::SmsRead => "sms:read",
            Self::ViberSend => "viber:send",
            Self::SenderWrite => "sender:write",
            Self::HlrLookup => "hlr:lookup",
            Self::SmsRates => "sms:rates",
            Self::NumbersRead => "numbers:read",
            Self::VerifySend => "verify:send",
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a permission; choose from {}", Quoted(.0), all_names())]
pub struct UnknownPermission(String);

fn all_names() -> String {
    Permission::ALL.map(Permission::name).join(", ")
}

impl FromStr for Permission {
    type Err = UnknownPermission;

    fn from_str(name: &str) -> Result<Self, UnknownPermission> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == name)
            .ok_or_else(|| UnknownPermission(name.to_owned()))
    }
}

/// A set of permissions, small enough to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions(u32);

impl Permissions {
    pub fn all() -> Self {
        Permission::ALL.into_iter().collect()
    }

    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The permissions in the set, in the order of [`Permission::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL
            .into_iter()
            .filter(move |p| self.contains(*p))
    }

    /// The stored form: names, separated by spaces.
    pub fn to_names(self) -> String {
        self.iter()
            .map(Permission::name)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Parses the result of [`Self::to_names`].
    pub fn from_names(names: &str) -> Result<Self, UnknownPermission> {
        names.split_whitespace().map(str::parse).collect()
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |bits, p| bits | p.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_permission_is_found_by_its_name() {
        for permission in Permission::ALL {
            assert_eq!(permission.name().parse(), Ok(permission));
        }
        let error = "sms:all"
            .parse::<Permission>()
            .expect_err("unknown")
            .to_string();
        assert!(error.contains("sms:send, sms:read"), "{error}");
    }

    #[test]
    fn sets_round_trip_through_their_names() {
        let set: Permissions = [Permission::SmsRates, Permission::SmsSend]
            .into_iter()
            .collect();
        assert!(set.contains(Permission::SmsSend) && !set.contains(Permission::SmsRead));
        assert_eq!(set.to_names(), "sms:send sms:rates");
        assert!(!set.is_empty() && Permissions::default().is_empty());
        assert_eq!(Permissions::from_names("sms:rates sms:send"), Ok(set));
        assert_eq!(
            Permissions::from_names(&Permissions::all().to_names()),
            Ok(Permissions::all())
        );
    }
}
