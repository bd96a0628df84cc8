//! Price lists: import, export and charges.

use serde_json::{Value, json};
use testkit::Backend;

use super::{CommandOutput, Workspace, run, write};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, sms, wait_for};

const HEADER: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\r\n";

/// A list as an export writes it: sorted, complete, with lines that end in CRLF.
fn list(rows: &[&str]) -> String {
    let rows: Vec<String> = rows.iter().map(|row| format!("{row}\r\n")).collect();
    format!("{HEADER}{}", rows.concat())
}

const ESTONIA: &str = "Estonia,EE,All,All,248,,0.04";
const LMT: &str = "Latvia,LV,LMT,LMT,247,01,0.031";
const LATVIA: &str = "Latvia,LV,All other carriers,All other carriers,247,,0.05";
const ELSEWHERE: &str = "All other countries,,Default,Default,,,0.50";

fn versions(history: &Value) -> Vec<(u64, u64)> {
    let entries = history.as_array().expect("a list").iter();
    entries
        .map(|entry| {
            let at = entry["at"].as_str().expect("a time");
            at.parse::<jiff::Timestamp>().expect("RFC 3339");
            let number = |key: &str| entry[key].as_u64().expect("a number");
            (number("version"), number("rows"))
        })
        .collect()
}

/// A list is imported, exported unchanged and replaced, and its first version can still be exported.
fn round_trip(backend: Backend) {
    let service = Service::start(backend);
    let folder = service.server.data_dir();
    let first = list(&[ESTONIA, LMT, LATVIA, ELSEWHERE]);
    let file = write(&folder.join("first.csv"), &first);
    let import = run(&service, &["rates", "import", &file]).assert_success();
    assert!(
        import.ends_with("Version 1 is in force on every node within seconds.\n"),
        "{import}"
    );
    let output = run(&service, &["rates", "export"]);
    assert!(!output.stderr.contains("demonstration"), "{output:?}");
    assert_eq!(output.assert_success(), first);

    let second = first
        .replace("0.031", "0.033")
        .replace(&format!("{ESTONIA}\r\n"), "");
    let file = write(&folder.join("second.csv"), &second);
    let dry = run(&service, &["rates", "import", &file, "--dry-run"]).assert_success();
    let expected = "0 added, 1 changed, 1 removed, 2 as before\n  ~ LV 247-01 LMT  0.031 -> 0.033\n  - EE All  0.04\n\
                    Nothing was changed: this was a dry run.\n";
    assert_eq!(dry, expected);
    assert_eq!(
        run(&service, &["rates", "export"]).assert_success(),
        first,
        "a dry run changes nothing"
    );
    let imported = run(&service, &["rates", "import", &file, "--json"]).json();
    let row = |operator: &str| json!({ "country": "LV", "operator": operator, "network": operator, "mcc": 247 });
    let mut changed = row("LMT");
    changed["mnc"] = json!("01");
    changed["rate"] = json!("0.033");
    changed["before"] = json!("0.031");
    assert_eq!(imported["changed"], json!([changed]));
    assert_eq!(imported["removed"][0]["country"], "EE");
    assert_eq!(
        (&imported["version"], &imported["same"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(imported["added"], json!([]));

    assert_eq!(run(&service, &["rates", "export"]).assert_success(), second);
    assert_eq!(
        run(&service, &["rates", "export", "--version", "1"]).assert_success(),
        first
    );
    let history = run(&service, &["rates", "history", "--json"]).json();
    assert_eq!(versions(&history), [(2, 3), (1, 4)], "the newest first");
    let table = run(&service, &["rates", "history"]).assert_success();
    assert_eq!(table.lines().count(), 3, "{table}");
}

/// Prices that are imported next to a running service are charged without a restart.
fn imported_prices_are_charged(backend: Backend) {
    let service = Service::start(backend);
    let newest = || {
        let ledger = run(
            &service,
            &["account", "ledger", "main", "--limit", "1", "--json"],
        )
        .json();
        ledger[0]["amount"].as_str().unwrap_or_default().to_owned()
    };
    let wait_for_charge = |amount: &str| {
        wait_for(amount, || {
            service.accept(&sms());
            (newest() == amount).then_some(())
        });
    };
    let file = write(&service.server.data_dir().join("all.csv"), &list(&[LATVIA]));
    run(&service, &["rates", "import", &file]).assert_success();
    wait_for_charge("-0.05");
    let own = LATVIA.replace("0.05", "0.02");
    let file = write(&service.server.data_dir().join("own.csv"), &list(&[&own]));
    run(&service, &["rates", "import", &file, "--account", "main"]).assert_success();
    wait_for_charge("-0.02");
    let file = write(&service.server.data_dir().join("none.csv"), HEADER);
    run(&service, &["rates", "import", &file, "--account", "main"]).assert_success();
    wait_for_charge("-0.05");
    run(&service, &["account", "check"]).assert_success();
    service.check_health();
}

/// An account has its own list and history.
fn an_account_has_its_own_list(backend: Backend) {
    let service = Service::start(backend);
    let export = |more: &[&str]| {
        run(
            &service,
            &[&["rates", "export", "--account", "main"], more].concat(),
        )
        .assert_success()
    };
    assert_eq!(export(&[]), HEADER, "nothing differs yet");
    let own = list(&["Latvia,LV,Tele2,Tele2,247,,0.01"]);
    let file = write(&service.server.data_dir().join("own.csv"), &own);
    let imported = run(
        &service,
        &["rates", "import", &file, "--account", "main", "--json"],
    )
    .json();
    assert_eq!(
        (&imported["account"], &imported["version"]),
        (&json!("main"), &json!(1))
    );
    assert_eq!(export(&[]), own);
    let rows: Value = serde_json::from_str(&export(&["--format", "json"])).expect("JSON");
    let expected = json!([{
        "CountryName": "Latvia", "CountryCode": "LV", "Operator": "Tele2", "Network": "Tele2", "MCC": 247, "MNC": null,
        "Rate": "0.01",
    }]);
    assert_eq!(rows, expected);

    let file = write(&service.server.data_dir().join("none.csv"), HEADER);
    let text = run(&service, &["rates", "import", &file, "--account", "main"]).assert_success();
    assert!(text.contains("1 removed"), "{text}");
    assert_eq!(export(&[]), HEADER);
    assert_eq!(export(&["--version", "1"]), own);
    let history = ["rates", "history", "--json"];
    let own = run(&service, &[&history[..], &["--account", "main"]].concat()).json();
    assert_eq!(versions(&own), [(2, 0), (1, 1)]);
    assert_eq!(
        run(&service, &history).json(),
        json!([]),
        "the general list is unchanged"
    );
}

on_both_backends!(
    round_trip,
    imported_prices_are_charged,
    an_account_has_its_own_list
);

#[test]
fn a_list_with_problems_is_refused_with_each_row() {
    let workspace = Workspace::new();
    let text = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,247,,0.05\n\
                Latvia,LV,Nobody,Nobody,247,,0.05\nEstonia,QQ,All,All,,,0.04\nLithuania,LT,All,All,246,,dear\n";
    let file = workspace.write("bad.csv", text);
    for more in [&[][..], &["--dry-run"], &["--json"]] {
        let output = workspace.run(&[&["rates", "import", &file], more].concat());
        assert_eq!(output.stdout, "", "{output:?}");
        let lines: Vec<&str> = output.stderr.lines().map(str::trim).collect();
        assert!(
            lines[0].contains("bad.csv was not taken, nothing was changed"),
            "{output:?}"
        );
        for (line, start) in
            lines[1..]
                .iter()
                .zip(["row 3: Operator", "row 4: CountryCode", "row 5: Rate"])
        {
            assert!(line.starts_with(start), "{start}: {line}");
        }
        assert_eq!(lines.len(), 4, "each problem on its own line: {output:?}");
        output.assert_refused(&[]);
    }
    assert_eq!(
        workspace.run(&["rates", "history", "--json"]).json(),
        json!([])
    );
}

#[test]
fn the_demonstration_list_is_marked_and_can_be_edited() {
    let workspace = Workspace::new();
    let output = workspace.run(&["rates", "history"]);
    output.assert_stderr_contains(&["demonstration list is in force"]);
    assert_eq!(output.assert_success(), "Nothing was imported yet.\n");
    let output = workspace.run(&["rates", "export", "--output", "all.csv"]);
    output.assert_stderr_contains(&["demonstration list is in force"]);
    assert_eq!(output.assert_success(), "", "it is in the file");
    let exported = workspace.read("all.csv");
    assert!(exported.starts_with(HEADER) && exported.lines().count() > 1000);

    workspace
        .run(&["rates", "import", "all.csv"])
        .assert_success();
    let again = workspace.run(&["rates", "export"]);
    assert!(
        again.stderr.is_empty(),
        "it is not the demonstration list any more: {:?}",
        again.stderr
    );
    assert_eq!(again.assert_success(), exported);
    workspace
        .run(&["rates", "export", "--output", "all.json"])
        .assert_success();
    workspace
        .run(&["rates", "import", "all.json"])
        .assert_success();
    assert_eq!(
        workspace.run(&["rates", "export"]).assert_success(),
        exported,
        "as JSON, too"
    );
}

#[test]
fn a_list_is_read_from_standard_input() {
    let workspace = Workspace::new();
    let text = list(&[LATVIA]);
    let import = ["rates", "import", "-"];
    workspace
        .run_with_input(&import, &text)
        .assert_refused(&["standard input", "--format csv"]);
    workspace
        .run_with_input(&[&import[..], &["--format", "csv"]].concat(), &text)
        .assert_success();
    assert_eq!(workspace.run(&["rates", "export"]).assert_success(), text);
}

#[test]
fn a_failing_command_says_what_to_do() {
    let workspace = Workspace::new();
    workspace.write("list.txt", HEADER);
    workspace.write("empty.csv", HEADER);
    workspace.write("no-header.csv", "Latvia,LV,All,All,247,,0.05\n");
    std::fs::write(workspace.path("latin.csv"), b"\xc5").expect("written");
    for (command, fragments) in [
        ("rates import nowhere.csv", ["nowhere.csv", "cannot open"]),
        ("rates import list.txt", ["list.txt", "--format csv"]),
        ("rates import empty.csv", ["no rows", "nothing was changed"]),
        (
            "rates import no-header.csv",
            ["row 1", "CountryName,CountryCode"],
        ),
        ("rates import latin.csv", ["latin.csv", "UTF-8"]),
        (
            "rates import empty.csv --account nobody",
            ["'nobody'", "account list"],
        ),
        (
            "rates export --account nobody",
            ["'nobody'", "account list"],
        ),
        (
            "rates export --version 7",
            ["no version 7", "rates history"],
        ),
        (
            "rates export --output no/such/folder.csv",
            ["folder.csv", "cannot write"],
        ),
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let output: CommandOutput = workspace.run(&arguments);
        output.assert_refused(&fragments);
    }
}
