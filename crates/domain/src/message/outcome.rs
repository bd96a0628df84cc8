//! The outcome of a message.

use crate::message::channel::Channel;
use crate::message::code::Code;

/// How a message ended. It never changes once it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Delivered,
    Failed(Code),
    /// A network took it, but did not deliver it in time.
    Expired,
}

impl Outcome {
    /// The status in reports: 1 delivered, 2 not delivered, 16 expired.
    pub const fn status(self) -> u8 {
        match self {
            Self::Delivered => 1,
            Self::Failed(_) => 2,
            Self::Expired => 16,
        }
    }

    /// The error code in reports.
    pub const fn code(self) -> Code {
        match self {
            Self::Delivered => Code::FINE,
            Self::Failed(code) => code,
            Self::Expired => Code::EXPIRED,
        }
    }

    /// How many parts remain charged when the others are refunded. `None` if nothing is refunded.
    pub fn charged_parts(self, channel: Channel, taken: TakenParts) -> Option<u16> {
        match taken {
            TakenParts::All => self.is_refunded(channel, true).then_some(0),
            TakenParts::Only(taken) => self.is_refunded(channel, false).then_some(taken),
        }
    }

    /// Whether the price is refunded: no network took the message, or a lookup got no answer. `taken` means that a
    /// carrier took the message or answered the lookup; its receipt may still say that no network took it.
    pub fn is_refunded(self, channel: Channel, taken: bool) -> bool {
        match self {
            Self::Delivered | Self::Expired => false,
            Self::Failed(_) if !taken => true,
            // A message that expired in a network has the outcome `Expired`; this one expired before.
            Self::Failed(code) if code == Code::EXPIRED => true,
            Self::Failed(code) => {
                code.is_refunded() || (channel == Channel::Hlr && code.is_no_lookup())
            }
        }
    }

    /// Reads the stored results of [`Self::status`] and [`Self::code`].
    pub fn from_numbers(status: i64, error: i64) -> Option<Self> {
        match status {
            1 => Some(Self::Delivered),
            2 => u16::try_from(error)
                .ok()
                .and_then(Code::new)
                .map(Self::Failed),
            16 => Some(Self::Expired),
            _ => None,
        }
    }
}

/// How many parts of a message a carrier took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenParts {
    /// All of them, or it answered the lookup.
    All,
    /// Only this many; 0 if no carrier took the message.
    Only(u16),
}
