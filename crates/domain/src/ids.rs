//! Identifiers: one type for each kind of item.

use std::fmt;
use std::str::FromStr;

/// The largest integer that every JSON parser reads exactly.
pub const MAX_ID: u64 = (1 << 53) - 1;

/// The text is not a plain decimal number from 1 to [`MAX_ID`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an ID is a whole number from 1 to 9007199254740991")]
pub struct NotAnId;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Takes a number from 1 to [`MAX_ID`].
            pub const fn new(number: u64) -> Option<Self> {
                if number >= 1 && number <= MAX_ID { Some(Self(number)) } else { None }
            }

            pub const fn get(self) -> u64 {
                self.0
            }

            /// The stored form.
            pub const fn as_i64(self) -> i64 {
                self.0.cast_signed()
            }

            /// Reads the result of [`Self::as_i64`].
            pub fn from_i64(number: i64) -> Option<Self> {
                u64::try_from(number).ok().and_then(Self::new)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                parse_decimal(text).and_then(Self::new).ok_or(NotAnId)
            }
        }
    };
}

id! {
    /// An account: the owner of tokens, messages and a balance.
    AccountId
}
id! {
    /// One message to one recipient, in any number of parts.
    MessageId
}
id! {
    /// The ID of an API token, for lists and for revoking it. Not the secret.
    TokenId
}
id! {
    /// A sender ID of an account.
    SenderId
}
id! {
    /// An SMPP user. A system ID that is used again gets another ID.
    SmppUserId
}
id! {
    /// What a person allowed a client to do, with all tokens issued for it.
    GrantId
}
id! {
    CallbackId
}
id! {
    PersonId
}
id! {
    /// An entry of the audit log.
    AuditId
}
id! {
    /// One running process of the service.
    NodeId
}
id! {
    /// A one-time code that was sent to a number.
    VerificationId
}
id! {
    /// A pool of messages in the database that wait for the same route.
    PoolId
}

/// Stricter than `str::parse`, which also accepts a leading `+`.
fn parse_decimal(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_numbers_within_the_safe_range() {
        for (text, expected) in [
            ("1", Some(1)),
            ("9007199254740991", Some(MAX_ID)),
            ("9007199254740992", None),
            ("99999999999999999999999", None),
            ("0", None),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("1.0", None),
            ("١", None),
        ] {
            assert_eq!(text.parse().ok().map(MessageId::get), expected, "{text:?}");
        }
    }
}
