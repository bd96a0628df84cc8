//! Malformed files: each problem names the file, the line and what is expected.

use super::*;

fn problems(files: &Files<'_>) -> Vec<String> {
    let problems = Reference::parse(files).err().unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_wrong_operator_is_reported_with_its_line() {
    for (case, text, expected) in [
        (
            "nothing",
            "",
            "operators.csv, line 1: there are no rows; expected is at least one",
        ),
        (
            "a header alone",
            "id,country,name\n",
            "operators.csv, line 1: there are no rows; expected is at least one",
        ),
        (
            "another header",
            "id,name,country\n1,LMT,LV\n",
            "operators.csv, line 1: the first line is 'id,name,country'; expected is 'id,country,name'",
        ),
        (
            "a field too few",
            "id,country,name\n1,LV\n",
            "operators.csv, line 2: the line has 2 fields; expected are 3",
        ),
        (
            "a field too many",
            "id,country,name\n1,LV,LMT,\n",
            "operators.csv, line 2: the line has 4 fields; expected are 3",
        ),
        (
            "an empty line",
            "id,country,name\n1,LV,LMT\n\n",
            "operators.csv, line 3: the line has 1 fields; expected are 3",
        ),
        (
            "zero",
            "id,country,name\n0,LV,LMT\n",
            "operators.csv, line 2: id is '0'; expected is a whole number from 1 to 4294967295",
        ),
        (
            "too large",
            "id,country,name\n4294967296,LV,LMT\n",
            "operators.csv, line 2: id is '4294967296'; expected is a whole number from 1 to 4294967295",
        ),
        (
            "a sign",
            "id,country,name\n+1,LV,LMT\n",
            "operators.csv, line 2: id is '+1'; expected is a whole number from 1 to 4294967295",
        ),
        (
            "no country",
            "id,country,name\n1,ZZ,LMT\n",
            "operators.csv, line 2: country is 'ZZ'; expected is an ISO 3166-1 alpha-2 code, such as LV",
        ),
        (
            "no name",
            "id,country,name\n1,LV,\n",
            "operators.csv, line 2: name is ''; expected is a name on one line, without spaces around it",
        ),
        (
            "a name in spaces",
            "id,country,name\n1,LV, LMT\n",
            "operators.csv, line 2: name is ' LMT'; expected is a name on one line, without spaces around it",
        ),
        (
            "a name on two lines, and the line after it",
            "id,country,name\n1,LV,\"L\nMT\"\n2,ZZ,Tele2\n",
            "operators.csv, line 2: name is 'L\\u{a}MT'; expected is a name on one line, without spaces around it|\
             operators.csv, line 4: country is 'ZZ'; expected is an ISO 3166-1 alpha-2 code, such as LV",
        ),
        (
            "an ID twice",
            "id,country,name\n1,LV,LMT\n2,LV,Tele2\n1,EE,Telia\n",
            "operators.csv, line 4: the same ID as on line 2; expected is one line for each",
        ),
        (
            "a name twice, in another case",
            "id,country,name\n1,LV,LMT\n2,LV,lmt\n",
            "operators.csv, line 3: the same country and name as on line 2; expected is one line for each",
        ),
        (
            "a quote within a field",
            "id,country,name\n1,LV,SIA \"LMT\"\n2,ZZ,\n",
            "operators.csv, line 2: a quote stands within a field; put the whole field in quotes and double those inside it",
        ),
        (
            "text after a quote",
            "id,country,name\n1,LV,\"LMT\" SIA\n",
            "operators.csv, line 2: a quote stands within a field; put the whole field in quotes and double those inside it",
        ),
        (
            "an open quote",
            "id,country,name\n1,LV,LMT\n2,LV,\"Tele2\n",
            "operators.csv, line 3: a field starts with a quote that is never closed",
        ),
    ] {
        let found = problems(&Files {
            operators: text,
            ..SMALL
        });
        assert_eq!(found.join("|"), expected, "{case}");
    }
}

#[test]
fn a_wrong_network_is_reported_with_its_line() {
    for (case, row, expected) in [
        (
            "an MCC of two digits",
            "24,01,LV,1,LMT,operational",
            "mcc is '24'; expected is three digits, such as 247",
        ),
        (
            "letters for an MCC",
            "LMT,01,LV,1,LMT,operational",
            "mcc is 'LMT'; expected is three digits, such as 247",
        ),
        (
            "an MNC of one digit",
            "247,1,LV,1,LMT,operational",
            "mnc is '1'; expected is two or three digits, such as 01",
        ),
        (
            "an MNC of four digits",
            "247,0001,LV,1,LMT,operational",
            "mnc is '0001'; expected is two or three digits, such as 01",
        ),
        (
            "no country",
            "247,03,UK,1,LMT,operational",
            "country is 'UK'; expected is an ISO 3166-1 alpha-2 code, such as LV",
        ),
        (
            "no ID",
            "247,03,LV,,LMT,operational",
            "operator_id is ''; expected is a whole number from 1 to 4294967295",
        ),
        (
            "an unknown operator",
            "247,03,LV,3,LMT,operational",
            "no operator 3 is in operators.csv; expected is the ID of one that is",
        ),
        (
            "another country",
            "247,03,EE,1,LMT,operational",
            "the country is EE, and operator 1 is of LV; expected is the same",
        ),
        (
            "a country for Iridium",
            "901,05,LV,7,Iridium,unknown",
            "the country is LV, and operator 7 is of no country; expected is the same",
        ),
        (
            "an unknown status",
            "247,03,LV,1,LMT,Operational",
            "status is 'Operational'; expected is operational, not operational, planned, testing, reserved or unknown",
        ),
        (
            "a network twice",
            "247,01,LV,1,LMT,unknown",
            "the same network, country and operator as on line 2; expected is one line for each",
        ),
    ] {
        let text = format!("{}{row}\n", SMALL.networks);
        let found = problems(&Files {
            networks: &text,
            ..SMALL
        });
        assert_eq!(
            found,
            [format!("networks.csv, line 5: {expected}")],
            "{case}"
        );
    }
}

#[test]
fn a_wrong_prefix_or_area_is_reported_with_its_line() {
    let digits = "expected is 1 to 15 digits in international form, such as 37129";
    for (case, prefix, expected) in [
        ("no digits", "", format!("prefix is ''; {digits}")),
        (
            "a plus sign",
            "+37129",
            format!("prefix is '+37129'; {digits}"),
        ),
        (
            "a zero in front",
            "0371",
            format!("prefix is '0371'; {digits}"),
        ),
        (
            "too long",
            "3712900000000000",
            format!("prefix is '3712900000000000'; {digits}"),
        ),
        ("other digits", "٣٧١", format!("prefix is '٣٧١'; {digits}")),
    ] {
        let text = format!("{}{prefix},LV,1\n", SMALL.prefixes);
        let found = problems(&Files {
            prefixes: &text,
            ..SMALL
        });
        assert_eq!(
            found,
            [format!("prefixes.csv, line 5: {expected}")],
            "{case}"
        );
        let text = format!("{}{prefix},LV\n", SMALL.areas);
        let found = problems(&Files {
            areas: &text,
            ..SMALL
        });
        assert_eq!(found, [format!("areas.csv, line 5: {expected}")], "{case}");
    }
}

#[test]
fn a_prefix_is_unique_and_an_area_has_a_country() {
    let text = format!("{}37126,LV,2\n", SMALL.prefixes);
    let twice = problems(&Files {
        prefixes: &text,
        ..SMALL
    });
    assert_eq!(
        twice,
        ["prefixes.csv, line 5: the same prefix as on line 2; expected is one line for each"]
    );
    let text = format!("{}1204,US\n372,\n", SMALL.areas);
    let areas = problems(&Files {
        areas: &text,
        ..SMALL
    });
    let expected = [
        "areas.csv, line 5: the same prefix as on line 4; expected is one line for each",
        "areas.csv, line 6: country is ''; expected is an ISO 3166-1 alpha-2 code, such as LV",
    ];
    assert_eq!(areas, expected);
}

#[test]
fn problems_of_all_files_are_limited_to_a_hundred() {
    let networks = format!(
        "{}{}",
        SMALL.networks,
        "24,01,LV,1,LMT,operational\n".repeat(98)
    );
    let prefixes = format!("{}{}", SMALL.prefixes, "x,LV,1\n".repeat(98));
    let found = problems(&Files {
        networks: &networks,
        prefixes: &prefixes,
        ..SMALL
    });
    assert_eq!(found.len(), 100);
    assert!(
        found[97].starts_with("networks.csv, line 102"),
        "{}",
        found[97]
    );
    assert!(
        found[99].starts_with("prefixes.csv, line 6"),
        "{}",
        found[99]
    );
}

#[test]
fn quoted_fields_are_parsed() {
    let files = Files {
        operators: "id,country,name\n1,LV,\"LMT, SIA\"\n2,\"LV\",\"SIA \"\"Tele2\"\"\"\n7,,Iridium",
        ..SMALL
    };
    let reference = Reference::parse(&files).expect("no fault");
    let names: Vec<&str> = reference
        .operators()
        .iter()
        .map(|operator| &*operator.name)
        .collect();
    assert_eq!(names, ["LMT, SIA", "SIA \"Tele2\"", "Iridium"]);
}
