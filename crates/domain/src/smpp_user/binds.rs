//! The kinds of bind that an SMPP user may open.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quoted::Quoted;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BindKind {
    /// Sends messages.
    Transmitter,
    /// Gets receipts and messages from handsets.
    Receiver,
    /// Does both.
    Transceiver,
}

impl BindKind {
    pub const ALL: [Self; 3] = [Self::Transmitter, Self::Receiver, Self::Transceiver];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Transmitter => "transmitter",
            Self::Receiver => "receiver",
            Self::Transceiver => "transceiver",
        }
    }

    /// Whether such a session submits messages.
    pub const fn sends(self) -> bool {
        matches!(self, Self::Transmitter | Self::Transceiver)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a kind of bind; choose from transmitter, receiver, transceiver", Quoted(.0))]
pub struct UnknownBindKind(String);

impl FromStr for BindKind {
    type Err = UnknownBindKind;

    fn from_str(name: &str) -> Result<Self, UnknownBindKind> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownBindKind(name.to_owned()))
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindKinds(u8);

impl BindKinds {
    pub fn all() -> Self {
        BindKind::ALL.into_iter().collect()
    }

    pub const fn contains(self, kind: BindKind) -> bool {
        self.0 & kind.bit() != 0
    }

    pub fn iter(self) -> impl Iterator<Item = BindKind> {
        BindKind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<BindKind> for BindKinds {
    fn from_iter<I: IntoIterator<Item = BindKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | kind.bit()))
    }
}

/// The stored form: names, separated by spaces.
impl fmt::Display for BindKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(BindKind::name).collect();
        f.write_str(&names.join(" "))
    }
}

impl FromStr for BindKinds {
    type Err = UnknownBindKind;

    fn from_str(names: &str) -> Result<Self, UnknownBindKind> {
        names.split_whitespace().map(str::parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_round_trip_through_their_names() {
        let set: BindKinds = "receiver transmitter".parse().expect("two kinds");
        assert!(set.contains(BindKind::Receiver) && !set.contains(BindKind::Transceiver));
        assert_eq!(set.to_string(), "transmitter receiver");
        assert_eq!(BindKinds::all().to_string().parse(), Ok(BindKinds::all()));
        assert!("both".parse::<BindKinds>().is_err());
    }
}
