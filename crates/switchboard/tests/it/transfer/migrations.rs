//! A service is migrated to another database while it runs, and continues there.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::receiver::Receiver;
use testkit::{Backend, TEST_TIMEOUT, TestDatabase};

use super::{file_url, json as printed, migrate, refusal, start_on, url};
use crate::people::browser::Browser;
use crate::people::{PASSWORD, joined};
use crate::rest::service::{Service, binary, ids, in_seconds, sms_with, wait_for, with_offset};

fn send(service: &Service, dlr: &str, fields: &Value) -> String {
    let mut body = sms_with(fields);
    body["dlrUrl"] = json!(dlr);
    service.accept(&body).remove(0)
}

fn state(service: &Service, id: &str) -> String {
    let status = service.get(&format!("/sms/status/{id}")).json();
    status["state"].as_str().unwrap_or_default().to_owned()
}

fn send_with_key(service: &Service) -> String {
    let body = sms_with(&json!({})).to_string();
    let key = [("Idempotency-Key", "the-key")];
    let answer = service.call_with(&service.token, "POST", "/sms", &key, body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    ids(&answer).remove(0)
}

fn wait_until_delivered(service: &Service, ids: &[String]) {
    for id in ids {
        wait_for("the message is delivered", || {
            (state(service, id) == "delivered").then_some(())
        });
    }
}

#[test]
fn a_running_service_is_migrated_to_postgres() {
    let mut service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let receiver = Receiver::start();
    let dlr = receiver.url("/dlr");
    let acme = service.create_account("acme");
    joined(&service, "ann@example.com", &["--account", "main"]);
    let first: Vec<String> = (0..20).map(|_| send(&service, &dlr, &json!({}))).collect();
    wait_until_delivered(&service, &first);
    let keyed_id = send_with_key(&service);
    let scheduled = json!({ "scheduled": with_offset(in_seconds(12), 0) });
    let scheduled_id = send(&service, &receiver.url("/later"), &scheduled);
    let far = json!({ "scheduled": with_offset(in_seconds(90_000), 0) });
    let cancelled = send(&service, &dlr, &far);
    assert_eq!(service.delete(&format!("/sms/{cancelled}")).status, 200);

    let target = TestDatabase::create_blocking();
    let partial = migrate(&service, target.url());
    assert_eq!(partial["complete"], json!(false), "{partial}");
    assert!(
        partial["remaining"]["account"].as_u64() == Some(2),
        "{partial}"
    );
    let refused = refusal(target.url());
    assert!(
        refused.contains("an unfinished copy of sqlite:"),
        "{refused}"
    );

    let second: Vec<String> = (0..20).map(|_| send(&service, &dlr, &json!({}))).collect();
    wait_until_delivered(&service, &second);
    assert!(receiver.wait_for(40, TEST_TIMEOUT));
    let balance = service.balance();
    assert!(service.server.terminate().success());
    let complete = migrate(&service, target.url());
    assert_eq!(complete["complete"], json!(true), "{complete}");
    let refused = refusal(&url(&service));
    assert!(refused.contains("was moved to postgres://"), "{refused}");

    let moved = start_on(target.url(), &service.token);
    assert_eq!(moved.balance(), balance);
    for id in first.iter().chain(&second) {
        assert_eq!(state(&moved, id), "delivered", "{id}");
    }
    assert_eq!(state(&moved, &cancelled), "cancelled");
    assert_eq!(send_with_key(&moved), keyed_id, "the key is not known");
    assert_eq!(moved.call_as(&acme, "GET", "/token", b"").status, 200);
    let mut browser = Browser::new(&moved);
    browser.get("/dashboard/sign-in");
    let entered = browser.submit(&[("email", "ann@example.com"), ("password", PASSWORD)]);
    assert_eq!(entered.header("location"), Some("/dashboard"));

    let third: Vec<String> = (0..20).map(|_| send(&moved, &dlr, &json!({}))).collect();
    wait_until_delivered(&moved, &third);
    wait_until_delivered(&moved, &[scheduled_id]);
    assert!(
        receiver.wait_for(61, TEST_TIMEOUT),
        "{} reports",
        receiver.count()
    );
    let reports: Vec<_> = receiver.received();
    let scheduled_reports = reports.iter().filter(|report| report.path == "/later");
    assert_eq!(scheduled_reports.count(), 1, "not sent once");
    let all: BTreeSet<&String> = first.iter().chain(&second).chain(&third).collect();
    assert_eq!(all.len(), 60, "an ID was used twice");
    let checked = moved.server.cli(&["account", "check"]);
    assert!(checked.status.success(), "{checked:?}");
    moved.check_health();
}

/// Adds this many messages that have ended to a file.
fn fill(path: &Path, messages: u32) {
    let file = rusqlite::Connection::open(path).expect("a file");
    file.execute_batch(&format!(
        "WITH RECURSIVE n (id) AS (SELECT 1001 UNION ALL SELECT id + 1 FROM n WHERE id < 1000 + {messages})
         INSERT INTO message (id, account_id, recipient, originator, body, coding, coding_given, parts, priority,
             accepted_us, expires_us, state, final_us, status, error)
         SELECT id, 1, 37120000000 + id, 'Acme', X'48656C6C6F', 0, 0, 1, 1, id, id, 3, id, 1, 0 FROM n;
         UPDATE id_block SET next = 2000 + {messages}"
    ))
    .expect("filled");
}

fn count(target: &TestDatabase) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let connected = tokio_postgres::connect(target.url(), tokio_postgres::NoTls).await;
        let (client, connection) = connected.expect("the server answers");
        tokio::spawn(connection);
        let row = client.query_one("SELECT count(*) FROM message", &[]).await;
        row.map_or(0, |row| row.get(0))
    })
}

