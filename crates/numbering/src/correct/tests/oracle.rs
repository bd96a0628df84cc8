//! Compares corrections with a table that Google's own library produced.

use super::super::*;

const TABLE: &str = include_str!("../../../oracle/corrections.csv");

/// The result in the form of the table's columns.
fn columns(read: Result<Corrected, CorrectionError>) -> String {
    read.map_or_else(
        |_| ",,".to_owned(),
        |corrected| {
            let country = corrected.country.map(|country| country.to_string());
            format!(
                "{},{},{}",
                corrected.number,
                corrected.kind.name(),
                country.unwrap_or_default()
            )
        },
    )
}

#[test]
fn every_row_of_the_table_is_read_as_by_google() {
    let mut rows = 0;
    let mut differences = Vec::new();
    for row in TABLE.lines().skip(1) {
        let [category, raw, country, expected] = row
            .splitn(4, ',')
            .collect::<Vec<_>>()
            .try_into()
            .expect("four parts");
        let country = (!country.is_empty()).then(|| Country::parse(country).expect("a country"));
        let read = columns(examine(raw, country));
        if read != expected {
            differences.push(format!(
                "{category}: {raw:?} for {country:?} is {read:?}, not {expected:?}"
            ));
        }
        rows += 1;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(rows >= 2_500, "only {rows} rows");
}
