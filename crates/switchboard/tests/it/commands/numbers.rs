//! Numbers: correcting a file, and looking up single numbers.

use serde_json::{Value, json};

use super::Workspace;

const ADDED: &str = "NumberE164,NumberType,CountryIso,Error";

#[test]
fn a_file_is_corrected_row_by_row() {
    let workspace = Workspace::new();
    let mobile = "+37120000001,mobile,LV,";
    let cases = [
        (
            "a header with a known column name",
            "name,Phone\n\"A, b\",20000001\nc,67000000\n",
            &[][..],
            format!(
                "name,Phone,{ADDED}\n\"A, b\",20000001,{mobile}\nc,67000000,+37167000000,landline,LV,\n"
            ),
        ),
        (
            "no header",
            "20000001,x\n",
            &[],
            format!("20000001,x,{mobile}\n"),
        ),
        (
            "a column by its name",
            "id,tel\n7,20000001\n",
            &["--column", "TEL"],
            format!("id,tel,{ADDED}\n7,20000001,{mobile}\n"),
        ),
        (
            "a column by its position",
            "7,20000001\n",
            &["--column", "2"],
            format!("7,20000001,{mobile}\n"),
        ),
        (
            "a column by its position under a header",
            "id,second\n7,20000001\n",
            &["--column", "2"],
            format!("id,second,{ADDED}\n7,20000001,{mobile}\n"),
        ),
        (
            "a byte order mark, CRLF and spaces",
            "\u{feff}to\r\n +371 2000-0001 \r\n",
            &[],
            format!("to,{ADDED}\n +371 2000-0001 ,{mobile}\n"),
        ),
        (
            "a foreign number",
            "to\n+3725123456\n",
            &[],
            format!("to,{ADDED}\n+3725123456,+3725123456,mobile,EE,\n"),
        ),
    ];
    for (case, csv, more, expected) in cases {
        workspace.write("in.csv", csv);
        let correct = ["numbers", "correct", "in.csv", "--country", "LV"];
        let from_file = workspace.run(&[&correct[..], more].concat());
        assert_eq!(from_file.assert_success(), expected, "{case}");
        let correct = ["numbers", "correct", "-", "--country", "LV"];
        let from_stdin = workspace.run_with_input(&[&correct[..], more].concat(), csv);
        assert_eq!(
            from_stdin.assert_success(),
            expected,
            "{case}, standard input"
        );
    }
    assert!(!workspace.path("data").exists(), "no database is needed");
}

#[test]
fn an_invalid_number_gets_an_error_and_is_counted() {
    let workspace = Workspace::new();
    let csv = "id,number\n1,20000001\n2,none\n3,none\n4\n5,67000000\n";
    workspace.write("in.csv", csv);
    let correct = ["numbers", "correct", "in.csv", "--country", "LV"];
    let output = workspace.run(&correct);
    output.assert_stderr_contains(&[
        "5 rows: 2 corrected (1 mobile, 1 landline, 0 unknown), 3 errors",
        "2  it is not a phone number",
    ]);
    let out = output.assert_success();
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[2].starts_with("2,none,,,,'none' cannot be corrected for LV: "),
        "{out}"
    );
    assert!(lines[4].starts_with("4,,,,,the row ends"), "{out}");

    let to_file = ["--output", "out.csv", "--json"];
    let mut summary = workspace.run(&[&correct[..], &to_file].concat()).json();
    assert!(summary["rowsPerSecond"].take().is_u64());
    assert_eq!(summary["reasons"][0]["rows"], 2, "the most frequent first");
    let reasons = summary["reasons"].take();
    assert_eq!(reasons.as_array().map(Vec::len), Some(2));
    let expected = json!({
        "rows": 5, "corrected": 2, "mobile": 1, "landline": 1, "unknown": 0, "errors": 3,
        "reasons": null, "rowsPerSecond": null,
    });
    assert_eq!(summary, expected);
    assert_eq!(workspace.read("out.csv"), out);
}

