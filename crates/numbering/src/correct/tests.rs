//! Numbers as people write them, country by country.

mod agreement;
mod examination;
mod oracle;
mod refusals;

use proptest::prelude::*;
use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat, PhoneNumberType, Region};

use super::*;
use crate::possible::is_possible;

fn corrected(raw: &str, country: &str) -> Result<String, String> {
    let country = Country::parse(country).expect("a country");
    correct(raw, country)
        .map(|number| number.to_string())
        .map_err(|error| error.to_string())
}

#[test]
fn numbers_are_completed_for_their_country() {
    for (case, country, raw, expected) in [
        ("no trunk prefix", "LV", "20 000 001", "+37120000001"),
        ("trunk 0", "DE", "0151 12345678", "+4915112345678"),
        ("trunk 0 and a slash", "DE", "030/1234567", "+49301234567"),
        ("trunk 0", "GB", "07911 123456", "+447911123456"),
        ("trunk 0", "FR", "06.12.34.56.78", "+33612345678"),
        ("trunk 0", "JP", "090-1234-5678", "+819012345678"),
        ("trunk 0", "AU", "(04) 1234 5678", "+61412345678"),
        ("trunk 06", "HU", "06 20 123 4567", "+36201234567"),
        ("trunk 8", "RU", "8 (916) 123-45-67", "+79161234567"),
        ("trunk 8 or 0", "LT", "8 612 34567", "+37061234567"),
        ("trunk 1", "US", "1-202-555-0123", "+12025550123"),
        ("ten digits", "US", "(202) 555-0123", "+12025550123"),
        ("ten digits", "CA", "613 555 0123", "+16135550123"),
        (
            "the zero is part of the number",
            "IT",
            "06 1234 5678",
            "+390612345678",
        ),
        ("no zero", "IT", "312 345 6789", "+393123456789"),
        ("mobile with 15", "AR", "011 15 2345-6789", "+5491123456789"),
        ("mobile with 9", "AR", "9 11 2345 6789", "+5491123456789"),
        ("fixed line", "AR", "11 2345 6789", "+541123456789"),
        ("carrier code", "BR", "0 15 21 98765 4321", "+5521987654321"),
        ("no trunk prefix", "ES", "612 345 678", "+34612345678"),
        ("ten digits", "IN", "098765 43210", "+919876543210"),
        ("eleven digits", "CN", "138 0013 8000", "+8613800138000"),
        ("not in ISO 3166-1", "XK", "043 201 234", "+38343201234"),
    ] {
        assert_eq!(
            corrected(raw, country),
            Ok(expected.to_owned()),
            "{case}: {raw} in {country}"
        );
    }
}

#[test]
fn international_numbers_are_unchanged() {
    for (case, country, raw, expected) in [
        ("with a plus", "US", "+371 20000001", "+37120000001"),
        (
            "of the country itself",
            "LV",
            "+37120000001",
            "+37120000001",
        ),
        ("with 00", "LV", "00 49 151 12345678", "+4915112345678"),
        (
            "with 00 where 011 is dialled",
            "US",
            "0037120000001",
            "+37120000001",
        ),
        (
            "with 00 where local numbers may start with it",
            "JP",
            "0037120000001",
            "+37120000001",
        ),
        (
            "with the country's own prefix",
            "US",
            "011 371 20000001",
            "+37120000001",
        ),
        (
            "with the country's own prefix",
            "KR",
            "001 65 8123 4567",
            "+6581234567",
        ),
        (
            "with the country's own prefix",
            "RU",
            "8 10 371 20000001",
            "+37120000001",
        ),
        (
            "only readable as international",
            "GB",
            "37120000001",
            "+37120000001",
        ),
        (
            "calling code without a plus",
            "LV",
            "37120000001",
            "+37120000001",
        ),
        (
            "trunk zero in brackets",
            "LV",
            "+44 (0)20 7946 0958",
            "+442079460958",
        ),
        (
            "a zero that is part of the number",
            "LV",
            "+39 06 1234 5678",
            "+390612345678",
        ),
        (
            "a country without a plan of its own",
            "AQ",
            "37120000001",
            "+37120000001",
        ),
        (
            "a country without a plan of its own, plus",
            "AQ",
            "+37120000001",
            "+37120000001",
        ),
        (
            "a number of no country",
            "LV",
            "+870 773111632",
            "+870773111632",
        ),
    ] {
        assert_eq!(
            corrected(raw, country),
            Ok(expected.to_owned()),
            "{case}: {raw} in {country}"
        );
    }
}

#[test]
fn digits_and_separators_of_other_scripts_are_read() {
    for (case, country, raw, expected) in [
        (
            "full-width",
            "LV",
            "＋３７１　２０００－０００１",
            "+37120000001",
        ),
        (
            "full-width, local",
            "JP",
            "０９０ー１２３４ー５６７８",
            "+819012345678",
        ),
        ("Arabic-Indic", "EG", "٠١٠٠ ١٢٣ ٤٥٦٧", "+201001234567"),
        ("Persian", "IR", "۰۹۱۲ ۳۴۵ ۶۷۸۹", "+989123456789"),
        (
            "no-break spaces",
            "FR",
            "06\u{a0}12\u{a0}34\u{a0}56\u{a0}78",
            "+33612345678",
        ),
        ("typographic dashes", "US", "202–555—0123", "+12025550123"),
        (
            "direction marks",
            "LV",
            "\u{202a}+371 20000001\u{202c}",
            "+37120000001",
        ),
    ] {
        assert_eq!(corrected(raw, country), Ok(expected.to_owned()), "{case}");
    }
}

#[test]
fn a_message_may_go_to_a_number_that_only_has_the_right_length() {
    for (case, country, raw, expected) in [
        ("local", "LV", "11234567", "+37111234567"),
        ("international", "US", "+37111234567", "+37111234567"),
        (
            "in use is preferred to a right length",
            "SE",
            "447400123456",
            "+447400123456",
        ),
    ] {
        assert_eq!(corrected(raw, country), Ok(expected.to_owned()), "{case}");
    }
}

fn any_country() -> impl Strategy<Value = Country> {
    prop::sample::select(Country::all().collect::<Vec<_>>())
}

/// A number in use, or `None` where the library has no example.
fn example_of(country: Country) -> Option<Msisdn> {
    let region = Region::from_code(country.as_str()).ok()?;
    let example = PHONE_NUMBER_UTIL
        .get_example_number_for_type_and_region(region, PhoneNumberType::Mobile)
        .ok()?;
    Msisdn::parse(&example.to_string()).ok()
}

proptest! {
    #[test]
    fn corrected_numbers_are_possible(
        raw in "\\PC{0,24}|\\+?[0-9 ().-]{5,24}|(00?|\\+)?[0-9]{6,14}",
        country in any_country(),
    ) {
        if let Ok(number) = correct(&raw, country) {
            prop_assert!(is_possible(&number), "{}", number);
        }
    }

    #[test]
    fn a_number_with_its_plus_is_the_same_in_every_country(owner in any_country(), reader in any_country()) {
        if let Some(number) = example_of(owner) {
            prop_assert_eq!(correct(&number.to_string(), reader), Ok(number), "{}", number);
        }
    }

    #[test]
    fn a_number_written_for_its_own_country_gets_its_calling_code(country in any_country()) {
        if let Some(number) = example_of(country) {
            let read = PHONE_NUMBER_UTIL.parse(number.to_string(), None).expect("an example");
            let local = PHONE_NUMBER_UTIL.format(&read, PhoneNumberFormat::National);
            prop_assert_eq!(correct(&local, country), Ok(number), "{}", local);
        }
    }
}
