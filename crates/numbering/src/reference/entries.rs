//! Entries of the reference data.

use std::fmt;
use std::num::NonZeroU32;

use domain::{Country, Network};

/// The number of a mobile operator. It never changes and is never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorId(NonZeroU32);

impl OperatorId {
    /// `None` for zero.
    pub const fn new(id: u32) -> Option<Self> {
        match NonZeroU32::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for OperatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for OperatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperatorId({self})")
    }
}

/// A mobile operator in one country.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    pub id: OperatorId,
    /// `None` for networks at sea, in the air and in orbit.
    pub country: Option<Country>,
    /// The brand, or else the legal name.
    pub name: Box<str>,
    /// The main network: the first operational one under the main MCC, else the first.
    pub main: Option<Network>,
    /// The networks under the main MCC, ascending. Most operators have no other MCC.
    pub networks: Box<[Network]>,
}

impl Operator {
    /// The main MCC: the one with the most operational networks, or the lowest if several have as many.
    pub fn mcc(&self) -> Option<u16> {
        self.main.map(Network::mcc)
    }
}

/// A network in one country. A network that several territories share has an entry for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkEntry {
    pub network: Network,
    /// `None` for networks at sea, in the air and in orbit.
    pub country: Option<Country>,
    pub operator: OperatorId,
    pub name: Box<str>,
    pub status: NetworkStatus,
}

/// Whether a network is in operation, as far as the sources know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkStatus {
    /// It serves subscribers.
    Operational,
    /// Switched off, or its code was returned.
    NotOperational,
    /// Its code is allocated, but it is not in operation yet.
    Planned,
    Testing,
    Reserved,
    /// The sources do not say.
    Unknown,
}

impl NetworkStatus {
    pub const ALL: [Self; 6] = [
        Self::Operational,
        Self::NotOperational,
        Self::Planned,
        Self::Testing,
        Self::Reserved,
        Self::Unknown,
    ];

    /// The word in the files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operational => "operational",
            Self::NotOperational => "not operational",
            Self::Planned => "planned",
            Self::Testing => "testing",
            Self::Reserved => "reserved",
            Self::Unknown => "unknown",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// The leading digits of numbers that were assigned to an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The digits in international form, including the calling code.
    pub prefix: u64,
    /// `None` for satellite services.
    pub country: Option<Country>,
    pub operator: OperatorId,
}

/// The country and network that a number's digits tell. The number may have been ported since, which only a lookup
/// shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Location {
    pub country: Option<Country>,
    /// The operator that the number was first assigned to.
    pub operator: Option<OperatorId>,
    /// That operator's main network.
    pub network: Option<Network>,
}
