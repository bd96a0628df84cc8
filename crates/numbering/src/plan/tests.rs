//! Tests of all plans together.

use super::*;

/// Bounds the memory of a server that handles numbers of every country.
const MAX_STATES: usize = 20_000;

#[test]
fn all_plans_compile_to_few_states() {
    let states: usize = WORLD.codes.iter().map(|entry| entry.plan().states()).sum();
    assert!(states > 10_000, "{states} states are too few for the world");
    assert!(states <= MAX_STATES, "{states} states");
}

#[test]
fn every_country_but_the_uninhabited_has_a_plan() {
    let without: Vec<String> = Country::all()
        .filter(|&country| find_region(country).is_none())
        .map(|country| country.to_string())
        .collect();
    assert_eq!(without, ["AQ", "BV", "GS", "HM", "PN", "TF", "UM"]);
}

#[test]
fn calling_codes_are_found_by_their_digits() {
    for (digits, expected) in [
        ("12025550123", Some((1, 1))),
        ("37120000001", Some((3, 371))),
        ("4930123", Some((2, 49))),
        ("870", Some((3, 870))),
        ("2101234", None),
        ("0371", None),
        ("37", None),
        ("", None),
    ] {
        let values: Vec<u8> = digits.bytes().map(|digit| digit - b'0').collect();
        let found = split_calling_code(&values).map(|(plan, rest)| {
            let code = plan
                .digits()
                .iter()
                .fold(0, |code, &d| code * 10 + i32::from(d));
            (values.len() - rest.len(), code)
        });
        assert_eq!(found, expected, "{digits}");
    }
}

#[test]
fn a_rewritten_number_fits() {
    for source in source::codes() {
        for region in source.regions() {
            let added = region.rewrite.unwrap_or_default().len();
            assert!(added <= "0549$1".len(), "{} rewrites by more", region.id);
        }
    }
}
