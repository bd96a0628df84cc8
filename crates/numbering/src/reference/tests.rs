//! Tests of the compiled-in data, and of reading data files.

mod comparing;
mod facts;
mod malformed;
mod regions;

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

static EMBEDDED: LazyLock<Reference> = LazyLock::new(Reference::embedded);

/// Four small valid files: LMT and Tele2 in Latvia, Iridium in orbit.
const SMALL: Files<'_> = Files {
    operators: "id,country,name\n1,LV,LMT\n2,LV,Tele2\n7,,Iridium\n",
    networks: "mcc,mnc,country,operator_id,name,status\n\
               247,01,LV,1,LMT,operational\n247,02,LV,2,Tele2,operational\n901,03,,7,Iridium,unknown\n",
    prefixes: "prefix,country,operator_id\n37126,LV,1\n371200,LV,2\n8816,,7\n",
    areas: "prefix,country\n371,LV\n1,US\n1204,CA\n",
};

fn country(code: &str) -> Country {
    Country::parse(code).expect(code)
}

fn network(codes: &str) -> Network {
    let (mcc, mnc) = codes.split_once('-').expect(codes);
    Network::new(mcc, mnc).expect(codes)
}

fn number(digits: &str) -> Msisdn {
    Msisdn::parse(digits).expect(digits)
}

fn id(id: u32) -> OperatorId {
    OperatorId::new(id).expect("not zero")
}

/// The rows of a file that has no quotes, without the header.
fn records(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

#[test]
fn every_operator_has_its_id_from_the_registry() {
    let registry = include_str!("../../../../reference-data/operator-ids.csv");
    let rows: std::collections::HashSet<&str> = registry.lines().skip(1).collect();
    for row in Files::EMBEDDED.operators.lines().skip(1) {
        assert!(rows.contains(row), "{row} is not in operator-ids.csv");
    }
}

#[test]
fn the_countries_of_the_builder_are_those_of_the_domain() {
    let file = include_str!("../../../../reference-data/countries.csv");
    let row = |country: Country| {
        let name = country.name();
        let quote = if name.contains(',') { "\"" } else { "" };
        format!("{country},{quote}{name}{quote}")
    };
    let expected: Vec<String> = Country::all().map(row).collect();
    let expected = format!("country,name\n{}\n", expected.join("\n"));
    assert_eq!(file, expected, "write this to reference-data/countries.csv");
}

#[test]
fn the_demonstration_prices_agree_with_the_data() {
    let file = include_str!("../../../../reference-data/demonstration-rates.csv");
    let mut reader = csv::Reader::from_reader(file.as_bytes());
    let header = reader.headers().expect("a header");
    assert_eq!(
        header.iter().collect::<Vec<_>>().join(","),
        "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate"
    );
    let mut defaults = 0;
    for (line, fields) in (2..).zip(reader.records()) {
        let fields = fields.expect("well-formed");
        let country = country(&fields[1]);
        assert_eq!(&fields[0], country.name(), "line {line}");
        if fields[5].is_empty() {
            defaults += 1;
            let mcc = EMBEDDED.main_mcc(country).map(|mcc| format!("{mcc:03}"));
            assert_eq!(&fields[4], mcc.unwrap_or_default(), "line {line}");
        } else {
            // A leading quote keeps spreadsheets from evaluating the cell.
            let name = fields[2].trim_start_matches('\'');
            let operator = EMBEDDED.operator_named(country, name).expect(name);
            assert_eq!(
                operator.main,
                Network::new(&fields[4], &fields[5]),
                "line {line}"
            );
        }
    }
    assert_eq!(
        defaults,
        Country::all().count(),
        "a default for each country"
    );
}

#[test]
fn lists_of_a_country_are_sorted_and_complete() {
    let mut networks = EMBEDDED
        .networks
        .all()
        .iter()
        .filter(|entry| entry.country.is_none())
        .count();
    let mut prefixes = EMBEDDED
        .prefixes
        .all()
        .iter()
        .filter(|entry| entry.country.is_none())
        .count();
    for country in Country::all() {
        let of_country = EMBEDDED.networks(country);
        assert!(
            of_country.is_sorted_by_key(|entry| (entry.network, entry.operator)),
            "{country}"
        );
        assert!(
            of_country
                .iter()
                .all(|entry| entry.country == Some(country))
        );
        networks += of_country.len();
        let of_country = EMBEDDED.prefixes(country);
        assert!(
            of_country.is_sorted_by_key(|entry| entry.prefix),
            "{country}"
        );
        assert!(
            of_country
                .iter()
                .all(|entry| entry.country == Some(country))
        );
        prefixes += of_country.len();
    }
    assert_eq!(networks, records(Files::EMBEDDED.networks).count());
    assert_eq!(prefixes, records(Files::EMBEDDED.prefixes).count());
}

#[test]
fn an_operator_is_found_by_its_id_and_by_its_name_in_any_case() {
    for operator in EMBEDDED.operators() {
        assert_eq!(EMBEDDED.operator(operator.id), Some(operator));
        let Some(country) = operator.country else {
            continue;
        };
        for name in [operator.name.to_string(), operator.name.to_uppercase()] {
            // Some letters have no single capital, such as `ß`, and come back as two.
            if name.to_lowercase() == operator.name.to_lowercase() {
                assert_eq!(
                    EMBEDDED.operator_named(country, &name),
                    Some(operator),
                    "{name}"
                );
            }
        }
    }
    assert_eq!(EMBEDDED.operator(id(u32::MAX)), None);
    assert_eq!(EMBEDDED.operator_named(country("LV"), "T-Mobile"), None);
}

#[test]
fn the_main_network_is_the_first_operational_one_under_the_main_mcc() {
    for (case, networks, main, in_main_mcc) in [
        ("no network", "", None, ""),
        (
            "none operational: the lowest",
            "310-20 unknown;310-10 planned",
            Some("310-10"),
            "310-10 310-20",
        ),
        (
            "an operational one is preferred to a lower one",
            "310-10 unknown;310-20 operational",
            Some("310-20"),
            "310-10 310-20",
        ),
        (
            "most operational networks",
            "310-10 operational;311-01 operational;311-02 operational",
            Some("311-01"),
            "311-01 311-02",
        ),
        (
            "a tie goes to the lowest MCC",
            "311-01 operational;310-90 operational",
            Some("310-90"),
            "310-90",
        ),
        (
            "two digits are sorted before three",
            "310-010 operational;310-10 operational",
            Some("310-10"),
            "310-10 310-010",
        ),
    ] {
        let row = |row: &str| {
            let (codes, status) = row.split_once(' ').expect(case);
            format!("{},US,2,Two,{status}\n", codes.replace('-', ","))
        };
        let rows: Vec<String> = networks.split_terminator(';').map(row).collect();
        let header = "mcc,mnc,country,operator_id,name,status\n247,01,LV,1,LMT,operational\n";
        let file = format!("{header}{}", rows.concat());
        let files = Files {
            operators: "id,country,name\n1,LV,LMT\n2,US,Two\n",
            networks: &file,
            prefixes: "prefix,country,operator_id\n37126,LV,1\n",
            ..SMALL
        };
        let reference = Reference::parse(&files).expect(case);
        let operator = reference.operator(id(2)).expect(case);
        assert_eq!(operator.main, main.map(network), "{case}");
        assert_eq!(
            operator.mcc(),
            main.map(|main| network(main).mcc()),
            "{case}"
        );
        let mut in_main_mcc: Vec<Network> = in_main_mcc.split_whitespace().map(network).collect();
        in_main_mcc.sort_unstable();
        assert_eq!(*operator.networks, *in_main_mcc, "{case}");
    }
}

#[test]
fn the_order_of_the_rows_and_the_style_of_the_lines_do_not_matter() {
    let reversed: Vec<String> = [SMALL.operators, SMALL.networks, SMALL.prefixes, SMALL.areas]
        .iter()
        .map(|text| {
            let (header, rows) = text.split_once('\n').expect("a header");
            let rows: Vec<&str> = rows.lines().rev().collect();
            format!("\u{feff}{header}\r\n{}", rows.join("\r\n"))
        })
        .collect();
    let reversed = Reference::parse(&Files {
        operators: &reversed[0],
        networks: &reversed[1],
        prefixes: &reversed[2],
        areas: &reversed[3],
    })
    .expect("the same rows");
    let small = Reference::parse(&SMALL).expect("no fault");
    let difference = difference(&small, &reversed);
    assert!(difference.is_empty(), "{difference}");
}

/// The longest prefix of the digits in a file, by a linear search.
fn longest_row<'a>(file: &'a str, digits: &str) -> Option<Vec<&'a str>> {
    records(file)
        .filter(|row| digits.starts_with(row[0]))
        .max_by_key(|row| row[0].len())
}

