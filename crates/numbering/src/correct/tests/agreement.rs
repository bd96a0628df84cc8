//! Compares corrections of many spellings of many numbers with libphonenumber.

use std::sync::LazyLock;

use proptest::prelude::*;
use rlibphonenumber::{
    CountryCodeSource, NumberLengthType, PhoneNumber, PhoneNumberFormat, PhoneNumberType, Region,
};

use super::super::*;
use crate::plan::library::LIBRARY;
use crate::plan::samples::{Samples, SplitMix};

static SAMPLES: LazyLock<Samples> = LazyLock::new(Samples::new);

/// The result that [`examine`] should give, according to the library.
fn examined(written: &str, country: Option<Country>) -> Option<Corrected> {
    let readings = readings(written, country);
    let mut valid = readings.iter().filter(|n| LIBRARY.is_valid_number(n));
    valid.find_map(|number| {
        Some(Corrected {
            number: in_e164(number)?,
            country: country_of(number),
            kind: match LIBRARY.get_number_type(number) {
                PhoneNumberType::Mobile => NumberType::Mobile,
                PhoneNumberType::FixedLine => NumberType::Landline,
                _ => NumberType::Unknown,
            },
        })
    })
}

/// The result that [`correct`] should give, according to the library.
fn corrected(written: &str, country: Country) -> Option<Msisdn> {
    if let Some(corrected) = examined(written, Some(country)) {
        return Some(corrected.number);
    }
    readings(written, Some(country))
        .iter()
        .filter(|number| {
            LIBRARY.is_possible_number_with_reason(number) == Ok(NumberLengthType::IsPossible)
        })
        .find_map(in_e164)
}

/// The number as dialled in its country, then as an international one.
fn readings(written: &str, country: Option<Country>) -> Vec<PhoneNumber> {
    let in_country = country.and_then(|country| for_country(written, country));
    let digits = written.trim_start_matches('+');
    let digits = digits.strip_prefix("00").unwrap_or(digits);
    let international = LIBRARY.parse(format!("+{digits}"), None).ok();
    in_country.into_iter().chain(international).collect()
}

fn for_country(written: &str, country: Country) -> Option<PhoneNumber> {
    let region = Region::from_code(country.as_str()).ok()?;
    let mut number = LIBRARY
        .parse_and_keep_raw_input(written, Some(region))
        .ok()?;
    // Otherwise the library returns the raw input for a number of zeros only.
    number.raw_input = None;
    let is_local = number.country_code_source() == CountryCodeSource::FromDefaultCountry;
    let is_international = written.starts_with('+') || written.starts_with("00");
    (!(is_local && is_international)).then_some(number)
}

fn country_of(number: &PhoneNumber) -> Option<Country> {
    let region = LIBRARY.get_region_for_number(number)?;
    match region.to_string().as_str() {
        "AC" | "TA" => Country::parse("SH").ok(),
        code => Country::parse(code).ok(),
    }
}

fn in_e164(number: &PhoneNumber) -> Option<Msisdn> {
    Msisdn::parse(&LIBRARY.format(number, PhoneNumberFormat::E164)).ok()
}

fn assert_agreement(written: &str, country: Option<Country>) {
    let case = || format!("{written} for {country:?}");
    let expected = examined(written, country);
    assert_eq!(examine(written, country).ok(), expected, "{}", case());
    if let Some(country) = country {
        let expected = corrected(written, country);
        assert_eq!(correct(written, country).ok(), expected, "{}", case());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn every_spelling_of_a_number_is_read_as_by_the_library(seed in any::<u64>()) {
        let (written, country) = SAMPLES.any(&mut SplitMix::new(seed));
        assert_agreement(&written, country);
    }
}
