//! Checks whether a number can exist, fast enough to do for every message.
//!
//! libphonenumber calls a number possible if its national part, once parsed, has a length that its plan knows. Nearly
//! every number has such a length already and need not be parsed: parsing removes a prefix only if the rest is at least
//! as long as a complete number, and no rewriting rule makes a number too long (the tests would show such a rule). Any
//! other length may become possible by parsing, for instance with a national prefix left in (`+44 020…`), so such
//! numbers are parsed.

use domain::Msisdn;

use crate::correct::reading;
use crate::plan::{self, Digits, Length};

/// Whether libphonenumber calls the number possible.
///
/// Like the library, this accepts lengths that are only dialled within an area (seven digits after `+1`).
pub fn is_possible(number: &Msisdn) -> bool {
    is_known(plan::check_length(number)) || is_known(length_after_parsing(number))
}

fn is_known(length: Option<Length>) -> bool {
    matches!(length, Some(Length::Whole | Length::Local))
}

fn length_after_parsing(number: &Msisdn) -> Option<Length> {
    let reading = reading::with_calling_code(&Digits::from(number)).ok()?;
    Some(reading.length())
}

#[cfg(test)]
mod tests;
