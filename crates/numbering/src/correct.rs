//! From a number as people write it to its international form.

pub(crate) mod reading;
mod written;

use domain::shown::Shown;
use domain::{Country, Msisdn};

use self::reading::Reading;
use self::written::Written;
use crate::NumberType;

/// A number in international form, and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrected {
    /// The number.
    pub number: Msisdn,
    /// The country that the number belongs to, whichever it was read for; `None` where it is no country's, as with
    /// satellite networks.
    pub country: Option<Country>,
    /// What it is for.
    pub kind: NumberType,
}

/// Why a number could not be corrected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be corrected{}: {reason}", Shown(.value), for_country(*.country))]
pub struct CorrectionError {
    /// What was sent.
    pub value: String,
    /// For which country it was read.
    pub country: Option<Country>,
    /// What speaks against it.
    pub reason: CorrectionReason,
}

/// What speaks against a number, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CorrectionReason {
    /// There is something other than digits, separators and one leading plus, or no digit at all.
    #[error("it is not a phone number; give one number in digits")]
    NotANumber,
    /// All numbers of its plan are longer.
    #[error("it has too few digits; give the whole number")]
    TooShort,
    /// All numbers of its plan are shorter.
    #[error("it has too many digits; give one number, without an extension")]
    TooLong,
    /// Its plan has shorter and longer numbers.
    #[error("no number there has as many digits; check that none is missing")]
    WrongLength,
    /// It is dialled like this only within an area, which is not known.
    #[error("its area code is missing; give the whole number")]
    NoAreaCode,
    /// It is international, or can only be that, and no country has that calling code.
    #[error("no country has its calling code; give the number as +37120000001")]
    NoCallingCode,
    /// The country has no numbers, and it is none as an international number.
    #[error(
        "the country has no numbering plan of its own; give the number in international format, such as +37120000001"
    )]
    NoPlan,
    /// Its length is right, but its plan has no such numbers.
    #[error("no numbers with these leading digits are in use; check the number")]
    NotInUse,
}

fn for_country(country: Option<Country>) -> String {
    country.map_or_else(String::new, |country| format!(" for {country}"))
}

/// Reads a number as it is written in a country, if one is given, and says what it is.
///
/// The number is read for the country first: a local number gets the calling code, an international one stays what it
/// is. If that gives no number in use, its digits are read as an international number. With `+` or `00` they are never
/// read as a local number.
///
/// Only a number in use is taken, one that libphonenumber calls valid. A number that is merely long enough is an error,
/// since its country and what it is for would be a guess.
pub fn examine(raw: &str, country: Option<Country>) -> Result<Corrected, CorrectionError> {
    let error = |reason| CorrectionError {
        value: raw.to_owned(),
        country,
        reason,
    };
    let written = Written::read(raw).map_err(error)?;
    first_valid(&written, country).map_err(|readings| error(readings.fault()))
}

/// Reads a number as it is written in a country, for a message to be sent to it.
///
/// What [`examine`] reads is taken as it is. Plans change faster than the knowledge of them, so a number that is not
/// known to be in use is taken too where it has the length of one: as one of the country, else as an international one.
/// A number that is dialled only within an area is refused, since its area is not known.
pub fn correct(raw: &str, country: Country) -> Result<Msisdn, CorrectionError> {
    let error = |reason| CorrectionError {
        value: raw.to_owned(),
        country: Some(country),
        reason,
    };
    let written = Written::read(raw).map_err(error)?;
    match first_valid(&written, Some(country)) {
        Ok(corrected) => Ok(corrected.number),
        Err(readings) => readings.possible().ok_or_else(|| error(readings.fault())),
    }
}

/// Both ways to read a number, neither of which gives a valid one.
struct Readings {
    at_home: Option<Result<Reading, CorrectionReason>>,
    international: Result<Reading, CorrectionReason>,
}

fn first_valid(written: &Written, country: Option<Country>) -> Result<Corrected, Readings> {
    let at_home = country.map(|country| reading::for_country(written, country));
    if let Some(Ok(reading)) = &at_home
        && let Some(corrected) = reading.valid()
    {
        return Ok(corrected);
    }
    let international = reading::international(written);
    match international.as_ref().ok().and_then(Reading::valid) {
        Some(corrected) => Ok(corrected),
        None => Err(Readings {
            at_home,
            international,
        }),
    }
}

impl Readings {
    fn possible(&self) -> Option<Msisdn> {
        let readings = [self.at_home.as_ref(), Some(&self.international)];
        readings
            .into_iter()
            .flatten()
            .flatten()
            .find_map(Reading::possible)
    }

    /// What speaks against the number as it was meant, which is the number of the country if there is one.
    fn fault(&self) -> CorrectionReason {
        let meant = self.at_home.as_ref().unwrap_or(&self.international);
        meant.as_ref().map_or_else(|&reason| reason, Reading::fault)
    }
}

#[cfg(test)]
mod tests;
