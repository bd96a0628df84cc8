//! Compares possible numbers with the library over the same plans and with Google's answers.

use std::sync::LazyLock;

use domain::number::msisdn::{MAX_DIGITS, MIN_DIGITS};
use proptest::prelude::*;

use super::*;
use crate::plan::library::LIBRARY;
use crate::plan::samples::{Samples, SplitMix};

static SAMPLES: LazyLock<Samples> = LazyLock::new(Samples::new);

/// Corrections by Google's own library; the number is in the fourth column.
const CORRECTIONS: &str = include_str!("../../oracle/corrections.csv");

/// The answer of the library's Rust port.
fn is_possible_in_library(number: &Msisdn) -> bool {
    LIBRARY
        .parse(number.to_string(), None)
        .is_ok_and(|read| LIBRARY.is_possible_number(&read))
}

/// The port keeps at most ten leading zeros of a national part, while Google's library keeps all. Longer runs are not
/// compared.
fn assert_agreement(number: &Msisdn) {
    if !number.digits().contains("00000000000") {
        assert_eq!(
            is_possible(number),
            is_possible_in_library(number),
            "{number}"
        );
    }
}

/// Starts of national parts: prefixes, carrier codes and area codes with special rules, and plain digits.
const LEADING: &str =
    "0 1 2 3 5 6 7 8 9 00 01 06 08 80 90 0002 003768 01115 180020 1831 0000000000";

/// A number of `digits` digits: the calling code, then as much of `national` as fits.
fn number(code: u16, national: &str, digits: usize) -> Msisdn {
    let written = format!("{code}{national}");
    Msisdn::parse(&written[..digits]).expect("a calling code never starts with 0")
}

#[test]
fn every_calling_code_length_and_leading_digit_gets_the_answer_of_the_library() {
    for code in SAMPLES.codes() {
        for leading in LEADING.split(' ') {
            let national = format!("{leading}23456789234567");
            for digits in MIN_DIGITS..=MAX_DIGITS {
                assert_agreement(&number(code, &national, digits));
            }
        }
    }
}

#[test]
fn leading_digits_that_are_no_calling_code_are_refused_by_the_library_too() {
    for leading in 100..1000 {
        let number = number(leading, "234567892345", 11);
        if plan::check_length(&number).is_none() {
            assert!(!is_possible_in_library(&number), "{number}");
            assert!(!is_possible(&number), "{number}");
        }
    }
}

#[test]
fn a_number_that_google_corrects_is_possible_without_parsing() {
    let mut numbers = 0;
    for row in CORRECTIONS.lines().skip(1) {
        let corrected = row.split(',').nth(3).expect("a row has six columns");
        if let Ok(number) = Msisdn::parse(corrected) {
            assert!(is_known(plan::check_length(&number)), "{number}");
            numbers += 1;
        }
    }
    assert!(numbers >= 2_500, "only {numbers} numbers");
}

#[test]
fn possible_and_impossible_examples() {
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
    ] {
        let number = Msisdn::parse(number).expect(case);
        assert_eq!(is_possible(&number), expected, "{case}");
        assert_eq!(
            is_possible_in_library(&number),
            expected,
            "{case}, by the library"
        );
    }
}

/// The expected answers are those of Google's own library.
#[test]
fn zeros_beyond_the_tenth_count_as_digits() {
    for (case, number, expected) in [
        ("Turkish, of a possible length", "900000000000000", true),
        ("German, of a possible length", "490000000000001", true),
        ("Italian, a digit too many", "390000000000001", false),
    ] {
        let number = Msisdn::parse(number).expect(case);
        assert_eq!(is_possible(&number), expected, "{case}");
    }
}

/// Digits that mostly start with a calling code, of every length, some with long runs of zeros.
fn any_number() -> impl Strategy<Value = Msisdn> {
    let codes: Vec<u16> = SAMPLES.codes().collect();
    let national = prop_oneof![4 => "[0-9]{14}", 1 => "[0189]{14}", 1 => "[0-9]{2}0{10}[0-9]{2}"];
    let of_a_code = (
        prop::sample::select(codes),
        national,
        MIN_DIGITS..=MAX_DIGITS,
    )
        .prop_map(|(code, national, digits)| number(code, &national, digits));
    let of_any_digits = "[1-9][0-9]{6,14}|[1-9][0-9]{0,3}0{10}"
        .prop_map(|digits| Msisdn::parse(&digits).expect("7 to 15 digits"));
    prop_oneof![4 => of_a_code, 1 => of_any_digits]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn random_numbers_get_the_answer_of_the_library(number in any_number()) {
        assert_agreement(&number);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Covers the rules that rewrite a number.
    #[test]
    fn numbers_with_a_national_prefix_get_the_answer_of_the_library(seed in any::<u64>()) {
        for written in SAMPLES.with_national_prefix(&mut SplitMix::new(seed)) {
            if let Ok(number) = Msisdn::parse(&written) {
                assert_agreement(&number);
            }
        }
    }
}
