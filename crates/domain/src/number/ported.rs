//! Ported numbers: those whose network is not the one that their digits tell.

use jiff::Timestamp;

use crate::number::msisdn::Msisdn;
use crate::number::network::Network;

/// The network of a number, as a lookup or a receipt named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortedNumber {
    pub number: Msisdn,
    pub network: Network,
    pub learned_at: Timestamp,
}
