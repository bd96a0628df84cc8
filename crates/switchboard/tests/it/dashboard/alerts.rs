//! Alerts at the top of pages: who sees which, and where they lead.

use std::time::Instant;

use rusqlite::Connection;
use serde_json::json;
use testkit::chrome::{Chrome, Page};
use testkit::{Backend, TEST_TIMEOUT};

use super::operator_pages::register;
use super::{joined, operator};
use crate::rest::service::{Service, wait_for};

const ACME_ADMIN: [&str; 4] = ["--role", "admin", "--account", "acme"];
const RATE: &str =
    "The delivery rate of acme is falling: 60 % since yesterday, 100 % in the 7 days before";
const BALANCE: &str = "The balance of acme is low: ";
const RECEIVER: &str = "127.0.0.1:1 does not accept callbacks: ";
const SENDER: &str = "The sender ID Acme of main waits for a review";

fn database(service: &Service) -> Connection {
    let file = service.server.data_dir().join("switchboard.db");
    let file = Connection::open(file).expect("the file opens");
    file.busy_timeout(TEST_TIMEOUT).expect("it is set");
    file
}

/// Days of an account: how many messages were delivered and failed, this many days ago.
fn count_messages(service: &Service, account: u32, days: &[(u32, u32, u32)]) {
    let database = database(service);
    for (ago, delivered, failed) in days {
        for (status, error, messages) in [(1, 0, delivered), (2, 43, failed)] {
            database
                .execute(
                    "INSERT INTO traffic VALUES
                     (?1, 1, unixepoch() / 86400 - ?2, 0, 0, ?3, ?4, 0, ?5, ?5, 0)",
                    (account, ago, status, error, messages),
                )
                .expect("a valid statement");
        }
    }
}

/// The failed callback was tried three times, and is not tried again in this hour.
fn give_up_callbacks(service: &Service) {
    database(service)
        .execute_batch(
            "UPDATE callback SET tries = 3, due_us = due_us + 3600000000 WHERE tries BETWEEN 1 AND 2",
        )
        .expect("a valid statement");
}

/// The alerts of the page.
async fn alerts(page: &Page) -> String {
    let alerts = "document.querySelector('[aria-label=Alerts]')?.innerText ?? ''";
    let alerts = page.evaluate(alerts).await;
    alerts.as_str().expect("a text").to_owned()
}

/// Reloads a page until its alerts are as wanted.
async fn wait_until_alerts(page: &Page, are_as_wanted: impl Fn(&str) -> bool) -> String {
    let until = Instant::now() + TEST_TIMEOUT;
    loop {
        let shown = alerts(page).await;
        if are_as_wanted(&shown) {
            return shown;
        }
        assert!(Instant::now() < until, "{shown}");
        page.reload().await;
    }
}

/// Each alert leads to a page with this path and heading.
async fn follow(service: &Service, page: &Page, cases: &[(&str, &str, &str)]) {
    for (alert, path, heading) in cases {
        page.open(&service.server.url("/dashboard/connect")).await;
        page.click(&format!("[aria-label=Alerts] >> {alert}")).await;
        page.wait_for_path(path).await;
        assert_eq!(page.status(), Some(200), "{alert}");
        let shown = page
            .evaluate("document.querySelector('h1').innerText")
            .await;
        assert_eq!(shown, *heading, "{alert}");
    }
}

#[tokio::test]
async fn alerts_lead_those_who_may_act_to_the_right_page() {
    let service = Service::start(Backend::Sqlite);
    let token = service.create_account("acme");
    let low = ["account", "set", "acme", "low_balance=1000"];
    assert!(service.server.cli(&low).status.success());
    count_messages(&service, 2, &[(4, 100, 0), (0, 60, 40)]);
    let body = json!({
        "to": "+37120000001", "from": "Acme", "message": "x", "dlrUrl": "http://127.0.0.1:1/",
    });
    let sent = service.call_as(&token, "POST", "/sms", body.to_string().as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.text());
    wait_for("a failed attempt", || {
        let list = service.server.cli_json(&["callbacks", "list", "--json"]);
        let tried = list[0]["tries"].as_u64() > Some(0);
        tried.then_some(())
    });
    give_up_callbacks(&service);
    register(&service, "Acme", "our own name", None);

    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    let all = [RATE, BALANCE, RECEIVER, SENDER];
    wait_until_alerts(&page, |shown| all.iter().all(|alert| shown.contains(alert))).await;
    let cases = [
        (
            RATE,
            "/dashboard/operator/messages?account=acme&state=failed",
            "All messages",
        ),
        (BALANCE, "/dashboard/operator/accounts/2", "acme"),
        (RECEIVER, "/dashboard/operator/hosts", "Callback hosts"),
        (SENDER, "/dashboard/operator/senders", "Sender review"),
    ];
    follow(&service, &page, &cases).await;
    page.wait_for("our own name").await;
    page.assert_accessible().await;
    page.assert_no_browser_errors();

    let customer = joined(&service, &chrome, "ann@example.com", &ACME_ADMIN).await;
    let shown = wait_until_alerts(&customer, |shown| shown.contains(RECEIVER)).await;
    assert!(!shown.contains(SENDER), "{shown}");
    assert!(!shown.contains("all accounts"), "{shown}");
    let cases = [
        (RATE, "/dashboard/messages?state=failed", "Messages"),
        (BALANCE, "/dashboard", "Overview"),
        (RECEIVER, "/dashboard/callbacks", "Callbacks"),
    ];
    follow(&service, &customer, &cases).await;
    customer.wait_for("127.0.0.1:1").await;
    customer.assert_no_browser_errors();

    // People of another account cannot act.
    let other = ["--role", "admin", "--account", "main"];
    let other = joined(&service, &chrome, "bob@example.com", &other).await;
    assert_eq!(alerts(&other).await, "");

    // The alert goes when the operator has decided.
    page.click("main >> Approve").await;
    page.wait_for("approved").await;
    wait_until_alerts(&page, |shown| !shown.contains(SENDER)).await;
}