#[test]
fn a_file_that_cannot_be_corrected_says_why() {
    let workspace = Workspace::new();
    workspace.write("in.csv", "id,tel\n1,2\n");
    workspace.write("empty.csv", "");
    for (command, code, fragments) in [
        (
            "nowhere.csv --country LV",
            1,
            ["cannot open", "nowhere.csv"],
        ),
        ("empty.csv --country LV", 1, ["empty.csv", "no rows"]),
        (
            "in.csv --country LV --column fax",
            1,
            ["'fax'", "'id', 'tel'"],
        ),
        (
            "in.csv --country LV --column 3",
            1,
            ["no column 3", "has 2"],
        ),
        (
            "in.csv --country LV --output in.csv",
            1,
            ["--output", "another name"],
        ),
        ("in.csv --country XX", 2, ["'XX'", "ISO 3166-1"]),
        ("in.csv", 2, ["--country", "required"]),
        ("in.csv --country LV --json", 2, ["--output", "required"]),
    ] {
        let arguments: Vec<&str> = ["numbers", "correct"]
            .into_iter()
            .chain(command.split(' '))
            .collect();
        let output = workspace.run(&arguments);
        assert_eq!(output.code, Some(code), "{command}: {output:?}");
        output.assert_stderr_contains(&fragments);
    }
    assert_eq!(
        workspace.read("in.csv"),
        "id,tel\n1,2\n",
        "it is not overwritten"
    );
}

#[test]
fn a_number_is_looked_up() {
    let workspace = Workspace::new();
    let list =
        "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,247,,0.05\n";
    workspace.write("list.csv", list);
    workspace
        .run(&["rates", "import", "list.csv"])
        .assert_success();
    workspace
        .run(&["account", "create", "--name", "acme"])
        .assert_success();
    workspace.write("own.csv", &list.replace("0.05", "0.01"));
    workspace
        .run(&["rates", "import", "own.csv", "--account", "acme"])
        .assert_success();

    let lookup = [
        "numbers",
        "lookup",
        "29123456",
        "+37167000000",
        "--country",
        "LV",
    ];
    let found = workspace.run(&[&lookup[..], &["--json"]].concat()).json();
    let mut first = found[0].clone();
    assert!(first["operatorId"].take().is_u64());
    let expected = json!({
        "number": "29123456", "numberE164": "+37129123456", "type": "mobile", "country": "LV", "operatorId": null,
        "operator": "LMT", "mcc": 247, "mnc": "01", "price": "0.05", "error": null,
    });
    assert_eq!(first, expected);
    let landline = [
        "type",
        "country",
        "operatorId",
        "operator",
        "mcc",
        "mnc",
        "price",
    ]
    .map(|key| found[1][key].clone());
    let none = Value::Null;
    assert_eq!(
        landline,
        [
            json!("landline"),
            json!("LV"),
            none.clone(),
            none.clone(),
            none.clone(),
            none,
            json!("0.05")
        ]
    );

    let own = workspace
        .run(&[&lookup[..], &["--json", "--account", "acme"]].concat())
        .json();
    assert_eq!(own[0]["price"], "0.01");
    let table = workspace.run(&lookup).assert_success();
    let line = table.lines().nth(1).unwrap_or_default();
    for cell in ["+37129123456", "mobile", "LV", "247-01", "0.05", "LMT"] {
        assert!(line.contains(cell), "{cell}: {table}");
    }
    let price = workspace
        .run(&["numbers", "lookup", "+3725123456", "--json"])
        .json();
    assert_eq!(
        price[0]["price"],
        Value::Null,
        "nothing is sent there: {price}"
    );
}

#[test]
fn an_invalid_number_is_an_error_next_to_valid_ones() {
    let workspace = Workspace::new();
    let output = workspace.run(&["numbers", "lookup", "none", "+37129123456"]);
    assert!(output.stdout.contains("+37129123456"), "{output:?}");
    output.assert_refused(&[
        "'none' cannot be corrected",
        "1 of 2 are no numbers",
        "demonstration list",
    ]);
    let output = workspace.run(&["numbers", "lookup", "none", "--json"]);
    let found: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(found[0]["number"], "none");
    assert!(found[0]["error"].is_string(), "{found}");
    output.assert_refused(&["1 of 1"]);
    let nobody = ["numbers", "lookup", "+37129123456", "--account", "nobody"];
    workspace
        .run(&nobody)
        .assert_refused(&["'nobody'", "account list"]);
}
