//! What has a price list.

use std::fmt;
use std::str::FromStr;

use crate::message::channel::Channel;
use crate::quoted::Quoted;

/// What a price list is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priced {
    /// Messages or lookups of a channel, by their recipient.
    Channel(Channel),
    /// Messages from handsets, by their sender.
    Inbound,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} has no price list; give sms, viber, hlr or inbound", Quoted(.0))]
pub struct UnknownPriced(String);

impl Priced {
    /// Everything that has a price list, in the order of its numbers.
    pub const ALL: [Self; 4] = [
        Self::Channel(Channel::Sms),
        Self::Channel(Channel::Viber),
        Self::Channel(Channel::Hlr),
        Self::Inbound,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Channel(channel) => channel.name(),
            Self::Inbound => "inbound",
        }
    }

    /// The index in tables by price list.
    pub const fn number(self) -> usize {
        match self {
            Self::Channel(channel) => channel.number(),
            Self::Inbound => Channel::ALL.len(),
        }
    }
}

impl Default for Priced {
    fn default() -> Self {
        Self::Channel(Channel::default())
    }
}

impl From<Channel> for Priced {
    fn from(channel: Channel) -> Self {
        Self::Channel(channel)
    }
}

impl fmt::Display for Priced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Priced {
    type Err = UnknownPriced;

    fn from_str(name: &str) -> Result<Self, UnknownPriced> {
        let known = Self::ALL.into_iter().find(|priced| priced.name() == name);
        known.ok_or_else(|| UnknownPriced(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_round_trip() {
        for (number, priced) in Priced::ALL.into_iter().enumerate() {
            assert_eq!(priced.number(), number);
            assert_eq!(priced.name().parse(), Ok(priced));
        }
        assert!("voice".parse::<Priced>().is_err());
    }
}
