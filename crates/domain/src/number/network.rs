//! Mobile networks by MCC and MNC.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;

/// A mobile network: the country code (MCC) and the network code (MNC). Leading zeros of the MNC are significant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    mcc: u16,
    mnc: u16,
    mnc_digits: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a network; give three digits of MCC and two or three of MNC, such as 24701", Quoted(.0))]
pub struct NotANetworkCode(String);

impl Network {
    /// Parses both codes: three digits, and two or three digits.
    pub fn new(mcc: &str, mnc: &str) -> Option<Self> {
        let number = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_digit())
                .then(|| text.parse().ok())
        };
        if mcc.len() != 3 || !(2..=3).contains(&mnc.len()) {
            return None;
        }
        Some(Self {
            mcc: number(mcc)??,
            mnc: number(mnc)??,
            mnc_digits: u8::try_from(mnc.len()).ok()?,
        })
    }

    /// The stored form, both codes in one number: the MCC, the number of digits of the MNC, and the MNC in three
    /// digits. 247-01 is 2472001.
    pub const fn code(self) -> i32 {
        self.mcc as i32 * 10_000 + self.mnc_digits as i32 * 1000 + self.mnc as i32
    }

    /// Reads the result of [`Self::code`].
    pub fn from_code(code: i32) -> Option<Self> {
        let (mcc, digits, mnc) = (code / 10_000, code / 1000 % 10, code % 1000);
        let width = usize::try_from(digits).ok()?;
        let mnc = format!("{mnc:0width$}");
        (mnc.len() == width).then(|| Self::new(&format!("{mcc:03}"), &mnc))?
    }

    pub const fn mcc(self) -> u16 {
        self.mcc
    }

    /// With leading zeros.
    pub fn mnc(self) -> String {
        format!("{:0width$}", self.mnc, width = usize::from(self.mnc_digits))
    }
}

/// Both codes together, such as `24701`.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:03}{:0width$}",
            self.mcc,
            self.mnc,
            width = usize::from(self.mnc_digits)
        )
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({self})")
    }
}

/// Parses the result of [`fmt::Display`].
impl FromStr for Network {
    type Err = NotANetworkCode;

    fn from_str(text: &str) -> Result<Self, NotANetworkCode> {
        text.split_at_checked(3)
            .and_then(|(mcc, mnc)| Self::new(mcc, mnc))
            .ok_or_else(|| NotANetworkCode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_their_leading_zeros() {
        for (text, mcc, mnc) in [
            ("24701", 247, "01"),
            ("310260", 310, "260"),
            ("310026", 310, "026"),
            ("00101", 1, "01"),
        ] {
            let network: Network = text.parse().expect(text);
            assert_eq!(
                (network.mcc(), network.mnc().as_str()),
                (mcc, mnc),
                "{text}"
            );
            assert_eq!(network.to_string(), text);
            assert_eq!(Network::from_code(network.code()), Some(network), "{text}");
        }
        assert_eq!(
            Network::new("247", "01").map(Network::code),
            Some(2_472_001)
        );
        for code in [0, -1, 247, 2_471_001, 2_474_001, 2_472_100, 10_002_001] {
            assert_eq!(Network::from_code(code), None, "{code}");
        }
        assert_ne!("31001".parse::<Network>(), "310001".parse::<Network>());
    }

    #[test]
    fn invalid_networks_are_refused() {
        for text in [
            "",
            "247",
            "2470",
            "2470123",
            "24a01",
            "247+1",
            "٢٤٧٠١",
            "24701 ",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text:?}");
        }
    }
}
