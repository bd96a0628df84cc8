//! Balances and spending rules of accounts.

use serde_json::{Value, json};
use testkit::Backend;

use super::{Workspace, run};
use crate::rest::on_both_backends;
use crate::rest::service::Service;

const CREATE: &[&str] = &["account", "create", "--name", "acme", "--balance", "10"];

/// Credits and debits are in the ledger, which adds up to the balance.
fn credits(backend: Backend) {
    let service = Service::start(backend);
    run(&service, CREATE).assert_success();
    let credit = ["account", "credit", "acme", "2.5", "--note", "invoice 7"];
    let text = run(&service, &credit).assert_success();
    assert_eq!(text, "Account 'acme' has a balance of 12.50.\n");
    let json = run(
        &service,
        &["account", "credit", "acme", "-20.000001", "--json"],
    )
    .json();
    assert_eq!(json, json!({ "name": "acme", "balance": "-7.500001" }));

    let mut ledger = run(&service, &["account", "ledger", "acme", "--json"]).json();
    for entry in ledger.as_array_mut().expect("a list") {
        let at = entry["at"].take();
        let at: Result<jiff::Timestamp, _> = at.as_str().expect("a time").parse();
        at.expect("RFC 3339");
    }
    let entry = |amount: &str, balance: &str, note: Value| json!({ "at": null, "kind": "credit", "amount": amount, "balance": balance, "messages": 0, "note": note });
    let expected = json!([
        entry("-20.000001", "-7.500001", Value::Null),
        entry("2.50", "12.50", json!("invoice 7")),
        entry("10.00", "10.00", Value::Null),
    ]);
    assert_eq!(ledger, expected, "the newest first");

    let newest = run(&service, &["account", "ledger", "acme", "--limit", "1"]).assert_success();
    assert_eq!(
        newest.lines().count(),
        2,
        "a header and one entry: {newest}"
    );
    let checked = run(&service, &["account", "check"]).assert_success();
    assert_eq!(checked, "Accounts checked: 2, all balanced.\n");
    let checked = run(&service, &["account", "check", "--json"]).json();
    assert_eq!(checked, json!({ "accounts": 2, "imbalances": [] }));
}

