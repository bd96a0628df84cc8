//! Reference data: full and partial imports, and protection from accidents.

use std::path::Path;

use serde_json::{Value, json};
use testkit::Backend;

use super::{Workspace, read, run, write};
use crate::rest::on_both_backends;
use crate::rest::service::Service;

const NAMES: [&str; 4] = ["operators.csv", "networks.csv", "prefixes.csv", "areas.csv"];

/// A file of the repository, which a new service starts with.
fn shipped(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reference-data");
    read(&root.join(name))
}

/// The first lines of a text.
fn first_lines(text: &str, count: usize) -> String {
    text.split_inclusive('\n').take(count).collect()
}

fn counts(shown: &Value, file: &str) -> [usize; 3] {
    ["added", "removed", "changed"].map(|key| shown[file][key].as_array().map_or(0, Vec::len))
}

/// One file is replaced, the others stay; the next import builds on it.
fn a_single_file_can_be_imported(backend: Backend) {
    let service = Service::start(backend);
    let folder = service.server.data_dir().join("import");
    let path = folder.to_str().expect("a plain path");
    let operators = shipped("operators.csv").replace(",LV,LMT\n", ",LV,LMT Group\n");
    assert_ne!(
        operators,
        shipped("operators.csv"),
        "the data has changed; choose another operator"
    );
    write(&folder.join("operators.csv"), &operators);

    let dry = run(&service, &["reference", "import", path, "--dry-run"]).assert_success();
    assert!(dry.contains("LV LMT -> LV LMT Group"), "{dry}");
    assert!(
        dry.ends_with("Nothing was changed: this was a dry run.\n"),
        "{dry}"
    );
    assert_eq!(
        run(&service, &["reference", "history", "--json"]).json(),
        json!([])
    );

    let imported = run(&service, &["reference", "import", path, "--json"]).json();
    assert_eq!(
        (&imported["version"], &imported["lostPrices"]),
        (&json!(1), &json!([]))
    );
    assert_eq!(counts(&imported, "operators"), [0, 0, 1]);
    assert_eq!(counts(&imported, "networks"), [0, 0, 0]);
    let found = run(&service, &["numbers", "lookup", "+37129123456", "--json"]).json();
    assert_eq!(found[0]["operator"], "LMT Group");

    std::fs::remove_file(folder.join("operators.csv")).expect("it was there");
    let areas = shipped("areas.csv");
    write(&folder.join("areas.csv"), &areas);
    let second = run(&service, &["reference", "import", path]).assert_success();
    assert!(
        second.ends_with("Version 2 is in force on every node within seconds.\n"),
        "{second}"
    );
    let history = run(&service, &["reference", "history", "--json"]).json();
    let versions: Vec<&Value> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| &entry["version"])
        .collect();
    assert_eq!(versions, [2, 1], "the newest first");

    let out = service.server.data_dir().join("export");
    run(
        &service,
        &["reference", "export", out.to_str().expect("a plain path")],
    )
    .assert_success();
    assert_eq!(
        read(&out.join("operators.csv")),
        operators,
        "what was imported before stays"
    );
    for name in &NAMES[1..] {
        assert_eq!(read(&out.join(name)), shipped(name), "{name}");
    }
    service.check_health();
}

on_both_backends!(a_single_file_can_be_imported);

#[test]
fn losing_more_than_a_tenth_needs_force() {
    let workspace = Workspace::new();
    let areas = shipped("areas.csv");
    let rows = areas.lines().count() - 1;
    let kept = rows - rows / 10 - 1;
    workspace.write("few/areas.csv", &first_lines(&areas, kept + 1));
    let refusal = format!("{} of {rows} rows of areas.csv would vanish", rows - kept);
    for more in [&[][..], &["--dry-run"], &["--json"]] {
        let output = workspace.run(&[&["reference", "import", "few"], more].concat());
        output.assert_refused(&[&refusal, "--force", "Nothing was changed"]);
    }
    assert_eq!(
        workspace.run(&["reference", "history", "--json"]).json(),
        json!([])
    );
    workspace
        .run(&["reference", "import", "few", "--force", "--dry-run"])
        .assert_success();
    assert_eq!(
        workspace.run(&["reference", "history", "--json"]).json(),
        json!([])
    );
    let imported = workspace
        .run(&["reference", "import", "few", "--force", "--json"])
        .json();
    assert_eq!(counts(&imported, "areas"), [0, rows - kept, 0]);

    workspace.write(
        "tenth/areas.csv",
        &first_lines(&areas, kept + 1 - kept / 10),
    );
    workspace
        .run(&["reference", "import", "tenth"])
        .assert_success();
}

#[test]
fn problems_are_named_line_by_line_and_nothing_is_changed() {
    let workspace = Workspace::new();
    workspace.write(
        "bad/prefixes.csv",
        "prefix,country,operator_id\n371,LV,4000000\nx,LV,1\n",
    );
    let output = workspace.run(&["reference", "import", "bad", "--force"]);
    let lines: Vec<&str> = output.stderr.lines().map(str::trim).collect();
    assert_eq!(lines.len(), 3, "{output:?}");
    assert!(
        lines[1].starts_with("prefixes.csv, line 2: ") && lines[1].contains("4000000"),
        "{output:?}"
    );
    assert!(lines[2].starts_with("prefixes.csv, line 3: "), "{output:?}");
    output.assert_refused(&["nothing was changed"]);

    workspace.write("empty/other.csv", "");
    workspace
        .run(&["reference", "import", "empty"])
        .assert_refused(&["operators.csv, networks.csv", "reference export"]);
    workspace
        .run(&["reference", "import", "nowhere"])
        .assert_refused(&["no folder nowhere"]);
    assert_eq!(
        workspace.run(&["reference", "history"]).assert_success(),
        "Nothing was imported yet.\n"
    );
}

#[test]
fn an_export_equals_the_shipped_files_before_any_import() {
    let workspace = Workspace::new();
    workspace
        .run(&["reference", "export", "out/files"])
        .assert_success();
    for name in NAMES {
        assert_eq!(
            workspace.read(&format!("out/files/{name}")),
            shipped(name),
            "{name}"
        );
    }
    let same = workspace
        .run(&["reference", "import", "out/files", "--dry-run", "--json"])
        .json();
    for file in ["operators", "networks", "prefixes", "areas"] {
        assert_eq!(counts(&same, file), [0, 0, 0], "{file}");
        assert_eq!(same[file]["before"], same[file]["after"], "{file}");
    }
    assert_eq!(same["version"], Value::Null);
}

#[test]
fn prices_that_would_no_longer_apply_are_reported() {
    let workspace = Workspace::new();
    let list = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,LMT,LMT,247,,0.05\nLatvia,LV,All,All,247,,0.04\n";
    workspace.write("list.csv", list);
    workspace
        .run(&["rates", "import", "list.csv"])
        .assert_success();
    let renamed = shipped("operators.csv").replace(",LV,LMT\n", ",LV,LMT Group\n");
    workspace.write("import/operators.csv", &renamed);
    let output = workspace.run(&["reference", "import", "import", "--dry-run"]);
    output.assert_stderr_contains(&[
        "no longer count",
        "the price list",
        "'LMT' is not an operator of LV",
    ]);
    output.assert_success();
    let json = workspace
        .run(&["reference", "import", "import", "--dry-run", "--json"])
        .json();
    assert_eq!(
        json["lostPrices"].as_array().map(Vec::len),
        Some(1),
        "{json}"
    );
}
