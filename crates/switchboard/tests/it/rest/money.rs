//! Prices, balances and spending rules, as callers see them.

use serde_json::{Value, json};
use testkit::{Backend, temp_dir};

use super::service::{Service, message, sms_with, tomorrow, wait_for};

/// A price list with simple numbers.
const LIST: &str = "\
CountryName,CountryCode,Operator,Network,MCC,MNC,Rate
Latvia,LV,LMT,LMT,247,01,0.05
Latvia,LV,All other carriers,All other carriers,247,,0.10
United Kingdom,GB,All,All,234,,1
";

/// A service that charges by [`LIST`].
fn start(backend: Backend) -> Service {
    let service = Service::start(backend);
    import(&service, LIST, &[]);
    let read =
        || Some(service.get("/rates?format=csv").text()).filter(|csv| csv.lines().count() == 4);
    wait_for("the prices", read);
    service
}

pub(super) fn import(service: &Service, list: &str, more: &[&str]) {
    let folder = temp_dir("rates").expect("a temporary folder");
    let file = folder.path().join("list.csv");
    std::fs::write(&file, list).expect("the list is written");
    let path = file.to_str().expect("UTF-8");
    let arguments = [&["rates", "import", path], more].concat();
    let output = service.server.cli(&arguments);
    assert!(output.status.success(), "{output:?}");
}

/// Changes the spending rules of the first account.
fn set(service: &Service, rules: &[&str]) {
    let output = service
        .server
        .cli(&[&["account", "set", "main"], rules].concat());
    assert!(output.status.success(), "{output:?}");
}

pub(super) fn check_ledger(service: &Service) {
    let output = service.server.cli(&["account", "check"]);
    assert!(output.status.success(), "{output:?}");
}

/// Each price, each refund, and the exact balance after it.
fn a_message_costs_what_the_list_says(backend: Backend) {
    let service = start(backend);
    let mut spent = 0;
    let mut expect_spent = |cents: i64| {
        spent += cents;
        let left = 10_000 - spent;
        assert_eq!(
            service.balance(),
            format!("{}.{:02}", left / 100, left % 100)
        );
    };
    for (fields, cents) in [
        (json!({"to": "+37129100000"}), 5),
        (json!({"to": "+37120000001"}), 10),
        (json!({"to": "+37167000000"}), 10),
        (
            json!({"to": "+37129100000", "message": "a".repeat(161)}),
            10,
        ),
        (
            json!({"to": ["+37129100000", "+37120000001"], "message": "ы".repeat(80)}),
            30,
        ),
        (json!({"to": "+37120000001", "testMode": "1"}), 0),
        (json!({"to": "+37120000001", "testMode": "2"}), 0),
        (json!({"to": "29100000", "correctBy": "LV"}), 5),
    ] {
        service.accept(&sms_with(&fields));
        expect_spent(cents);
    }
    // A message that no network took is refunded; one that a network reported as failed is not.
    for (number, cents) in [("+447700900030", 0), ("+447700900012", 100)] {
        let id = &service.accept(&sms_with(&json!({ "to": number })))[0];
        wait_for("the final state", || {
            let status = service.get(&format!("/sms/status/{id}")).json();
            (status["status"] == 2).then_some(())
        });
        expect_spent(cents);
    }
    let id = &service.accept(&sms_with(&json!({ "scheduled": tomorrow() })))[0];
    expect_spent(10);
    assert_eq!(service.delete(&format!("/sms/{id}")).status, 200);
    expect_spent(-10);
    check_ledger(&service);
}

fn messages_beyond_the_balance_are_refused(backend: Backend) {
    let service = start(backend);
    service.server.cli(&["account", "credit", "main", "-99.85"]);
    let before = service.stored();
    let expensive = sms_with(&json!({"to": ["+37120000001", "+37120000002"]}));
    let response = service.send(&expensive);
    assert_eq!(response.status, 403, "{}", response.text());
    let text = message(&response);
    assert!(
        text.contains("costs 0.20 EUR") && text.contains("can spend 0.15 EUR"),
        "{text}"
    );
    assert_eq!(
        (service.balance().as_str(), service.stored()),
        ("0.15", before)
    );

    let key = [("Idempotency-Key", "pay-later")];
    let body = expensive.to_string();
    let repeat = || service.call_with(&service.token, "POST", "/sms", &key, body.as_bytes());
    assert_eq!(repeat().status, 403);
    service.server.cli(&["account", "credit", "main", "0.05"]);
    let paid = repeat();
    assert_eq!(
        paid.status,
        200,
        "a refused request does not use up its key: {}",
        paid.text()
    );
    assert_eq!(repeat().body, paid.body);
    assert_eq!(service.balance(), "0.00");
    set(&service, &["credit_limit=0.10"]);
    service.accept(&sms_with(&json!({})));
    assert_eq!(service.send(&sms_with(&json!({}))).status, 403);
    assert_eq!(service.balance(), "-0.10");
    check_ledger(&service);
}

