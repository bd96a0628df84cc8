//! Whether a number can exist at all, fast enough to ask for every message.
//!
//! libphonenumber calls a number possible when, once it is read, its national part has a length that its plan knows.
//! Nearly every number has such a length as it stands and need not be read: reading drops a prefix only where the rest
//! is as long as a whole number or longer, and no rule that rewrites a number makes it too long. The tests would show
//! such a rule. Any other length may become possible, as where a national prefix was left in (`+44 020…`), so such a
//! number is read.

use domain::Msisdn;

use crate::correct::reading;
use crate::plan::{self, Digits, Length};

/// Whether libphonenumber holds the number possible.
///
/// Like the library, this also takes a length that is only dialled within an area (seven digits after `+1`).
pub fn is_possible(number: &Msisdn) -> bool {
    is_known(plan::length_of(number)) || is_known(length_when_read(number))
}

fn is_known(length: Option<Length>) -> bool {
    matches!(length, Some(Length::Whole | Length::Local))
}

fn length_when_read(number: &Msisdn) -> Option<Length> {
    let reading = reading::with_calling_code(&Digits::from(number)).ok()?;
    Some(reading.length())
}

#[cfg(test)]
mod tests;