/// Rules that are set together take effect together; others stay unchanged.
fn rules(backend: Backend) {
    let service = Service::start(backend);
    run(&service, CREATE).assert_success();
    let listed = || {
        let list = run(&service, &["account", "list", "--json"]).json();
        let list = list.as_array().expect("a list");
        let acme = list.iter().find(|account| account["name"] == "acme");
        let acme = acme.expect("listed");
        let keys = [
            "creditLimit",
            "countries",
            "dailyCap",
            "perRecipientHour",
            "approvedSendersOnly",
            "requestsPerSecond",
            "codesPerDay",
        ];
        keys.map(|key| acme[key].clone())
    };
    let defaults = [
        json!("0.00"),
        json!(null),
        json!(null),
        json!(null),
        json!(false),
        json!(0),
        json!(500),
    ];
    assert_eq!(listed(), defaults);

    let set = ["account", "set", "acme"];
    let text = run(
        &service,
        &[&set[..], &["credit_limit=5", "countries=lv,EE"]].concat(),
    )
    .assert_success();
    for line in [
        "credit_limit           5.00",
        "countries              EE,LV",
        "daily_cap              off",
        "approved_senders_only  false",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let more = [
        "daily_cap=2.50",
        "per_recipient_hour=3",
        "approved_senders_only=true",
        "requests_per_second=25",
        "codes_per_day=7",
        "low_balance=10",
        "verify_price=0.02",
        "--json",
    ];
    let json = run(&service, &[&set[..], &more].concat()).json();
    let expected = json!({
        "name": "acme", "creditLimit": "5.00", "countries": ["EE", "LV"], "dailyCap": "2.50", "perRecipientHour": 3,
        "approvedSendersOnly": true, "requestsPerSecond": 25, "codesPerDay": 7,
        "adminsConsentOnly": false, "lowBalance": "10.00", "portedNumbers": false, "textsFor": "all",
        "verifyPrice": "0.02",
    });
    assert_eq!(json, expected);
    let in_force = [
        json!("5.00"),
        json!(["EE", "LV"]),
        json!("2.50"),
        json!(3),
        json!(true),
        json!(25),
        json!(7),
    ];
    assert_eq!(listed(), in_force);
    let table = run(&service, &["account", "list"]).assert_success();
    assert!(
        table.contains("credit_limit=5.00 countries=EE,LV daily_cap=2.50 per_recipient_hour=3 approved_senders_only=true requests_per_second=25"),
        "{table}"
    );

    let half_wrong = ["credit_limit=9", "daily_cap=much"];
    run(&service, &[&set[..], &half_wrong].concat())
        .assert_usage_error(&["'much'", "or write off"]);
    assert_eq!(listed(), in_force, "all or nothing");
    let off = [
        "credit_limit=0",
        "countries=all",
        "daily_cap=off",
        "per_recipient_hour=off",
        "approved_senders_only=false",
        "requests_per_second=0",
        "codes_per_day=500",
    ];
    run(&service, &[&set[..], &off].concat()).assert_success();
    assert_eq!(listed(), defaults);
}

on_both_backends!(credits, rules);

#[test]
fn an_invalid_rule_is_refused_with_the_valid_ones() {
    let workspace = Workspace::new();
    workspace.run(CREATE).assert_success();
    let keys = "credit_limit, countries, daily_cap, per_recipient_hour, approved_senders_only, requests_per_second";
    for (change, fragments) in [
        ("limit=1", ["'limit'", keys]),
        (
            "approved_senders_only=on",
            ["'on'", "neither true nor false"],
        ),
        ("credit_limit", ["KEY=VALUE", keys]),
        ("credit_limit=-1", ["-1.00", "from 0.00"]),
        ("countries=LV,XX", ["'XX'", "LV,EE"]),
        ("per_recipient_hour=0", ["'0'", "whole number from 1"]),
    ] {
        workspace
            .run(&["account", "set", "acme", change])
            .assert_usage_error(&fragments);
    }
    workspace
        .run(&["account", "set", "acme"])
        .assert_usage_error(&["KEY=VALUE"]);
    let twice = ["account", "set", "acme", "daily_cap=1", "daily_cap=2"];
    workspace
        .run(&twice)
        .assert_refused(&["daily_cap is given twice"]);
}

#[test]
fn a_refused_credit_says_why() {
    let workspace = Workspace::new();
    workspace.run(CREATE).assert_success();
    let long = "x".repeat(201);
    for (arguments, code, fragments) in [
        (&["nobody", "1"][..], 1, ["'nobody'", "account list"]),
        (
            &["acme", "1000000000"],
            1,
            ["1000000000.00", "1,000,000,000.00"],
        ),
        (
            &["acme", "-1000000011"],
            1,
            ["-1000000011.00", "either side"],
        ),
        (&["acme", "much"], 2, ["'much'", "100.00"]),
        (&["acme", "1e3"], 2, ["'1e3'", "100.00"]),
        (
            &["acme", "1", "--note", &long],
            2,
            ["note", "at most 200 characters"],
        ),
        (&["acme", "1", "--note", "a\nb"], 2, ["note", "one line"]),
    ] {
        let output = workspace.run(&[&["account", "credit"], arguments].concat());
        assert_eq!(output.code, Some(code), "{arguments:?}: {output:?}");
        output.assert_stderr_contains(&fragments);
    }
    workspace
        .run(&["account", "ledger", "nobody"])
        .assert_refused(&["'nobody'", "account list"]);
    let ledger = workspace
        .run(&["account", "ledger", "acme", "--json"])
        .json();
    assert_eq!(
        ledger.as_array().map(Vec::len),
        Some(1),
        "nothing was added: {ledger}"
    );
}

#[test]
fn a_balance_that_differs_from_the_ledger_is_found() {
    let workspace = Workspace::new();
    workspace.run(CREATE).assert_success();
    workspace
        .run(&["account", "create", "--name", "other"])
        .assert_success();
    let database =
        rusqlite::Connection::open(workspace.path("data/switchboard.db")).expect("the database");
    let changed = database.execute(
        "UPDATE ledger SET balance_micros = 1 WHERE account_id = (SELECT id FROM account WHERE name = 'acme')",
        [],
    );
    assert_eq!(changed, Ok(1));
    drop(database);

    let output = workspace.run(&["account", "check"]);
    assert!(
        output
            .stdout
            .contains("account 'acme': the balance is 0.000001, the ledger gives 10.00"),
        "{output:?}"
    );
    output.assert_refused(&["1 of 2 accounts"]);
    let output = workspace.run(&["account", "check", "--json"]);
    let found: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(found["accounts"], 2);
    assert_eq!(found["imbalances"][0]["account"], "acme");
    assert_eq!(found["imbalances"][0]["balance"], "0.000001");
    assert_eq!(found["imbalances"][0]["entries"], "10.00");
    output.assert_refused(&["1 of 2 accounts"]);
}
