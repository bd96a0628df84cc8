//! From a number as people write it to its international form.

use domain::shown::Shown;
use domain::{Country, Msisdn};
use rlibphonenumber::{
    CountryCodeSource, NumberLengthType, PHONE_NUMBER_UTIL, PhoneNumber, PhoneNumberFormat, Region,
};

/// More digits than any number has: fifteen, a dialling-out prefix with a carrier code, and a trunk prefix.
const MAX_WRITTEN_DIGITS: usize = 24;

/// The prefix that much of the world dials before an international number.
const DIALLING_OUT: &str = "00";

/// The zero of each script in which digits are taken: ASCII, full-width, Arabic-Indic and its Persian form.
const ZEROS: [char; 4] = ['0', '０', '٠', '۰'];

/// Why a number could not be corrected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be corrected to a number of {country}", Shown(.value))]
pub struct CorrectionError {
    /// What was sent.
    pub value: String,
    /// For which country it was read.
    pub country: Country,
}

/// Reads a number as it is written in a country: a local number gets the calling code, an international one stays
/// what it is.
///
/// Digits without `+` or `00` are read for the country first and as an international number only when that fails.
/// With either they are never read as a local number, also not when no such international number can exist.
/// A number that is dialled only within an area is refused, since its area is not known.
pub fn correct(raw: &str, country: Country) -> Result<Msisdn, CorrectionError> {
    written_digits(raw)
        .and_then(|written| read_for(country, &written).or_else(|| read_as_international(&written)))
        .ok_or_else(|| CorrectionError {
            value: raw.to_owned(),
            country,
        })
}

/// The digits in ASCII, after a plus sign if there was one; `None` when there is anything but digits and separators.
///
/// The library would skip a leading word, cut off an extension and dial letters by the keypad. A message would then go
/// to a number that nobody wrote.
fn written_digits(raw: &str) -> Option<String> {
    let mut written = String::with_capacity(MAX_WRITTEN_DIGITS);
    for character in raw.chars() {
        if let Some(digit) = digit_of(character) {
            written.push(digit);
        } else if matches!(character, '+' | '＋') && written.is_empty() {
            written.push('+');
        } else if !is_separator(character) {
            return None;
        }
        if written.len() > MAX_WRITTEN_DIGITS {
            return None;
        }
    }
    Some(written)
}

fn digit_of(character: char) -> Option<char> {
    ZEROS.iter().find_map(|&zero| {
        let value = u32::from(character).checked_sub(u32::from(zero))?;
        char::from_digit(value, 10)
    })
}

fn is_separator(character: char) -> bool {
    let is_bracket_or_stop = matches!(
        character,
        '(' | ')' | '[' | ']' | '（' | '）' | '.' | '．' | '/' | '／'
    );
    // The last is the Japanese long-vowel mark, which a Japanese keyboard gives for a hyphen.
    let is_dash = matches!(
        character,
        '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '－' | 'ー'
    );
    // Contact lists wrap a number in marks for its writing direction, and these are copied with it.
    let is_invisible = matches!(
        character,
        '\u{AD}' | '\u{200B}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'
            | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
    );
    is_bracket_or_stop || is_dash || is_invisible || character.is_whitespace()
}

/// The number as somebody in the country would dial it.
fn read_for(country: Country, written: &str) -> Option<Msisdn> {
    let region = Region::from_code(country.as_str()).ok()?;
    let number = PHONE_NUMBER_UTIL
        .parse_and_keep_raw_input(written, Some(region))
        .ok()?;
    // The library takes `+` before an unknown calling code, and `00` where another prefix is dialled, for the start of
    // a local number.
    let is_local = number.country_code_source() == CountryCodeSource::FromDefaultCountry;
    let says_international = written.starts_with('+') || written.starts_with(DIALLING_OUT);
    if is_local && says_international {
        return None;
    }
    complete(&number)
}

/// The number as one that starts with a calling code.
fn read_as_international(written: &str) -> Option<Msisdn> {
    let digits = written.trim_start_matches('+');
    let digits = digits.strip_prefix(DIALLING_OUT).unwrap_or(digits);
    complete(&PHONE_NUMBER_UTIL.parse(format!("+{digits}"), None).ok()?)
}

/// The number in international form, if it is possible from anywhere.
fn complete(number: &PhoneNumber) -> Option<Msisdn> {
    let length = PHONE_NUMBER_UTIL.is_possible_number_with_reason(number);
    if length != Ok(NumberLengthType::IsPossible) {
        return None;
    }
    Msisdn::parse(&PHONE_NUMBER_UTIL.format(number, PhoneNumberFormat::E164)).ok()
}

#[cfg(test)]
mod tests;
