//! Differences between two versions of the data.

use super::*;

fn small() -> Reference {
    Reference::parse(&SMALL).expect("no fault")
}

#[test]
fn identical_data_has_no_difference() {
    let same = difference(&small(), &small());
    assert!(same.is_empty());
    assert_eq!(same.refusal(), None);
    assert_eq!(
        same.operators.to_string(),
        "operators.csv: 3 rows before, 3 now; 0 added, 0 removed, 0 changed\n"
    );
}

#[test]
fn changes_are_described() {
    let new = Files {
        operators: "id,country,name\n1,LV,Latvijas Mobilais\n2,LV,Tele2\n3,LV,Bite\n7,,Iridium\n",
        networks: "mcc,mnc,country,operator_id,name,status\n\
                   247,01,LV,1,LMT,not operational\n247,02,LV,2,Tele2,operational\n247,05,LV,3,Bite,operational\n",
        prefixes: "prefix,country,operator_id\n37126,LV,2\n371200,LV,2\n8816,,7\n",
        areas: "prefix,country\n371,LV\n1,US\n1204,US\n",
    };
    let new = Reference::parse(&new).expect("no fault");
    let shown = difference(&small(), &new).to_string();
    let expected = "\
operators.csv: 3 rows before, 4 now; 1 added, 0 removed, 1 changed
  + 3 LV Bite
  ~ 1 LV LMT -> LV Latvijas Mobilais
networks.csv: 3 rows before, 3 now; 1 added, 1 removed, 1 changed
  + 247-05 LV 3 Bite, operational
  - 901-03 -- 7 Iridium, unknown
  ~ 247-01 LV 1 LMT, operational -> LMT, not operational
prefixes.csv: 3 rows before, 3 now; 0 added, 0 removed, 1 changed
  ~ +37126 LV 1 Latvijas Mobilais -> LV 2 Tele2
areas.csv: 3 rows before, 3 now; 0 added, 0 removed, 1 changed
  ~ +1204 CA -> US
";
    assert_eq!(shown, expected);
}

/// The small files with `count` areas.
fn with_areas(count: u64) -> Reference {
    let rows: Vec<String> = (200..200 + count)
        .map(|prefix| format!("{prefix},LV"))
        .collect();
    let areas = format!("prefix,country\n{}", rows.join("\n"));
    Reference::parse(&Files {
        areas: &areas,
        ..SMALL
    })
    .expect("no fault")
}

#[test]
fn an_import_that_drops_more_than_a_tenth_of_a_file_is_refused() {
    for (before, after, refusal) in [
        (100, 90, None),
        (
            100,
            89,
            Some("11 of 100 rows of areas.csv would vanish; more than a tenth is refused"),
        ),
        (100, 200, None),
        (
            9,
            8,
            Some("1 of 9 rows of areas.csv would vanish; more than a tenth is refused"),
        ),
    ] {
        let found = difference(&with_areas(before), &with_areas(after)).refusal();
        assert_eq!(
            found.map(|refusal| refusal.to_string()).as_deref(),
            refusal,
            "{before} to {after}"
        );
    }
}

#[test]
fn a_long_list_is_truncated() {
    let shown = difference(&with_areas(10), &with_areas(31))
        .areas
        .to_string();
    assert!(
        shown.starts_with("areas.csv: 10 rows before, 31 now; 21 added"),
        "{shown}"
    );
    assert!(shown.ends_with("  + and 1 more\n"), "{shown}");
    assert_eq!(shown.lines().count(), 22);
}
