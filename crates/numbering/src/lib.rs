//! Phone numbers and the data about them.
//!
//! What belongs here: whether a number can exist, how a local number becomes an international one, and the reference
//! data that says what a number belongs to: countries, operators, networks and prefixes.
//! The latter is read from files that are compiled in; see [`Reference`].
//!
//! What never enters: I/O at run time. The data is compiled in or handed over by the caller, so every answer depends
//! on its arguments alone. Prices, routes and HTTP live in other rooms.
//!
//! Google's libphonenumber is the authority on numbers. Its numbering plans are compiled in, and one reader over them
//! gives every answer here, so no two can disagree. The library itself is not part of the service: it takes some 20 µs
//! for a number and up to 22 MB once loaded. In the tests it is the oracle, as the crate `rlibphonenumber` over the same
//! plans and as a table of Google's answers.

mod correct;
mod plan;
mod possible;
pub mod reference;

pub use correct::{Corrected, CorrectionError, CorrectionReason, correct, examine};
pub use plan::NumberType;
pub use possible::is_possible;
pub use reference::Reference;