#[test]
fn a_migration_that_was_killed_continues() {
    const MESSAGES: u32 = 60_000;
    let mut service = Service::start(Backend::Sqlite);
    assert!(service.server.terminate().success());
    let path = service.server.data_dir().join("switchboard.db");
    fill(&path, MESSAGES);
    let target = TestDatabase::create_blocking();
    let mut killed = 0;
    for goal in [1, 20_000] {
        let mut child = Command::new(binary())
            .args(["migrate", "--from", &file_url(&path), "--to", target.url()])
            .current_dir(service.server.data_dir())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let ended = wait_for("rows in the target", || {
            let ended = child.try_wait().expect("a child").is_some();
            (ended || count(&target) >= goal).then_some(ended)
        });
        child.kill().expect("killed, or ended");
        child.wait().expect("ended");
        killed += i32::from(!ended);
        if !ended {
            let refused = refusal(target.url());
            assert!(refused.contains("an unfinished copy"), "{refused}");
        }
    }
    assert!(killed > 0, "the migration was always faster");
    let complete = migrate(&service, target.url());
    assert_eq!(complete["complete"], json!(true), "{complete}");
    assert_eq!(count(&target), i64::from(MESSAGES));
    let moved = start_on(target.url(), &service.token);
    let new = moved.accept(&sms_with(&json!({}))).remove(0);
    let new: u64 = new.parse().expect("a number");
    assert!(new > u64::from(MESSAGES) + 1000, "{new}");
}

#[test]
fn a_migration_can_be_undone() {
    let mut service = Service::start(Backend::Sqlite);
    assert!(service.server.terminate().success());
    let target = TestDatabase::create_blocking();
    migrate(&service, target.url());
    let from = url(&service);
    let undo = [
        "migrate",
        "--from",
        &from,
        "--to",
        target.url(),
        "--undo",
        "--json",
    ];
    printed(&service.server.cli(&undo));
    let refused = refusal(target.url());
    assert!(refused.contains("an unfinished copy"), "{refused}");
    service.server.restart();
    assert_eq!(service.get("/token").status, 200);
}