/// Rules are off until they are set, and say what they refuse.
fn spending_rules_say_what_they_refuse(backend: Backend) {
    let service = start(backend);
    let send = |fields: Value| service.send(&sms_with(&fields));
    let refused = |fields: Value, words: &[&str]| {
        let response = wait_for("the rule", || {
            Some(send(fields.clone())).filter(|r| r.status == 403)
        });
        let text = message(&response);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    set(&service, &["countries=LV,EE"]);
    refused(
        json!({"to": "+447700900000"}),
        &["+447700900000", "list of countries"],
    );
    refused(
        json!({"to": ["+37120000001", "+447700900000"]}),
        &["+447700900000"],
    );
    assert_eq!(
        send(json!({"to": "+447700900000", "testMode": 1})).status,
        200
    );
    assert_eq!(send(json!({})).status, 200);
    set(&service, &["countries=all", "per_recipient_hour=2"]);
    wait_for("all countries", || {
        Some(send(json!({"to": "+447700900000"}))).filter(|r| r.status == 200)
    });
    assert_eq!(send(json!({"to": "+37120000005"})).status, 200);
    assert_eq!(send(json!({"to": "+37120000005"})).status, 200);
    refused(
        json!({"to": "+37120000005"}),
        &["+37120000005", "at most 2 messages"],
    );
    // Enough for one message to Latvia, no matter how many were sent before a rule took effect.
    let spent = 100.0 - service.balance().parse::<f64>().expect("a number");
    let cap = format!("daily_cap={:.2}", spent + 0.15);
    set(&service, &["per_recipient_hour=off", &cap]);
    assert_eq!(send(json!({"to": "+37120000005"})).status, 200);
    refused(
        json!({"to": "+447700900000"}),
        &["on one day", "midnight UTC"],
    );
    set(&service, &["daily_cap=off"]);
    assert_eq!(send(json!({"to": "+447700900000"})).status, 200);
    check_ledger(&service);
}

#[test]
fn a_cost_is_calculated_without_sending() {
    let service = start(Backend::Sqlite);
    let cost = |fields: Value| {
        let body = sms_with(&fields).to_string();
        service.call_as(&service.token, "POST", "/sms/cost", body.as_bytes())
    };
    let item = |to, parts: u8, coding: u8, country, network: Value, price, total| {
        json!({"to": to, "parts": parts, "coding": coding, "countryISO": country, "mccmnc": network,
            "pricePerPart": price, "totalPrice": total, "currency": "EUR"})
    };
    let expected = json!([
        item("+37129100000", 2, 2, "LV", json!("24701"), "0.05", "0.10"),
        item("+37167000000", 2, 2, "LV", Value::Null, "0.10", "0.20"),
        item("+447700900000", 2, 2, "GB", json!("23402"), "1.00", "2.00"),
    ]);
    let to = json!(["+37129100000", "+37167000000", "+447700900000"]);
    let response = cost(json!({"to": to, "message": "ы".repeat(80)}));
    assert_eq!(response.json(), expected);
    let test_mode = cost(json!({"testMode": "1"})).json();
    assert_eq!(test_mode[0]["totalPrice"], "0.00", "{test_mode}");
    for (fields, words) in [
        (json!({"to": "+881612345678"}), "no country) has no price"),
        (json!({"to": "+4915112345678"}), "Germany) has no price"),
        (json!({"from": ""}), "'from'"),
    ] {
        for response in [cost(fields.clone()), service.send(&sms_with(&fields))] {
            assert_eq!(response.status, 400, "{fields}");
            assert!(message(&response).contains(words), "{}", response.text());
        }
    }
    assert_eq!(service.balance(), "100.00");
    assert_eq!(service.stored(), 0);
}

/// A batch may need two transactions. When the second fails, callers whose messages the first one stored get 200.
#[test]
fn callers_whose_messages_are_stored_are_not_refused() {
    const CALLERS: usize = 8;
    const EACH: usize = 15;
    let service = start(Backend::Postgres);
    let limited = service.create_account("limited");
    let output = service
        .server
        .cli(&["account", "set", "limited", "per_recipient_hour=100000"]);
    assert!(output.status.success(), "{output:?}");
    let database = service.server.database().expect("on PostgreSQL");
    let execute = |sql| database.execute_blocking(sql).expect("a valid statement");
    // Only limits per recipient need this table, and only the second transaction looks at them.
    execute("ALTER TABLE recipient_sent RENAME TO recipient_sent_away");
    let send = |token: &str| {
        let headers = [
            ("X-Service-Token", token),
            ("Content-Type", "application/json"),
        ];
        let body = sms_with(&json!({})).to_string();
        let answer = service.raw("POST", "/sms", &headers, body.as_bytes());
        answer.status
    };
    let send_all = |token: &str| -> Vec<u16> { (0..EACH).map(|_| send(token)).collect() };
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| assert_eq!(send_all(&service.token), [200; EACH]));
            scope.spawn(|| assert_eq!(send_all(&limited), [500; EACH]));
        }
    });
    assert_eq!(service.balance(), "88.00", "120 messages at 0.10");
    let left = service.call_as(&limited, "GET", "/token", b"").json();
    assert_eq!(left["balance"], "50.00");
    execute("ALTER TABLE recipient_sent_away RENAME TO recipient_sent");
    assert_eq!(send(&limited), 200);
    check_ledger(&service);
}

