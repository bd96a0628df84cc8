//! The country and type of corrected numbers.

use super::super::*;

/// The result of [`examine`] as text: number, type and country.
fn examined(raw: &str, country: &str) -> String {
    let country = Country::parse(country).ok();
    examine(raw, country).map_or_else(
        |error| error.reason.to_string(),
        |Corrected {
             number,
             country,
             kind,
         }| {
            let country = country.map_or("none".to_owned(), |country| country.to_string());
            format!("{number} {} {country}", kind.name())
        },
    )
}

#[test]
fn a_number_is_examined_for_its_country_or_for_none() {
    for (case, country, raw, expected) in [
        ("mobile", "LV", "20 000 001", "+37120000001 mobile LV"),
        (
            "fixed line",
            "DE",
            "030/1234567",
            "+49301234567 landline DE",
        ),
        (
            "fixed or mobile",
            "US",
            "(202) 555-0123",
            "+12025550123 unknown US",
        ),
        (
            "toll-free",
            "GB",
            "0800 123 4567",
            "+448001234567 unknown GB",
        ),
        (
            "of another country with the same calling code",
            "US",
            "613 555 0123",
            "+16135550123 unknown CA",
        ),
        (
            "of another country",
            "DE",
            "+371 20000001",
            "+37120000001 mobile LV",
        ),
        (
            "of no country",
            "LV",
            "+870 773111632",
            "+870773111632 mobile none",
        ),
        (
            "of a part of a country",
            "GB",
            "+247 40123",
            "+24740123 mobile SH",
        ),
        (
            "no country given",
            "",
            "37120000001",
            "+37120000001 mobile LV",
        ),
        (
            "no country given, 00",
            "",
            "0037120000001",
            "+37120000001 mobile LV",
        ),
        (
            "no country given, local",
            "",
            "0151 12345678",
            "no country has its calling code; give the number as +37120000001",
        ),
        (
            "not in use as local, in use as international",
            "SE",
            "447400123456",
            "+447400123456 mobile GB",
        ),
        (
            "long enough but not in use",
            "LV",
            "11234567",
            "no numbers with these leading digits are in use; check the number",
        ),
    ] {
        assert_eq!(
            examined(raw, country),
            expected,
            "{case}: {raw} in {country}"
        );
    }
}
