//! Identifiers, one type for each kind of thing.

use std::fmt;
use std::str::FromStr;

/// The largest ID: every JSON reader holds integers up to 2^53-1 exactly.
pub const MAX_ID: u64 = (1 << 53) - 1;

/// A string that is no ID: not a plain decimal number from 1 to [`MAX_ID`].
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

            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The number as both databases keep it.
            pub const fn as_i64(self) -> i64 {
                self.0.cast_signed()
            }

            /// Reads back what [`Self::as_i64`] wrote.
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
    /// A message as its sender knows it: one for each recipient, whatever the number of parts.
    MessageId
}
id! {
    /// An API token, as people name it when they revoke it. Not the secret.
    TokenId
}
id! {
    /// A name or number that an account sends under.
    SenderId
}
id! {
    /// What a person granted to a client, with all the tokens that it gave.
    GrantId
}
id! {
    /// A report to a caller.
    CallbackId
}
id! {
    /// Somebody who may sign in.
    PersonId
}
id! {
    /// A change that was noted down.
    AuditId
}
id! {
    /// One run of the program that works on a database.
    NodeId
}
id! {
    /// Where messages wait for a node that has a link to a carrier.
    PoolId
}

/// `str::parse` would also take a leading `+`.
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
