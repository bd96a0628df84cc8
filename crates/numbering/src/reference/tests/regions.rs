//! Compares the areas with the library that they were generated from.

use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumber, PhoneNumberType};

use super::*;

const TYPES: [PhoneNumberType; 11] = [
    PhoneNumberType::FixedLine,
    PhoneNumberType::Mobile,
    PhoneNumberType::FixedLineOrMobile,
    PhoneNumberType::TollFree,
    PhoneNumberType::PremiumRate,
    PhoneNumberType::SharedCost,
    PhoneNumberType::VoIP,
    PhoneNumberType::PersonalNumber,
    PhoneNumberType::Pager,
    PhoneNumberType::UAN,
    PhoneNumberType::VoiceMail,
];

/// The library's answer. It has separate codes for Ascension and Tristan da Cunha, which share one in ISO 3166-1.
fn library_country(number: &PhoneNumber) -> Option<Country> {
    match number.get_region_code()?.to_string().as_str() {
        "AC" | "TA" => Some(country("SH")),
        code => Country::parse(code).ok(),
    }
}

/// The country by the areas alone.
fn area_country(number: &Msisdn) -> Option<Country> {
    let location = EMBEDDED.area_lookup.find(number.digits().as_bytes())?;
    EMBEDDED.locations[location as usize].country
}

fn assert_same_country(example: &PhoneNumber) {
    let Ok(number) = Msisdn::parse(&example.to_string()) else {
        return; // A few islands have numbers that are too short to be sent to.
    };
    if PHONE_NUMBER_UTIL.is_valid_number(example) {
        assert_eq!(area_country(&number), library_country(example), "{number}");
    }
}

#[test]
fn examples_of_every_region_and_type_have_the_country_of_the_library() {
    let mut examples = 0;
    for region in PHONE_NUMBER_UTIL.get_supported_regions() {
        for kind in TYPES {
            if let Ok(example) =
                PHONE_NUMBER_UTIL.get_example_number_for_type_and_region(region, kind)
            {
                examples += 1;
                assert_same_country(&example);
            }
        }
    }
    assert!(examples > 1000, "only {examples} examples");
}

fn any_number_of_an_area() -> impl Strategy<Value = Msisdn> {
    let starts: Vec<&str> = records(Files::EMBEDDED.areas).map(|row| row[0]).collect();
    let parts = (prop::sample::select(starts), "[0-9]{15}", 8_usize..=13);
    parts.prop_map(|(start, rest, digits)| number(&format!("{start}{rest}")[..digits]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]
    #[test]
    fn valid_numbers_of_any_area_have_the_country_of_the_library(number in any_number_of_an_area()) {
        // The library may parse the digits as another number by removing a supposed national prefix.
        let read = PHONE_NUMBER_UTIL.parse(number.to_string(), None).ok();
        if let Some(read) = read.filter(|read| read.to_string() == number.to_string()) {
            assert_same_country(&read);
        }
    }
}
