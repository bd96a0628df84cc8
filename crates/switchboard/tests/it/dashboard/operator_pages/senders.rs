//! Reviewing senders.

use serde_json::json;
use testkit::chrome::Chrome;
use testkit::receiver::Receiver;
use testkit::{Backend, TEST_TIMEOUT};

use super::{operator, post, register};
use crate::rest::service::{Service, wait_for};

#[test]
fn a_decision_needs_a_reason_and_is_made_once() {
    let service = Service::start(Backend::Sqlite);
    let id = register(&service, "Acme", "a brand", None);
    let mut browser = operator(&service);
    let path = format!("/dashboard/operator/senders/{id}");
    let long = "x".repeat(201);
    for (reason, expected) in [
        ("", "Give a reason"),
        (" ", "Give a reason"),
        (long.as_str(), "at most 200 characters"),
    ] {
        let fields = [("decision", "reject"), ("reason", reason)];
        let page = post(&mut browser, &path, &fields);
        assert_eq!(page.status, 422, "{reason:?}");
        assert!(
            page.text().contains(expected),
            "{reason:?}: {}",
            page.text()
        );
    }
    let approved = post(&mut browser, &path, &[("decision", "approve")]);
    assert_eq!(approved.status, 303, "{}", approved.text());
    let again = post(&mut browser, &path, &[("decision", "approve")]);
    assert_eq!(again.status, 422);
    assert!(
        again.text().contains("Someone else has already decided"),
        "{}",
        again.text()
    );
    let revoke = [
        ("decision", "revoke"),
        ("reason", "not theirs"),
        ("view", "approved"),
    ];
    let asked = post(&mut browser, &path, &revoke);
    assert!(
        asked.text().contains("Revoke the sender Acme?"),
        "{}",
        asked.text()
    );
    assert_eq!(browser.submit(&[]).status, 303);
    let page = browser
        .get("/dashboard/operator/senders?state=revoked")
        .text();
    assert!(
        page.contains("Acme") && page.contains("not theirs"),
        "{page}"
    );
}

#[tokio::test]
async fn an_account_is_notified_of_the_decision() {
    let service = Service::start(Backend::Sqlite);
    let receiver = Receiver::start();
    let url = receiver.url("/senders");
    let first = register(&service, "Acme", "our shop", Some(&url));
    register(&service, "Dubious", "somebody else's brand", Some(&url));
    let chrome = Chrome::start().await;
    let page = crate::dashboard::operator(&service, &chrome).await;
    page.click("Sender review").await;
    page.wait_for("our shop").await;
    page.click(&format!(
        "[aria-labelledby=sender-{first}] button[value=approve]"
    ))
    .await;
    page.wait_for("Approved.").await;
    page.wait_gone("our shop").await;
    page.click("Reject").await;
    page.wait_for("Give a reason").await;
    page.fill("input[name=reason]", "not your brand").await;
    page.click("Reject").await;
    page.wait_for("Nothing to review").await;

    assert!(
        receiver.wait_for(2, TEST_TIMEOUT),
        "both notifications arrive"
    );
    let mut notifications: Vec<serde_json::Value> = receiver
        .received()
        .iter()
        .map(|one| serde_json::from_slice(&one.body).expect("JSON"))
        .collect();
    notifications.sort_by_key(|one| one["id"].as_u64());
    assert_eq!(notifications[0]["status"], "approved");
    assert_eq!(
        (&notifications[1]["status"], &notifications[1]["reason"]),
        (&json!("rejected"), &json!("not your brand"))
    );
    let state = || {
        let path = format!("/senderId/{first}");
        let found = service.get(&path).json();
        (found["status"] == "approved").then_some(())
    };
    wait_for("the account sees that it is approved", state);
    page.assert_no_browser_errors();
}
