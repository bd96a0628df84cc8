//! Corrects a number as people write it into its international form.

pub(crate) mod reading;
mod written;

use domain::quoted::Quoted;
use domain::{Country, Msisdn};

use self::reading::Reading;
use self::written::Written;
use crate::NumberType;

/// A number in international form, with its country and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrected {
    pub number: Msisdn,
    /// The country that the number belongs to, which may differ from the one it was read for. `None` for numbers of no
    /// country, such as satellite phones.
    pub country: Option<Country>,
    pub kind: NumberType,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be corrected{}: {reason}", Quoted(.value), for_country(*.country))]
pub struct CorrectionError {
    pub value: String,
    /// The country that it was read for.
    pub country: Option<Country>,
    pub reason: CorrectionReason,
}

/// Why a number cannot be corrected; its text says what to do.
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
    /// It is only dialled within an area, and the area is unknown.
    #[error("its area code is missing; give the whole number")]
    NoAreaCode,
    /// It is international, or only possible as such, and its calling code does not exist.
    #[error("no country has its calling code; give the number as +37120000001")]
    NoCallingCode,
    /// The country has no numbering plan, and the digits are not an international number either.
    #[error(
        "the country has no numbering plan of its own; give the number in international format, such as +37120000001"
    )]
    NoPlan,
    /// Its length is right, but its plan does not use these digits.
    #[error("no numbers with these leading digits are in use; check the number")]
    NotInUse,
}

fn for_country(country: Option<Country>) -> String {
    country.map_or_else(String::new, |country| format!(" for {country}"))
}

/// Corrects a number, and returns its country and type.
///
/// The number is first read as dialled in the country, if one is given: a local number gets the calling code, an
/// international one keeps its own. If the result is not in use, the digits are read as an international number. With
/// `+` or `00` they are never read as a local number.
///
/// Only numbers in use are accepted, which libphonenumber calls valid. For a number that only has the right length,
/// country and type would be a guess.
pub fn examine(raw: &str, country: Option<Country>) -> Result<Corrected, CorrectionError> {
    let error = |reason| CorrectionError {
        value: raw.to_owned(),
        country,
        reason,
    };
    let written = Written::read(raw).map_err(error)?;
    first_valid(&written, country).map_err(|readings| error(readings.fault()))
}

/// Corrects a number that a message will be sent to.
///
/// Accepts everything that [`examine`] accepts. Numbering plans change faster than our copy of them, so a number of the
/// right length is accepted too, even if it is not known to be in use: first as a number of the country, then as an
/// international one. A number without its area code is refused.
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

/// The two ways to read a number, when neither gives a valid one.
struct Readings {
    in_country: Option<Result<Reading, CorrectionReason>>,
    international: Result<Reading, CorrectionReason>,
}

fn first_valid(written: &Written, country: Option<Country>) -> Result<Corrected, Readings> {
    let in_country = country.map(|country| reading::for_country(written, country));
    if let Some(Ok(reading)) = &in_country
        && let Some(corrected) = reading.valid()
    {
        return Ok(corrected);
    }
    let international = reading::international(written);
    match international.as_ref().ok().and_then(Reading::valid) {
        Some(corrected) => Ok(corrected),
        None => Err(Readings {
            in_country,
            international,
        }),
    }
}

impl Readings {
    fn possible(&self) -> Option<Msisdn> {
        let readings = [self.in_country.as_ref(), Some(&self.international)];
        readings
            .into_iter()
            .flatten()
            .flatten()
            .find_map(Reading::possible)
    }

    /// Explains why the number was refused. If a country was given, the caller meant a number of that country.
    fn fault(&self) -> CorrectionReason {
        let meant = self.in_country.as_ref().unwrap_or(&self.international);
        meant.as_ref().map_or_else(|&reason| reason, Reading::fault)
    }
}

#[cfg(test)]
mod tests;
