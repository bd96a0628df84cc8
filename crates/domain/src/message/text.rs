//! What an SMS text is on the air: its coding, how many parts it takes, and the octets of each part.
//!
//! A request asks only what a text costs: [`measure`] where the service chooses coding and splitting, [`measure_as`]
//! where the caller chose a coding. Both are quick and allocate nothing. The octets come later, from
//! [`encode`], when a part is handed to a carrier. [`decode`] is the handset's end of the same road.
//!
//! Nothing here knows of requests, prices or carriers.

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
pub use encode::{Part, decode, encode};
pub use error::TextError;
pub use fill::{Fill, fill, is_gsm7};
pub use measure::{Shape, measure, measure_as};
pub use udh::{Udh, UdhError};

/// The octets one short message carries, header and text together.
pub const MESSAGE_OCTETS: usize = 140;

/// The parts one text may take: the concatenation header counts them in one octet.
pub const MAX_PARTS: u8 = u8::MAX;
