//! Exports of messages, statements, margins, and what is stored about one number.

use serde_json::{Value, json};
use testkit::receiver::Receiver;
use testkit::{Backend, temp_dir};

use super::run;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, in_seconds, sms_with, tomorrow, wait_for};

const HEADER: &str = "id,account,channel,from,to,accepted,sent,ended,state,status,error,parts,price,cost,currency,carrier,mcc,mnc,country";
const ALWAYS: [&str; 4] = ["--from", "2020-01-01", "--to", "2100-01-01"];

/// Rows of JSON lines.
fn export(service: &Service, more: &[&str]) -> Vec<Value> {
    let format = ["--format", "jsonl"];
    let arguments = [&["export", "messages"], &ALWAYS[..], &format, more].concat();
    let text = run(service, &arguments).assert_success();
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(parse).collect()
}

/// Sends messages and returns their IDs once they have ended.
fn send(service: &Service, fields: &Value) -> Vec<String> {
    let ids = service.accept(&sms_with(fields));
    wait_for("the end of the messages", || {
        let rows = export(service, &[]);
        let has_ended = |id: &String| {
            let row = rows.iter().find(|row| row["id"] == **id);
            row.is_some_and(|row| !row["ended"].is_null())
        };
        ids.iter().all(has_ended).then_some(())
    });
    ids
}

fn messages(backend: Backend) {
    let service = Service::start(backend);
    let to = ["+37120000001", "+37120000002"];
    let ids = send(&service, &json!({ "to": to, "message": "a secret text" }));
    let waiting = service.accept(&sms_with(&json!({ "scheduled": tomorrow() })));

    let arguments = [&["export", "messages"], &ALWAYS[..]].concat();
    let csv = run(&service, &arguments).assert_success();
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines[0], HEADER);
    assert_eq!(lines.len(), 5, "a header, three rows and the end: {csv}");
    assert!(!csv.contains("secret"), "texts are not exported");
    assert!(
        lines[1].starts_with(&format!("{},main,sms,", ids[0])),
        "{csv}"
    );
    assert!(lines[1].contains(",+37120000001,"), "{csv}");

    let rows = export(&service, &[]);
    let first = &rows[0];
    assert_eq!(first["state"], "delivered");
    assert_eq!((&first["status"], &first["error"]), (&json!(1), &json!(0)));
    assert_eq!(first["carrier"], "simulator");
    assert_eq!(first["cost"], Value::Null, "the simulator has no cost list");
    assert_eq!(first["country"], "LV");
    assert_eq!(first["currency"], "EUR");
    for time in ["accepted", "sent", "ended"] {
        let text = first[time].as_str().expect("a time");
        text.parse::<jiff::Timestamp>().expect("RFC 3339");
    }
    let last = &rows[2];
    assert_eq!(last["id"], *waiting[0]);
    assert_eq!(last["state"], "scheduled");
    assert_eq!(
        (&last["status"], &last["ended"]),
        (&Value::Null, &Value::Null)
    );

    let rest = export(&service, &["--after", &ids[1]]);
    assert_eq!(rest.len(), 1, "an export continues");
    let arguments = [&arguments[..], &["--after", &ids[1]]].concat();
    let rest = run(&service, &arguments).assert_success();
    assert_eq!(rest.lines().count(), 1, "without a header: {rest}");
    assert_eq!(export(&service, &["--account", "main"]).len(), 3);
    run(&service, &["account", "create", "--name", "other"]).assert_success();
    assert_eq!(export(&service, &["--account", "other"]).len(), 0);
    let backwards = [
        "export",
        "messages",
        "--from",
        "2026-02-01",
        "--to",
        "2026-01-01",
    ];
    run(&service, &backwards).assert_refused(&["--from is after --to"]);
    let wrong = [
        "export",
        "messages",
        "--from",
        "today",
        "--to",
        "2026-01-01",
    ];
    run(&service, &wrong).assert_usage_error(&["write a day like"]);
}

