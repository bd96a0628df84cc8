//! What people do with an account, in a real browser.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use testkit::chrome::{Chrome, Page};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT};

use super::joined;
use crate::rest::service::{Service, sms_with, wait_for};

const ADMIN: [&str; 4] = ["--role", "admin", "--account", "main"];

/// Creates a token and returns its secret.
async fn create_token(service: &Service, page: &Page, name: &str) -> String {
    page.open(&service.server.url("/dashboard/settings/api"))
        .await;
    page.click("Create a token").await;
    page.fill("Name", name).await;
    page.tick("input[value='sms:send']").await;
    page.submit().await;
    page.wait_for("Copy it now").await;
    let secret = page
        .evaluate("document.querySelector('#secret code').textContent")
        .await;
    secret.as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn an_invited_person_creates_a_token_and_sends_with_it() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = joined(&service, &chrome, "ann@example.com", &ADMIN).await;
    let secret = create_token(&service, &page, "backend").await;
    let sent = service.call_as(
        &secret,
        "POST",
        "/sms",
        sms_with(&json!({})).to_string().as_bytes(),
    );
    assert_eq!(sent.status, 200, "{}", sent.text());

    page.click("I have copied it").await;
    page.wait_for_path("/dashboard/settings/api").await;
    page.wait_for("backend").await;
    page.reload().await;
    let html = page.evaluate("document.documentElement.outerHTML").await;
    assert!(!html.to_string().contains(&secret), "shown once");
    page.back().await;
    let html = page.evaluate("document.documentElement.outerHTML").await;
    assert!(
        !html.to_string().contains(&secret),
        "not even after going back"
    );
}

#[tokio::test]
async fn a_deleted_token_is_answered_with_401() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = joined(&service, &chrome, "ann@example.com", &ADMIN).await;
    let secret = create_token(&service, &page, "doomed").await;
    let works = service.call_as(&secret, "GET", "/token", b"");
    assert_eq!(works.status, 200);

    page.click("I have copied it").await;
    page.click("Delete doomed").await;
    page.wait_for("Delete the token doomed?").await;
    page.click("main >> button").await;
    page.wait_for("The next call with this token is answered with 401.")
        .await;
    wait_for("the refusal", || {
        let refused = service.call_as(&secret, "GET", "/token", b"");
        (refused.status == 401).then_some(())
    });
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn a_failed_callback_is_sent_again_and_received() {
    let service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let is_fixed = Arc::new(AtomicBool::new(false));
    let fixed = is_fixed.clone();
    let receiver = Receiver::builder().script(move |_| {
        if fixed.load(Ordering::Relaxed) {
            Reply::ok()
        } else {
            Reply::answer(200, "no")
        }
    });
    let receiver = receiver.start();
    let chrome = Chrome::start().await;
    let page = joined(&service, &chrome, "ann@example.com", &ADMIN).await;
    service.accept(&sms_with(&json!({ "dlrUrl": receiver.url("/dlr") })));
    assert!(receiver.wait_for(1, TEST_TIMEOUT), "a first attempt");
    let id = wait_for("the attempt in the list", || {
        let list = service.server.cli_json(&["callbacks", "list", "--json"]);
        let tried = |one: &&Value| one["tries"].as_u64() > Some(0);
        list.as_array()?
            .iter()
            .find(tried)
            .map(|one| one["id"].to_string())
    });

    page.open(&service.server.url("/dashboard/callbacks")).await;
    page.wait_for(&receiver.addr().to_string()).await;
    page.wait_for("200, but the body was").await;
    page.click(&id).await;
    page.wait_for_path(&format!("/dashboard/callbacks/{id}"))
        .await;
    page.wait_for("200, but the body was").await;
    page.wait_for("waiting").await;

    is_fixed.store(true, Ordering::Relaxed);
    let before = receiver.count();
    page.click("Send again").await;
    page.wait_for("It is being sent again").await;
    assert!(
        receiver.wait_for(before + 1, TEST_TIMEOUT),
        "it was sent again"
    );
    wait_for("an empty list", || {
        let list = service.server.cli_json(&["callbacks", "list", "--json"]);
        list.as_array().is_some_and(Vec::is_empty).then_some(())
    });
    // The page updates itself.
    page.wait_for("received").await;
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn a_number_is_registered_with_the_pin_from_its_handset() {
    const NUMBER: &str = "+37120000007";
    let service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let chrome = Chrome::start().await;
    let page = joined(&service, &chrome, "ann@example.com", &["--account", "main"]).await;
    page.open(&service.server.url("/dashboard/senders")).await;
    page.click("main >> Register a number").await;
    page.fill("Number", "12").await;
    page.submit().await;
    assert_eq!(page.status(), Some(422), "{}", page.text().await);
    assert_eq!(page.value("Number").await, "12", "the input is kept");
    page.fill("Number", "+371 2000 0007").await;
    page.submit().await;
    page.wait_for("A PIN of five digits was sent to +37120000007")
        .await;

    let pin = wait_for("the PIN", || {
        let list = service
            .server
            .cli_json(&["simulator", "inbox", "--number", NUMBER, "--json"]);
        let text = list[0]["message"].as_str()?.to_owned();
        text.get(..5).map(str::to_owned)
    });
    let wrong = if pin == "11111" { "22222" } else { "11111" };
    page.fill("PIN", wrong).await;
    page.click("Confirm").await;
    page.wait_for("4 tries are left").await;
    page.click("Send a new PIN").await;
    page.wait_for("less than a minute ago").await;
    page.fill("PIN", &pin).await;
    page.click("Confirm").await;
    page.wait_for("You may send from this number").await;
    page.wait_for("approved").await;
    page.click("← Senders").await;
    page.wait_for(NUMBER).await;
}
