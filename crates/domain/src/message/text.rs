//! The text of an SMS: its coding, its number of parts, and the octets of each part.
//!
//! A request only needs the number of parts: [`measure`] chooses coding and splitting, [`measure_as`] uses the caller's
//! coding. Both are fast and allocate nothing. [`encode`] produces the octets when a part is handed to a carrier, and
//! [`decode`] reads them as a handset does.
//!
//! This module knows nothing about requests, prices or carriers.

mod coding;
mod encode;
mod error;
mod fill;
mod gsm7;
mod measure;
mod udh;

#[cfg(test)]
mod properties;

pub use coding::Coding;
pub use encode::{Part, decode, decode_exactly, encode};
pub use error::TextError;
pub use fill::{Fill, fill, is_gsm7};
pub use measure::{Shape, measure, measure_as};
pub use udh::{Udh, UdhError};

/// The size of one short message, header and text together.
pub const MESSAGE_OCTETS: usize = 140;

/// The most parts of one text: the concatenation header counts them in one octet.
pub const MAX_PARTS: u8 = u8::MAX;
