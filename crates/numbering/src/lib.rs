//! Phone numbers and the reference data about them.
//!
//! This crate checks whether a number can exist, turns a local number into an international one, and looks up the
//! country, operator and network of a number. The reference data is compiled in or passed in by the caller; see
//! [`Reference`].
//!
//! There is no I/O at run time: every result depends on the arguments alone. Prices, routes and HTTP belong to other
//! crates.
//!
//! Google's libphonenumber is the authority on numbers. Its numbering plans are compiled in, and one parser over them
//! gives every answer, so that no two contradict each other. The library itself is not part of the service, because it
//! takes about 20 µs for a number and up to 22 MB of memory. The tests compare with it: with the crate
//! `rlibphonenumber` over the same plans, and with a table of answers from Google's own library.

mod correct;
mod plan;
mod possible;
mod prefix;
pub mod reference;

pub use correct::{Corrected, CorrectionError, CorrectionReason, correct, examine};
pub use plan::NumberType;
pub use possible::is_possible;
pub use prefix::area;
pub use reference::Reference;