fn statement(backend: Backend) {
    let service = Service::start(backend);
    send(&service, &json!({ "to": ["+37120000001", "+37120000002"] }));
    service.accept(&sms_with(&json!({ "scheduled": tomorrow() })));
    run(&service, &["account", "credit", "main", "5"]).assert_success();
    run(&service, &["account", "credit", "main", "-2"]).assert_success();

    let month = in_seconds(0).strftime("%Y-%m").to_string();
    let shown = |month: &str, format: &str| {
        let arguments = [
            "account",
            "statement",
            "main",
            "--month",
            month,
            "--format",
            format,
        ];
        run(&service, &arguments)
    };
    let json = shown(&month, "json").json();
    let amount = |key: &str| -> i64 {
        let text = json[key]
            .as_str()
            .unwrap_or_else(|| panic!("{key}: {json}"));
        micros(text)
    };
    let sum = [
        "openingBalance",
        "credits",
        "corrections",
        "charges",
        "refunds",
        "inbound",
        "verifications",
    ]
    .map(amount);
    assert_eq!(sum.iter().sum::<i64>(), amount("closingBalance"), "{json}");
    assert_eq!(
        amount("closingBalance"),
        micros(&service.balance()),
        "{json}"
    );
    let ended = json["ended"].as_array().expect("lines");
    let lines: i64 = ended
        .iter()
        .map(|line| micros(line["amount"].as_str().expect("an amount")))
        .sum();
    let paid = amount("charges") + amount("refunds");
    assert_eq!(lines + amount("inProgress"), -paid, "{json}");
    assert_eq!(json["complete"], false);

    let csv = shown(&month, "csv").assert_success();
    assert!(csv.starts_with("section,item,channel,"), "{csv}");
    assert!(csv.contains("\r\nbalance,closing_balance,"), "{csv}");
    shown("2026-13", "csv").assert_usage_error(&["a month is written like 2026-11"]);
    shown("2999-01", "csv").assert_refused(&["has not begun"]);

    let margin = [&["export", "margin"], &ALWAYS[..], &["--format", "json"]].concat();
    let margin = run(&service, &margin).json();
    assert_eq!(margin["total"]["messages"], 2, "{margin}");
    assert_eq!(margin["rows"][0]["carrier"], "simulator");
    assert_eq!(margin["total"]["withoutCost"], 2);
}

/// A carrier with a cost list: every message has its cost, and the report has the margin.
fn margins(backend: Backend) {
    let folder = temp_dir("costs").expect("a temporary folder");
    let list = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n,,Default,Default,,,0.01\n";
    let path = super::write(&folder.path().join("costs.csv"), list);
    let service = Service::with(backend, |builder| {
        builder.config(format!(
            "[[carrier]]\nname = \"simulator\"\nkind = \"simulator\"\ncosts = \"{path}\"\n"
        ))
    });
    send(&service, &json!({ "to": "+37120000001" }));
    send(
        &service,
        &json!({ "to": "+37120000002", "message": "long ".repeat(40) }),
    );
    let rows = export(&service, &[]);
    let costs: Vec<&Value> = rows.iter().map(|row| &row["cost"]).collect();
    assert_eq!(
        costs,
        [&json!("0.01"), &json!("0.02")],
        "the second has two parts"
    );

    let report = [&["export", "margin"], &ALWAYS[..], &["--format", "json"]].concat();
    let report = run(&service, &report).json();
    let total = &report["total"];
    assert_eq!(
        (&total["cost"], &total["withoutCost"]),
        (&json!("0.03"), &json!(0))
    );
    let earned: i64 = rows
        .iter()
        .map(|row| micros(row["price"].as_str().expect("a price")))
        .sum();
    let margin = micros(total["margin"].as_str().expect("an amount"));
    assert_eq!(margin, earned - 30_000, "{report}");
    let csv = [&["export", "margin"], &ALWAYS[..]].concat();
    let csv = run(&service, &csv).assert_success();
    assert!(csv.contains("\r\nsimulator,LV,main,2,3,"), "{csv}");
}

/// An amount in millionths.
fn micros(text: &str) -> i64 {
    let (whole, fraction) = text.split_once('.').expect("a decimal");
    let digits = format!("{whole}{fraction:0<6}");
    digits.parse().expect("a number")
}

