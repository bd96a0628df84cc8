//! The ways in which the service reaches a subscriber.

use std::fmt;
use std::str::FromStr;

use crate::shown::Shown;

/// A way to reach a subscriber, each with prices and routes of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Channel {
    /// A text message.
    #[default]
    Sms,
    /// A Viber message.
    Viber,
    /// A question to the subscriber's home network.
    Hlr,
}

/// The name belongs to no channel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is no channel; give sms, viber or hlr", Shown(.0))]
pub struct UnknownChannel(String);

impl Channel {
    /// Every channel, each at the place of its number.
    pub const ALL: [Self; 3] = [Self::Sms, Self::Viber, Self::Hlr];

    /// The name in settings and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sms => "sms",
            Self::Viber => "viber",
            Self::Hlr => "hlr",
        }
    }

    /// A number of its own, for tables by channel.
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
    fn names_and_numbers_lead_back() {
        for (number, channel) in Channel::ALL.into_iter().enumerate() {
            assert_eq!(channel.number(), number);
            assert_eq!(channel.name().parse(), Ok(channel));
        }
        assert!("SMS".parse::<Channel>().is_err());
    }
}
