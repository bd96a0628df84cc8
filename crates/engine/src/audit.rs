//! The log of changes: who changed what, and from where.
//!
//! A use case that changes something for people takes a [`By`] and notes the change down *before* it makes it, so that
//! nothing is done that nobody can find out. What is then refused is noted as refused.

use std::net::IpAddr;

/// Who makes a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// An email address, or what takes its place.
    pub who: String,
    /// From where, where that is known.
    pub address: Option<IpAddr>,
}

impl By {
    /// Whoever runs the program's commands on its machine.
    pub fn command_line() -> Self {
        Self {
            who: "command line".to_owned(),
            address: None,
        }
    }
}
