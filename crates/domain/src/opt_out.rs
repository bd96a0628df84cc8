//! Opt-outs: recipients that an account must not write to.

use jiff::Timestamp;

use crate::number::msisdn::Msisdn;
use crate::sender::originator::Originator;

/// A recipient, and the sender that it does not want messages from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptOutKey {
    pub recipient: Msisdn,
    /// `None` for all senders of the account. Senders are compared as sender IDs are: case matters.
    pub sender: Option<Originator>,
}

/// How an entry came onto the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The handset sent a word such as STOP.
    Keyword,
    Api,
    Dashboard,
    Import,
}

impl Via {
    pub const ALL: [Self; 4] = [Self::Keyword, Self::Api, Self::Dashboard, Self::Import];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Api => "api",
            Self::Dashboard => "dashboard",
            Self::Import => "import",
        }
    }

    /// The number in both databases.
    pub const fn number(self) -> i16 {
        match self {
            Self::Keyword => 0,
            Self::Api => 1,
            Self::Dashboard => 2,
            Self::Import => 3,
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|via| via.number() == number)
    }
}

/// An entry of an account's opt-out list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptOut {
    pub key: OptOutKey,
    pub since: Timestamp,
    pub via: Via,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_origin_is_read_back_from_its_number() {
        for via in Via::ALL {
            assert_eq!(Via::from_number(via.number()), Some(via), "{}", via.name());
        }
        assert_eq!(Via::from_number(4), None);
    }
}
