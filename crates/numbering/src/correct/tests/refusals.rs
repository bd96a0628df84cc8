//! Refused numbers and their error texts.

use super::super::*;

#[test]
fn refused_numbers_have_a_reason() {
    use CorrectionReason::{
        NoAreaCode, NoCallingCode, NoPlan, NotANumber, TooLong, TooShort, WrongLength,
    };
    for (case, country, raw, reason) in [
        ("nothing", "LV", "", NotANumber),
        ("only separators", "LV", " - ", NotANumber),
        ("only a plus", "LV", "+", NotANumber),
        ("too short", "LV", "12", TooShort),
        ("one digit", "LV", "1", TooShort),
        ("a digit short", "LV", "2000000", TooShort),
        ("a digit too many", "LV", "200000010", TooLong),
        ("a length that no number has", "NO", "912 345", WrongLength),
        ("too long for anything", "US", "12025550123202555", TooLong),
        (
            "more than fifteen digits in all",
            "DE",
            "0301234567890123",
            TooLong,
        ),
        (
            "longer than any input",
            "LV",
            "0000000000000000000000000000000037120000001",
            TooLong,
        ),
        ("without its area", "US", "555-0123", NoAreaCode),
        ("letters of the keypad", "US", "1-800-FLOWERS", NotANumber),
        ("a word before it", "LV", "tel 20000001", NotANumber),
        ("an extension", "US", "202-555-0123 x5", NotANumber),
        ("an extension by comma", "US", "2025550123,5", NotANumber),
        ("a service code", "LV", "*21*20000001#", NotANumber),
        ("two numbers", "LV", "20000001;20000002", NotANumber),
        ("a plus inside", "LV", "371+20000001", NotANumber),
        ("two pluses", "LV", "++37120000001", NotANumber),
        ("a fraction", "LV", "2000000½1", NotANumber),
        ("no such calling code", "LV", "+21012345678", NoCallingCode),
        (
            "no such calling code, local without +",
            "LV",
            "+21012345",
            NoCallingCode,
        ),
        (
            "no such calling code, local without 00",
            "DE",
            "000301234567",
            NoCallingCode,
        ),
        (
            "local, in a country without a plan of its own",
            "AQ",
            "20000001",
            NoPlan,
        ),
        (
            "too short, in a country without a plan of its own",
            "AQ",
            "+3712000",
            TooShort,
        ),
    ] {
        let country = Country::parse(country).expect("a country");
        let expected = CorrectionError {
            value: raw.to_owned(),
            country: Some(country),
            reason,
        };
        assert_eq!(examine(raw, Some(country)), Err(expected.clone()), "{case}");
        assert_eq!(correct(raw, country), Err(expected), "{case}");
    }
}

#[test]
fn an_error_shows_the_value_and_what_to_do() {
    for (raw, country, expected) in [
        (
            "12",
            Some("LV"),
            "'12' cannot be corrected for LV: it has too few digits; give the whole number",
        ),
        (
            "tel\n",
            None,
            "'tel\\u{a}' cannot be corrected: it is not a phone number; give one number in digits",
        ),
    ] {
        let country = country.map(|code| Country::parse(code).expect("a country"));
        let error = examine(raw, country).expect_err(raw);
        assert_eq!(error.to_string(), expected);
    }
}