/// What `locate` should return, by a linear search.
fn locate_naively(digits: &str) -> (Option<Country>, Option<OperatorId>) {
    let country = |code: &str| Country::parse(code).ok();
    if let Some(row) = longest_row(Files::EMBEDDED.prefixes, digits) {
        return (
            country(row[1]),
            row[2].parse().ok().and_then(OperatorId::new),
        );
    }
    (
        longest_row(Files::EMBEDDED.areas, digits).and_then(|row| country(row[1])),
        None,
    )
}

/// Digits that mostly start with a known prefix or area.
fn any_digits() -> impl Strategy<Value = String> {
    let starts: Vec<&str> = records(Files::EMBEDDED.prefixes)
        .chain(records(Files::EMBEDDED.areas))
        .map(|row| row[0])
        .collect();
    let from_a_row = (
        prop::sample::select(starts),
        0_usize..3,
        "[0-9]{15}",
        7_usize..=15,
    );
    let from_a_row = from_a_row.prop_map(|(start, cut, rest, digits)| {
        // A shortened prefix also leads to other prefixes.
        let start = &start[..start.len().saturating_sub(cut).max(1)];
        format!("{start}{rest}")[..digits.max(start.len())].to_owned()
    });
    prop_oneof![4 => from_a_row, 1 => "[1-9][0-9]{6,14}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn locating_equals_a_search_through_every_row(digits in any_digits()) {
        let location = EMBEDDED.locate(&number(&digits));
        prop_assert_eq!((location.country, location.operator), locate_naively(&digits));
        let main = location.operator.and_then(|id| EMBEDDED.operator(id)).and_then(|operator| operator.main);
        prop_assert_eq!(location.network, main);
    }

    #[test]
    fn reading_never_panics(text in "(?s).{0,200}|(\"?[a-z0-9,]{0,9}\"?[\r\n,\"]{0,2}){0,20}") {
        for file in 0..4 {
            let mut texts = [SMALL.operators, SMALL.networks, SMALL.prefixes, SMALL.areas];
            texts[file] = &text;
            let [operators, networks, prefixes, areas] = texts;
            let read = Reference::parse(&Files { operators, networks, prefixes, areas });
            prop_assert!(read.err().is_none_or(|problems| (1..=100).contains(&problems.len())));
        }
    }
}
