//! The table against the library that it stands in for.

use std::fmt::Write as _;

use domain::msisdn::{MAX_DIGITS, MIN_DIGITS};
use proptest::prelude::*;
use rlibphonenumber::{PhoneNumber, PhoneNumberType};

use super::*;

/// The lengths that a national part can have in an [`Msisdn`], whose calling code takes one to three of its digits.
const NATIONAL_DIGITS: std::ops::RangeInclusive<u8> = 4..=14;

/// Asks the library about a length as such: the number is put together rather than read, so no prefix is dropped.
fn library_lengths(code: u16) -> Vec<u8> {
    NATIONAL_DIGITS
        .filter(|&digits| {
            PHONE_NUMBER_UTIL.is_possible_number(&PhoneNumber {
                country_code: i32::from(code),
                national_number: 10_u64.pow(u32::from(digits) - 1),
                ..PhoneNumber::default()
            })
        })
        .collect()
}

fn library_codes() -> Vec<u16> {
    let mut codes: Vec<u16> = PHONE_NUMBER_UTIL
        .get_supported_calling_codes()
        .map(|code| u16::try_from(code).expect("at most three digits"))
        .collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn the_table_is_what_the_library_says() {
    let expected: Vec<_> = library_codes()
        .into_iter()
        .map(|code| (code, library_lengths(code)))
        .collect();
    let table: Vec<_> = POSSIBLE_LENGTHS
        .iter()
        .map(|&(code, lengths)| (code, lengths.to_vec()))
        .collect();
    if table != expected {
        let rows = expected
            .iter()
            .fold(String::new(), |mut rows, (code, lengths)| {
                writeln!(rows, "    ({code}, &{lengths:?}),").expect("a String takes any text");
                rows
            });
        panic!(
            "the library's possible lengths differ from the table; replace the rows of POSSIBLE_LENGTHS \
             in crates/numbering/src/possible/lengths.rs by these and run all tests of this crate again:\n{rows}"
        );
    }
}

/// What a national part may start with: national prefixes, carrier codes and area codes that the library treats in a
/// way of its own, and plain digits.
const LEADING: &str =
    "0 1 2 3 5 6 7 8 9 00 01 06 08 80 90 0002 003768 01115 180020 1831 00000000000";

/// A number of `digits` digits in all: the calling code, then as much of `national` as fits.
fn number(code: u16, national: &str, digits: usize) -> Msisdn {
    let written = format!("{code}{national}");
    Msisdn::parse(&written[..digits]).expect("a calling code never starts with 0")
}

/// Where the table leaves a number open, [`is_possible`] is the library's own answer; so its claims are what to check.
fn assert_the_table_agrees(number: &Msisdn) {
    if let Some(verdict) = table_verdict(number) {
        assert_eq!(verdict, library_verdict(number), "{number}");
    }
}

#[test]
fn every_calling_code_length_and_leading_digit_gets_the_answer_of_the_library() {
    for code in library_codes() {
        for leading in LEADING.split(' ') {
            let national = format!("{leading}23456789234567");
            for digits in MIN_DIGITS..=MAX_DIGITS {
                assert_the_table_agrees(&number(code, &national, digits));
            }
        }
    }
}

#[test]
fn leading_digits_that_are_no_calling_code_are_refused_by_the_library_too() {
    for leading in 100..1000 {
        let number = number(leading, "234567892345", 11);
        if PLANS[usize::from(leading)].code_digits == 0 {
            assert!(!library_verdict(&number), "{number}");
            assert!(!is_possible(&number), "{number}");
        }
    }
}

#[test]
fn a_number_in_use_is_never_put_to_the_library() {
    for region in PHONE_NUMBER_UTIL.get_supported_regions() {
        for kind in [PhoneNumberType::Mobile, PhoneNumberType::FixedLine] {
            let example = PHONE_NUMBER_UTIL.get_example_number_for_type_and_region(region, kind);
            if let Ok(example) = example {
                let number = Msisdn::parse(&example.to_string()).expect("E.164");
                assert_eq!(table_verdict(&number), Some(true), "{number}");
            }
        }
    }
}

#[test]
fn named_numbers() {
    for (case, number, expected) in [
        ("Latvian mobile", "37120000001", true),
        ("Latvian, a digit short", "3712000000", false),
        ("Latvian, a digit too many", "371200000011", false),
        ("American", "12025550123", true),
        (
            "American without its area code, as the library",
            "15550123",
            true,
        ),
        ("British with the trunk zero left in", "4402079460958", true),
        ("British, two digits too many", "44234567890123", false),
        ("Russian with the trunk 8 left in", "789161234567", true),
        (
            "Italian with the zero that belongs to it",
            "390612345678",
            true,
        ),
        ("Argentinian mobile written with 15", "54111523456789", true),
        ("Inmarsat", "870773111632", true),
        ("no such calling code", "21012345678", false),
        (
            "eleven zeros, of which the library keeps ten",
            "900000000000000",
            false,
        ),
    ] {
        let number = Msisdn::parse(number).expect(case);
        assert_eq!(is_possible(&number), expected, "{case}");
        assert_eq!(library_verdict(&number), expected, "{case}, by the library");
    }
}

/// Digits that mostly start with a calling code, of every length, some with long runs of zeros.
fn any_number() -> impl Strategy<Value = Msisdn> {
    let codes: Vec<u16> = POSSIBLE_LENGTHS.iter().map(|&(code, _)| code).collect();
    let national = prop_oneof![4 => "[0-9]{14}", 1 => "[0189]{14}", 1 => "[0-9]{2}0{11}[0-9]"];
    let of_a_code = (
        prop::sample::select(codes),
        national,
        MIN_DIGITS..=MAX_DIGITS,
    )
        .prop_map(|(code, national, digits)| number(code, &national, digits));
    let of_any_digits = "[1-9][0-9]{6,14}|[1-9][0-9]{0,3}0{11}"
        .prop_map(|digits| Msisdn::parse(&digits).expect("7 to 15 digits"));
    prop_oneof![4 => of_a_code, 1 => of_any_digits]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn random_numbers_get_the_answer_of_the_library(number in any_number()) {
        assert_the_table_agrees(&number);
    }
}
