//! From the link that the first start prints to a password that works.

use testkit::Backend;
use testkit::chrome::Chrome;

use super::{PASSWORD, first_link, operator};
use crate::rest::service::Service;

#[tokio::test]
async fn the_operator_signs_in_by_the_link_and_later_by_a_password() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.wait_for("100.00 EUR").await;

    page.click("Set a password").await;
    page.fill("Email", "op@example.com").await;
    page.fill("Password", PASSWORD).await;
    page.fill("Repeat the password", "another one here").await;
    page.submit().await;
    assert_eq!(page.status(), Some(422), "{}", page.text().await);
    assert_eq!(
        page.value("Email").await,
        "op@example.com",
        "the input is kept"
    );
    page.fill("Password", PASSWORD).await;
    page.fill("Repeat the password", PASSWORD).await;
    page.submit().await;
    page.wait_for_path("/dashboard").await;
    page.wait_for("op@example.com").await;
    page.wait_gone("Set a password").await;

    page.click("Sign out").await;
    page.wait_for_path("/dashboard/sign-in").await;
    page.open(&service.server.url("/dashboard")).await;
    assert!(page.path().await.starts_with("/dashboard/sign-in"));
    page.fill("Email", "op@example.com").await;
    page.fill("Password", PASSWORD).await;
    page.press("Enter").await;
    page.wait_for_path("/dashboard").await;
    page.wait_for("100.00 EUR").await;
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn the_link_works_once() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let later = chrome.page().await;
    // Opening the link does not use it up, since programs that preview links open it, too.
    later.open(&service.server.url(&first_link(&service))).await;
    operator(&service, &chrome).await;
    later.click("main >> Sign in").await;
    later.wait_for("This link does not work").await;
    later.open(&service.server.url(&first_link(&service))).await;
    later.wait_for("This link does not work").await;
    assert_eq!(
        later.evaluate("document.querySelector('button')").await,
        serde_json::Value::Null
    );
    later.open(&service.server.url("/dashboard")).await;
    assert!(later.path().await.starts_with("/dashboard/sign-in"));
    later.assert_no_browser_errors();
}