/// `retention.ledger_days`, as an operator sees it.
fn old_charges_are_folded_and_the_balance_stays(backend: Backend) {
    const SENT: usize = 6;
    let mut service = Service::with(backend, |builder| {
        builder.config("[retention]\nledger_days = 1\n")
    });
    for _ in 0..SENT {
        service.accept(&sms_with(&json!({})));
    }
    let ledger = |service: &Service| {
        let ledger = service
            .server
            .cli_json(&["account", "ledger", "main", "--json"]);
        ledger.as_array().expect("a list").clone()
    };
    assert_eq!(ledger(&service).len(), 1 + SENT);
    let before = service.balance();
    age_ledger(&service);
    service.server.restart();
    let folded = wait_for("the ledger is folded", || {
        Some(ledger(&service)).filter(|entries| entries.len() == 3)
    });
    let messages: Vec<u64> = folded
        .iter()
        .filter_map(|entry| entry["messages"].as_u64())
        .collect();
    assert_eq!(
        messages,
        [1, 5, 0],
        "the newest entry, the folded day, the first credit"
    );
    assert_eq!(service.balance(), before);
    check_ledger(&service);
}

/// Moves the whole ledger to one day in the past.
fn age_ledger(service: &Service) {
    const AGE_LEDGER: &str = "UPDATE ledger SET at_us = 1700000000000000 + id";
    if let Some(database) = service.server.database() {
        database
            .execute_blocking(AGE_LEDGER)
            .expect("a valid statement");
    } else {
        let file = service.server.data_dir().join("switchboard.db");
        let file = rusqlite::Connection::open(file).expect("the file opens");
        file.execute_batch(AGE_LEDGER).expect("a valid statement");
    }
}

#[test]
fn an_account_may_have_prices_of_its_own() {
    let service = start(Backend::Sqlite);
    let other = service.create_account("other");
    let own =
        "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,247,,0.01\n";
    import(&service, own, &["--account", "other"]);
    let rate = |token: &str| {
        let rates = service.call_as(token, "GET", "/rates/", b"").json();
        let rates = rates.as_array().expect("a list").clone();
        let row = rates
            .into_iter()
            .find(|row| row["CountryCode"] == "LV" && row["MNC"].is_null());
        row.expect("Latvia's default")["Rate"]
            .as_str()
            .expect("a price")
            .to_owned()
    };
    wait_for("the account's own price", || {
        Some(rate(&other)).filter(|rate| rate == "0.01")
    });
    assert_eq!(rate(&service.token), "0.10");
    let body = sms_with(&json!({})).to_string();
    service.call_as(&other, "POST", "/sms", body.as_bytes());
    let left = service.call_as(&other, "GET", "/token", b"").json();
    assert_eq!(left["balance"], "49.99");
}

super::on_both_backends!(
    a_message_costs_what_the_list_says,
    messages_beyond_the_balance_are_refused,
    spending_rules_say_what_they_refuse,
    old_charges_are_folded_and_the_balance_stays,
);
