//! Phone numbers and the data about them.
//!
//! What belongs here: whether a number can exist, how a local number becomes an international one, and the reference
//! data that says what a number belongs to: countries, operators, networks and prefixes.
//!
//! What never enters: I/O at run time. The data is compiled in or handed over by the caller, so every answer depends
//! on its arguments alone. Prices, routes and HTTP live in other rooms.
//!
//! Google's libphonenumber (crate `rlibphonenumber`) is the authority on numbers. It takes some 20 µs for a
//! number and up to 22 MB once loaded, so what each message needs is answered without it where that gives the same
//! answer, and it is loaded by the first call that does need it.

mod correct;
mod possible;

pub use correct::{CorrectionError, correct};
pub use possible::is_possible;