fn subject(backend: Backend) {
    let service = Service::start(backend);
    let person = "+37129990001";
    send(
        &service,
        &json!({ "to": [person, "+37120000002"], "message": "for one person" }),
    );
    let spent = service.balance();
    let export_subject = || run(&service, &["subject", "export", person]).json();
    let found = export_subject();
    assert_eq!(found["number"], person);
    assert_eq!(found["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["messages"][0]["text"], "for one person");

    let preview = run(&service, &["subject", "erase", person]).assert_success();
    assert!(
        preview.contains("1 messages and lookups would"),
        "{preview}"
    );
    assert_eq!(export_subject(), found, "nothing changed");

    let waiting = json!({ "to": [person], "scheduled": tomorrow() });
    let waiting = service.accept(&sms_with(&waiting));
    // As it is dialled in Latvia.
    let erase = ["subject", "erase", "29990001", "--country", "LV", "--yes"];
    let refused = run(&service, &erase);
    assert!(
        refused.stdout.contains("erased from 1 messages"),
        "{refused:?}"
    );
    refused.assert_refused(&["1 messages are in progress"]);
    let cancelled = service.delete(&format!("/sms/{}", waiting[0]));
    assert_eq!(cancelled.status, 200);
    let erased = run(&service, &erase).assert_success();
    assert!(erased.contains("erased from 1 messages"), "{erased}");
    assert_eq!(export_subject()["messages"], json!([]));
    assert_eq!(service.balance(), spent, "money stays");
    let rows = export(&service, &[]);
    assert_eq!(rows[0]["to"], Value::Null);
    assert_eq!(rows[1]["to"], "+37120000002");

    let log = run(&service, &["audit", "--action", "subject", "--json"]).assert_success();
    assert!(log.contains("subject.erase"), "{log}");
    assert!(
        !log.contains("29990001"),
        "the log does not name the number: {log}"
    );
    run(&service, &["subject", "erase", "none"]).assert_refused(&["holds 'n'"]);
}

/// What a person wrote is exported and erased, also from callbacks.
fn inbox_of_a_subject(backend: Backend) {
    let receiver = Receiver::start();
    let service = Service::start(backend);
    let person = "+37129990001";
    let url = receiver.url("/inbound");
    let entry = ["--number", "1234", "--account", "main", "--url", &url];
    run(&service, &[&["number", "add"], &entry[..]].concat()).assert_success();
    let reply = ["simulator", "reply", "--from", person, "--to", "1234"];
    let reply = [&reply[..], &["--text", "my secret", "--json"]].concat();
    let id = run(&service, &reply).json()["id"].clone();
    wait_for("the callback", || receiver.received().into_iter().next());
    let export_subject = || run(&service, &["subject", "export", person]).json();
    let found = export_subject();
    assert_eq!(found["inbox"][0]["id"], id, "{found}");
    assert_eq!(found["inbox"][0]["text"], "my secret", "{found}");
    assert_eq!(found["inbox"][0]["account"], "main", "{found}");
    assert_eq!(found["incompleteTexts"], json!([]), "{found}");

    let erase = ["subject", "erase", person, "--yes"];
    let erased = wait_for("the callback to be received", || {
        let erased = run(&service, &erase);
        erased.stdout.contains("from 1 messages").then_some(erased)
    });
    erased.assert_success();
    assert_eq!(export_subject()["inbox"], json!([]));
    let shown = service.get(&format!("/sms/inbox/{}", id.as_str().expect("an ID")));
    let shown = shown.json();
    assert_eq!(
        (&shown["from"], &shown["message"]),
        (&json!(""), &json!(""))
    );

    run(&service, &["callbacks", "replay", "--all", "--url", &url]).assert_success();
    let again = wait_for("the replay", || receiver.received().into_iter().nth(1));
    let again: Value = serde_json::from_slice(&again.body).expect("JSON");
    assert_eq!(again, shown);
}

on_both_backends!(messages, statement, margins, subject, inbox_of_a_subject);
