//! The channels: SMS, Viber and HLR lookups.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;

/// A way to reach a subscriber, with its own prices and routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Channel {
    #[default]
    Sms,
    Viber,
    /// A query to the subscriber's home network.
    Hlr,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a channel; give sms, viber or hlr", Quoted(.0))]
pub struct UnknownChannel(String);

impl Channel {
    /// Every channel, in the order of its numbers.
    pub const ALL: [Self; 3] = [Self::Sms, Self::Viber, Self::Hlr];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Sms => "sms",
            Self::Viber => "viber",
            Self::Hlr => "hlr",
        }
    }

    /// The index in tables by channel.
    pub const fn number(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Channel {
    type Err = UnknownChannel;

    fn from_str(name: &str) -> Result<Self, UnknownChannel> {
        let known = Self::ALL.into_iter().find(|channel| channel.name() == name);
        known.ok_or_else(|| UnknownChannel(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_round_trip() {
        for (number, channel) in Channel::ALL.into_iter().enumerate() {
            assert_eq!(channel.number(), number);
            assert_eq!(channel.name().parse(), Ok(channel));
        }
        assert!("SMS".parse::<Channel>().is_err());
    }
}
