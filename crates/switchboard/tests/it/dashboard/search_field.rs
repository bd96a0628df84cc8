//! The search field at the top of every page, and the way from there to the reason why a message did not arrive.

use serde_json::json;
use testkit::Backend;
use testkit::chrome::{Chrome, Page};

use super::{joined, operator};
use crate::rest::service::{Service, wait_for};

/// The simulated network reports that the subscriber of this number is absent.
const ABSENT: &str = "+447700900043";

/// Goes to the field by its shortcut and searches.
async fn search(page: &Page, words: &str) {
    page.press("Control+k").await;
    let focused = page.evaluate("document.activeElement.id").await;
    assert_eq!(focused, "find", "the shortcut goes to the field");
    page.fill("#find", words).await;
    page.press("Enter").await;
}

/// Creates the account acme, sends a message from it to each number, and waits until all have failed. Returns their IDs.
fn failed_messages(service: &Service, numbers: &[&str]) -> Vec<String> {
    let token = service.create_account("acme");
    let body = json!({ "to": numbers, "from": "Acme", "message": "x" }).to_string();
    let sent = service.call_as(&token, "POST", "/sms", body.as_bytes());
    let ids = crate::rest::service::ids(&sent);
    for id in &ids {
        wait_for("the failure", || {
            let status = service.call_as(&token, "GET", &format!("/sms/status/{id}"), b"");
            (status.json()["state"] == "failed").then_some(())
        });
    }
    ids
}

#[tokio::test]
async fn messages_tokens_and_accounts_are_found() {
    const BY_NUMBER: &str = "/dashboard/search?q=%2B447700900043";
    let service = Service::start(Backend::Sqlite);
    let id = failed_messages(&service, &[ABSENT]).remove(0);
    let token = service.create_token("main", &["--name", "warehouse"]);
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    let row = format!("#token-{}:target", token.id);
    let cases: [(&str, &str, &str); 3] = [
        (&id, &format!("/dashboard/operator/messages/{id}"), "h1"),
        ("ACM", "/dashboard/operator/accounts/2", "h1"),
        ("wareh", "/dashboard/settings/api", &row),
    ];
    for (words, path, found) in cases {
        search(&page, words).await;
        page.wait_for_path(path).await;
        assert_eq!(page.count(found).await, 1, "{words}");
    }
    search(&page, ABSENT).await;
    page.wait_for_path(BY_NUMBER).await;
    page.wait_for("Messages of all accounts to").await;
    page.assert_no_browser_errors();

    // An admin finds tokens and messages of the own account only; a member finds no tokens.
    for (email, more, finds_tokens) in [
        (
            "ann@example.com",
            &["--role", "admin", "--account", "main"][..],
            true,
        ),
        ("bob@example.com", &["--account", "main"], false),
    ] {
        let page = joined(&service, &chrome, email, more).await;
        for words in ["acme", &id] {
            search(&page, words).await;
            page.wait_for("Nothing found.").await;
        }
        search(&page, ABSENT).await;
        page.wait_for_path(BY_NUMBER).await;
        page.wait_for("Messages to").await;
        let lists = page.text().await;
        assert!(!lists.contains("all accounts"), "{email}: {lists}");
        search(&page, "wareh").await;
        if finds_tokens {
            page.wait_for_path("/dashboard/settings/api").await;
        } else {
            page.wait_for("Nothing found.").await;
        }
        page.assert_no_browser_errors();
    }
}

/// Pressing Enter counts as a click.
#[tokio::test]
async fn an_operator_finds_why_a_message_failed_in_three_clicks() {
    const ILLEGAL: &str = "+447700900001";
    let service = Service::start(Backend::Sqlite);
    let ids = failed_messages(&service, &[ABSENT, ILLEGAL]);
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    let by_number = format!("Messages of all accounts to >> {ABSENT}");
    for (words, second, number, id, error, advice) in [
        (
            ABSENT,
            by_number.as_str(),
            ABSENT,
            &ids[0],
            "Failed: the subscriber is absent (error 43)",
            "Send it again later.",
        ),
        (
            "acme",
            "main >> Messages",
            ILLEGAL,
            &ids[1],
            "Failed: illegal subscriber (error 1)",
            "Check the number.",
        ),
    ] {
        page.open(&service.server.url("/dashboard")).await;
        search(&page, words).await;
        page.click(second).await;
        page.click(&format!("{number} >> {id}")).await;
        page.wait_for_path(&format!("/dashboard/operator/messages/{id}"))
            .await;
        for text in ["acme", error, advice] {
            page.wait_for(text).await;
        }
    }
    page.assert_no_browser_errors();
}
