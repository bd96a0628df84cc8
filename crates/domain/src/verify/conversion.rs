//! How many codes were entered, by the first digits of the numbers.
//!
//! Somebody who earns from messages to certain numbers (traffic pumping) has many codes sent there and enters none of
//! them. An account's codes to such a prefix are slowed down.

use jiff::{SignedDuration, Timestamp};

use crate::code_cap::CodeCapReached;
use crate::ids::AccountId;
use crate::number::country::Country;
use crate::number::network::Network;

/// The period over which codes are counted.
pub const WINDOW: SignedDuration = SignedDuration::from_hours(24);
/// The most codes that are counted for an account and a prefix: the newest.
pub const MAX_COUNTED: u32 = 500;

/// With fewer codes, nothing can be concluded.
const MIN_SENT: u32 = 50;
/// The lowest share of codes that are entered, in percent.
const MIN_APPROVED_PERCENT: u64 = 5;
/// The pause between two codes while a prefix is slowed down.
const SLOW_PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// The codes of an account to one prefix within [`WINDOW`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conversion {
    pub sent: u32,
    pub approved: u32,
}

impl Conversion {
    /// Whether nearly no code is entered.
    pub fn is_slowed(self) -> bool {
        let (sent, approved) = (u64::from(self.sent), u64::from(self.approved));
        self.sent >= MIN_SENT && approved * 100 < sent * MIN_APPROVED_PERCENT
    }

    /// Checks whether another code may be sent. `last` is the time of the newest.
    pub fn check(self, last: Option<Timestamp>, now: Timestamp) -> Result<(), CodeCapReached> {
        match last.map(|last| last + SLOW_PAUSE) {
            Some(until) if self.is_slowed() && until > now => Err(CodeCapReached { until }),
            _ => Ok(()),
        }
    }
}

/// The conversion of one prefix and account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixConversion {
    pub account: AccountId,
    /// The calling code and the first three digits after it.
    pub prefix: u32,
    /// A network of these numbers; `None` if none is known.
    pub network: Option<Network>,
    /// The country, if no network is known.
    pub country: Option<Country>,
    pub conversion: Conversion,
    /// Of the newest [`MAX_COUNTED`] codes, which decide whether the prefix is slowed down.
    pub newest: Conversion,
}

impl PrefixConversion {
    /// Whether codes of this account to this prefix are slowed down.
    pub fn is_slowed(&self) -> bool {
        self.newest.is_slowed()
    }
}

/// The conversion of one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkConversion {
    /// `None` if the network of the numbers is unknown.
    pub network: Option<Network>,
    /// The country, if the network is unknown.
    pub country: Option<Country>,
    pub conversion: Conversion,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    #[test]
    fn a_prefix_is_slowed_when_nearly_no_code_is_entered() {
        for (sent, approved, expected) in [
            (0, 0, false),
            (49, 0, false),
            (50, 0, true),
            (50, 2, true),
            (50, 3, false),
            (100, 4, true),
            (100, 5, false),
            (1_000, 49, true),
            (1_000, 50, false),
        ] {
            let conversion = Conversion { sent, approved };
            assert_eq!(conversion.is_slowed(), expected, "{sent} {approved}");
        }
    }

    #[test]
    fn a_slowed_prefix_gets_one_code_a_minute() {
        let slowed = Conversion {
            sent: 50,
            approved: 0,
        };
        let fine = Conversion {
            sent: 50,
            approved: 10,
        };
        let refused = Err(CodeCapReached { until: at(60) });
        for (name, conversion, last, second, expected) in [
            ("soon", slowed, Some(at(0)), 59, refused),
            ("a minute later", slowed, Some(at(0)), 60, Ok(())),
            ("fine", fine, Some(at(0)), 1, Ok(())),
            ("none yet", Conversion::default(), None, 0, Ok(())),
        ] {
            assert_eq!(conversion.check(last, at(second)), expected, "{name}");
        }
    }
}
