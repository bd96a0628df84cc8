//! Downloads, statements, and texts that the account hides.

use serde_json::{Value, json};
use testkit::Backend;

use super::{admin, schedule, send};
use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, in_seconds, sms_with, wait_for};

on_both_backends!(
    an_account_downloads_its_own_messages,
    a_statement_is_shown_to_its_account,
    an_account_hides_texts_by_role,
);

const SECRET: &str = "the text of a message";

fn member(service: &Service) -> Browser<'_> {
    let more = ["--role", "member", "--account", "main"];
    joined(service, "member@example.com", &more)
}

/// Sends a message and waits until it is delivered.
fn deliver(service: &Service) -> String {
    let id = service
        .accept(&sms_with(&json!({ "message": SECRET })))
        .remove(0);
    wait_for("the delivery", || {
        let status = service.get(&format!("/sms/status/{id}")).json();
        (status["state"] == "delivered").then_some(())
    });
    id
}

fn an_account_downloads_its_own_messages(backend: Backend) {
    let service = Service::start(backend);
    let id = service
        .accept(&sms_with(&json!({ "message": SECRET })))
        .remove(0);
    let other = service.create_account("other");
    let foreign = service.call_as(
        &other,
        "POST",
        "/sms",
        sms_with(&json!({})).to_string().as_bytes(),
    );
    assert_eq!(foreign.status, 200, "{}", foreign.text());

    let mut browser = member(&service);
    assert!(
        browser
            .get("/dashboard/messages")
            .text()
            .contains("/dashboard/messages/download")
    );
    let days = "from=2020-01-01&to=2100-01-01";
    let csv = browser.get(&format!("/dashboard/messages/download?{days}"));
    assert_eq!(csv.status, 200, "{}", csv.text());
    let disposition = csv.header("content-disposition").expect("a file");
    assert!(
        disposition.contains("messages-2020-01-01-2100-01-01.csv"),
        "{disposition}"
    );
    let text = csv.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "only its own message: {text}");
    assert!(lines[0].starts_with("id,account,channel,"), "{text}");
    assert!(lines[1].starts_with(&format!("{id},main,sms,")), "{text}");
    assert!(!text.contains(SECRET));

    let lines = browser.get(&format!("/dashboard/messages/download?{days}&format=jsonl"));
    let row: Value = serde_json::from_str(lines.text().trim()).expect("one line");
    assert_eq!((&row["id"], &row["cost"]), (&json!(id), &Value::Null));
    let wrong = browser.get("/dashboard/messages/download?from=x&to=y");
    assert_eq!(wrong.status, 400);
}

fn a_statement_is_shown_to_its_account(backend: Backend) {
    let service = Service::start(backend);
    service.create_account("other");
    deliver(&service);
    let mut browser = member(&service);
    let page = browser.get("/dashboard/statement");
    assert_eq!(page.status, 200, "{}", page.text());
    let text = page.text();
    for expected in ["Opening balance", "Closing balance", "Months are UTC."] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let month = in_seconds(0).strftime("%Y-%m").to_string();
    let csv = browser.get(&format!("/dashboard/statement.csv?month={month}"));
    assert_eq!(csv.status, 200);
    assert!(
        csv.text().contains("balance,closing_balance,"),
        "{}",
        csv.text()
    );
    let closing = format!(",{},EUR", service.balance());
    assert!(csv.text().contains(&closing), "{closing}: {}", csv.text());
    assert_eq!(browser.get("/dashboard/statement?month=x").status, 400);
    for foreign in [
        "/dashboard/operator/accounts/2/statement",
        "/dashboard/operator/margin",
    ] {
        assert_eq!(browser.get(foreign).status, 403, "{foreign}");
    }
}

fn an_account_hides_texts_by_role(backend: Backend) {
    let service = Service::start(backend);
    let id = deliver(&service);
    let scheduled = schedule(&service, SECRET);
    let pages = [
        "/dashboard/messages".to_owned(),
        format!("/dashboard/messages/{id}"),
        "/dashboard/scheduled".to_owned(),
        format!("/dashboard/scheduled/{scheduled}"),
    ];
    let mut admin = admin(&service);
    let mut member = member(&service);
    for page in &pages {
        assert!(member.get(page).text().contains(SECRET), "{page}");
    }
    let saved = send(
        &mut admin,
        "/dashboard/settings/api/texts",
        &[("texts_admin", "true")],
    );
    assert_eq!(saved.status, 303, "{}", saved.text());
    for page in &pages {
        assert!(admin.get(page).text().contains(SECRET), "{page}");
        let shown = member.get(page).text();
        assert!(!shown.contains(SECRET), "{page}");
        assert!(shown.contains("(hidden)"), "{page}");
    }
    let refused = send(&mut member, "/dashboard/settings/api/texts", &[]);
    assert_eq!(refused.status, 403);
    let listed = service.server.cli_json(&["account", "list", "--json"]);
    assert_eq!(listed[0]["textsFor"], "admin");
}
