//! The entries of the reference data.

use std::fmt;
use std::num::NonZeroU32;

use domain::{Country, Network};

/// The number that stands for an operator, for ever: it is never given to another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorId(NonZeroU32);

impl OperatorId {
    /// An ID from its number; zero is none.
    pub const fn new(id: u32) -> Option<Self> {
        match NonZeroU32::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// The number.
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
    /// Its number.
    pub id: OperatorId,
    /// Where it works; none for networks at sea, in the air and in orbit.
    pub country: Option<Country>,
    /// What it is called: its brand, else its legal name.
    pub name: Box<str>,
    /// The network that stands for it: the first operational one under its main MCC, else the first.
    pub main: Option<Network>,
    /// Its networks under the main MCC, ascending. Most operators have no other MCC.
    pub networks: Box<[Network]>,
}

impl Operator {
    /// The MCC under which it has most of its operational networks, the lowest of equals.
    pub fn mcc(&self) -> Option<u16> {
        self.main.map(Network::mcc)
    }
}

/// A network in one country. A network that several territories share has an entry for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkEntry {
    /// MCC and MNC.
    pub network: Network,
    /// Where it is; none for networks at sea, in the air and in orbit.
    pub country: Option<Country>,
    /// Who runs it.
    pub operator: OperatorId,
    /// What it is called.
    pub name: Box<str>,
    /// Whether it is on the air.
    pub status: NetworkStatus,
}

/// Whether a network is on the air, as far as the sources know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkStatus {
    /// It serves subscribers.
    Operational,
    /// It was switched off, or its code was given back.
    NotOperational,
    /// Its code is allocated and the network is yet to come.
    Planned,
    /// It is only tried out.
    Testing,
    /// Its code is kept for somebody.
    Reserved,
    /// The sources do not say.
    Unknown,
}

impl NetworkStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Operational,
        Self::NotOperational,
        Self::Planned,
        Self::Testing,
        Self::Reserved,
        Self::Unknown,
    ];

    /// The word for it in the files.
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

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// The first digits of numbers that were given to an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The digits in international form, calling code included.
    pub prefix: u64,
    /// The country of those numbers; none for satellite services.
    pub country: Option<Country>,
    /// The operator that they were given to.
    pub operator: OperatorId,
}

/// What the first digits of a number tell. A number may have been ported since, which only a lookup can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The country.
    pub country: Option<Country>,
    /// The operator that the number was first given to.
    pub operator: Option<OperatorId>,
    /// That operator's main network.
    pub network: Option<Network>,
}
